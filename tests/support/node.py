"""The reference implementation's packages, installed from `tests/node/package-lock.json` when they are first needed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from support.requirements import missing

NODE_PROJECT = Path(__file__).resolve().parents[1] / "node"


def node_modules() -> Path:
    """`tests/node/node_modules` with what the lock file names in it."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        missing("Node and npm are not installed")
    installed = NODE_PROJECT / "node_modules"
    lock = NODE_PROJECT / "package-lock.json"
    receipt = installed / ".package-lock.json"  # npm writes it last
    if not receipt.exists() or receipt.stat().st_mtime < lock.stat().st_mtime:
        done = subprocess.run(
            [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
            cwd=NODE_PROJECT,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        if done.returncode != 0:
            missing(f"npm ci failed in tests/node: {done.stderr.strip()[-500:]}")
    return installed


def run_node(script: str | Path, *arguments: str, stdin: str | None = None, timeout: float = 60) -> str:
    """Runs a script of `tests/node` (a path relative to it, or absolute) and returns what it printed.

    Anything but exit 0 fails the test with what it wrote to standard error. The call blocks: a server that the
    script talks to must run in another thread (`support.serving.serve_in_thread`).
    """
    node_modules()
    done = subprocess.run(
        ["node", str(NODE_PROJECT / script), *arguments],
        cwd=NODE_PROJECT,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    assert done.returncode == 0, f"node {script} exited {done.returncode}:\n{done.stderr}"
    return done.stdout
