"""Where a run's events go: bounded, so that a slow reader slows the producer and never fills the memory."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, Protocol, cast

from accord.errors import AccordError


class OutletOverflow(AccordError):
    """The reader is so far behind that the outlet's hard limit is reached; `await run.drain()` is what prevents it."""


class Outlet(Protocol):
    """The far side of a run, given by whoever serves it."""

    def put(self, payload: bytes) -> None:
        """Takes one encoded event, at once and from any thread; raises `OutletOverflow` at its hard limit."""
        ...

    def drain(self) -> Awaitable[None]:
        """Returns, when awaited, as soon as the reader has caught up enough for more to be put."""
        ...


class _CaughtUp(tuple[()]):
    __slots__ = ()
    __await__ = tuple.__iter__


#: What `drain` gives where there is nothing to wait for: awaiting it needs no coroutine, which would cost as much as an
#: event does.
CAUGHT_UP: Final = cast("Awaitable[None]", _CaughtUp())
