"""A plain JSON value judged against a described shape (rules section 2): unknown material goes, malformed is refused.

Unknown members, union members and strings of closed sets are taken away up to the smallest value that can go without
them: an optional member, an element of a list, or else the value around. A described member with a wrong value is an
error, unless it lies in something that goes anyway. The tables of `accord.protocol.definitions` are the only schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from accord.errors import ProtocolViolation
from accord.protocol.definitions import (
    Boolean,
    Choice,
    Definition,
    Integer,
    Object,
    Opaque,
    OpenObject,
    Sequence,
    Text,
    TextOrSequence,
    Variant,
    definition,
)
from accord.protocol.values import JSON

ShapeT = TypeVar("ShapeT", bound=msgspec.Struct)


def conform(value: JSON, struct: type[ShapeT]) -> tuple[ShapeT | None, list[str]]:
    """`value` as a `struct`, and the JSON Pointers of what was taken away, in the producer's order.

    The shape is None (and the only path `""`) when the whole value is unknown material. Raises `ProtocolViolation`
    (stage `enforcement`, rule `malformed`) with the path of the first malformed value.
    """
    findings = _Findings()
    shape = _object(value, definition(struct), "", findings)
    if shape is _DROP:
        return None, [""]
    if findings.faults:
        path, message = findings.faults[0]
        raise ProtocolViolation(message, stage="enforcement", rule="malformed", path=path)
    return shape, findings.stripped


def name_of(value: object) -> str:
    """What a JSON value is called in an error: `null`, `a string`, `an array`, ..."""
    for types, name in _NAMES:
        if isinstance(value, types):
            return name
    return "null" if value is None else f"a Python {type(value).__name__}"


def escape_token(token: str) -> str:
    """`token` as it stands between the slashes of a JSON Pointer (RFC 6901 section 3)."""
    if "~" in token:
        token = token.replace("~", "~0")
    return token.replace("/", "~1") if "/" in token else token


class _Findings:
    """What one judgement found; whoever drops a value takes back what was found inside it."""

    __slots__ = ("faults", "stripped")

    def __init__(self) -> None:
        self.faults: list[tuple[str, str]] = []
        self.stripped: list[str] = []


_DROP: Final[Any] = object()  # the value is unknown material and goes as a whole
_POINTER = re.compile(r"(?:/[^~]*(?:~[01][^~]*)*)?")
_NAMES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "a boolean"),
    ((int, float), "a number"),
    (str, "a string"),
    (list, "an array"),
    (dict, "an object"),
)


def _fault(findings: _Findings, path: str, due: str, value: object) -> None:
    findings.faults.append((path, f"{due} is due, not {name_of(value)}"))


def _object(value: Any, table: Definition, path: str, findings: _Findings) -> Any:
    if type(value) is not dict:
        return _fault(findings, path, "an object", value)
    tag_field = None
    if table.tag is not None:
        tag_field, tag = table.tag
        if value.get(tag_field) != tag:
            findings.faults.append((f"{path}/{tag_field}", f"{tag!r} is due"))
    faults, stripped = len(findings.faults), len(findings.stripped)
    members = table.members
    found: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for wire_name, each in value.items():
        member = members.get(wire_name)
        if member is None:
            if wire_name == tag_field:
                continue
            if table.open:
                extra[wire_name] = each
            else:
                findings.stripped.append(f"{path}/{escape_token(wire_name)}")
            continue
        within = len(findings.stripped)
        where = f"{path}/{wire_name}"
        judged = _JUDGES[type(member.kind)](each, member.kind, where, findings)
        if judged is not _DROP:
            found[member.attribute] = judged
        elif member.required:
            del findings.faults[faults:], findings.stripped[stripped:]
            return _DROP
        else:
            del findings.stripped[within:]
            findings.stripped.append(where)
    for wire_name, member in members.items():
        if member.required and wire_name not in value:
            findings.faults.append((f"{path}/{wire_name}", "a required member is missing"))
    if findings.faults:
        return None
    if extra:
        found["extra"] = extra
    return table.struct(**found)


def _described(value: Any, kind: Object, path: str, findings: _Findings) -> Any:
    return _object(value, definition(kind.struct), path, findings)


def _variant(value: Any, kind: Variant, path: str, findings: _Findings) -> Any:
    if type(value) is not dict:
        return _fault(findings, path, "an object", value)
    name = value.get(kind.discriminator)
    if not isinstance(name, str):
        place = f"{path}/{kind.discriminator}"
        if kind.discriminator in value:
            return _fault(findings, place, "a string", name)
        return findings.faults.append((place, "a required member is missing"))
    struct = kind.members.get(name)
    return _DROP if struct is None else _object(value, definition(struct), path, findings)


def _sequence(value: Any, kind: Sequence, path: str, findings: _Findings) -> Any:
    if type(value) is not list:
        return _fault(findings, path, "an array", value)
    judge, element = _JUDGES[type(kind.element)], kind.element
    kept = []
    for position, each in enumerate(value):
        within = len(findings.stripped)
        judged = judge(each, element, f"{path}/{position}", findings)
        if judged is _DROP:
            del findings.stripped[within:]
            findings.stripped.append(f"{path}/{position}")
        else:
            kept.append(judged)
    if len(kept) < kind.least:
        findings.faults.append((path, f"at least {kind.least} element is due"))
    return kept


def _text_or_sequence(value: Any, kind: TextOrSequence, path: str, findings: _Findings) -> Any:
    if isinstance(value, str):
        return value
    if type(value) is not list:
        return _fault(findings, path, "a string or an array", value)
    return _sequence(value, kind.sequence, path, findings)


def _text(value: Any, kind: Text, path: str, findings: _Findings) -> Any:
    if not isinstance(value, str):
        return _fault(findings, path, "a string", value)
    if kind.pointer and not _POINTER.fullmatch(value):
        findings.faults.append((path, f"not a JSON Pointer: {value!r}"))
    return value


def _choice(value: Any, kind: Choice, path: str, findings: _Findings) -> Any:
    if not isinstance(value, str):
        return _fault(findings, path, "a string", value)
    if value in kind.choices:
        return value
    if len(kind.choices) > 1:
        return _DROP
    (only,) = kind.choices
    return findings.faults.append((path, f"{only!r} is due, not {value!r}"))


def _integer(value: Any, kind: Integer, path: str, findings: _Findings) -> Any:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON does not tell 1.0 from 1
    if type(value) is not int:
        return _fault(findings, path, "an integer", value)
    if not kind.low <= value <= kind.high:
        findings.faults.append((path, f"{value} is not within {kind.low}..{kind.high}"))
    return value


def _boolean(value: Any, kind: Boolean, path: str, findings: _Findings) -> Any:
    return value if isinstance(value, bool) else _fault(findings, path, "a boolean", value)


def _opaque(value: Any, kind: Opaque, path: str, findings: _Findings) -> Any:
    if value is None and not kind.nullable:
        return _fault(findings, path, "a value", value)
    return value


def _open_object(value: Any, kind: OpenObject, path: str, findings: _Findings) -> Any:
    return value if type(value) is dict else _fault(findings, path, "an object", value)


_JUDGES: dict[type, Callable[[Any, Any, str, _Findings], Any]] = {
    Object: _described,
    Variant: _variant,
    Sequence: _sequence,
    TextOrSequence: _text_or_sequence,
    Text: _text,
    Choice: _choice,
    Integer: _integer,
    Boolean: _boolean,
    Opaque: _opaque,
    OpenObject: _open_object,
}
