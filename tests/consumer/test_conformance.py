"""docs/conformance.md names tests; they must be there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
TABLE = (TESTS.parent / "docs" / "conformance.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`([\w/]+\.py)::([\w:]+)`")


@cache
def defined(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        found |= {prefix + each.name for each in members if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    return found


def test_every_test_named_exists() -> None:
    named = NAMED.findall(TABLE)
    assert len(named) > 120
    missing = [
        f"{file}::{name}" for file, name in named if not (TESTS / file).exists() or name not in defined(TESTS / file)
    ]
    assert missing == []


def test_every_row_names_a_test() -> None:
    rules, _, differences = TABLE.partition("## Where we differ")
    for part, columns, least in ((rules, 2, 100), (differences, 5, 20)):
        rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")]
        rows = [row for row in rows if row[0] not in ("rule", "difference", "---")]
        assert len(rows) > least
        assert [row for row in rows if len(row) != columns or not NAMED.search(row[-1])] == []
