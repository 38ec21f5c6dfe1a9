"""One run on one response, and nothing left of it when the response is over.

Three tasks: the producer, the sender of what it emits, and the one that waits for the client to leave. However the
response ends, the producer has ended, or was cancelled and given time to clean up, before `serve` returns, and nothing
is written once the client has left.
"""

from __future__ import annotations

import asyncio
import logging
import math
from dataclasses import dataclass

from accord.hosting.asgi import Message, Receive, Send
from accord.hosting.encoding import Encoding
from accord.hosting.outlet import BufferedOutlet
from accord.producer import Producer, Run, drive
from accord.protocol import RunErrorEvent

_logger = logging.getLogger("accord")

#: Producers that went on after their cancellation: the event loop itself holds its tasks weakly.
_abandoned: set[asyncio.Task[None]] = set()


@dataclass(frozen=True, slots=True)
class Pace:
    """When bytes leave and how long anybody is waited for. Times in seconds, None for ever."""

    keep_alive: float | None
    send_timeout: float | None
    cancel_grace: float
    batch_bytes: int
    batch_delay: float


class RunResponse:
    """Streams `run`, which puts its events into `outlet`, as the response to one request."""

    def __init__(
        self, run: Run, outlet: BufferedOutlet, encoding: Encoding, receive: Receive, send: Send, pace: Pace
    ) -> None:
        self._run = run
        self._outlet = outlet
        self._encoding = encoding
        self._receive = receive
        self._send = send
        self._pace = pace
        self._keep_alive = pace.keep_alive if encoding.idle else None
        self._loop = asyncio.get_running_loop()
        self._last_sent = self._loop.time()
        self._last_events = -math.inf
        self._sending_since: float | None = None
        self._idle_due = False
        self._stopping_until: float | None = None

    async def serve(self, producer: Producer) -> None:
        """Runs the producer and sends what it emits until it has ended or the client has left."""
        name = self._run.run_id
        self._producing = asyncio.create_task(drive(producer, self._run), name=f"accord run {name}")
        self._producing.add_done_callback(lambda _: self._outlet.nudge())
        self._sending = asyncio.create_task(self._send_run(), name=f"accord run {name}: sending")
        self._leaving = asyncio.create_task(self._until_disconnect(), name=f"accord run {name}: disconnect")
        try:
            await self._watch()
        except asyncio.CancelledError:  # the server stops; the run's last words may still leave
            self._stop_producing()
            await self._wait_for_connection(self._grace_left())
            raise
        finally:
            await self._release()
            failures = [
                task.exception() for task in (self._sending, self._leaving) if task.done() and not task.cancelled()
            ]
        for failure in failures:
            if failure is not None and not isinstance(failure, OSError):  # that is how some servers say: it has left
                raise failure

    # Sending

    async def _send_run(self) -> None:
        headers = [
            (b"content-type", self._encoding.media_type.encode()),
            (b"cache-control", b"no-cache"),
            (b"vary", b"Accept"),
            (b"x-accel-buffering", b"no"),  # nginx passes events on as they come
        ]
        await self._transmit({"type": "http.response.start", "status": 200, "headers": headers})
        outlet, pace, time = self._outlet, self._pace, self._loop.time
        while True:
            if outlet.waiting:
                self._idle_due = False
                now = time()
                delay = self._last_events + pace.batch_delay - now
                if delay > 0 and not self._producing.done():
                    await self._gather(delay)
                    now = time()
                self._sending_since = now  # as `_transmit` does, without a coroutine of its own for each event
                await self._send(_body(outlet.take(pace.batch_bytes)))
                self._sending_since = None
                self._last_sent = self._last_events = time()
                outlet.sent()
            elif outlet.overflowed or self._producing.done():
                break
            elif self._idle_due:
                self._idle_due = False
                await self._transmit(_body(self._encoding.idle))
            else:
                await outlet.wait(1)
        await self._transmit(_body(self._last_words(), more=False))

    async def _gather(self, delay: float) -> None:
        """Lets events that follow closely on others leave together. The first one after a pause waits for nothing."""
        timer = self._loop.call_later(delay, self._outlet.nudge)
        await self._outlet.wait(min(self._pace.batch_bytes, self._outlet.high_water + 1))
        timer.cancel()

    def _last_words(self) -> bytes:
        """What the run could not say itself: that events of it were refused, so it has failed however it ended."""
        if self._outlet.overflowed:
            failed = RunErrorEvent(message="The reader fell too far behind.", code="reader_too_slow")
            return self._encoding.framing.frame([self._encoding.encode(failed)])
        if not self._producing.cancelled():
            self._producing.result()
        return b""

    async def _transmit(self, message: Message) -> None:
        self._sending_since = self._loop.time()
        await self._send(message)
        self._sending_since = None
        self._last_sent = self._loop.time()

    # Watching

    async def _until_disconnect(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._sending.cancel()  # here, and not where this task is waited for: that is a turn of the loop later

    async def _wait_for_connection(self, seconds: float | None) -> bool:
        """Whether all is sent, sending has failed or the client has left, after so many seconds at most."""
        connection = (self._sending, self._leaving)
        done, _ = await asyncio.wait(connection, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return bool(done)

    async def _watch(self) -> None:
        """Returns when the connection is done with, or when the client takes nothing any more."""
        while not await self._wait_for_connection(self._patience()):
            now = self._loop.time()
            if self._sending_since is None:
                if self._keep_alive is not None and now >= self._last_sent + self._keep_alive:
                    self._idle_due = True
                    self._outlet.nudge()
            elif self._pace.send_timeout is not None and now >= self._sending_since + self._pace.send_timeout:
                _logger.warning(
                    "run %r: the client took nothing for %g s (send_timeout) and is given up",
                    self._run.run_id,
                    self._pace.send_timeout,
                )
                return

    def _patience(self) -> float | None:
        """Seconds until there may be something to do. Looked at then, so that no event that is sent sets a timer."""
        now = self._loop.time()
        due = []
        if self._keep_alive is not None:
            due.append((self._last_sent if self._sending_since is None else now) + self._keep_alive)
        if self._pace.send_timeout is not None:
            due.append((now if self._sending_since is None else self._sending_since) + self._pace.send_timeout)
        return max(0.0, min(due) - now) if due else None

    # Ending

    def _stop_producing(self) -> None:
        """Cancels the producer, once: a second cancellation would cut into its cleaning up."""
        if self._stopping_until is None:
            self._stopping_until = self._loop.time() + self._pace.cancel_grace
            self._producing.cancel()

    def _grace_left(self) -> float:
        assert self._stopping_until is not None
        return max(0.0, self._stopping_until - self._loop.time())

    async def _release(self) -> None:
        """Ends the tasks; nothing is sent from here on."""
        self._outlet.discard()
        self._sending.cancel()
        self._leaving.cancel()
        self._stop_producing()
        await asyncio.wait((self._sending, self._leaving, self._producing), timeout=self._grace_left())
        if not self._producing.done():
            _logger.error(
                "run %r: the producer goes on %g s after its cancellation (cancel_grace) and is left to itself",
                self._run.run_id,
                self._pace.cancel_grace,
            )
            _abandoned.add(self._producing)
            self._producing.add_done_callback(_abandoned.discard)


def _body(body: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}
