"""How a run's events look in a response: the one place where a media type, its encoder and its framing meet.

Which of them a response has is for the request's `Accept` to say (rules section 9).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from accord.protocol import Event, encode_event
from accord.wire import (
    PROTOBUF_MEDIA_TYPE,
    SSE_MEDIA_TYPE,
    admits_protobuf,
    comment,
    encode_frames,
    encode_protobuf,
    frame,
)


@dataclass(frozen=True, slots=True)
class Framing:
    """How events follow one another on a wire: `frame` makes the bytes of any number of them.

    `overhead` is what it adds to each, in bytes.
    """

    frame: Callable[[Sequence[bytes]], bytes]
    overhead: int


@dataclass(frozen=True, slots=True)
class Encoding:
    """An event's way to the wire: `encode`, then `framing`.

    `idle` is what may be sent while there is no event; empty where the wire has nothing that readers pass over.
    """

    media_type: str
    encode: Callable[[Event], bytes]
    framing: Framing
    idle: bytes


def _frame_envelopes(envelopes: Sequence[bytes]) -> bytes:
    return b"".join(map(frame, envelopes))


SSE: Final = Encoding(
    SSE_MEDIA_TYPE, encode_event, Framing(encode_frames, len(encode_frames([b""]))), comment("keep-alive")
)
PROTOBUF: Final = Encoding(PROTOBUF_MEDIA_TYPE, encode_protobuf, Framing(_frame_envelopes, len(frame(b""))), b"")


def negotiated(accept: str | None) -> Encoding:
    """The encoding for a request with this `Accept` header, None for none: protobuf where it is admitted, else SSE."""
    return PROTOBUF if admits_protobuf(accept) else SSE
