"""Envelopes of the binary wire to raw events, which enter the pipeline as those of any wire do.

Exactly one arm names the event. An envelope with nothing but arms of later versions becomes a raw event of a type that
no version has, which enforcement drops with its warning. Several arms, none, or a base event that names another type
contradict themselves and are refused, and so is whatever cannot be decoded.

The last goes further than `@ag-ui/proto` 1.0.0, which reads bytes that are not UTF-8 as U+FFFD and cuts tags and
lengths of more than 32 bits down to 32: rules section 9, "Undecodable bytes: fatal". A part of a later version, which
it drops, this hands on, and enforcement drops it with its path.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from accord.errors import ProtocolViolation
from accord.protocol import MAX_DEPTH, JSONObject
from accord.protocol.events import EVENT_TYPES
from accord.wire.protobuf_fields import DELIMITED, Span, check_message, joined, undecodable, violation, walk
from accord.wire.protobuf_messages import ReadField, message_reader
from accord.wire.protobuf_schema import ENUMS, MESSAGES


class _Arm(NamedTuple):
    """One event: the envelope's field, the event's type, its number, and what reads its message."""

    field: int
    type: str
    number: int
    read: ReadField


_ARMS: Final = {
    field.tag: _Arm(field.number, type_, ENUMS["EventType"][type_], message_reader(field.of))
    for field in MESSAGES["Event"].fields
    for type_, struct in EVENT_TYPES.items()
    if struct.__name__ == field.of
}
_FIELDS: Final = {arm.field: arm for arm in _ARMS.values()}


def decode_protobuf(envelope: bytes, *, max_depth: int = MAX_DEPTH) -> JSONObject:
    """The raw event in `envelope`, one `Event` message without a length before it.

    Raises `ProtocolViolation` (stage `wire`). `max_depth` bounds the nesting of each open value, in levels.
    """
    arm: _Arm | None = None
    try:
        arm, spans = _arm(envelope)
        if arm is None:
            return {"type": _later(envelope)}
        data, start, end = joined(envelope, spans)
        return _event(arm, arm.read(data, start, end, max_depth))
    except UnicodeDecodeError as error:
        offence = violation("encoding", f"a string is not UTF-8: {error.reason}")
    except IndexError:
        offence = undecodable("it ends inside a field")
    except ProtocolViolation as error:
        offence = error
    if arm is not None:
        offence.event_type = arm.type
    raise offence from None


def _arm(envelope: bytes) -> tuple[_Arm | None, Sequence[Span]]:
    """The one arm and where it stands; None when there is none of this version."""
    arm: _Arm | None = None
    named: _Arm | None = None
    spans: list[Span] = []
    for tag, first, last in walk(envelope, 0, len(envelope)):
        here = _ARMS.get(tag)
        if here is not None:
            if named is None and last == len(envelope):
                return here, ((first, last),)
            arm = here
            spans.append((first, last))
        else:  # an arm's number counts, whatever its wire type
            here = _FIELDS.get(tag >> 3)
        if here is not None:
            if named is not None and named is not here:
                raise violation("several-arms", f"the envelope holds both {named.type} and {here.type}")
            named = here
    if arm is None and named is not None:
        raise undecodable(f"the arm of {named.type} holds no message")
    return arm, spans


def _later(envelope: bytes) -> str:
    """A type for an event of a later version; there is no name to give it, so its arm is told."""
    later: int | None = None
    for tag, first, last in walk(envelope, 0, len(envelope)):
        if tag & 7 == DELIMITED:
            check_message(envelope, first, last)
            later = later or tag >> 3
    if later is None:
        raise violation("no-event", "the envelope holds no event")
    return f"(envelope arm {later})"


def _event(arm: _Arm, members: JSONObject) -> JSONObject:
    base = members.pop("baseEvent", None)
    if base is None:
        raise violation("no-base-event", "the base event is missing")
    if base["type"] != arm.number:
        raise violation("type", f"the base event says {_name(base['type'])}")
    event: JSONObject = {"type": arm.type}
    if len(base) > 1:
        event.update((name, value) for name, value in base.items() if name != "type")
    event.update(members)
    return event


def _name(number: int) -> str:
    names = {each: name for name, each in ENUMS["EventType"].items()}
    return names.get(number, f"type {number}")
