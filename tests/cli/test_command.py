"""The command as a whole: light to start, whole without the extras, clear about what is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from accord import __version__

EXTRAS = ["fastapi", "starlette", "uvicorn", "sqlalchemy", "openai", "opentelemetry"]


def accord(*commands: list[str], missing: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs commands one after the other in an interpreter that has none of `missing`; the last one's exit code."""
    program = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({missing!r}))\n"
        "from accord.cli import main\n"
        "code = None\n"
        f"for sys.argv[1:] in {list(commands)!r}:\n"
        "    try:\n"
        "        main()\n"
        "    except SystemExit as end:\n"
        "        code = end.code\n"
        "sys.exit(code)\n"
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, input="", check=False)


def test_help_needs_no_extra_and_loads_next_to_nothing() -> None:
    heavy = ["httpx", "msgspec", "google.protobuf", "anyio"]
    commands = ("demo", "serve", "chat", "replay")
    result = accord(*([command, "--help"] for command in commands), ["--help"], missing=[*EXTRAS, *heavy])
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    for command in commands:
        assert f"accord {command}" in result.stdout or f"-c {command}" in result.stdout


def test_version() -> None:
    assert accord(["--version"], missing=EXTRAS).stdout == f"{__version__}\n"


@pytest.mark.parametrize("arguments", [["demo"], ["serve", "accord.demo.app:app"]])
def test_what_serves_names_the_extra_it_needs(arguments: list[str]) -> None:
    result = accord(arguments, missing=EXTRAS)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "accord: serving needs fastapi: pip install 'accord[server]'\n"


def test_a_real_model_names_the_extra_it_needs() -> None:
    result = accord(["demo", "--model", "x", "--port", "0"], missing=["openai"])
    assert (result.returncode, result.stdout) == (1, "")
    assert "pip install 'accord[openai]'" in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_client_needs_no_extra() -> None:
    result = accord(["replay", "-"], ["chat", "http://127.0.0.1:1/", "--once", "Hello"], missing=EXTRAS)
    assert "Outcome: truncated" in result.stdout
    assert result.returncode == 1
    assert result.stderr.startswith("accord: no run: no answer from http://127.0.0.1:1/")
