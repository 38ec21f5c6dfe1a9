"""How a run's events look in a response: the one place where a media type, its encoder and its framing meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from accord.protocol import Event, encode_event
from accord.wire import SSE_MEDIA_TYPE, comment, encode_frame


@dataclass(frozen=True, slots=True)
class Encoding:
    """An event's way to the wire: `encode`, then `frame`. `idle` is what may be sent while there is no event."""

    media_type: str
    encode: Callable[[Event], bytes]
    frame: Callable[[bytes], bytes]
    idle: bytes


SSE: Final = Encoding(SSE_MEDIA_TYPE, encode_event, encode_frame, comment("keep-alive"))
