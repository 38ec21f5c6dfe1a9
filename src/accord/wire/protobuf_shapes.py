"""Shapes of the protocol to the messages of `agui.proto` that carry them.

What each member becomes is worked out once per class from two tables, the shape's and the message's: a shape is then
written by running its steps, one for each field in the order of their numbers. What a shape means beyond its members (a
tag is an arm, a role or a number; content has a field for each form; an outcome's members stand beside its name) is in
the steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from msgspec import UNSET, Struct

from accord.protocol.definitions import (
    Definition,
    Kind,
    Member,
    Object,
    OpenObject,
    Sequence,
    TextOrSequence,
    Variant,
    definition,
)
from accord.wire.protobuf_fields import delimited, varint
from accord.wire.protobuf_schema import ENUMS, MESSAGES, Field, Message
from accord.wire.protobuf_value import encode_struct, encode_value

#: A value to the field, or the body of the message, that it becomes. Raises one of `FAULTS` for a value that is not of
#: its member's kind, which a shape may hold.
Write = Callable[[Any], bytes]

FAULTS: Final = (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError)


@cache
def shape_writer(struct: type[Struct], message: str) -> Write:
    """What writes a shape of the class `struct` as the body of a message of `agui.proto`."""
    table = definition(struct)
    steps = tuple(step for field in MESSAGES[message].fields if (step := _step(field, table)) is not None)

    def write(shape: Any) -> bytes:
        return b"".join([step(shape) for step in steps])

    return write


def field_writer(field: Field, kind: Kind) -> Write:
    """What writes a value of a member of this kind as `field`."""
    if not field.repeated:
        return _write_one(field, kind)
    assert isinstance(kind, Sequence)
    write = _write_one(field, kind.element)

    def write_each(values: list[Any]) -> bytes:
        if type(values) is not list:
            raise TypeError("a list is due")
        return b"".join([write(value) for value in values])

    return write_each


# Steps: from a shape to one of its fields, or to nothing where that is absent


def _step(field: Field, table: Definition) -> Write | None:
    """The step for `field`; None when nothing of the shape goes there."""
    if field.name == "baseEvent":
        return _base_event(field, table)
    if table.tag is not None and field.name == table.tag[0]:
        return _tag(field, table.tag[1])
    if "outcome" in table.members and field.name not in table.members:
        return _outcome_member(field, table.members["outcome"])
    if field.name == "outcome":
        return _outcome_name(field)
    if "content" in table.members and field.name in _CONTENT:
        return _content(field, table.members["content"])
    member = table.members.get(field.name)
    return None if member is None else _member(field, member)


def _member(field: Field, member: Member) -> Write:
    if field.kind == "string" and not field.repeated:
        return _text_member(field, member.attribute)
    attribute = member.attribute
    write = field_writer(field, member.kind)

    def step(shape: Any) -> bytes:
        value = getattr(shape, attribute)
        return b"" if value is UNSET else write(value)

    return step


def _text_member(field: Field, attribute: str) -> Write:
    """As `_member`, with less on the way: nearly all that is sent is a few strings."""
    tag = varint(field.tag)
    explicit = field.explicit

    def step(shape: Any) -> bytes:
        text = getattr(shape, attribute)
        if text is UNSET:
            return b""
        encoded = text.encode()
        return delimited(tag, encoded) if encoded or explicit else b""

    return step


def _base_event(field: Field, table: Definition) -> Write:
    """What every event may carry; most carry nothing but their type."""
    type_, *others = MESSAGES[field.of].fields
    assert table.tag is not None
    event_type = _tag(type_, table.tag[1])(None)
    steps = [_member(each, table.members[each.name]) for each in others]
    tag = varint(field.tag)
    plain = delimited(tag, event_type)

    def step(event: Any) -> bytes:
        if event.timestamp is UNSET and event.raw_event is UNSET and event.metadata is UNSET:
            return plain
        return delimited(tag, event_type + b"".join([step(event) for step in steps]))

    return step


def _tag(field: Field, name: str) -> Write:
    """What the shape's class says of it, as text or by its number. The number 0 is a default and not written."""
    if field.kind == "string":
        written = delimited(varint(field.tag), name.encode())
    else:
        number = ENUMS[field.of][name.upper()]
        written = varint(field.tag) + varint(number) if number else b""
    return lambda _: written


