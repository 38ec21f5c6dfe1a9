"""Events to the binary wire: `encode_protobuf` makes an envelope, `frame` puts its length before it.

The bytes are those of `@ag-ui/proto` 1.0.0. JSON holds more than they can. An integer in an open value that no double
holds exactly is refused. What is lost is undescribed members of a patch operation and, as no list without elements is
written, whether `toolCalls`, `usage`, `pendingToolCallIds`, `interruptIds` and an input's `tools`, `context` and
`resume` were empty or absent.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from accord.errors import EncodingError, ProtocolViolation
from accord.protocol import EVENT_TYPES, JSON, Event, conform, to_wire
from accord.protocol.codec import check_json
from accord.protocol.conform import escape_token
from accord.protocol.definitions import Object
from accord.wire.protobuf_schema import MESSAGES
from accord.wire.protobuf_shapes import FAULTS, Write, field_writer

_ENVELOPES: Final[dict[type[Any], Write]] = {
    struct: field_writer(arm, Object(struct))
    for arm in MESSAGES["Event"].fields
    for struct in EVENT_TYPES.values()
    if struct.__name__ == arm.of
}


def encode_protobuf(event: Event) -> bytes:
    """`event` as one `Event` message, without a length before it.

    `EncodingError` names the value that JSON cannot carry, on this wire as on the other, or the integer that no double
    holds exactly.
    """
    try:
        return _ENVELOPES[type(event)](event)
    except FAULTS:
        return _encode_unchecked(event)


def frame(envelope: bytes) -> bytes:
    """`envelope` as it stands in a body: after its length, four bytes with the highest first."""
    return len(envelope).to_bytes(4, "big") + envelope


def _encode_unchecked(event: Event) -> bytes:
    """An event that holds other values than its class describes: they may be what is due all the same (1.0 for 1)."""
    check_json(event)
    try:
        _check_doubles(msgspec.to_builtins(event), "")
        conforming, _ = conform(to_wire(event), type(event))
        return _ENVELOPES[type(event)](conforming)
    except ProtocolViolation as violation:
        raise EncodingError(violation.args[0], path=violation.path) from None
    except RecursionError:
        raise EncodingError("nested too deeply", path="") from None
    except FAULTS as error:
        raise EncodingError(f"not an event that the binary wire carries: {error!r}", path="") from None


def _check_doubles(value: JSON, path: str) -> None:
    """Open values have no other numbers than doubles."""
    if isinstance(value, dict):
        for name, member in value.items():
            _check_doubles(member, f"{path}/{escape_token(name)}")
    elif isinstance(value, list):
        for position, element in enumerate(value):
            _check_doubles(element, f"{path}/{position}")
    elif isinstance(value, int):
        try:
            exact = float(value) == value
        except OverflowError:
            exact = False
        if not exact:
            raise EncodingError("an integer that the binary wire's numbers, doubles, do not hold exactly", path=path)
