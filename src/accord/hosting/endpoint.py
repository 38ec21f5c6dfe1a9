"""A producer as an ASGI application for one path: a run's input comes in with POST, its events go out as a stream.

Everything about a request is made for it and ends with it: no two requests share a run, an outlet or a task.
"""

from __future__ import annotations

from contextlib import suppress

from accord.consumer import OnDeviation
from accord.consumer.deviation import MAX_DEVIATIONS
from accord.hosting.admission import (
    Authorize,
    Disconnected,
    Refusal,
    authorized,
    check_head,
    read_body,
    read_input,
)
from accord.hosting.asgi import Receive, Scope, Send, header
from accord.hosting.encoding import SSE, negotiated
from accord.hosting.outlet import BufferedOutlet
from accord.hosting.response import Pace, RunResponse
from accord.producer import Producer, Run
from accord.protocol import MAX_DEPTH

_KIB = 1024
_MIB = 1024 * 1024


class AGUIEndpoint:
    """Serves `producer` over AG-UI 1.0: an ASGI 3 application, for asyncio, of one path.

    It looks at no path, so mount it where it shall be: `Route("/agent", endpoint=AGUIEndpoint(producer))` in Starlette,
    `app.router.routes.append(...)` of the same in FastAPI, or alone under a server. `on_deviation` is told of what was
    stripped from an input.

    Events go out as an event stream (SSE), or on the binary wire (protobuf) where the request's `Accept` admits that.
    `*/*` does, which many HTTP clients send unasked: whoever wants to read text asks for `text/event-stream`.

    `authorize` is given the ASGI scope of a request before its body is read and returns, at once or awaited, on whose
    behalf the run is: `run.scope`. What is kept of a thread between runs (open questions, approvals, sessions) is kept
    within that scope, and a thread's id is no credential: without `authorize` whoever names a thread's id goes on with
    it. `PermissionError` refuses the request with 403.

    What comes in (errors are `{"error": {"code", "message"}}`, 422 with `path`, a JSON Pointer into the input):

    - `max_body_bytes`: of the request's body, as announced or as it comes; 413 beyond.
    - `body_timeout`: seconds for the body to come, None for as long as it likes; 408 after.
    - `max_depth`: levels that the input, and each event that goes out, may nest; 422 beyond.
    - `max_deviations`: warnings of one input that are told; of the others it is told how many they are.

    What goes out:

    - `max_buffered_bytes`: bytes of events that may wait for the reader, one request. An event beyond is refused with
      `OutletOverflow`, the producer is cancelled, and the stream ends with `RUN_ERROR`, code `reader_too_slow`.
    - `high_water`: bytes above which `await run.drain()` waits.
    - `batch_bytes`: bytes that leave in one send at most. What is emitted together leaves together.
    - `batch_delay`: seconds that an event waits at most for others, when one has just been sent; the first one after a
      pause is sent at once.
    - `keep_alive`: seconds without an event after which a comment is sent, None for no comments. The binary wire has no
      comments: a proxy that closes idle connections must be told to wait, or the client to ask for SSE.
    - `send_timeout`: seconds that the server may hold on to one send, because the client takes nothing, before the
      client counts as gone; None for ever.
    - `cancel_grace`: seconds that a producer is given for cleaning up after its cancellation, when the client leaves
      or the server stops. One that goes on beyond is reported to the log and left to itself.
    """

    def __init__(
        self,
        producer: Producer,
        *,
        authorize: Authorize | None = None,
        max_body_bytes: int = 10 * _MIB,
        body_timeout: float | None = 60.0,
        max_depth: int = MAX_DEPTH,
        max_deviations: int = MAX_DEVIATIONS,
        max_buffered_bytes: int = 16 * _MIB,
        high_water: int = 64 * _KIB,
        batch_bytes: int = 64 * _KIB,
        batch_delay: float = 0.005,
        keep_alive: float | None = 15.0,
        send_timeout: float | None = 60.0,
        cancel_grace: float = 5.0,
        on_deviation: OnDeviation | None = None,
    ) -> None:
        if not 0 <= high_water <= max_buffered_bytes:
            raise ValueError(f"high_water={high_water} must lie within max_buffered_bytes={max_buffered_bytes}")
        if batch_bytes < 1:
            raise ValueError(f"batch_bytes={batch_bytes} must be positive")
        self._producer = producer
        self._authorize = authorize
        self._max_body_bytes = max_body_bytes
        self._body_timeout = body_timeout
        self._max_depth = max_depth
        self._max_deviations = max_deviations
        self._max_buffered_bytes = max_buffered_bytes
        self._high_water = high_water
        self._on_deviation = on_deviation
        self._pace = Pace(keep_alive, send_timeout, cancel_grace, batch_bytes, batch_delay)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"only HTTP requests are served here, not {scope['type']}")
        try:
            check_head(scope, max_body_bytes=self._max_body_bytes)
            on_behalf_of = await authorized(scope, self._authorize)
            body = await read_body(receive, max_body_bytes=self._max_body_bytes, body_timeout=self._body_timeout)
            run_input = await read_input(
                body,
                self._producer,
                scope=on_behalf_of,
                max_depth=self._max_depth,
                on_deviation=self._on_deviation,
                max_deviations=self._max_deviations,
            )
        except Refusal as refusal:
            with suppress(OSError):  # the client has left
                await refusal.answer(send)
            return
        except Disconnected:
            return
        encoding = negotiated(header(scope, b"accept"))
        outlet = BufferedOutlet(
            encoding.framing, max_buffered_bytes=self._max_buffered_bytes, high_water=self._high_water
        )
        # A run encodes to JSON anyway, since that is the form in which it judges its events.
        encode = None if encoding is SSE else encoding.encode
        run = Run(run_input, outlet, encode=encode, scope=on_behalf_of, max_depth=self._max_depth)
        await RunResponse(run, outlet, encoding, receive, send, self._pace).serve(self._producer)
