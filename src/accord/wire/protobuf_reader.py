"""The binary wire's framing: bytes in, the raw event of each frame out, whatever the split of the bytes.

A frame is four bytes, the length of an envelope with the highest first, and the envelope. The stream may end between
frames only.
"""

from __future__ import annotations

from typing import Final

import msgspec

from accord.errors import ProtocolViolation, TruncatedRun
from accord.protocol import MAX_DEPTH, JSONObject
from accord.wire.protobuf_decode import decode_protobuf
from accord.wire.protobuf_fields import violation
from accord.wire.sse import MAX_FRAME_BYTES

_HEADER: Final = 4
# The pipeline takes the JSON text of a short event faster than the event, since it need not judge it member by member.
_SHORT: Final = 4096
_to_json = msgspec.json.Encoder().encode


class ProtobufReader:
    """Reads a body of frames incrementally: `feed` what arrives, then `close` when it ends.

    A frame of more than `max_frame_bytes`, its length included, is a `ProtocolViolation` (rule `frame-limit`) as soon
    as that length has come. `max_depth` bounds the nesting of each open value, in levels. Events read before an offence
    are returned first; the violation is then raised by the next call, and by every one after it.
    """

    __slots__ = ("_count", "_held", "_max", "_max_depth", "_needed", "_violation")

    def __init__(self, *, max_frame_bytes: int = MAX_FRAME_BYTES, max_depth: int = MAX_DEPTH) -> None:
        self._max = max_frame_bytes
        self._max_depth = max_depth
        self._held = bytearray()  # the beginning of a frame
        self._needed = _HEADER  # how much there must be before there is anything to do
        self._count = 0  # frames read
        self._violation: ProtocolViolation | None = None

    def feed(self, data: bytes) -> list[bytes | JSONObject]:
        """What each frame that `data` completes holds, ready for `accord.consumer.Pipeline.feed`.

        That is a raw event, or the JSON text of one.
        """
        if self._violation is not None:
            raise self._violation
        if self._held:
            self._held += data
            if len(self._held) < self._needed:
                return []
            data = bytes(self._held)
            self._held.clear()
        events: list[bytes | JSONObject] = []
        try:
            self._held += data[self._read_frames(data, events) :]
        except ProtocolViolation as offence:
            offence.index = self._count
            self._violation = offence
            if not events:
                raise
        return events

    def close(self) -> None:
        """The body has ended. Raises `TruncatedRun` when it ended inside a frame."""
        if self._violation is not None:
            raise self._violation
        if self._held:
            raise TruncatedRun(
                f"the body ends inside a frame: {len(self._held)} of at least {self._needed} bytes of it came"
            )

    def _read_frames(self, data: bytes, events: list[bytes | JSONObject]) -> int:
        """Reads the whole frames that `data` begins with; returns where they end."""
        position = 0
        self._needed = _HEADER
        while len(data) - position >= _HEADER:
            start = position + _HEADER
            self._needed = _HEADER + int.from_bytes(data[position:start], "big")
            if self._needed > self._max:
                message = f"a frame of {self._needed} bytes is longer than max_frame_bytes={self._max}"
                raise violation("frame-limit", message)
            end = position + self._needed
            if end > len(data):
                break
            event = decode_protobuf(data[start:end], max_depth=self._max_depth)
            events.append(_to_json(event) if self._needed <= _SHORT else event)
            self._count += 1
            position = end
            self._needed = _HEADER
        return position
