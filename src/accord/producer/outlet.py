"""Where a run's events go: bounded, so that a slow reader slows the producer and never fills the memory."""

from __future__ import annotations

from typing import Protocol

from accord.errors import AccordError


class OutletOverflow(AccordError):
    """The reader is so far behind that the outlet's hard limit is reached; `await run.drain()` is what prevents it."""


class Outlet(Protocol):
    """The far side of a run, given by whoever serves it."""

    def put(self, payload: bytes) -> None:
        """Takes one encoded event, at once and from any thread; raises `OutletOverflow` at its hard limit."""
        ...

    async def drain(self) -> None:
        """Returns when the reader has caught up enough for more to be put."""
        ...
