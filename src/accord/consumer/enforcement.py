"""Enforcement: a raw event becomes an event, and holds nothing that the protocol does not describe.

Unknown types are dropped, unknown material is stripped, both with a warning; a malformed known value is fatal (rules
section 2). The struct definitions are the schema; `accord.protocol.conform` reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

import msgspec

from accord.consumer.deviation import Deviation
from accord.errors import ProtocolViolation
from accord.protocol import JSON, JSONObject, conform, definitions
from accord.protocol.events import EVENT_TYPES, Event

ShapeT = TypeVar("ShapeT", bound=msgspec.Struct)


@overload
def enforce(value: JSON, definition: type[ShapeT]) -> tuple[ShapeT | None, list[str]]: ...
@overload
def enforce(value: JSON, definition: str) -> tuple[Any, list[str]]: ...
def enforce(value: JSON, definition: type[ShapeT] | str) -> tuple[Any, list[str]]:
    """`value` judged against one definition of the protocol, by class or by the schema's name for it.

    Returns the shape and the JSON Pointers of what was stripped; None and `[""]` when all of it goes. Raises
    `ProtocolViolation` with the path of the first malformed value, `KeyError` for a name that is no definition.
    """
    struct = definitions()[definition].struct if isinstance(definition, str) else definition
    return conform(value, struct)


def enforce_event(raw: JSONObject, warn: Callable[[Deviation], None], index: int) -> Event | None:
    """The event in a raw event, or None when it is dropped."""
    event_type = raw.get("type")
    if not isinstance(event_type, str):
        raise ProtocolViolation(
            "an event must have a type, a string",
            stage="enforcement",
            rule="malformed",
            path="/type",
            index=index,
        )
    struct = EVENT_TYPES.get(event_type)
    if struct is None:
        warn(Deviation("enforcement", event_type, "", "unknown event type, dropped", index))
        return None
    try:
        event, stripped = conform(raw, struct)
    except ProtocolViolation as violation:
        violation.event_type, violation.index = event_type, index
        raise
    if event is None:
        warn(Deviation("enforcement", event_type, "", "an unknown value in a required place, event dropped", index))
        return None
    for path in stripped:
        warn(Deviation("enforcement", event_type, path, "not described by the protocol, stripped", index))
    return event
