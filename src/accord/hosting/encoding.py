"""How a run's events look in a response: the one place where a media type, its encoder and its framing meet.

Which of them a response has is for the request's `Accept` to say (rules section 9).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from accord.protocol import Event, encode_event
from accord.wire import (
    PROTOBUF_MEDIA_TYPE,
    SSE_MEDIA_TYPE,
    admits_protobuf,
    comment,
    encode_frame,
    encode_protobuf,
    frame,
)


@dataclass(frozen=True, slots=True)
class Encoding:
    """An event's way to the wire: `encode`, then `frame`.

    `idle` is what may be sent while there is no event; empty where the wire has nothing that readers pass over.
    """

    media_type: str
    encode: Callable[[Event], bytes]
    frame: Callable[[bytes], bytes]
    idle: bytes


SSE: Final = Encoding(SSE_MEDIA_TYPE, encode_event, encode_frame, comment("keep-alive"))
PROTOBUF: Final = Encoding(PROTOBUF_MEDIA_TYPE, encode_protobuf, frame, b"")


def negotiated(accept: str | None) -> Encoding:
    """The encoding for a request with this `Accept` header, None for none: protobuf where it is admitted, else SSE."""
    return PROTOBUF if admits_protobuf(accept) else SSE
