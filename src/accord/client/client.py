"""An application's end of one thread: what it holds from run to run, and how the next run is asked for.

A run is one input and its answer; when the answer leaves calls of frontend tools, they are run and answered and the
next input follows by itself, up to a limit. One run at a time, since a thread has one conversation and one state.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast, get_args

from msgspec import UNSET, UnsetType

from accord.client.exchange import Exchange, open_calls
from accord.client.frontend_tools import Consent, FrontendTools, ToolLike, failed_answer
from accord.client.http_types import Auth, HTTPClient
from accord.client.interrupts import resume_entries
from accord.client.run import ClientRun, Progress, RunOutcome
from accord.client.stream import Wire
from accord.client.transport import Transport
from accord.consumer import Conversation, Deviation, EventMiddleware, OnDeviation, RunRecord
from accord.consumer.deviation import MAX_DEVIATIONS, Reporter
from accord.errors import InputRejected, LimitExceeded, RunFailed
from accord.protocol import (
    JSON,
    MAX_DEPTH,
    Context,
    Event,
    Interrupt,
    Message,
    ResumeEntry,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedSuccessOutcome,
    ToolCall,
    UserMessage,
)
from accord.state.patch import MAX_COPIED_BYTES, MAX_OPERATIONS
from accord.state.pointer import MAX_POINTER_LENGTH
from accord.wire import MAX_FRAME_BYTES

if TYPE_CHECKING:
    from accord.client.http import HTTPTransport

#: What a run is asked with: text is a user's message.
Said: TypeAlias = str | Message | Sequence[str | Message]

_MESSAGES = get_args(Message)
_ENDS = frozenset({RunFinishedEvent, RunErrorEvent})


class AGUIClient:
    """A conversation with one producer. `async with` or `aclose` frees its connections.

        async with AGUIClient("http://127.0.0.1:8888/") as client:
            async for event in client.run("Create a carbonara"):
                ...
            print(client.state)

    `url` is reached over HTTP with `headers`, `auth` and, instead of a client of our own, `http_client`; `wire` is what
    the producer is asked to send: an event stream (`sse`), the binary wire (`protobuf`), or whichever of the two it
    chooses (`auto`), as `HTTPTransport` explains; the answer is read as what it declares to be. Or else
    `transport` is the way to the producer (`InProcessTransport`, `ReplayTransport`, `HTTPTransport`); it stays the
    caller's to close. `thread_id`, `state` and `messages` are what the thread begins or goes on with. `tools` are what
    the application offers (`accord.client.ToolLike`), run with `consent`, if given; `context` goes with every input.
    `middleware` sees raw events and, where it has `on_input`, the raw input. `peer_version` is a version the producer
    is known to be of, such as `0.0.57`. `on_deviation` is told of every warning; it is a plain function and is called
    between two events.

    Limits and times; times are in seconds, None waits for ever:

    - `max_tool_rounds`: inputs that one run sends by itself to answer tool calls; `LimitExceeded` beyond.
    - `connect_timeout`, `read_timeout`, `max_error_bytes`: as in `HTTPTransport`.
    - `end_timeout`: for a stream to go on or end once its run has ended, and for the body of what is no stream.
    - `max_frame_bytes`: of one event. `max_events`: of one stream.
    - `max_depth`: levels that an event may nest; what patches make has one less, since it lies inside of one.
    - `max_messages`: held in the conversation. `max_runs`: records of runs that are kept.
    - `max_operations`, `max_pointer_length`, `max_copied_bytes`: of one patch, as in `Conversation`.
    - `max_deviations`: warnings of one event or input that are told; of the others it is told how many they are.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        auth: Auth | None = None,
        thread_id: str | None = None,
        state: JSON | UnsetType = UNSET,
        messages: Said = (),
        tools: Iterable[ToolLike] = (),
        context: Iterable[Context] = (),
        middleware: Sequence[EventMiddleware] = (),
        peer_version: str | None = None,
        on_deviation: OnDeviation | None = None,
        transport: Transport | None = None,
        http_client: HTTPClient | None = None,
        wire: Wire = "sse",
        consent: Consent | None = None,
        max_tool_rounds: int = 10,
        connect_timeout: float | None = 10.0,
        read_timeout: float | None = 300.0,
        end_timeout: float | None = 10.0,
        max_error_bytes: int = 64 * 1024,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        max_depth: int = MAX_DEPTH,
        max_events: int = 10_000_000,
        max_messages: int = 100_000,
        max_runs: int = 1_000,
        max_operations: int = MAX_OPERATIONS,
        max_pointer_length: int = MAX_POINTER_LENGTH,
        max_copied_bytes: int = MAX_COPIED_BYTES,
        max_deviations: int = MAX_DEVIATIONS,
    ) -> None:
        if (url is None) == (transport is None):
            raise ValueError("AGUIClient takes exactly one of url and transport=")
        if transport is not None and (headers, auth, http_client, wire) != (None, None, None, "sse"):
            raise ValueError("headers=, auth=, http_client= and wire= belong to a url; give them to the transport")
        self._own_transport: HTTPTransport | None = None
        if url is not None:
            from accord.client.http import HTTPTransport  # with httpx, which no other transport needs

            transport = self._own_transport = HTTPTransport(
                url,
                headers=headers,
                auth=auth,
                http_client=http_client,
                wire=wire,
                connect_timeout=connect_timeout,
                read_timeout=read_timeout,
                max_error_bytes=max_error_bytes,
                error_timeout=end_timeout,
            )
        assert transport is not None
        self._thread_id = thread_id or str(uuid.uuid4())
        self._context = list(context)
        self._consent = consent
        self._tools = FrontendTools(tools, consent)
        self._max_tool_rounds = max_tool_rounds
        self._on_deviation = on_deviation
        self._max_deviations = max_deviations
        self._conversation = Conversation(
            on_deviation=on_deviation,
            max_messages=max_messages,
            max_runs=max_runs,
            max_operations=max_operations,
            max_pointer_length=max_pointer_length,
            max_copied_bytes=max_copied_bytes,
            max_depth=max_depth - 1,
            max_deviations=max_deviations,
        )
        self._conversation.set_messages(_messages(messages))
        if state is not UNSET:
            self._conversation.set_state(state)
        self._exchange = Exchange(
            transport,
            self._conversation,
            middleware=middleware,
            peer_version=peer_version,
            on_deviation=on_deviation,
            end_timeout=end_timeout,
            max_frame_bytes=max_frame_bytes,
            max_depth=max_depth,
            max_events=max_events,
            max_deviations=max_deviations,
        )
        self._pending_calls: tuple[str, ...] = ()
        self._active: Progress | None = None
        self._closed = False

    # What is held

    @property
    def thread_id(self) -> str:
        """The thread that every run of this client belongs to."""
        return self._thread_id

    @property
    def conversation(self) -> Conversation:
        """The client's copy of the thread; `conversation.subscribe` tells of its changes."""
        return self._conversation

    @property
    def state(self) -> JSON:
        """The shared state, any JSON value, `{}` until there is another. It is not changed by what comes later.

        Assign to change it: the next input carries the value assigned, which must not be changed afterwards.
        """
        return self._conversation.state

    @state.setter
    def state(self, state: JSON) -> None:
        self._conversation.set_state(state)

    @property
    def messages(self) -> list[Message]:
        """The messages, in a list of the caller's own. Assign to replace them all."""
        return self._conversation.messages

    @messages.setter
    def messages(self, messages: Said) -> None:
        self._conversation.set_messages(_messages(messages))

    @property
    def runs(self) -> list[RunRecord]:
        """A record of each run that the streams have shown, oldest first."""
        return self._conversation.runs

    @property
    def pending_interrupts(self) -> tuple[Interrupt, ...]:
        """The questions that the next run has to answer."""
        return self._conversation.pending_interrupts

    # Asking for a run

    def run(
        self,
        messages: Said | None = None,
        *,
        state: JSON | UnsetType = UNSET,
        tools: Iterable[ToolLike] | None = None,
        context: Iterable[Context] | None = None,
        forwarded_props: JSON | None = None,
        resume: Sequence[ResumeEntry] | None = None,
        run_id: str | None = None,
        parent_run_id: str | None = None,
    ) -> ClientRun:
        """The next run: iterate it, or await it. Nothing is sent before.

        `messages` are added to the conversation, and `state` becomes the shared state, when the producer has taken the
        input; after a refusal, or when nobody answered, the same run can be asked for again. `tools` and `context`
        stand in for the client's, for this run. `resume` answers the pending interrupts, as `AGUIClient.resume` does
        more simply. A run that resumes one or answers its tool calls names it as its parent.

        Iterating raises `InputRejected` for an input that cannot be sent (malformed, interrupts or tool calls without
        their answers, another run still open) or that the producer refuses, `TransportError` when it is not reached,
        and the errors of `ClientRun`.
        """
        request = _Request(
            messages=_messages(() if messages is None else messages),
            state=state,
            tools=self._tools if tools is None else FrontendTools(tools, self._consent),
            context=self._context if context is None else list(context),
            # Old producers cannot do without the member, so it is never absent.
            forwarded_props={} if forwarded_props is None else forwarded_props,
            resume=UNSET if resume is None else list(resume),
            parent_run_id=parent_run_id or (UNSET if resume is None else self._interrupted_run()),
        )
        progress = Progress(run_id or str(uuid.uuid4()))
        return ClientRun(self._rounds(request, progress), progress)

    def resume(
        self,
        answers: Mapping[str, Any],
        messages: Said | None = None,
        *,
        state: JSON | UnsetType = UNSET,
        tools: Iterable[ToolLike] | None = None,
        context: Iterable[Context] | None = None,
        forwarded_props: JSON | None = None,
        run_id: str | None = None,
    ) -> ClientRun:
        """A run that answers every pending interrupt: its id with the payload, None for none, or `Cancelled`."""
        return self.run(
            messages,
            state=state,
            tools=tools,
            context=context,
            forwarded_props=forwarded_props,
            resume=resume_entries(answers, self.pending_interrupts),
            run_id=run_id,
        )

    async def aclose(self) -> None:
        """Stops the run that is open, if any, and closes the connections. The client can still be read."""
        self._closed = True
        if self._active is not None:
            await _leave(self._active, "the client was closed")
        if self._own_transport is not None:
            await self._own_transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    # Driving a run

    async def _rounds(self, request: _Request, progress: Progress) -> AsyncGenerator[Event, None]:
        """The events of the run and of those that follow from its tool calls."""
        try:
            await self._take_turn(progress)
            rounds = 0
            while True:
                run_input = self._input(request, progress.run_id)
                outgoing = await self._exchange.prepare(run_input, self._pending_calls)
                progress.run_id = outgoing.run_id
                accepted = functools.partial(self._accepted, request, progress, first=rounds == 0)
                ended: Event | None = None
                async with aclosing(self._exchange.events(outgoing, accepted)) as events:
                    async for event in events:
                        if type(event) in _ENDS:
                            ended = event
                        yield event
                record = self._ended(ended, progress)
                calls = self._calls_to_answer(ended, record, request.tools, progress)
                if not calls:
                    break
                await self._answer(calls, request.tools, allowed=rounds < self._max_tool_rounds)
                if progress.pending_tool_call_ids:
                    break
                rounds += 1
                request = request.following(progress.run_id)
                progress.run_id = str(uuid.uuid4())
            progress.end(cast(RunOutcome, record.status))  # it has ended, and neither failed nor was cut off
        except BaseException as error:
            progress.fail(error)
            raise
        finally:
            if self._active is progress:
                self._active = None

    async def _take_turn(self, progress: Progress) -> None:
        """Makes this the open run: one that was left is closed, one that is being read stands in the way."""
        while self._active is not None:
            if self._active.held_by_another_task:
                raise InputRejected(
                    f"run {self._active.run_id!r} of this client is open in another task; a thread has one run at a "
                    "time: close that one (aclose), or use a client for each thread"
                )
            await _leave(self._active, "the run was left, and the client's next one began")
        if self._closed:
            raise InputRejected("the client is closed")
        self._active = progress

    def _input(self, request: _Request, run_id: str) -> RunAgentInput:
        added = {message.id: message for message in request.messages}
        messages = [added.pop(message.id, message) for message in self._conversation.messages]
        return RunAgentInput(
            thread_id=self._thread_id,
            run_id=run_id,
            parent_run_id=request.parent_run_id,
            state=self._conversation.state if request.state is UNSET else request.state,
            messages=[*messages, *added.values()],
            tools=request.tools.definitions,
            context=request.context,
            forwarded_props=request.forwarded_props,
            resume=request.resume,
        )

    def _accepted(self, request: _Request, progress: Progress, *, first: bool) -> None:
        if request.state is not UNSET:
            self._conversation.set_state(request.state)
        for message in request.messages:
            self._conversation.add_message(message)
        if first:
            known = {message.id for message in self._conversation.messages}
            progress.new_messages = lambda: [
                message for message in self._conversation.messages if message.id not in known
            ]

    def _ended(self, ended: Event | None, progress: Progress) -> RunRecord:
        """Notes how the last run of a stream ended; raises `RunFailed` when it failed."""
        if isinstance(ended, RunErrorEvent):
            raise RunFailed(ended.message, code=None if ended.code is UNSET else ended.code)
        record = self._conversation.runs[-1]
        progress.result = record.result
        progress.interrupts = record.interrupts
        return record

    def _calls_to_answer(
        self,
        ended: Event | None,
        record: RunRecord,
        tools: FrontendTools,
        progress: Progress,
    ) -> list[ToolCall]:
        """The calls that wait for us. A producer that names none may still have left calls of tools we offer."""
        calls, unknown = open_calls(self._conversation.messages, record.pending_tool_call_ids)
        if not _names_pending_calls(ended):
            calls = [call for call in calls if tools.offers(call.function.name)]
        with Reporter(self._on_deviation, self._max_deviations) as warn:
            for identifier in unknown:
                detail = f"no message holds a tool call {identifier!r}; it is not answered"
                warn(Deviation("application", "RUN_FINISHED", "/outcome/pendingToolCallIds", detail))
        self._pending_calls = tuple(call.id for call in calls)
        progress.pending_tool_call_ids = tuple(call.id for call in calls if tools.leaves(call.function.name))
        return [call for call in calls if not tools.leaves(call.function.name)]

    async def _answer(self, calls: Sequence[ToolCall], tools: FrontendTools, *, allowed: bool) -> None:
        """Answers the calls in the conversation; raises `LimitExceeded`, with every call answered, beyond the limit."""
        if not allowed:
            for call in calls:
                self._conversation.add_message(failed_answer(call, "not run: too many rounds of tool calls"))
            raise LimitExceeded("the run keeps calling tools", limit="max_tool_rounds", value=self._max_tool_rounds)
        await tools.answer(calls, self._conversation.add_message)

    def _interrupted_run(self) -> str | UnsetType:
        for record in reversed(self.runs):
            if record.status == "interrupt" and record.run_id is not None:
                return record.run_id
        return UNSET