def _outcome_name(field: Field) -> Write:
    tag = varint(field.tag)

    def step(event: Any) -> bytes:
        outcome = event.outcome
        return b"" if outcome is UNSET else delimited(tag, outcome.__struct_config__.tag.encode())

    return step


def _outcome_member(field: Field, outcome: Member) -> Write:
    assert isinstance(outcome.kind, Variant)
    (table,) = (each for each in map(definition, outcome.kind.members.values()) if field.name in each.members)
    struct = table.struct
    write = _member(field, table.members[field.name])
    return lambda event: write(event.outcome) if type(event.outcome) is struct else b""


_CONTENT: Final = {"content": str, "contentParts": list, "activityContent": dict}


def _content(field: Field, member: Member) -> Write | None:
    """The step for one form of content, which writes nothing when the content has another."""
    kind = member.kind
    if isinstance(kind, OpenObject):  # a field for objects: `activityContent`, or `content` where no other form exists
        return _member(field, member) if field.kind == "struct" else None
    if not isinstance(kind, TextOrSequence):
        return _member(field, member) if field.name == "content" else None
    form = _CONTENT[field.name]
    if form is dict:
        return None
    attribute = member.attribute
    write = field_writer(field, kind.sequence if form is list else kind)

    def step(shape: Any) -> bytes:
        content = getattr(shape, attribute)
        if isinstance(content, form):
            return write(content)
        if not isinstance(content, str | list):
            raise TypeError("a string or a list is due")
        return b""

    return step


# Fields by what they hold


def _write_one(field: Field, kind: Kind) -> Write:
    return _write_message(field, kind) if field.kind == "message" else _WRITERS[field.kind](field)


def _write_text(field: Field) -> Write:
    tag = varint(field.tag)
    return lambda text: delimited(tag, text.encode())


def _write_bool(field: Field) -> Write:
    tag = varint(field.tag)

    def write(value: bool) -> bytes:
        if type(value) is not bool:
            raise TypeError("a boolean is due")
        return tag + varint(value)

    return write


def _write_integer(field: Field) -> Write:
    tag = varint(field.tag)

    def write(number: int) -> bytes:
        if type(number) is not int or not -(2**63) <= number < 2**63:
            raise TypeError("an integer of 64 bits is due")
        return tag + varint(number)

    return write


def _write_value(field: Field) -> Write:
    tag = varint(field.tag)
    return lambda value: delimited(tag, encode_value(value))


def _write_struct(field: Field) -> Write:
    tag = varint(field.tag)
    return lambda members: delimited(tag, encode_struct(members))


_WRITERS: Final[dict[str, Callable[[Field], Write]]] = {
    "string": _write_text,
    "bool": _write_bool,
    "int64": _write_integer,
    "value": _write_value,
    "struct": _write_struct,
}


def _write_message(field: Field, kind: Kind) -> Write:
    tag = varint(field.tag)
    message = MESSAGES[field.of]
    if isinstance(kind, Object):
        write = shape_writer(kind.struct, message.name)
        return lambda shape: delimited(tag, write(shape))
    assert isinstance(kind, Variant)
    writers = {
        struct: _arm(struct, message) if message.union else shape_writer(struct, message.name)
        for struct in kind.members.values()
    }
    return lambda shape: delimited(tag, writers[type(shape)](shape))


def _arm(struct: type[Struct], union: Message) -> Write:
    """A shape to a union, in the arm of its tag's name."""
    tag = definition(struct).tag
    (field,) = (field for field in union.fields if tag is not None and field.name == tag[1])
    return _write_message(field, Object(struct))
