"""A run being emitted: the only way out for a producer, and one that a consumer never has reason to refuse.

Every event is encoded, read back by the strict decoder and judged by the verifier the consumer uses, before any of it
leaves. The run opens itself, closes what is open when it ends, and turns how the producer ended into how the run ends:
a return into RUN_FINISHED, an exception into RUN_ERROR, a cancellation into the cancelled outcome.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from types import TracebackType
from typing import Any, Self, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from accord.consumer.chunks import CHUNK_TYPES, ChunkExpander
from accord.consumer.verification import Verifier
from accord.errors import AccordError, EncodingError, LimitExceeded, ProtocolViolation, RunFailed
from accord.producer.emitters import Activity, Reasoning, Step, Subagent, TextMessage, ToolCallItem
from accord.producer.item import GrowingItem
from accord.producer.outlet import Outlet, OutletOverflow
from accord.producer.plain import plain
from accord.producer.state_channel import StateChannel
from accord.protocol import (
    MAX_DEPTH,
    PROTOCOL_VERSION,
    ContentPart,
    CustomEvent,
    Event,
    Interrupt,
    JSONObject,
    Message,
    MessagesSnapshotEvent,
    Metadata,
    RawEvent,
    ReasoningEncryptedValueEvent,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    TextMessageRole,
    TokenUsage,
    ToolCallResultEvent,
    ToolCallStartEvent,
    conform,
    decode_event,
)
from accord.protocol.codec import check_depth, encode, strict_event_decoder

_logger = logging.getLogger("accord")
_decode = strict_event_decoder.decode
_encode = msgspec.json.Encoder().encode

#: What an event may be at most, in bytes: readers, the reference's and ours, take frames of 10 MiB.
MAX_EVENT_BYTES = 10 * 1024 * 1024 - 64

#: What is raised for something that no event can carry.
_UNSENDABLE = (EncodingError, LimitExceeded, ProtocolViolation)

#: What the person is told when a producer fails with something that was not made to be told.
FAILURE_MESSAGE = "The agent could not finish this run."


class Run:
    """One run. Emitting is a plain call, safe from any thread; `await run.drain()` waits while the reader is slow.

    `encode` makes the bytes the outlet takes; `new_id` makes ids of messages, calls and subagents; `scope` says on
    whose behalf it runs, as the server knows it: what is kept of a thread is kept within a scope.
    """

    def __init__(
        self,
        run_input: RunAgentInput,
        outlet: Outlet,
        *,
        encode: Callable[[Event], bytes] | None = None,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
        scope: str = "",
        max_depth: int = MAX_DEPTH,
        max_event_bytes: int = MAX_EVENT_BYTES,
    ) -> None:
        self.input = run_input
        self.thread_id = run_input.thread_id
        self.run_id = run_input.run_id
        self.scope = scope
        #: What the run answers with, any JSON but null; goes out with RUN_FINISHED.
        self.result: Any = UNSET
        self.lock = threading.RLock()
        #: The shared state; begins as what the consumer holds, `{}` where the input has none (rules section 5).
        self.state = StateChannel(self, {} if run_input.state is UNSET else run_input.state)
        #: Levels that the state, or what an activity shows, may have: one less than the event around it.
        self.max_nesting = max_depth - 1
        self._outlet = outlet
        self._encode = encode
        self._new_id = new_id
        self._max_depth = max_depth
        self._max_event_bytes = max_event_bytes
        self._shallow = 2 * max_depth  # fewer bytes than this cannot nest too deeply
        self._verifier = Verifier()
        self._chunks = ChunkExpander()
        self._lanes = self._chunks.lanes
        self._usage: dict[tuple[Any, Any], TokenUsage] = {}
        self._interrupts: list[Interrupt] = []
        self._frontend_tools = {tool.name for tool in (run_input.tools or ())}
        self._pending_calls: dict[str, None] = {}

    # Items

    def text(
        self,
        message_id: str | None = None,
        *,
        role: TextMessageRole = "assistant",
        name: str | UnsetType = UNSET,
        metadata: Metadata | UnsetType = UNSET,
        subagent_run_id: str | UnsetType = UNSET,
    ) -> TextMessage:
        """Opens a text message."""
        return TextMessage(
            self,
            message_id or self._new_id(),
            role=role,
            name=name,
            metadata=metadata,
            subagent_run_id=subagent_run_id,
        )

    def reasoning(
        self,
        message_id: str | None = None,
        *,
        span_id: str | None = None,
        subagent_run_id: str | UnsetType = UNSET,
    ) -> Reasoning:
        """Opens a span of reasoning with a message in it."""
        return Reasoning(self, message_id or self._new_id(), span_id or self._new_id(), subagent_run_id=subagent_run_id)

    def tool_call(
        self,
        name: str,
        call_id: str | None = None,
        *,
        parent_message_id: str | UnsetType = UNSET,
        metadata: Metadata | UnsetType = UNSET,
        subagent_run_id: str | UnsetType = UNSET,
    ) -> ToolCallItem:
        """Opens a tool call; its arguments are written as JSON text."""
        return ToolCallItem(
            self,
            name,
            call_id or self._new_id(),
            parent_message_id=parent_message_id,
            metadata=metadata,
            subagent_run_id=subagent_run_id,
        )

    def tool_result(
        self,
        call_id: str,
        content: str | list[ContentPart],
        *,
        message_id: str | None = None,
        metadata: Metadata | UnsetType = UNSET,
        subagent_run_id: str | UnsetType = UNSET,
    ) -> str:
        """Answers a tool call; returns the id of the tool message."""
        identifier = message_id or self._new_id()
        self.emit(
            ToolCallResultEvent(
                message_id=identifier,
                tool_call_id=call_id,
                content=content,
                role="tool",
                metadata=metadata,
                subagent_run_id=subagent_run_id,
            )
        )
        return identifier

    def step(self, name: str, *, subagent_run_id: str | UnsetType = UNSET) -> Step:
        """Opens a named step."""
        return Step(self, name, subagent_run_id=subagent_run_id)

    def activity(
        self,
        activity_type: str,
        content: JSONObject,
        *,
        message_id: str | None = None,
        subagent_run_id: str | UnsetType = UNSET,
    ) -> Activity:
        """Puts an activity on the screen."""
        return Activity(self, message_id or self._new_id(), activity_type, content, subagent_run_id=subagent_run_id)

    def subagent(
        self,
        name: str,
        subagent_run_id: str | None = None,
        *,
        description: str | UnsetType = UNSET,
        parent_subagent_run_id: str | UnsetType = UNSET,
        parent_tool_call_id: str | UnsetType = UNSET,
        parent_message_id: str | UnsetType = UNSET,
    ) -> Subagent:
        """Announces an invocation of a subagent."""
        return Subagent(
            self,
            name,
            subagent_run_id or self._new_id(),
            description=description,
            parent_subagent_run_id=parent_subagent_run_id,
            parent_tool_call_id=parent_tool_call_id,
            parent_message_id=parent_message_id,
        )

    def custom(self, name: str, value: Any, *, subagent_run_id: str | UnsetType = UNSET) -> None:
        """Sends a signal of the application's own."""
        self.emit(CustomEvent(name=name, value=plain(value), subagent_run_id=subagent_run_id))

    def raw(self, event: Any, *, source: str | UnsetType = UNSET, subagent_run_id: str | UnsetType = UNSET) -> None:
        """Passes on what another system said."""
        self.emit(RawEvent(event=plain(event), source=source, subagent_run_id=subagent_run_id))

    def encrypted_value(
        self, subtype: Any, entity_id: str, value: str, *, subagent_run_id: str | UnsetType = UNSET
    ) -> None:
        """Attaches an opaque value to a message (`message`) or a call (`tool-call`)."""
        self.emit(
            ReasoningEncryptedValueEvent(
                subtype=subtype, entity_id=entity_id, encrypted_value=value, subagent_run_id=subagent_run_id
            )
        )

    def messages_snapshot(self, messages: Sequence[Message]) -> None:
        """States the whole list of messages."""
        self.emit(MessagesSnapshotEvent(messages=list(messages)))

    # How the run ends

    def usage(self, usage: TokenUsage) -> None:
        """Adds tokens used; goes out with the end of the run, one entry for each provider and model.

        Raises `ProtocolViolation` for counts that are none.
        """
        conform(msgspec.to_builtins(usage), TokenUsage)
        with self.lock:
            key = (usage.provider, usage.model)
            known = self._usage.get(key)
            self._usage[key] = usage if known is None else _added(known, usage)

    def interrupt(self, interrupt: Interrupt) -> None:
        """Makes the run end with a question; several make it end with all of them (rules section 7)."""
        self._interrupts.append(interrupt)

    def await_frontend_call(self, call_id: str) -> None:
        """Names a call of an earlier run among those the application still has to answer."""
        self._pending_calls[call_id] = None

    @property
    def interrupts(self) -> tuple[Interrupt, ...]:
        """The questions the run will end with."""
        return tuple(self._interrupts)

    # Emitting

    def emit(self, event: Event) -> None:
        """Sends one event. Raises `ProtocolViolation` when a consumer would refuse it here, `EncodingError` when JSON
        cannot carry it, `OutletOverflow` when the reader is too far behind; nothing of the event has left then."""
        with self.lock:
            if self._lanes or type(event) in CHUNK_TYPES:
                self._emit_expanded(event)
            else:
                self.commit(event, self.encoded(event))

    def _emit_expanded(self, event: Event) -> None:
        """Sends what a chunk stands for, or an event after the ends of shorthand that it brings about."""
        before = dict(self._lanes)
        said: list[Event] = []
        try:
            expanded = [(each, self.encoded(each)) for each in self._chunks.expand(event)]
            for each, payload in expanded:
                self.commit(each, payload)
                said.append(each)
        except AccordError:
            self._chunks.take_back(before, said)
            raise

    def append(self, item: GrowingItem, text: str) -> None:
        """Adds `text`, which is not empty, to an open item, as `emit` does; nearly every event of a run is one.

        What the item says besides was read back when it was opened: there is nothing left that reading could find.
        """
        with self.lock:
            if (
                item.id in item.open_ids
                and (item.owner is UNSET or item.owners[item.id] == item.owner)
                and not self._lanes
                and self._encode is None
            ):
                try:
                    payload = item.before + _encode(text) + item.after
                except UnicodeEncodeError:  # `emit` says what is wrong with it
                    pass
                else:
                    if len(payload) <= self._max_event_bytes:
                        self._outlet.put(payload)
                        return
            self.emit(item.addition(text))

    def drain(self) -> Awaitable[None]:
        """Returns, when awaited, as soon as the reader has caught up. What it gives need not be a coroutine."""
        return self._outlet.drain()

    def encoded(self, event: Event) -> bytes:
        """The bytes of an event that is fit to leave; raises as `emit` does, without sending anything."""
        payload = encode(event)
        try:
            _decode(payload)
        except (msgspec.MsgspecError, RecursionError):
            decode_event(payload, max_depth=self._max_depth)
        else:
            if len(payload) > self._shallow:
                check_depth(payload, max_depth=self._max_depth)
        if self._encode is not None:
            payload = self._encode(event)
        if len(payload) > self._max_event_bytes:
            raise LimitExceeded(
                f"{event.type} of {len(payload)} bytes is more than a reader takes",
                limit="max_event_bytes",
                value=self._max_event_bytes,
            )
        return payload

    def commit(self, event: Event, payload: bytes) -> None:
        """Verifies an event that was encoded and hands its bytes to the outlet."""
        self._verifier.check(event)
        self._outlet.put(payload)
        if type(event) is ToolCallStartEvent:
            if event.tool_call_name in self._frontend_tools:
                self._pending_calls[event.tool_call_id] = None
        elif type(event) is ToolCallResultEvent:
            self._pending_calls.pop(event.tool_call_id, None)

    def open_ids(self, opener: type) -> Set[str]:
        """The ids of the items that are open, now and whenever it is looked at, of the kind that `opener` opens."""
        return self._verifier.open_ids(opener)

    def owners(self, opener: type) -> Mapping[str, str | UnsetType]:
        """Who owns what has an id, of the kind that `opener` opens, whenever it is looked at."""
        return self._verifier.owners(opener)

    def step_is_open(self, name: str, subagent_run_id: str | UnsetType = UNSET) -> bool:
        """Whether a step is open."""
        return self._verifier.step_is_open(name, subagent_run_id)

    def subagent_is_active(self, subagent_run_id: str) -> bool:
        """Whether an announced subagent has not ended."""
        return self._verifier.subagent_is_active(subagent_run_id)

    # The whole of it

    def __enter__(self) -> Self:
        self.emit(
            RunStartedEvent(
                thread_id=self.thread_id,
                run_id=self.run_id,
                protocol_version=PROTOCOL_VERSION,
                parent_run_id=self.input.parent_run_id,
            )
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Ends the run. An exception is told to the consumer and the log and goes no further; a cancellation does."""
        try:
            with self.lock:  # what threads still say comes before the end or is refused, not in between
                if not self._verifier.run_active:
                    return False
                self._end(error)
        except OutletOverflow:
            _logger.warning("run %r: the reader is too far behind to be told how it ended", self.run_id)
        return isinstance(error, Exception | SystemExit)

    def _end(self, error: BaseException | None) -> None:
        if error is None:
            self._finish()
        elif isinstance(error, Exception | SystemExit):
            self._fail(error)
        else:
            self._close(RunFinishedCancelledOutcome())

    def _finish(self) -> None:
        outcome: RunFinishedOutcome | UnsetType = UNSET
        if self._interrupts:
            outcome = RunFinishedInterruptOutcome(interrupts=self._interrupts)
            self.state.keep_prediction()
        elif self._pending_calls:
            outcome = RunFinishedSuccessOutcome(pending_tool_call_ids=list(self._pending_calls))
        try:
            self._close(outcome)
        except _UNSENDABLE as error:  # a result or a question
            self._fail(error)

    def _close(self, outcome: RunFinishedOutcome | UnsetType) -> None:
        self.state.settle()
        self._end_items()
        cancelled = isinstance(outcome, RunFinishedCancelledOutcome)
        self.emit(
            RunFinishedEvent(
                thread_id=self.thread_id,
                run_id=self.run_id,
                outcome=outcome,
                result=UNSET if cancelled or self.result is UNSET else plain(self.result),
                usage=self._usage_entries(),
            )
        )

    def _fail(self, error: Exception | SystemExit) -> None:
        message, code = FAILURE_MESSAGE, "internal_error"
        if isinstance(error, RunFailed):
            message, code = error.message, error.code or "run_failed"
        else:
            if isinstance(error, OutletOverflow):
                message, code = "The reader fell too far behind.", "reader_too_slow"
            elif isinstance(error, AccordError):
                code = "invalid_event" if isinstance(error, ProtocolViolation | EncodingError) else "agent_error"
            _logger.error("run %r failed", self.run_id, exc_info=error)
        try:
            self.state.settle()
        except _UNSENDABLE as lost:  # the committed state
            _logger.error("run %r: what was shown of its state could not be taken back: %s", self.run_id, lost)
        self._end_items()
        self.emit(RunErrorEvent(message=_sayable(message), code=_sayable(code), usage=self._usage_entries()))

    def _end_items(self) -> None:
        for event in self._chunks.close_all():
            self.commit(event, self.encoded(event))
        for event in self._verifier.closing_events():
            self.emit(event)

    def _usage_entries(self) -> list[TokenUsage] | UnsetType:
        return list(self._usage.values()) or UNSET


#: A producer: emits into the run it is given and returns when it is done.
Producer: TypeAlias = Callable[[Run], Awaitable[None]]


async def drive(producer: Producer, run: Run) -> None:
    """Runs a producer from RUN_STARTED to the end of its run; only a cancellation is raised."""
    with run:
        await producer(run)


def _sayable(text: str) -> str:
    """`text` without what JSON cannot carry, so that a failure can always be told."""
    return text.encode("utf-8", "replace").decode()


def _added(left: TokenUsage, right: TokenUsage) -> TokenUsage:
    counts = {}
    for name in TokenUsage.__struct_fields__:
        if name in ("provider", "model"):
            continue
        given = [count for count in (getattr(left, name), getattr(right, name)) if count is not UNSET]
        if given:
            counts[name] = sum(given)
    return TokenUsage(provider=left.provider, model=left.model, **counts)