@dataclass(frozen=True, slots=True)
class _Request:
    """What a run was asked with."""

    messages: list[Message]
    state: JSON | UnsetType
    tools: FrontendTools
    context: list[Context]
    forwarded_props: JSON
    resume: list[ResumeEntry] | UnsetType
    parent_run_id: str | UnsetType

    def following(self, run_id: str) -> _Request:
        """The request after `run_id`, whose calls have been answered."""
        return replace(self, messages=[], state=UNSET, resume=UNSET, parent_run_id=run_id)


async def _leave(progress: Progress, reason: str) -> None:
    run = progress.run()
    if run is not None:
        await run.leave(reason)
    else:  # nobody refers to it any more, and the event loop is closing it
        await progress.over.wait()


def _messages(said: Said) -> list[Message]:
    several: Any = [said] if isinstance(said, (str, *_MESSAGES)) else said
    messages: list[Message] = []
    for position, each in enumerate(several):
        if isinstance(each, str):
            each = UserMessage(id=str(uuid.uuid4()), content=each)
        elif not isinstance(each, _MESSAGES):
            raise InputRejected(
                f"a message is text or a message of accord.protocol, not {type(each).__name__}",
                path=f"/messages/{position}",
            )
        messages.append(each)
    return messages


def _names_pending_calls(ended: Event | None) -> bool:
    outcome = ended.outcome if isinstance(ended, RunFinishedEvent) else UNSET
    return isinstance(outcome, RunFinishedSuccessOutcome) and bool(outcome.pending_tool_call_ids)
