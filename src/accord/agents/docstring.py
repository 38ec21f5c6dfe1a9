"""What a docstring tells a model: the description of a function, and of each of its parameters.

Google sections (`Args:`) and Sphinx fields (`:param name:`) are understood. The parts that speak to the caller in
Python (returns, raises, types) are left out of the description.
"""

from __future__ import annotations

import inspect
import re

_PARAMETERS = {"args", "arguments", "parameters", "params", "keyword args", "keyword arguments"}
_FOR_CALLERS = {"returns", "return", "yields", "yield", "raises"}
_SECTION = re.compile(r"([A-Za-z][A-Za-z ]*):\s*$")
_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_FIELD = re.compile(
    r":(?:(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?\*{0,2}(?P<name>\w+)"
    r"|(?:type|rtype|returns?|yields?|raises?|except|exception)\b[^:]*):\s*(?P<text>.*)$"
)


def read_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """The description, and the descriptions of the parameters by name."""
    description: list[str] = []
    parameters: dict[str, list[str]] = {}
    section = ""
    entry_indent: int | None = None
    current: list[str] | None = None  # the parameter (or dropped part) that a continuation line belongs to
    for line in inspect.cleandoc(text or "").splitlines():
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        if stripped and indent == 0:
            section, entry_indent, current = _section_of(stripped), None, None
            if section:
                continue
            if field := _FIELD.match(stripped):
                current = [field["text"]]
                if field["name"]:
                    parameters[field["name"]] = current
                continue
        if section == "parameters" and stripped:
            entry_indent = indent if entry_indent is None else entry_indent
            if indent == entry_indent and (entry := _ENTRY.match(stripped)):
                current = parameters.setdefault(entry[1], [])
                stripped = entry[2]
        if current is not None:
            current.append(stripped)
        elif not section:
            description.append(line)
    return _joined(description, "\n"), {name: _joined(lines, " ") for name, lines in parameters.items()}


def _section_of(line: str) -> str:
    heading = _SECTION.match(line)
    name = heading[1].lower() if heading else ""
    if name in _PARAMETERS:
        return "parameters"
    return "dropped" if name in _FOR_CALLERS else ""


def _joined(lines: list[str], separator: str) -> str:
    if separator == " ":
        lines = [line for line in lines if line]
    return re.sub(r"\n{3,}", "\n\n", separator.join(lines)).strip()
