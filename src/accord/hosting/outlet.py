"""The bounded buffer between a run and its connection: putting is a plain call, from any thread.

A producer that drains is held while more than the high-water mark is waiting, so a slow reader slows it down. One that
does not drain meets the hard limit: its event is refused, and every event after it, since a stream with a hole in it
must not go on. Bytes count as waiting until the server has taken them. Events are framed when they are taken, all
that wait at once: putting one does no more than keep it and count it.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable

from accord.hosting.encoding import Framing
from accord.producer import CAUGHT_UP, OutletOverflow

_AWAKE = sys.maxsize  # more bytes than ever wait


class BufferedOutlet:
    """The outlet of one run. Made on the event loop that sends; all but `put` belongs to that loop."""

    def __init__(self, framing: Framing, *, max_buffered_bytes: int, high_water: int) -> None:
        self._framing = framing
        self._overhead = framing.overhead
        self._max = max_buffered_bytes
        self.high_water = high_water
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._payloads: list[bytes] = []
        self._framed = bytearray()  # what was framed and not taken, older than the payloads
        self._waiting = 0  # bytes of both, with their frames
        self._in_flight = 0
        self._room = max_buffered_bytes  # how many bytes may be buffered from here on; -1 for no more at all
        self._mark = high_water  # above how many a producer is held
        self._overflowed = False
        self._discarding = False
        self._waiter: asyncio.Future[None] | None = None  # the sender, while it waits
        self._wake_at = _AWAKE  # how many waiting bytes wake it
        self._drained: asyncio.Event | None = None  # while a producer is held

    # The producer's side

    def put(self, payload: bytes) -> None:
        """Takes one encoded event; raises `OutletOverflow` for the first that does not fit and all after it."""
        with self._lock:
            waiting = self._waiting + len(payload) + self._overhead
            if waiting + self._in_flight > self._room:
                self._refuse()
            else:
                self._payloads.append(payload)
                self._waiting = waiting
                if waiting >= self._wake_at:
                    self._wake()

    def drain(self) -> Awaitable[None]:
        """Returns, when awaited, as soon as no more than the high-water mark is waiting."""
        return CAUGHT_UP if self._waiting + self._in_flight <= self._mark else self._until_drained()

    async def _until_drained(self) -> None:
        if self._discarding:  # nobody waits for anything, but a loop around this call must not hold the event loop
            await asyncio.sleep(0)
        while self.buffered > self.high_water:
            if self._drained is None:
                self._drained = asyncio.Event()
            await self._drained.wait()

    # The connection's side

    @property
    def waiting(self) -> int:
        """Bytes that nobody has taken yet."""
        return self._waiting

    @property
    def buffered(self) -> int:
        """Bytes that are waiting or being sent."""
        return self._in_flight + self._waiting

    @property
    def overflowed(self) -> bool:
        """Whether an event was refused: what is waiting is all that will ever come."""
        return self._overflowed

    def take(self, at_most: int) -> bytes:
        """The oldest waiting bytes, whole frames or not. They count as buffered until they are reported `sent`."""
        with self._lock:
            # Of a backlog no more than is due: framing it all would hold up the loop, and whoever puts.
            due = len(self._payloads) if self._waiting <= at_most else self._reaching(at_most - len(self._framed))
            taken = self._framing.frame(self._payloads[:due])
            del self._payloads[:due]
            if self._framed or len(taken) > at_most:
                self._framed += taken
                taken = bytes(self._framed[:at_most])
                del self._framed[:at_most]
            self._in_flight = len(taken)
            self._waiting -= len(taken)
        return taken

    def sent(self) -> None:
        """The server has what was taken."""
        self._in_flight = 0
        if self._drained is not None and self._waiting <= self.high_water:
            self._release()

    def wait(self, at_least: int) -> Awaitable[None]:
        """Returns, when awaited, as soon as `at_least` bytes are waiting, an event was refused, or somebody calls
        `nudge`."""
        with self._lock:
            if self._waiting >= at_least or self._overflowed:
                return CAUGHT_UP
            self._waiter = self._loop.create_future()
            self._wake_at = at_least
            return self._waiter

    def nudge(self) -> None:
        """Makes a `wait` return."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def discard(self) -> None:
        """Nobody reads any more: forgets what is waiting and whatever is put from now on."""
        with self._lock:
            self._discarding = True
            self._payloads.clear()
            self._framed.clear()
            self._waiting = self._in_flight = 0
            self._room = self._mark = -1
        if self._drained is not None:
            self._release()

    def _release(self) -> None:
        """Lets the producers go on that are held."""
        assert self._drained is not None
        self._drained.set()
        self._drained = None

    # With the lock held

    def _reaching(self, size: int) -> int:
        """How many of the payloads, framed, are at least so many bytes."""
        count = 0
        while size > 0:
            size -= len(self._payloads[count]) + self._overhead
            count += 1
        return count

    def _refuse(self) -> None:
        """There is no room for an event: none is needed where nobody reads, and there will never be any otherwise."""
        if self._discarding:
            return
        self._overflowed = True
        self._room = -1
        if self._wake_at != _AWAKE:
            self._wake()
        raise OutletOverflow(
            f"more than {self._max} bytes wait for the reader (max_buffered_bytes); await run.drain() between events"
        )

    def _wake(self) -> None:
        """Called by whichever thread puts."""
        self._wake_at = _AWAKE
        if threading.get_ident() == self._thread:
            self.nudge()
        else:
            self._loop.call_soon_threadsafe(self.nudge)
