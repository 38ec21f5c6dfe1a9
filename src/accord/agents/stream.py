"""A run that streams: updates as they come, and the whole response for whoever waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from types import TracebackType

from accord.agents.errors import RunIncomplete
from accord.agents.response import AgentResponse, ResponseBuilder
from accord.agents.update import AgentResponseUpdate


class AgentRunStream:
    """`async for update in stream`, `await stream.response()`, `await stream.aclose()`.

    One reader at a time. Leaving a run before its end without closing it leaves that to the garbage collector;
    `async with agent.run(..., stream=True) as stream` closes it.
    """

    def __init__(self, updates: AsyncGenerator[AgentResponseUpdate, None], response: ResponseBuilder) -> None:
        self._updates = updates
        self._response = response  # `updates` adds to it what it yields
        self._reader: asyncio.Task[object] | None = None
        self._reader_left: asyncio.Event | None = None  # while somebody who closes waits for it
        self._closing = False
        self._close = asyncio.Lock()  # held by the first of those who close; the others wait for it to be done
        self._complete = False
        self._failure: BaseException | None = None

    def __aiter__(self) -> AgentRunStream:
        return self

    async def __anext__(self) -> AgentResponseUpdate:
        if self._closing:
            raise StopAsyncIteration
        reader = asyncio.current_task()
        cancelled_before = reader.cancelling() if reader else 0
        self._reader = reader
        try:
            update = await anext(self._updates)
        except StopAsyncIteration:
            self._complete = self._complete or not (self._closing or self._failure)
            raise
        except asyncio.CancelledError as error:
            # Cancelled by `aclose` in another task: for the reader the run is over, it is not itself cancelled.
            if self._closing and reader and reader.uncancel() <= cancelled_before:
                raise StopAsyncIteration from None
            self._failure = error
            raise
        except BaseException as error:
            self._failure = error
            raise
        finally:
            self._reader = None
            if self._reader_left is not None:
                self._reader_left.set()
                self._reader_left = None
        return update

    @property
    def updates(self) -> AsyncGenerator[AgentResponseUpdate, None]:
        """The updates for a reader that is the only one and closes the stream itself: a step less for each of them.

        Only `so_far` and `aclose` go with it: how the run ended is for that reader to know.
        """
        return self._updates

    def so_far(self) -> AgentResponse:
        """What has been read of the run, as one response."""
        return self._response.build()

    async def response(self) -> AgentResponse:
        """Read what is left of the run; all of it as one response.

        Raises what the run raises, and `RunIncomplete` when it had been closed, or had failed, before its end.
        """
        async for _ in self:
            pass
        if not self._complete:
            raise RunIncomplete("the run did not come to its end") from self._failure
        return self.so_far()

    async def aclose(self) -> None:
        """End the run: its tools are cancelled and its model's stream is closed when this returns.

        A task that is reading the run sees it end.
        """
        self._closing = True
        if self._reader is not None and self._reader is not asyncio.current_task():
            if self._reader_left is None:
                self._reader_left = asyncio.Event()
                self._reader.cancel()
            await self._reader_left.wait()
        async with self._close:
            await self._updates.aclose()

    async def __aenter__(self) -> AgentRunStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()
