"""One input sent and its answer read: out through middleware and the gate, in through the pipeline, into the
conversation. An event is applied at the moment it is handed out, so what the application sees and what it holds agree.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime

from msgspec import UNSET

from accord.client.stream import read_events, reader_for
from accord.client.transport import Transport
from accord.consumer import (
    Conversation,
    EventMiddleware,
    InputMiddleware,
    OnDeviation,
    Pipeline,
    admit_input,
    check_resume,
    prepare_input,
)
from accord.consumer.middleware import MiddlewareChain
from accord.errors import EncodingError, InputRejected
from accord.protocol import AssistantMessage, Event, JSONObject, Message, RunAgentInput, ToolCall, ToolMessage, to_wire


class Exchange:
    """How every input of a client is sent and its answer read."""

    def __init__(
        self,
        transport: Transport,
        conversation: Conversation,
        *,
        middleware: Sequence[EventMiddleware],
        peer_version: str | None,
        on_deviation: OnDeviation | None,
        end_timeout: float | None,
        max_frame_bytes: int,
        max_depth: int,
        max_events: int,
        max_deviations: int,
    ) -> None:
        self._transport = transport
        self._conversation = conversation
        self._middleware = tuple(middleware)
        self._peer_version = peer_version
        self._on_deviation = on_deviation
        self._end_timeout = end_timeout
        self._max_frame_bytes = max_frame_bytes
        self._max_depth = max_depth
        self._max_events = max_events
        self._max_deviations = max_deviations
        self._pipeline()  # an argument that cannot be used is an error now, not in a run

    async def prepare(self, run_input: RunAgentInput, pending_calls: Sequence[str]) -> RunAgentInput:
        """What is sent of `run_input`.

        Raises `InputRejected` for what is malformed, for an interrupt or one of the `pending_calls` left without its
        answer, and for an answer to what was not asked.
        """
        if any(isinstance(each, InputMiddleware) for each in self._middleware):
            made = await MiddlewareChain(self._middleware).pass_input(_raw(run_input))
            run_input = admit_input(made, self._on_deviation, max_deviations=self._max_deviations)
        outgoing = prepare_input(
            run_input,
            peer_version=self._peer_version,
            on_deviation=self._on_deviation,
            max_deviations=self._max_deviations,
        )
        resume = () if outgoing.resume is UNSET else outgoing.resume
        check_resume(self._conversation.pending_interrupts, resume, lambda: datetime.now(UTC))
        calls, _ = open_calls(outgoing.messages, pending_calls)
        if calls:
            named = ", ".join(f"{call.id!r} ({call.function.name})" for call in calls)
            raise InputRejected(f"tool calls without an answer: {named}", path="/messages")
        return outgoing

    async def events(self, outgoing: RunAgentInput, accepted: Callable[[], None]) -> AsyncGenerator[Event, None]:
        """Sends what was prepared; the events of the answer, each applied to the conversation.

        `accepted` is called when the producer has taken the input and begins to answer.
        """
        pipeline = self._pipeline()
        response = await self._transport.open(outgoing)
        try:
            reader = await reader_for(
                response,
                max_frame_bytes=self._max_frame_bytes,
                max_depth=self._max_depth,
                patience=self._end_timeout,
            )
            accepted()
            async with aclosing(read_events(response, reader, pipeline, end_timeout=self._end_timeout)) as events:
                async for event in events:
                    self._conversation.apply(event)
                    yield event
        finally:
            self._conversation.end_of_stream()
            await response.aclose()

    def _pipeline(self) -> Pipeline:
        return Pipeline(
            self._middleware,
            peer_version=self._peer_version,
            on_deviation=self._on_deviation,
            max_depth=self._max_depth,
            max_events=self._max_events,
            max_deviations=self._max_deviations,
        )


def open_calls(messages: Sequence[Message], identifiers: Sequence[str]) -> tuple[list[ToolCall], list[str]]:
    """The calls with these ids that no tool message of `messages` answers, and the ids of which there is no trace."""
    if not identifiers:
        return [], []
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    held = {
        call.id: call
        for message in messages
        if isinstance(message, AssistantMessage) and message.tool_calls is not UNSET
        for call in message.tool_calls
    }
    unanswered = [identifier for identifier in dict.fromkeys(identifiers) if identifier not in answered]
    return [held[each] for each in unanswered if each in held], [each for each in unanswered if each not in held]


def _raw(run_input: RunAgentInput) -> JSONObject:
    try:
        return to_wire(run_input)
    except EncodingError as error:
        raise InputRejected(str(error), path=error.path) from None
