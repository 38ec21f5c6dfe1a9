"""Bytes to shapes and back, strictly: what is read is described and well-formed, what is written is JSON.

Encoding never writes an absent member and refuses what JSON cannot carry (rules section 2, "Numbers", "Text").
"""

from __future__ import annotations

import json
import math
import re
from enum import StrEnum
from typing import Any, NoReturn, TypeVar

import msgspec

from accord.errors import EncodingError, ProtocolViolation
from accord.protocol.conform import conform, escape_token, name_of
from accord.protocol.definitions import Object, Opaque, OpenObject, Sequence, TextOrSequence, Variant, definition
from accord.protocol.events import EVENT_TYPES, Event
from accord.protocol.patch import EXTRA, PatchOperation
from accord.protocol.run_input import RunAgentInput
from accord.protocol.values import JSON, JSONObject

#: How deeply objects and lists may nest before a value is refused.
MAX_DEPTH = 256

ShapeT = TypeVar("ShapeT", bound=msgspec.Struct)

strict_event_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
strict_input_decoder: msgspec.json.Decoder[RunAgentInput] = msgspec.json.Decoder(RunAgentInput)
_encode = msgspec.json.Encoder().encode


def decode_event(data: bytes | str, *, max_depth: int = MAX_DEPTH) -> Event:
    """The event in `data`, one JSON object; `ProtocolViolation` names the place of what is unknown or malformed.

    Strict, for events that are known to be of this version: `accord.consumer.Pipeline` reads what a peer sends.
    """
    data = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    try:
        event = strict_event_decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        raw = decode_object(data, max_depth=max_depth)
        event_type = raw.get("type")
        struct = EVENT_TYPES.get(event_type) if isinstance(event_type, str) else None
        if struct is None:
            _refuse("type", f"not an event type: {event_type!r}", "/type")
        return _strict(raw, struct)
    check_depth(data, max_depth=max_depth)
    return event


def decode_input(data: bytes | str, *, max_depth: int = MAX_DEPTH) -> RunAgentInput:
    """The run input in `data`; errors as `decode_event`; a peer's goes through `accord.producer.receive_input`."""
    data = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    try:
        run_input = strict_input_decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return _strict(decode_object(data, max_depth=max_depth), RunAgentInput)
    check_depth(data, max_depth=max_depth)
    return run_input


def encode_event(event: Event) -> bytes:
    """`event` as compact JSON in UTF-8; `EncodingError` names the value that JSON cannot carry.

    Members that can be strings and numbers only are taken for such.
    """
    if type(event) in _PLAIN and event.raw_event is msgspec.UNSET and event.metadata is msgspec.UNSET:
        try:  # then the bare encoder has nothing to come upon but a surrogate
            return _encode(event)
        except (UnicodeEncodeError, TypeError, ValueError, OverflowError, RecursionError):
            pass
    return encode(event)


def encode_input(run_input: RunAgentInput) -> bytes:
    """`run_input` as compact JSON in UTF-8; `EncodingError` names the value that JSON cannot carry."""
    return encode(run_input)


def encode(shape: msgspec.Struct) -> bytes:
    """Any shape as compact JSON in UTF-8."""
    check_json(shape)
    return _encode(_with_extra(shape) if type(shape) in _PATCHING else shape)


def to_wire(shape: msgspec.Struct) -> JSONObject:
    """`shape` as the plain JSON object it is on the wire, sharing nothing with it."""
    wire: JSONObject = msgspec.json.decode(encode(shape))
    return wire


def decode_json(data: bytes | str, *, max_depth: int = MAX_DEPTH) -> JSON:
    """The JSON value in `data` by RFC 8259, lone surrogate escapes kept, later duplicates of a member winning.

    `ProtocolViolation` for undecodable bytes, text that is not JSON, numbers out of range and nesting beyond
    `max_depth`.
    """
    try:
        text = data if isinstance(data, str) else data.decode()
        check_depth(data, max_depth=max_depth)
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except UnicodeDecodeError as error:
        _refuse("encoding", f"not UTF-8 at byte {error.start}")
    except json.JSONDecodeError as error:
        _refuse("json", f"not JSON: {error.msg} at character {error.pos}")
    except RecursionError:
        _refuse("depth", f"nested deeper than {max_depth} levels (max_depth)")
    except ValueError as error:  # an integer of more digits than Python reads
        _refuse("number", f"number out of range: {error}")


def decode_object(data: bytes | str, *, max_depth: int = MAX_DEPTH) -> JSONObject:
    """The JSON object in `data`; errors as `decode_json`."""
    value = decode_json(data, max_depth=max_depth)
    if not isinstance(value, dict):
        _refuse("json", f"a JSON object is due, not {name_of(value)}")
    return value


def check_depth(data: bytes | str, *, max_depth: int) -> None:
    """Refuses JSON text that nests deeper than `max_depth`; costs two scans unless there are many brackets.

    Linear in any text, JSON or not: this comes before anything is known of it.
    """
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    if data.count(b"{") + data.count(b"[") <= max_depth:
        return
    unescaped = data.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in data else data
    marks = unescaped.translate(_AS_LISTS, _UNMARKED)
    if marks.count(b'"') == 2 * marks.count(b'""'):  # no string has a bracket in it
        brackets = marks.replace(b'"', b"")
    else:
        brackets = b"".join(marks.split(b'"')[::2])
    levels = 0  # those at the bottom of everything, taken away
    balanced = brackets.count(b"[") == brackets.count(b"]")  # a text that breaks off is told by what it is
    while balanced and levels < _BOTTOM_LEVELS and levels < max_depth and brackets:
        brackets = brackets.replace(b"[]", b"")
        levels += 1
    depth = levels
    for bracket in brackets:
        if bracket == _OPENING:
            depth += 1
            if depth > max_depth:
                _refuse("depth", f"nested deeper than {max_depth} levels (max_depth)")
        else:
            depth -= 1


