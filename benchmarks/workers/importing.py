"""Imports in a new interpreter each round, and says what the importing alone took."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from benchmarks.workers.rounds import Round, serve

_SCRIPT = """
import sys, time
start = time.perf_counter()
exec(sys.argv[1])
print(time.perf_counter() - start)
"""


def imports(statement: str) -> Callable[[], Round]:
    """One statement, which may import several things."""

    def take() -> Round:
        command = [sys.executable, "-c", _SCRIPT, statement]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/")
        return {"seconds": float(done.stdout), "operations": 1}

    return take


if __name__ == "__main__":
    serve({"imports": imports})
