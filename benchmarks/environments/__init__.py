"""Where the sides of a comparison live: a Python environment each under `.bench`, and `tests/node` for the reference.

What is in them is pinned by the requirements beside this file. They are made when they are first needed, and anew when
the requirements have changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".bench"
NODE_PROJECT = ROOT / "tests" / "node"
#: Environments, and what is installed into each beside its requirements.
PYTHON_ENVIRONMENTS: dict[str, tuple[str, ...]] = {
    "accord": ("--editable", ".[server]"),
    "official": (),
    "agent-framework": (),
}


class SetupFailed(Exception):
    """An environment could not be made."""


def make_all() -> None:
    """Makes what is missing or out of date."""
    for name, more in PYTHON_ENVIRONMENTS.items():
        _make_python(name, more)
    _make_node()


def python(environment: str) -> Path:
    """The interpreter of an environment."""
    return FOLDER / environment / "bin" / "python"


def worker(environment: str, module: str, task: str, **parameters: Any) -> list[str]:
    """The command of a Python worker: `benchmarks.workers.<module>` in an environment."""
    return [str(python(environment)), "-m", f"benchmarks.workers.{module}", task, json.dumps(parameters)]


def reference(task: str, **parameters: Any) -> list[str]:
    """The command of the worker that is the reference client."""
    script = ROOT / "benchmarks" / "workers" / "reference_client.mjs"
    return ["node", "--expose-gc", str(script), task, json.dumps(parameters), str(NODE_PROJECT)]


def process_environment() -> dict[str, str]:
    """The environment variables of every worker."""
    return {**os.environ, "NODE_ENV": "production", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": ""}


def versions() -> dict[str, str]:
    """What was measured, by name."""
    found = {"Python": sys.version.split()[0], "Node": _output(["node", "--version"]).removeprefix("v")}
    client = json.loads((NODE_PROJECT / "node_modules" / "@ag-ui" / "client" / "package.json").read_text())
    found["@ag-ui/client"] = client["version"]
    wanted = {
        "accord": ("accord", "msgspec", "pydantic", "uvicorn", "httptools", "uvloop", "httpx"),
        "official": ("ag-ui-protocol", "jsonpatch", "jiter", "starlette"),
        "agent-framework": ("agent-framework-ag-ui", "agent-framework-core"),
    }
    ask = "import importlib.metadata as m, sys; print(*(m.version(name) for name in sys.argv[1:]))"
    for environment, names in wanted.items():
        answers = _output([str(python(environment)), "-c", ask, *names]).split()
        found.update(zip(names, answers, strict=True))
    return found


def _make_python(name: str, more: tuple[str, ...]) -> None:
    requirements = Path(__file__).with_name(f"{name}.txt")
    folder = FOLDER / name
    made_of = hashlib.sha256(requirements.read_bytes())
    if more:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        made_of.update(repr((project["dependencies"], project["optional-dependencies"]["server"])).encode())
    stamp = folder / "made-of"
    if stamp.is_file() and stamp.read_text() == made_of.hexdigest():
        return
    _progress(f"making .bench/{name}")
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    install = [str(python(name)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*install, "--requirement", str(requirements), *more])
    stamp.write_text(made_of.hexdigest())


def _make_node() -> None:
    lock = NODE_PROJECT / "package-lock.json"
    receipt = NODE_PROJECT / "node_modules" / ".package-lock.json"  # npm writes it last
    if not receipt.exists() or receipt.stat().st_mtime < lock.stat().st_mtime:
        _progress("installing tests/node")
        _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder=NODE_PROJECT)


def _run(command: list[str], folder: Path = ROOT) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise SetupFailed(f"{command[0]} is not installed") from error
    if done.returncode:
        raise SetupFailed(f"{' '.join(command)}\n{done.stderr.strip()[-2000:]}")


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _progress(text: str) -> None:
    sys.stderr.write(f"{text}\n")
