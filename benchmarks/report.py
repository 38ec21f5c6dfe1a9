"""The table, as text for whoever ran it and as Markdown for `docs/benchmarks.md`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.comparison import Row
from benchmarks.machine import Machine

HEADINGS = ("what", "ours", "peer", "its figure", "ratio (least – greatest)", "target", "reached")
#: What stands below the table: how the figures are taken, and what was tried where a target is missed.
NOTES = Path(__file__).with_name("notes.md")


def cells(row: Row) -> tuple[str, ...]:
    """A row in text."""
    if row.target is None:
        target, reached = "", ""
    else:
        target, reached = str(row.target), "no" if row.missed else "yes"
    return row.what, str(row.ours), row.peer, str(row.theirs), str(row.ratio), target, reached


def as_text(rows: Sequence[Row]) -> str:
    """The table with its columns aligned."""
    table = [HEADINGS, *map(cells, rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def as_markdown(rows: Sequence[Row]) -> str:
    """The table in Markdown; what is missed is set in bold."""
    lines = [HEADINGS, tuple("---" for _ in HEADINGS)]
    for row in rows:
        line = cells(row)
        lines.append((*line[:-1], f"**{line[-1]}**" if row.missed else line[-1]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def document(rows: Sequence[Row], machine: Machine, versions: Mapping[str, str]) -> str:
    """The whole page."""
    aimed = [row for row in rows if row.target is not None]
    reached = sum(not row.missed for row in aimed)
    return "\n".join(
        [
            "# Benchmarks",
            "",
            "Accord beside the reference client, the official Python SDK, `agent-framework-ag-ui`, and the libraries "
            "that do one part of the same work. `make bench` takes the figures and writes this page.",
            "",
            f"Measured on {machine.date}: {machine}.",
            "",
            f"{reached} of {len(aimed)} targets are reached.",
            "",
            as_markdown(rows),
            "",
            f"Versions: {', '.join(f'{name} {version}' for name, version in versions.items())}.",
            "",
            NOTES.read_text(),
        ]
    )
