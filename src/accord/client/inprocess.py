"""A producer in the same process: nothing between the two but bytes, so both ends do all that they do over a network.

The producer runs in a task of its own, which ends with the response. What it emits waits in a bounded buffer that the
reader empties; `await run.drain()` holds the producer back while the reader is slow.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable

from accord.consumer import OnDeviation
from accord.consumer.deviation import MAX_DEVIATIONS
from accord.errors import TruncatedRun
from accord.producer import CAUGHT_UP, OutletOverflow, Producer, Run, check_input, drive, receive_input
from accord.protocol import MAX_DEPTH, RunAgentInput, encode_input
from accord.wire import SSE_MEDIA_TYPE, encode_frame

_logger = logging.getLogger("accord")
_abandoned: set[asyncio.Task[None]] = set()


class InProcessTransport:
    """Runs `producer` for each input. The input arrives as a copy, judged as a request's body would be.

    - `max_buffered_bytes`: bytes of events that may wait for the reader; an event beyond ends the stream there.
    - `high_water`: bytes above which `await run.drain()` waits.
    - `max_depth`: levels that the input, and each event, may nest.
    - `cancel_grace`: seconds that a producer is given for cleaning up when the reader leaves before its end.
    - `on_deviation`: told of what the producer's side strips from an input.
    - `max_deviations`: warnings of one input that are told; of the others it is told how many they are.
    """

    def __init__(
        self,
        producer: Producer,
        *,
        max_buffered_bytes: int = 16 * 1024 * 1024,
        high_water: int = 64 * 1024,
        max_depth: int = MAX_DEPTH,
        cancel_grace: float = 5.0,
        on_deviation: OnDeviation | None = None,
        max_deviations: int = MAX_DEVIATIONS,
    ) -> None:
        if not 0 <= high_water <= max_buffered_bytes:
            raise ValueError(f"high_water={high_water} must lie within max_buffered_bytes={max_buffered_bytes}")
        self._producer = producer
        self._max_buffered_bytes = max_buffered_bytes
        self._high_water = high_water
        self._max_depth = max_depth
        self._cancel_grace = cancel_grace
        self._on_deviation = on_deviation
        self._max_deviations = max_deviations

    async def open(self, run_input: RunAgentInput) -> _ProducerResponse:
        """Starts the producer. Raises `InputRejected` as a producer does."""
        received = receive_input(
            encode_input(run_input),
            max_depth=self._max_depth,
            on_deviation=self._on_deviation,
            max_deviations=self._max_deviations,
        )
        await check_input(self._producer, received)
        buffer = _Buffer(self._max_buffered_bytes, self._high_water)
        run = Run(received, buffer, max_depth=self._max_depth)
        producing = asyncio.create_task(drive(self._producer, run), name=f"accord run {run.run_id}")
        return _ProducerResponse(producing, buffer, self._cancel_grace)

    async def aclose(self) -> None:
        """Nothing is kept from run to run."""


class _Buffer:
    """The outlet of one run. `put` may be called from any thread; the rest belongs to the event loop."""

    def __init__(self, max_buffered_bytes: int, high_water: int) -> None:
        self._max = max_buffered_bytes
        self._high_water = high_water
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._waiting: list[bytes] = []
        self._size = 0
        self._discarding = False
        self._ended = False
        self._filled = asyncio.Event()
        self._room = asyncio.Event()
        #: Set once an event was refused, and why: what is waiting is all that will ever come.
        self.overflow = ""

    def put(self, payload: bytes) -> None:
        """Takes one event; one that does not fit is refused, and so is every one after it."""
        frame = encode_frame(payload)
        with self._lock:
            if self._discarding:
                return
            if self._size + len(frame) > self._max:
                self.overflow = (
                    f"more than {self._max} bytes wait for the reader (max_buffered_bytes); "
                    "await run.drain() between events"
                )
            if not self.overflow:
                self._waiting.append(frame)
                self._size += len(frame)
        if threading.get_ident() == self._thread:
            self._filled.set()
        else:
            self._loop.call_soon_threadsafe(self._filled.set)
        if self.overflow:
            raise OutletOverflow(self.overflow)

    def drain(self) -> Awaitable[None]:
        """Returns, when awaited, as soon as no more than the high-water mark is waiting."""
        at_once = self._size <= self._high_water and not self._discarding
        return CAUGHT_UP if at_once else self._until_drained()

    async def _until_drained(self) -> None:
        if self._discarding:  # a loop around this call must not hold the event loop
            await asyncio.sleep(0)
        while self._size > self._high_water:
            self._room.clear()
            await self._room.wait()

    async def take(self) -> bytes:
        """All that is waiting, as soon as there is any; empty when no more will come."""
        while not self._waiting and not self._ended and not self.overflow:
            self._filled.clear()
            await self._filled.wait()
        with self._lock:
            taken, self._waiting, self._size = b"".join(self._waiting), [], 0
        self._room.set()
        return taken

    def end(self) -> None:
        """No more will come."""
        self._ended = True
        self._filled.set()

    def discard(self) -> None:
        """Drops what is waiting and all that comes; nobody waits for the reader any more."""
        with self._lock:
            self._discarding = True
            self._waiting, self._size = [], 0
        self._room.set()


class _ProducerResponse:
    """What a producer emits, being read."""

    content_type = SSE_MEDIA_TYPE
    status = None

    def __init__(self, producing: asyncio.Task[None], buffer: _Buffer, cancel_grace: float) -> None:
        self._producing = producing
        self._buffer = buffer
        self._cancel_grace = cancel_grace
        self._chunks = self._read()
        producing.add_done_callback(lambda _: buffer.end())

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def aclose(self) -> None:
        """Cancels a producer that is still at work, and waits until it has cleaned up."""
        await self._chunks.aclose()
        self._buffer.discard()
        if self._producing.done():
            return
        self._producing.cancel()
        await asyncio.wait({self._producing}, timeout=self._cancel_grace)
        if not self._producing.done():
            _logger.error(
                "%s: the producer goes on %g s after its cancellation (cancel_grace) and is left to itself",
                self._producing.get_name(),
                self._cancel_grace,
            )
            _abandoned.add(self._producing)
            self._producing.add_done_callback(_abandoned.discard)

    async def _read(self) -> AsyncGenerator[bytes, None]:
        while data := await self._buffer.take():
            yield data
        if self._buffer.overflow:
            raise TruncatedRun(self._buffer.overflow)
