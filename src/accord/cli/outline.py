"""A JSON value as an outline that people can read, made line by line, so that who shows ten lines pays for ten.

Members as `name: value`, lists of short scalars in one line, other lists numbered, small flat objects in a list as
`- icon name: rest`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from accord.cli.visible import one_line
from accord.protocol import JSON

#: A list whose elements are all this short, in characters, and together fit a line, is written in one.
_SHORT: Final = 20
_LINE: Final = 60
#: What lies deeper is hinted at: nobody reads it, and a peer decides how deep its state is.
_DEEPEST: Final = 40
#: An object with so many members at most may be written in one line.
_FEW: Final = 4
_NAMES: Final = ("name", "title", "label")
_ICONS: Final = ("icon", "emoji")


@dataclass(frozen=True, slots=True)
class Line:
    """One line: how deep it is, what introduces it (`name:`, `-`, `3.`), and the value, safe to print."""

    depth: int
    label: str
    value: str

    def __str__(self) -> str:
        return "  " * self.depth + " ".join(part for part in (self.label, self.value) if part)


def outline(value: JSON, depth: int = 0) -> Iterator[Line]:
    """The lines of `value`, none ahead of time."""
    if depth > _DEEPEST:
        yield Line(depth, "", "…")
    elif isinstance(value, dict) and value:
        for name, member in value.items():
            yield from _labelled(f"{one_line(name)}:", member, depth)
    elif isinstance(value, list) and value and not _is_short(value):
        for position, element in enumerate(value, 1):
            flat = _flat_object(element)
            if flat is not None:
                yield Line(depth, "-", flat)
            elif isinstance(element, dict | list) and element:
                yield from _labelled("-", element, depth)
            else:
                yield from _labelled(f"{position}.", element, depth)
    else:
        yield from _labelled("", value, depth)


def _labelled(label: str, value: JSON, depth: int) -> Iterator[Line]:
    if isinstance(value, dict | list) and value and not (isinstance(value, list) and _is_short(value)):
        yield Line(depth, label, "")
        yield from outline(value, depth + 1)
    elif isinstance(value, str) and "\n" in value:
        yield Line(depth, label, "")
        for line in value.split("\n"):
            yield Line(depth + 1, "", one_line(line.removesuffix("\r")))
    else:
        yield Line(depth, label, _scalar(value))


def _scalar(value: JSON) -> str:
    """A value in one line: a string as it is, empty objects and short lists in brackets, the rest as JSON."""
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, list):
        return (
            "[" + ", ".join(f"'{one_line(each)}'" if isinstance(each, str) else _scalar(each) for each in value) + "]"
        )
    return json.dumps(value)


def _is_short(elements: list[Any]) -> bool:
    if len(elements) > _LINE // 2:
        return False
    if not all(_is_scalar(each) and not (isinstance(each, str) and len(each) > _SHORT) for each in elements):
        return False
    return len(_scalar(elements)) <= _LINE


def _flat_object(element: JSON) -> str | None:
    """`icon name: rest` for a small object of scalars, `member: value, member: value` without a name; else None."""
    if not isinstance(element, dict) or not 0 < len(element) <= _FEW or not all(map(_is_scalar, element.values())):
        return None
    key = next((name for name in _NAMES if isinstance(element.get(name), str)), None)
    icon = next((name for name in _ICONS if isinstance(element.get(name), str)), None)
    head = " ".join(_scalar(element[name]) for name in (icon, key) if name is not None)
    rest = {name: each for name, each in element.items() if name not in (key, icon)}
    if not head or len(rest) > 1:
        tail = ", ".join(f"{one_line(name)}: {_scalar(each)}" for name, each in rest.items())
    else:
        tail = "".join(map(_scalar, rest.values()))
    line = ": ".join(part for part in (head, tail) if part) if key else " ".join(part for part in (head, tail) if part)
    return line if len(line) <= _LINE else None


def _is_scalar(value: JSON) -> bool:
    return value is None or isinstance(value, str | int | float)
