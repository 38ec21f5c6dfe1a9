"""The bounded buffer between a run and its connection: putting is a plain call, from any thread.

A producer that drains is held while more than the high-water mark is waiting, so a slow reader slows it down. One that
does not drain meets the hard limit: its event is refused, and every event after it, since a stream with a hole in it
must not go on. Bytes count as waiting until the server has taken them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from accord.producer import OutletOverflow


class BufferedOutlet:
    """The outlet of one run. Made on the event loop that sends; all but `put` belongs to that loop."""

    def __init__(self, frame: Callable[[bytes], bytes], *, max_buffered_bytes: int, high_water: int) -> None:
        self._frame = frame
        self._max = max_buffered_bytes
        self.high_water = high_water
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._waiting = bytearray()
        self._in_flight = 0
        self._overflowed = False
        self._discarding = False
        self._wakeup = asyncio.Event()
        self._wake_at: int | None = None  # how many bytes wake the sender, None while it is awake
        self._room = asyncio.Event()

    # The producer's side

    def put(self, payload: bytes) -> None:
        """Takes one encoded event; raises `OutletOverflow` for the first that does not fit and all after it."""
        frame = self._frame(payload)
        with self._lock:
            if self._discarding:
                return
            if self._in_flight + len(self._waiting) + len(frame) > self._max:
                self._overflowed = True
            if self._overflowed:
                self._wake()
                raise OutletOverflow(
                    f"more than {self._max} bytes wait for the reader (max_buffered_bytes); "
                    "await run.drain() between events"
                )
            self._waiting += frame
            if self._wake_at is not None and len(self._waiting) >= self._wake_at:
                self._wake()

    async def drain(self) -> None:
        """Returns when no more than the high-water mark is waiting."""
        if self._discarding:  # nobody waits for anything, but a loop around this call must not hold the event loop
            await asyncio.sleep(0)
        while self.buffered > self.high_water:
            self._room.clear()
            await self._room.wait()

    # The connection's side

    @property
    def waiting(self) -> int:
        """Bytes that nobody has taken yet."""
        return len(self._waiting)

    @property
    def buffered(self) -> int:
        """Bytes that are waiting or being sent."""
        return self._in_flight + len(self._waiting)

    @property
    def overflowed(self) -> bool:
        """Whether an event was refused: what is waiting is all that will ever come."""
        return self._overflowed

    def take(self, at_most: int) -> bytes:
        """The oldest waiting bytes, whole frames or not. They count as buffered until they are reported `sent`."""
        with self._lock:
            taken = bytes(self._waiting[:at_most])
            del self._waiting[:at_most]
            self._in_flight = len(taken)
        return taken

    def sent(self) -> None:
        """The server has what was taken."""
        with self._lock:
            self._in_flight = 0
        if self.buffered <= self.high_water:
            self._room.set()

    async def wait(self, at_least: int) -> None:
        """Returns when `at_least` bytes are waiting, an event was refused, or somebody calls `nudge`."""
        with self._lock:
            if len(self._waiting) >= at_least or self._overflowed:
                return
            self._wakeup.clear()
            self._wake_at = at_least
        await self._wakeup.wait()

    def nudge(self) -> None:
        """Makes a `wait` return."""
        self._wakeup.set()

    def discard(self) -> None:
        """Nobody reads any more: forgets what is waiting and whatever is put from now on."""
        with self._lock:
            self._discarding = True
            self._waiting.clear()
            self._in_flight = 0
        self._room.set()

    def _wake(self) -> None:
        """Called with the lock held, by whichever thread puts."""
        if self._wake_at is None:
            return
        self._wake_at = None
        if threading.get_ident() == self._thread:
            self._wakeup.set()
        else:
            self._loop.call_soon_threadsafe(self._wakeup.set)
