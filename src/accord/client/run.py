"""A run as the application sees it: its events, and how it ended.

There are six ends, and none is taken for another. The producer's own: `success`, `interrupt`, `cancelled` (the events
just end) and `failed` (`RunFailed`). Ours: `rejected`, what one side sent could not be used (`ProtocolViolation`,
`InputRejected`); and `truncated`, no end came, whoever broke off (`TruncatedRun`, `TransportError`, `LimitExceeded`).
Every event that was accepted is handed out before the error is raised.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from accord.errors import InputRejected, ProtocolViolation, RunFailed, TruncatedRun
from accord.protocol import JSON, Event, Interrupt, Message

RunOutcome: TypeAlias = Literal["success", "interrupt", "cancelled", "failed", "truncated", "rejected"]


@dataclass(eq=False)
class Progress:
    """What is known of a run; written by whoever drives it, read through `ClientRun`."""

    run_id: str
    outcome: RunOutcome | None = None
    result: JSON = None
    interrupts: tuple[Interrupt, ...] = ()
    pending_tool_call_ids: tuple[str, ...] = ()
    error: BaseException | None = None
    new_messages: Callable[[], list[Message]] = list
    #: Why the run is broken off, when it is.
    reason: str = "the run was left before its end"
    #: The task that last asked for an event.
    task: asyncio.Task[Any] | None = None
    run: Callable[[], ClientRun | None] = lambda: None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def held_by_another_task(self) -> bool:
        """Whether a task that is still at work has been reading the run, and is not the one that asks."""
        return self.task is not None and not self.task.done() and self.task is not asyncio.current_task()

    def end(self, outcome: RunOutcome) -> None:
        """The run ended by itself."""
        self._end(outcome)

    def fail(self, error: BaseException) -> None:
        """The run ended with an error, or was broken off."""
        if isinstance(error, asyncio.CancelledError | GeneratorExit):
            error = TruncatedRun(self.reason)
        self.error = error
        self.result = None  # of a run before, whose tool calls were answered
        if isinstance(error, RunFailed):
            self._end("failed")
        else:
            self._end("rejected" if isinstance(error, ProtocolViolation | InputRejected) else "truncated")

    def _end(self, outcome: RunOutcome) -> None:
        self.outcome = outcome
        messages = self.new_messages()
        self.new_messages = lambda: messages  # as they were; later runs change the conversation
        self.task = None
        self.over.set()


class ClientRun:
    """An async iterator of the run's events, `await run` to read them all, `async with` to be sure it is closed.

    Nothing is sent before the first event is asked for. Leaving early (`aclose`, cancelling the task, `break`) closes
    the response and leaves the run `truncated`, even behind RUN_FINISHED, since an error could still have followed.
    After a `break` that is done when the run is no longer referred to, when its `async with` block ends, when the
    client is closed, or when the client's next run begins.
    """

    def __init__(self, events: AsyncGenerator[Event, None], progress: Progress) -> None:
        self._events = events
        self._progress = progress
        self._reading = False
        self._closing = False
        self._interrupted = False
        self._stopped = False
        progress.run = weakref.ref(self)

    @property
    def run_id(self) -> str:
        """The id of the run; of the latest one, when answered tool calls have led to several."""
        return self._progress.run_id

    @property
    def outcome(self) -> RunOutcome | None:
        """How it ended, None until it has."""
        return self._progress.outcome

    @property
    def result(self) -> JSON:
        """What the run answered with, None if nothing."""
        return self._progress.result

    @property
    def interrupts(self) -> tuple[Interrupt, ...]:
        """The questions it ended with; `AGUIClient.resume` answers them."""
        return self._progress.interrupts

    @property
    def pending_tool_call_ids(self) -> tuple[str, ...]:
        """The calls left to the application: the next input must hold a tool message for each."""
        return self._progress.pending_tool_call_ids

    @property
    def error(self) -> BaseException | None:
        """The error it ended with: what iterating raises, or `TruncatedRun` after leaving early."""
        return self._progress.error

    @property
    def new_messages(self) -> list[Message]:
        """The messages that came with this run, answers to tool calls included, what it was asked with not."""
        return list(self._progress.new_messages())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        """The next event. Raises the run's error again when asked for more than there is."""
        progress = self._progress
        if self._closing:
            await progress.over.wait()
        if progress.outcome is not None:
            raise self._end()
        if self._reading:
            raise RuntimeError("another task is waiting for this run's next event")
        task = asyncio.current_task()
        assert task is not None
        progress.task = task
        cancelling = task.cancelling()
        self._reading = True
        try:
            event = await self._events.__anext__()
            if not self._interrupted:
                return event
            task.uncancel()
            await self._events.aclose()  # something on the way, middleware perhaps, has swallowed the cancellation
        except BaseException as error:
            # Leaving from another task cancels this one to wake it; only that is taken back, as asyncio.timeout does.
            taken_back = self._interrupted and task.uncancel() <= cancelling
            if not taken_back or not isinstance(error, asyncio.CancelledError):
                raise
        finally:
            self._reading = False
        raise self._end()

    def __await__(self) -> Generator[Any, None, Self]:
        """Reads what is left. Returns the run after success, interrupt and cancelled, raises its error otherwise."""
        return self._read_all().__await__()

    async def aclose(self) -> None:
        """Stops the run, from this task or another: the response is closed, what was handed out stays.

        Whoever is iterating comes to the end of it. After its end a run cannot be stopped any more.
        """
        self._stopped = self._stopped or self.outcome is None
        await self.leave("the run was stopped by the application")

    async def leave(self, reason: str) -> None:
        """As `aclose`, for the client: whoever is iterating gets `TruncatedRun` with the reason."""
        progress = self._progress
        if progress.outcome is not None:
            return
        if self._closing:
            await progress.over.wait()
            return
        self._closing = True
        progress.reason = reason
        if self._reading and progress.task is not None:
            self._interrupted = True
            progress.task.cancel()
            await progress.over.wait()
            return
        await self._events.aclose()
        if progress.outcome is None:  # nothing had been sent yet
            progress.fail(GeneratorExit())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _read_all(self) -> Self:
        async for _ in self:
            pass
        if self.error is not None:
            raise self.error
        return self

    def _end(self) -> BaseException:
        error = self._progress.error
        return StopAsyncIteration() if error is None or self._stopped else error
