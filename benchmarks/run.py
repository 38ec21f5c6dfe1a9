"""`make bench`: every group of rows in turn, one table, and `docs/benchmarks.md` with it.

With names of groups as arguments only these are run, and nothing is written: for work on one of them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

from benchmarks import environments
from benchmarks.comparison import Row
from benchmarks.groups import arguments, encoding, imports, many_runs, predictive, protobuf, server, state, text
from benchmarks.machine import Machine
from benchmarks.material import Material
from benchmarks.report import as_text, document

PAGE = environments.ROOT / "docs" / "benchmarks.md"
GROUPS: dict[str, Callable[[Material], list[Row]]] = {
    "text": text.rows,
    "state": state.rows,
    "arguments": arguments.rows,
    "encoding": encoding.rows,
    "server": server.rows,
    "many_runs": many_runs.rows,
    "predictive": predictive.rows,
    "imports": imports.rows,
    "protobuf": protobuf.rows,
}


def main(names: Sequence[str]) -> int:
    """Measures, prints and writes; the exit status."""
    unknown = set(names) - set(GROUPS)
    if unknown:
        sys.stderr.write(f"no such group: {', '.join(sorted(unknown))}; there are {', '.join(GROUPS)}\n")
        return 2
    try:
        environments.make_all()
    except environments.SetupFailed as failure:
        sys.stderr.write(f"{failure}\n")
        return 1
    machine = Machine.now()
    if machine.busy:
        sys.stderr.write(f"the machine is busy (load {machine.load:.1f}): expect a wide spread\n")
    material = Material(environments.FOLDER / "material")
    rows: list[Row] = []
    for name in names or GROUPS:
        begun = time.monotonic()
        rows += GROUPS[name](material)
        sys.stderr.write(f"{name}: {time.monotonic() - begun:.0f} s\n")
    sys.stdout.write(as_text(rows) + "\n")
    if not names:
        PAGE.write_text(document(rows, machine, environments.versions()))
        sys.stdout.write(f"\nwritten to {PAGE.relative_to(environments.ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