def check_plain(value: Any, *, max_depth: int) -> None:
    """Refuses, with `ProtocolViolation`, a raw value that no JSON text could have made, or one nested too deeply.

    Lone surrogates pass, as they do in text. Works by levels, so that not even a value inside itself is endless.
    """
    level = [value]
    depth = 0
    while level:
        inner: list[Any] = []
        containers = False
        for each in level:
            kind = type(each)
            if kind is dict:
                containers = True
                inner += each.values()
                for name in each:
                    if type(name) is not str:
                        _refuse("json", f"a member's name must be a string, not {name!r}")
            elif kind is list:
                containers = True
                inner += each
            elif kind is float:
                if not math.isfinite(each):
                    _refuse("number", f"{each} is not a JSON number")
            elif each is not None and kind not in _SCALARS:
                _refuse("json", f"{kind.__module__}.{kind.__qualname__} is not a JSON value")
        depth += containers
        if depth > max_depth:
            _refuse("depth", f"nested deeper than {max_depth} levels (max_depth)")
        level = inner


def check_json(value: Any, path: str = "") -> None:
    """Raises `EncodingError` at the first thing in `value` that JSON cannot carry; shapes are looked through."""
    try:
        _check_json(value, path)
    except RecursionError:
        raise EncodingError("nested too deeply, or inside itself", path=path) from None


_SCALARS = frozenset({str, int, bool})
_MAX_BITS = 13_000  # about 3,900 digits; Python makes no text of an integer of more than 4,300
_UNMARKED = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_AS_LISTS = bytes.maketrans(b"{}", b"[]")
_OPENING = ord("[")
#: Most brackets lie at the bottom; taken away a level at a time, in a call, they need not be counted one by one.
_BOTTOM_LEVELS = 4
_SURROGATE = re.compile("[\ud800-\udfff]")


def _check_json(value: Any, path: str) -> None:
    kind = type(value)
    if kind is str:
        if not value.isascii() and _SURROGATE.search(value):
            raise EncodingError("a lone surrogate is not text", path=path)
    elif kind is int:
        if value.bit_length() > _MAX_BITS:
            raise EncodingError(f"an integer of {value.bit_length()} bits is more than can be written", path=path)
    elif kind is bool or value is None:
        pass
    elif kind is float:
        if not math.isfinite(value):
            raise EncodingError(f"{value} is not a JSON number", path=path)
    elif isinstance(value, StrEnum):
        _check_json(value.value, path)
    elif kind is dict:
        for key, member in value.items():
            if type(key) is not str:
                raise EncodingError(f"a member's name must be a string, not {key!r}", path=path)
            where = f"{path}/{escape_token(key)}"
            _check_json(key, where)
            _check_json(member, where)
    elif kind is list:
        for position, element in enumerate(value):
            _check_json(element, f"{path}/{position}")
    elif isinstance(value, msgspec.Struct):
        for attribute, wire_name in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
            member = getattr(value, attribute)
            if member is not msgspec.UNSET:
                _check_json(member, path if wire_name == EXTRA else f"{path}/{wire_name}")
    else:
        raise EncodingError(f"{kind.__module__}.{kind.__qualname__} is not a JSON value", path=path)


def _with_extra(shape: msgspec.Struct) -> Any:
    """`shape`, or its builtins where an operation has undescribed members to write beside the described ones."""
    attribute = "delta" if hasattr(shape, "delta") else "patch"
    operations: list[PatchOperation] = [shape] if isinstance(shape, PatchOperation) else getattr(shape, attribute)
    if all(operation.extra is msgspec.UNSET for operation in operations):
        return shape
    written = []
    for operation in operations:
        members = msgspec.to_builtins(operation)
        members.update(members.pop(EXTRA, {}))
        written.append(members)
    if isinstance(shape, PatchOperation):
        return written[0]
    return {**msgspec.to_builtins(shape), attribute: written}


def _strict(raw: JSONObject, struct: type[ShapeT]) -> ShapeT:
    shape, stripped = conform(raw, struct)
    if shape is None or stripped:
        _refuse("unknown", "not described by the protocol", stripped[0])
    return shape


def _finite(literal: str) -> float:
    number = float(literal)
    if not math.isfinite(number):
        _refuse("number", f"number out of range: {literal[:40]}")
    return number


def _refuse_constant(name: str) -> NoReturn:
    _refuse("json", f"not JSON: {name}")


def _refuse(rule: str, message: str, path: str = "") -> NoReturn:
    raise ProtocolViolation(message, stage="wire", rule=rule, path=path) from None


#: Events that have nothing but strings, numbers and closed sets, besides the two members that every event may have.
_PLAIN = frozenset(
    struct
    for struct in EVENT_TYPES.values()
    if not any(
        isinstance(each.kind, Object | Variant | Sequence | Opaque | OpenObject | TextOrSequence)
        for each in definition(struct).members.values()
        if each.attribute not in ("raw_event", "metadata")
    )
)
_PATCHING = frozenset(
    struct
    for struct in EVENT_TYPES.values()
    if any(
        isinstance(each.kind, Sequence)
        and isinstance(each.kind.element, Variant)
        and each.kind.element.discriminator == "op"
        for each in definition(struct).members.values()
    )
) | frozenset(PatchOperation.__subclasses__())
