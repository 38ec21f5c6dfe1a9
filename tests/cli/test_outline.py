from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.cli.outline import outline

RECIPE = {
    "recipe": {
        "title": "Soup",
        "special_preferences": ["Vegetarian", "Serves 4"],
        "ingredients": [
            {"icon": "🧅", "name": "Onion", "amount": "1"},
            {"icon": "🍅", "name": "Tomatoes", "amount": ""},
        ],
        "instructions": ["Put everything into a pot, cover it with water and boil it.", "Eat."],
    }
}


def lines(value: Any) -> list[str]:
    return [str(line) for line in outline(value)]


def test_a_recipe() -> None:
    assert lines(RECIPE) == [
        "recipe:",
        "  title: Soup",
        "  special_preferences: ['Vegetarian', 'Serves 4']",
        "  ingredients:",
        "    - 🧅 Onion: 1",
        "    - 🍅 Tomatoes",
        "  instructions:",
        "    1. Put everything into a pot, cover it with water and boil it.",
        "    2. Eat.",
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({}, ["{}"]),
        ([], ["[]"]),
        (None, ["null"]),
        ("text", ["text"]),
        (1.5, ["1.5"]),
        ([1, None, True], ["[1, null, true]"]),
        ({"a": {}, "b": [], "c": None}, ["a: {}", "b: []", "c: null"]),
        ({"text": "one\ntwo"}, ["text:", "  one", "  two"]),
        ([[1, 2], {"deep": {"er": 1}}], ["- [1, 2]", "-", "  deep:", "    er: 1"]),
        ({"icon": "x"}, ["icon: x"]),
        ([{"icon": "x"}], ["- x"]),
        ([{"name": "n"}], ["- n"]),
        ([{"name": "n", "a": 1, "b": None}], ["- n: a: 1, b: null"]),
        ([{"description": "Boil", "status": "enabled"}], ["- description: Boil, status: enabled"]),
        ([{"name": "n", "text": "x" * 60}], ["-", "  name: n", f"  text: {'x' * 60}"]),
        ([{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}], ["-", "  a: 1", "  b: 2", "  c: 3", "  d: 4", "  e: 5"]),
        ({"\x1b[2J": "\x1b[31m"}, ["\\x1b[2J: \\x1b[31m"]),
        ([{"name": "\x1b", "a": "\n"}], ["- \\x1b: \\n"]),
    ],
)
def test_shapes(value: Any, expected: list[str]) -> None:
    assert lines(value) == expected


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_any_value_has_an_outline_of_single_lines(value: Any) -> None:
    shown = lines(value)
    assert shown
    assert not any("\n" in line or "\x1b" in line for line in shown)


def test_nesting_without_end_is_cut() -> None:
    value: Any = "deep"
    for _ in range(5_000):
        value = {"a": value}
    assert "…" in lines(value)[-1]


def test_lines_are_made_as_they_are_asked_for() -> None:
    class Counted(dict[str, Any]):
        read = 0

        def items(self) -> Any:
            for item in super().items():
                Counted.read += 1
                yield item

    value = Counted({str(number): number for number in range(10_000)})
    assert len(list(islice(outline(value), 5))) == 5
    assert Counted.read == 5
