"""A recorded stream in the place of a producer: the same bytes, or the same events, through the same pipeline."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable

import msgspec

from accord import wire
from accord.protocol import Event, JSONObject, RunAgentInput, decode_event, encode_event
from accord.wire import PROTOBUF_MEDIA_TYPE, SSE_MEDIA_TYPE, encode_frame, media_type


class ReplayTransport:
    """Answers every input with one recording.

    `recording` is the body as it was, of type `content_type`, or its events, typed or raw, which are framed as the type
    asks. In an event stream raw ones may be as broken as a peer can make them; the binary wire has no room for what is
    not described, so there they must be well-formed (`ProtocolViolation`). `chunk_bytes` is the size of the pieces it
    comes in. `sent` holds the inputs so far.
    """

    def __init__(
        self,
        recording: bytes | Iterable[Event | JSONObject],
        *,
        content_type: str = SSE_MEDIA_TYPE,
        chunk_bytes: int = 64 * 1024,
    ) -> None:
        if isinstance(recording, bytes):
            self._body = recording
        else:
            in_frames = media_type(content_type) == PROTOBUF_MEDIA_TYPE
            self._body = b"".join(map(_binary_frame if in_frames else _sse_frame, recording))
        self._content_type = content_type
        self._chunk_bytes = chunk_bytes
        self.sent: list[RunAgentInput] = []

    async def open(self, run_input: RunAgentInput) -> _Recording:
        """Starts the recording from its beginning."""
        self.sent.append(run_input)
        return _Recording(self._body, self._content_type, self._chunk_bytes)

    async def aclose(self) -> None:
        """Nothing is kept."""


class _Recording:
    """A recording being played."""

    status = None

    def __init__(self, body: bytes, content_type: str, chunk_bytes: int) -> None:
        self.content_type = content_type
        self._chunks = self._play(body, chunk_bytes)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def aclose(self) -> None:
        await self._chunks.aclose()

    @staticmethod
    async def _play(body: bytes, chunk_bytes: int) -> AsyncGenerator[bytes, None]:
        for start in range(0, len(body), chunk_bytes):
            await asyncio.sleep(0)  # a long recording must not keep others from the event loop
            yield body[start : start + chunk_bytes]


def _sse_frame(event: Event | JSONObject) -> bytes:
    return encode_frame(encode_event(event) if isinstance(event, msgspec.Struct) else _json(event))


def _binary_frame(event: Event | JSONObject) -> bytes:
    typed = event if isinstance(event, msgspec.Struct) else decode_event(_json(event))
    return wire.frame(wire.encode_protobuf(typed))  # named here, since naming it loads the protobuf runtime


def _json(event: JSONObject) -> bytes:
    return json.dumps(event).encode()
