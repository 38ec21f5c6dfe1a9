"""JSON values in `google.protobuf.Value` and JSON objects in `google.protobuf.Struct`, with the order of their members.

A number is a double there: an integer that no double holds exactly is not written, `1.0` and `1` are one (read as `1`,
beyond 2^53 as a float), NaN and the infinities, which are not JSON, are refused both ways. A `Value` that says nothing
(`struct.proto` calls that an error) is as good as absent where something may be absent, and refused in a list.

Reading has a short way for the form that every encoder writes, and a long way for whatever else the wire format
allows: parts in any order, repeated ones to merge, unknown ones. The short way gives up where it meets anything else.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from accord.protocol import JSON, JSONObject
from accord.wire.protobuf_fields import Span, delimited, joined, violation, walk

#: What an open value is that says nothing.
ABSENT: Final[Any] = object()

# Value, by kind; an entry of Struct and an element of ListValue have the tag _ITEM.
_NULL: Final = 0x08
_NUMBER: Final = 0x11
_STRING: Final = 0x1A
_BOOL: Final = 0x20
_OBJECT: Final = 0x2A
_LIST: Final = 0x32
_ITEM: Final = 0x0A
_ITEM_KEY: Final = 0x0A
_ITEM_VALUE: Final = 0x12

_DOUBLE: Final = struct.Struct("<d")
_pack = _DOUBLE.pack
_unpack = _DOUBLE.unpack_from
_EXACT: Final = 2.0**53


# Writing


def encode_value(value: JSON) -> bytes:
    """The body of a `Value`.

    Raises `TypeError`, `ValueError`, `OverflowError` or `RecursionError` for what JSON or a double cannot hold.
    """
    return _value(value, {})


def encode_struct(members: JSONObject) -> bytes:
    """The body of a `Struct`; errors as `encode_value`."""
    if type(members) is not dict:
        raise TypeError("not a JSON object")
    return _members(members, {})


def _value(value: JSON, keys: dict[str, bytes]) -> bytes:
    kind = type(value)
    if kind is str:
        return delimited(b"\x1a", value.encode())
    if kind is dict:
        return delimited(b"*", _members(value, keys))
    if kind is list:
        return delimited(b"2", b"".join([delimited(b"\n", _value(each, keys)) for each in value]))
    if kind is int:
        number = float(value)
        if number != value:
            raise ValueError("not exactly a double")
        return b"\x11" + _pack(number)
    if kind is float:
        if value - value != 0:  # NaN and the infinities: their difference is NaN, which equals nothing
            raise ValueError("not a JSON number")
        return b"\x11" + _pack(value)
    if value is None:
        return b"\x08\x00"
    if kind is bool:
        return b" \x01" if value else b" \x00"
    raise TypeError("not a JSON value")


def _members(members: JSONObject, keys: dict[str, bytes]) -> bytes:
    """The entries of a `Struct`. `keys` has the names written before: rows of a table share them."""
    entries = []
    for name, value in members.items():
        key = keys.get(name)
        if key is None:
            key = keys[name] = _key(name)
        entries.append(delimited(b"\n", delimited(key, _value(value, keys))))
    return b"".join(entries)


def _key(name: str) -> bytes:
    """An entry up to its value. The empty name is a default and not written, as the reference has it."""
    if type(name) is not str:
        raise TypeError("a member's name is not a string")
    return (delimited(b"\n", name.encode()) if name else b"") + b"\x12"


# Reading


def decode_value(data: bytes, spans: Sequence[Span], max_depth: int) -> JSON:
    """The JSON value of a `Value` that `spans` of `data` make together; `ABSENT` when it says nothing.

    Raises `ProtocolViolation`, among others when it nests deeper than `max_depth`; `UnicodeDecodeError`; `IndexError`.
    """
    data, start, end = joined(data, spans)
    try:
        try:
            return _read_value(data, start, end, max_depth, {})
        except (_Unusual, IndexError, struct.error):
            return _reread_value(data, start, end, max_depth)
    except RecursionError:
        _too_deep()


def decode_struct(data: bytes, spans: Sequence[Span], max_depth: int) -> JSONObject:
    """The JSON object of a `Struct`; errors as `decode_value`."""
    data, start, end = joined(data, spans)
    try:
        try:
            return _read_members(data, start, end, max_depth - 1, {})
        except (_Unusual, IndexError, struct.error):
            return _reread_members(data, start, end, max_depth - 1)
    except RecursionError:
        _too_deep()


class _Unusual(Exception):
    """Not the form that every encoder writes."""


def _read_value(data: bytes, position: int, end: int, depth: int, keys: dict[bytes, str]) -> JSON:
    tag = data[position]
    if tag == _NUMBER:
        if position + 9 != end:
            raise _Unusual
        return _number(_unpack(data, position + 1)[0])
    if tag == _BOOL:
        if position + 2 != end or data[position + 1] > 1:
            raise _Unusual
        return data[position + 1] == 1
    if tag == _NULL:
        if position + 2 != end or data[position + 1] > 0:
            raise _Unusual
        return None
    length = data[position + 1]
    position += 2
    if length > 127:
        length, position = _length(data, position - 1)
    if position + length != end:
        raise _Unusual
    if tag == _STRING:
        return str(data[position:end], "utf-8")
    if tag == _OBJECT:
        return _read_members(data, position, end, depth - 1, keys)
    if tag != _LIST:
        raise _Unusual
    if depth <= 0:
        _too_deep()
    elements = []
    while position < end:
        length = data[position + 1]
        if data[position] != _ITEM:
            raise _Unusual
        position += 2
        if length > 127:
            length, position = _length(data, position - 1)
        start = position
        position += length
        elements.append(_read_value(data, start, position, depth - 1, keys))
    if position != end:
        raise _Unusual
    return elements


def _read_members(data: bytes, position: int, end: int, depth: int, keys: dict[bytes, str]) -> JSONObject:
    if depth < 0:
        _too_deep()
    members: JSONObject = {}
    while position < end:
        if data[position] != _ITEM:
            raise _Unusual
        length = data[position + 1]
        position += 2
        if length > 127:
            length, position = _length(data, position - 1)
        stop = position + length
        if data[position] != _ITEM_KEY:
            raise _Unusual
        length = data[position + 1]
        position += 2
        if length > 127:
            length, position = _length(data, position - 1)
        key = data[position : position + length]
        position += length
        name = keys.get(key)
        if name is None:
            name = keys[key] = str(key, "utf-8")
        if data[position] != _ITEM_VALUE:
            raise _Unusual
        length = data[position + 1]
        position += 2
        if length > 127:
            length, position = _length(data, position - 1)
        if position + length != stop:
            raise _Unusual
        members[name] = _read_value(data, position, stop, depth, keys)
        position = stop
    if position != end:
        raise _Unusual
    return members


def _length(data: bytes, position: int) -> tuple[int, int]:
    """A length of two to four bytes, which is what any sensible one of more than 127 takes."""
    length = shift = 0
    for _ in range(4):
        byte = data[position]
        position += 1
        length |= (byte & 127) << shift
        if byte < 128:
            return length, position
        shift += 7
    raise _Unusual


def _number(number: float) -> int | float:
    """JSON does not tell 1.0 from 1, and Python does: what is whole and exact is an integer."""
    if number.is_integer():
        return int(number) if -_EXACT < number < _EXACT else number
    if not math.isfinite(number):
        raise violation("number", f"{number} is not a JSON number")
    return number


def _too_deep() -> NoReturn:
    raise violation("depth", "an open value is nested too deeply (max_depth)") from None


# The long way: by the wire format alone


def _reread_value(data: bytes, start: int, end: int, depth: int) -> JSON:
    value: JSON = ABSENT
    kind = 0
    spans: list[Span] = []
    for tag, first, last in walk(data, start, end):
        if spans and tag in _KINDS and tag != kind:  # replaces what came before, which must be readable all the same
            _reread_container(data, spans, kind, depth)
            spans = []
        if tag in (_OBJECT, _LIST):
            spans.append((first, last))
        elif tag == _STRING:
            value = str(data[first:last], "utf-8")
        elif tag == _NUMBER:
            value = _number(_unpack(data, first)[0])
        elif tag == _BOOL:
            value = first != 0
        elif tag == _NULL:
            value = None
        else:
            continue
        kind = tag
    return _reread_container(data, spans, kind, depth) if spans else value


_KINDS: Final = frozenset({_NULL, _NUMBER, _STRING, _BOOL, _OBJECT, _LIST})


def _reread_container(data: bytes, spans: Sequence[Span], kind: int, depth: int) -> JSON:
    data, start, end = joined(data, spans)
    if kind == _OBJECT:
        return _reread_members(data, start, end, depth - 1)
    if depth <= 0:
        _too_deep()
    elements = []
    for tag, first, last in walk(data, start, end):
        if tag == _ITEM:
            element = _reread_value(data, first, last, depth - 1)
            if element is ABSENT:
                raise violation("no-value", "an element of a list has no value")
            elements.append(element)
    return elements


def _reread_members(data: bytes, start: int, end: int, depth: int) -> JSONObject:
    if depth < 0:
        _too_deep()
    members: JSONObject = {}
    for tag, first, last in walk(data, start, end):
        if tag == _ITEM:
            name, value = _reread_entry(data, first, last, depth)
            if value is not ABSENT:
                members[name] = value
    return members


def _reread_entry(data: bytes, start: int, end: int, depth: int) -> tuple[str, JSON]:
    name = ""
    spans: list[Span] = []
    for tag, first, last in walk(data, start, end):
        if tag == _ITEM_KEY:
            name = str(data[first:last], "utf-8")
        elif tag == _ITEM_VALUE:
            spans.append((first, last))
    if not spans:
        return name, ABSENT
    data, start, end = joined(data, spans)
    return name, _reread_value(data, start, end, depth)
