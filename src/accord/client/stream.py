"""From a response to events: its content type alone chooses the reader, and the pipeline does the rest.

The only way in: whatever the transport, its bytes pass here, and whatever was asked for, they are read as what they are
declared to be. What a failure follows is handed out before the failure is raised, and the events of one read, with what
is wrong behind them, before the next one is waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Final, Literal, Protocol, TypeAlias

from accord import wire
from accord.client.excerpt import excerpt, read_start
from accord.client.transport import Response
from accord.consumer import Pipeline
from accord.errors import ProtocolViolation, TransportError, TruncatedRun
from accord.protocol import Event, JSONObject
from accord.wire import PROTOBUF_MEDIA_TYPE, SSE_MEDIA_TYPE, SSEReader, media_type

#: Which wires a request offers to read.
Wire: TypeAlias = Literal["auto", "sse", "protobuf"]


class PayloadReader(Protocol):
    """A wire reader: bytes in, the payload of each event out."""

    def feed(self, data: bytes) -> Sequence[bytes | JSONObject]:
        """The payloads that `data` completes, for the pipeline.

        Raises `ProtocolViolation`, but first returns what came before the offence; the next call then raises it.
        """
        ...

    def close(self) -> None:
        """The body has ended; raises `TruncatedRun` when it ended inside an event."""
        ...


#: The wires that are understood, by media type: what makes a reader, given the bytes and the levels an event may have.
#: The binary one is named where it is used, since naming it loads the protobuf runtime.
_READERS: Final[dict[str, Callable[[int, int], PayloadReader]]] = {
    SSE_MEDIA_TYPE: lambda max_frame_bytes, _: SSEReader(max_frame_bytes=max_frame_bytes),
    PROTOBUF_MEDIA_TYPE: lambda max_frame_bytes, max_depth: wire.ProtobufReader(
        max_frame_bytes=max_frame_bytes, max_depth=max_depth
    ),
}
#: What a request says it accepts.
ACCEPT: Final[dict[Wire, str]] = {
    "auto": ", ".join(_READERS),
    "sse": SSE_MEDIA_TYPE,
    "protobuf": PROTOBUF_MEDIA_TYPE,
}

_EXCERPT_BYTES = 1024


async def reader_for(
    response: Response, *, max_frame_bytes: int, max_depth: int, patience: float | None
) -> PayloadReader:
    """The reader of what the response declares to be.

    Raises `TransportError` for a body of another kind, showing how it begins, and `TruncatedRun` when there is none;
    its beginning is waited for `patience` seconds.
    """
    make = _READERS.get(media_type(response.content_type))
    if make is not None:
        return make(max_frame_bytes, max_depth)
    start = await read_start(response, max_bytes=_EXCERPT_BYTES, patience=patience)
    if not start:
        raise TruncatedRun(f"the answer ({_described(response)}) has an empty body")
    raise TransportError(
        f"what answered is not an AG-UI producer: {_described(response)} where {' or '.join(_READERS)} is due; "
        f"the body begins {excerpt(start)!r}",
        status=response.status,
    )


async def read_events(
    response: Response, reader: PayloadReader, pipeline: Pipeline, *, end_timeout: float | None
) -> AsyncGenerator[Event, None]:
    """The events of a response as they come.

    Raises `ProtocolViolation`, and `TruncatedRun` when the body ends before its run. Once a run has ended the body is
    given `end_timeout` seconds to go on with another or to end.
    """
    chunks = aiter(response)
    clock = asyncio.get_running_loop().time
    received = 0
    deadline: float | None = None
    cut: TruncatedRun | None = None
    while True:
        try:
            async with asyncio.timeout_at(deadline) as patience:
                data = await anext(chunks, None)
        except TimeoutError:
            if not patience.expired():
                raise
            break
        except TruncatedRun as error:
            cut = error
            break
        if data is None:
            break
        received += len(data)
        for payload in reader.feed(data):
            try:
                events = await pipeline.feed_async(payload)
            except ProtocolViolation as violation:
                for event in violation.delivered:
                    yield event
                raise
            for event in events:
                yield event
            if events:
                deadline = None if end_timeout is None or pipeline.run_active else clock() + end_timeout
        reader.feed(b"")  # raises what was wrong behind those
    try:
        reader.close()
        pipeline.finish()
    except TruncatedRun as truncated:
        came = f"{truncated} ({_described(response)}, {received} bytes came)"
        raise TruncatedRun(came if cut is None else f"{cut}; {came}") from cut


def _described(response: Response) -> str:
    status = "" if response.status is None else f"HTTP {response.status}, "
    return f"{status}{excerpt(response.content_type or 'no content type', max_characters=80)}"
