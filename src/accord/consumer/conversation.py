"""The consumer's copy: events applied to messages, state and runs (rules section 5; metadata, section 4).

What the conversation hands out is never changed afterwards. What it holds is made for appending: the pieces of a
growing text are joined when somebody reads it, a state nobody has read is patched in place, and no event costs more
because there is much history or state. Material that is well-formed but does not fit is skipped with a warning.
"""

from __future__ import annotations

import logging
import re
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, overload

import msgspec
from msgspec import UNSET, UnsetType

from accord.consumer.deviation import MAX_DEVIATIONS, Deviation, OnDeviation, Reporter, report
from accord.errors import PatchError, ProtocolViolation
from accord.protocol import (
    JSON,
    ActivityDeltaEvent,
    ActivityMessage,
    ActivitySnapshotEvent,
    AssistantMessage,
    DeveloperMessage,
    Event,
    FunctionCall,
    Interrupt,
    JsonPatch,
    Message,
    MessagesSnapshotEvent,
    Metadata,
    ReasoningEncryptedValueEvent,
    ReasoningMessage,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    SystemMessage,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TextPart,
    TokenUsage,
    ToolCall,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    ToolMessage,
    UserMessage,
)
from accord.state import SharedValue
from accord.state.patch import MAX_COPIED_BYTES, MAX_NESTING, MAX_OPERATIONS
from accord.state.pointer import MAX_POINTER_LENGTH

_logger = logging.getLogger("accord")

#: How a run stands. A stream that ended before its run did leaves it `truncated`.
RunStatus: TypeAlias = Literal["running", "success", "interrupt", "cancelled", "failed", "truncated"]

_MESSAGES, _STATE = 1, 2


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run as the consumer saw it. `run_id` is None for a run that failed before it started."""

    thread_id: str | None
    run_id: str | None
    parent_run_id: str | None = None
    protocol_version: str | None = None
    status: RunStatus = "running"
    result: JSON = None
    usage: tuple[TokenUsage, ...] = ()
    interrupts: tuple[Interrupt, ...] = ()
    pending_tool_call_ids: tuple[str, ...] = ()
    error: str | None = None
    error_code: str | None = None


class MessagesView(Sequence[Message]):
    """The messages as they stood at one moment; nothing is built until somebody looks."""

    __slots__ = ("__weakref__", "_conversation", "_messages")

    def __init__(self, conversation: Conversation) -> None:
        self._conversation: Conversation | None = conversation
        self._messages: list[Message] = []

    def freeze(self) -> list[Message]:
        """Builds the list, if that has not been done."""
        if self._conversation is not None:
            self._messages, self._conversation = self._conversation.messages, None
        return self._messages

    def __len__(self) -> int:
        return len(self.freeze())

    def __iter__(self) -> Iterator[Message]:
        return iter(self.freeze())

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        return self.freeze()[index]

    def __eq__(self, other: object) -> bool:
        return self.freeze() == (other.freeze() if isinstance(other, MessagesView) else other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class _Subscriber:
    on_event: Callable[[Event], None] | None
    on_state: Callable[[JSON], None] | None
    on_messages: Callable[[Sequence[Message]], None] | None


class Conversation:
    """The conversation, the state and the runs of one thread.

    `run_input` is what the consumer starts from. `max_messages` bounds how many messages are held, `max_runs` how many
    run records (the oldest are forgotten). A patch of the state or of an activity that passes `max_operations`,
    `max_pointer_length` (characters), `max_copied_bytes` (what its `copy` operations add) or `max_depth` (levels that
    it makes) does not apply. Of what one event makes worth a warning, `max_deviations` are told and the rest counted.
    """

    def __init__(
        self,
        run_input: RunAgentInput | None = None,
        *,
        on_deviation: OnDeviation | None = None,
        max_messages: int = 100_000,
        max_runs: int = 1_000,
        max_operations: int = MAX_OPERATIONS,
        max_pointer_length: int = MAX_POINTER_LENGTH,
        max_copied_bytes: int = MAX_COPIED_BYTES,
        max_depth: int = MAX_NESTING,
        max_deviations: int = MAX_DEVIATIONS,
    ) -> None:
        self._on_deviation = on_deviation
        self._max_messages = max_messages
        self._max_deviations = max_deviations
        self._max_operations = max_operations
        self._max_pointer_length = max_pointer_length
        self._max_copied_bytes = max_copied_bytes
        self._max_depth = max_depth
        #: The messages are linked in order: so a result finds its place at once, and another message changes its kind.
        self._first: _Held | None = None
        self._last: _Held | None = None
        self._count = 0
        self._by_id: dict[str, _Held] = {}
        self._calls: dict[str, tuple[_Held, _Call]] = {}
        self._list: list[Message] | None = None
        self._handed_out: weakref.ref[MessagesView] | None = None
        self._runs: deque[RunRecord] = deque(maxlen=max_runs)
        self._in_stream = False  # whether the last run on record is of the stream that events come from
        self._unanswered: dict[str, None] = {}
        self._interrupts: tuple[Interrupt, ...] = ()
        self._subscribers: list[_Subscriber] = []
        self._index = -1
        self._state = SharedValue({})
        if run_input is not None:
            for message in run_input.messages:
                self._append(message)
            if run_input.state is not UNSET:
                self._state.replace(run_input.state)
        self._effects: dict[type, Callable[[Any], int]] = {
            RunStartedEvent: self._run_started,
            RunFinishedEvent: self._run_finished,
            RunErrorEvent: self._run_error,
            TextMessageStartEvent: self._text_start,
            TextMessageContentEvent: self._content,
            TextMessageEndEvent: self._end,
            ToolCallStartEvent: self._call_start,
            ToolCallArgsEvent: self._call_args,
            ToolCallEndEvent: self._call_end,
            ToolCallResultEvent: self._call_result,
            ReasoningMessageStartEvent: self._reasoning_start,
            ReasoningMessageContentEvent: self._content,
            ReasoningMessageEndEvent: self._end,
            ReasoningEncryptedValueEvent: self._encrypted_value,
            StateSnapshotEvent: self._state_snapshot,
            StateDeltaEvent: self._state_delta,
            MessagesSnapshotEvent: self._messages_snapshot,
            ActivitySnapshotEvent: self._activity_snapshot,
            ActivityDeltaEvent: self._activity_delta,
        }

    # What is handed out

    @property
    def state(self) -> JSON:
        """The state, any JSON value; `{}` until something else is known. Not changed by what comes later."""
        return self._state.value

    @property
    def messages(self) -> list[Message]:
        """The messages in order, a list of the caller's own. Its messages are not changed by what comes later."""
        if self._list is None:
            self._list = [held.view() for held in self._all()]
        return list(self._list)

    @property
    def runs(self) -> list[RunRecord]:
        """A record of each run, oldest first."""
        return list(self._runs)

    @property
    def pending_interrupts(self) -> tuple[Interrupt, ...]:
        """The questions of the last run that asked any, until a run ends without (rules section 7)."""
        return self._interrupts

    def subscribe(
        self,
        *,
        on_event: Callable[[Event], None] | None = None,
        on_state: Callable[[JSON], None] | None = None,
        on_messages: Callable[[Sequence[Message]], None] | None = None,
    ) -> Callable[[], None]:
        """Calls back after each event, and when the state or the messages have changed; returns what ends it.

        What a callback is given is not changed afterwards. An exception in one is logged and goes no further.
        """
        subscriber = _Subscriber(on_event, on_state, on_messages)
        self._subscribers.append(subscriber)

        def unsubscribe() -> None:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)

        return unsubscribe

    # What the application changes

    def set_state(self, state: JSON) -> None:
        """Replaces the state on our side; the next input carries it. `state` is not changed afterwards."""
        self._state.replace(state)

    def add_message(self, message: Message) -> None:
        """Appends a message, or replaces the one with its id in place."""
        self._freeze()
        held = self._by_id.get(message.id)
        if held is None:
            self._append(message)
        else:
            self._adopt(held, message)

    def set_messages(self, messages: Iterable[Message]) -> None:
        """Replaces the whole list."""
        self._freeze()
        self._clear()
        for message in messages:
            self._append(message)

    def set_pending_interrupts(self, interrupts: Iterable[Interrupt]) -> None:
        """Says which questions are open, for a conversation that goes on from what was stored of it."""
        self._interrupts = tuple(interrupts)

    def end_of_stream(self) -> None:
        """Notes that the stream is over: a run that is still open was truncated, and what comes is another stream."""
        if self._runs and self._runs[-1].status == "running":
            self._note(status="truncated")
        self._in_stream = False

    # Events

    def apply(self, event: Event) -> None:
        """Applies one verified event. Raises `ProtocolViolation` (stage `application`) beyond `max_messages`."""
        self._index += 1
        effect = self._effects.get(type(event))
        changed = 0 if effect is None else effect(event)
        if self._subscribers:
            self._publish(event, changed)

    def _publish(self, event: Event, changed: int) -> None:
        view = MessagesView(self) if changed & _MESSAGES else None
        if view is not None:
            self._handed_out = weakref.ref(view)
        for subscriber in tuple(self._subscribers):
            if subscriber.on_event is not None:
                _tell(subscriber.on_event, event, event)
            if view is not None and subscriber.on_messages is not None:
                _tell(subscriber.on_messages, view, event)
            if changed & _STATE and subscriber.on_state is not None:
                _tell(subscriber.on_state, self._state.value, event)

    # Runs

    def _run_started(self, event: RunStartedEvent) -> int:
        self._unanswered = {}
        self._in_stream = True
        self._runs.append(
            RunRecord(event.thread_id, event.run_id, _given(event.parent_run_id), _given(event.protocol_version))
        )
        if event.input is UNSET:
            return 0
        self._freeze()
        for message in event.input.messages:
            if message.id not in self._by_id:
                self._append(message)
        return _MESSAGES

    def _run_finished(self, event: RunFinishedEvent) -> int:
        usage = () if event.usage is UNSET else tuple(event.usage)
        outcome = event.outcome
        result = _given(event.result)
        if isinstance(outcome, RunFinishedInterruptOutcome):
            self._interrupts = tuple(outcome.interrupts)
            self._note(status="interrupt", usage=usage, interrupts=self._interrupts, result=result)
            return 0
        self._interrupts = ()
        if isinstance(outcome, RunFinishedCancelledOutcome):
            self._note(status="cancelled", usage=usage, result=result)
            return 0
        named = () if outcome is UNSET or outcome.pending_tool_call_ids is UNSET else outcome.pending_tool_call_ids
        pending = tuple(named or self._unanswered)
        self._note(status="success", usage=usage, pending_tool_call_ids=pending, result=result)
        return 0

    def _run_error(self, event: RunErrorEvent) -> int:
        if not self._in_stream:  # a run that failed before it started
            self._runs.append(RunRecord(None, None))
            self._in_stream = True
        usage = self._runs[-1].usage if event.usage is UNSET else tuple(event.usage)
        self._note(status="failed", usage=usage, error=event.message, error_code=_given(event.code))
        return 0

    def _note(self, **changes: Any) -> None:
        self._runs[-1] = replace(self._runs[-1], **changes)

    # Text and reasoning

    def _text_start(self, event: TextMessageStartEvent) -> int:
        role = "assistant" if event.role is UNSET else event.role
        return self._start(
            event,
            lambda: _TEXT_MESSAGES[role](
                id=event.message_id, content="", name=event.name, subagent_run_id=event.subagent_run_id
            ),
        )

    def _reasoning_start(self, event: ReasoningMessageStartEvent) -> int:
        return self._start(
            event, lambda: ReasoningMessage(id=event.message_id, content="", subagent_run_id=event.subagent_run_id)
        )

    def _start(self, event: TextMessageStartEvent | ReasoningMessageStartEvent, make: Callable[[], Message]) -> int:
        held = self._by_id.get(event.message_id)
        if held is not None and isinstance(held.message, ActivityMessage):
            return self._skip(event, "/messageId", f"message {event.message_id!r} is an activity")
        self._freeze()
        if held is None:
            held = self._append(make())
        elif event.metadata is UNSET:
            return 0
        self._merge(held, event.metadata)
        return _MESSAGES

    def _content(self, event: TextMessageContentEvent | ReasoningMessageContentEvent) -> int:
        held = self._by_id.get(event.message_id)
        if held is None or held.is_activity:
            return self._misses(event, held)
        if self._handed_out is not None:
            self._freeze()
        held.parts.append(event.delta)
        held.built = None
        self._list = None
        if event.metadata is not UNSET:
            self._merge(held, event.metadata)
        return _MESSAGES

    def _end(self, event: TextMessageEndEvent | ReasoningMessageEndEvent) -> int:
        held = self._by_id.get(event.message_id)
        if held is None or held.is_activity:
            return self._misses(event, held)
        return self._merge(held, event.metadata)

    def _misses(self, event: Any, held: _Held | None) -> int:
        what = "is not held" if held is None else "is an activity"
        return self._skip(event, "/messageId", f"message {event.message_id!r} {what}")

    # Tool calls

    def _call_start(self, event: ToolCallStartEvent) -> int:
        self._unanswered[event.tool_call_id] = None
        self._freeze()
        known = self._calls.get(event.tool_call_id)
        if known is not None:
            held, call = known
            if call.name != event.tool_call_name:
                self._warn(event, "/toolCallName", f"the call keeps its name {call.name!r}")
            return self._merge_call(held, call, event.metadata)
        held = self._carrier(event)
        call = _Call(event.tool_call_id, event.tool_call_name)
        held.calls.append(call)
        held.lists_calls = True
        self._calls[call.id] = (held, call)
        held.built = self._list = None
        self._merge_call(held, call, event.metadata)
        return _MESSAGES

    def _carrier(self, event: ToolCallStartEvent) -> _Held:
        """The assistant message that holds a new call: the parent it names, or one made for it."""
        parent = event.parent_message_id
        identifier = event.tool_call_id
        if parent is not UNSET and parent:
            held = self._by_id.get(parent)
            if held is None:
                identifier = parent
            elif isinstance(held.message, AssistantMessage):
                return held
            else:
                detail = f"message {parent!r} is not an assistant's; the call gets a message of its own"
                self._warn(event, "/parentMessageId", detail)
        owner = UNSET if identifier in self._by_id else event.subagent_run_id
        return self._append(AssistantMessage(id=identifier, subagent_run_id=owner))

    def _call_args(self, event: ToolCallArgsEvent) -> int:
        known = self._calls.get(event.tool_call_id)
        if known is None:
            return self._skip(event, "/toolCallId", f"no message holds a tool call {event.tool_call_id!r}")
        if self._handed_out is not None:
            self._freeze()
        held, call = known
        call.parts.append(event.delta)
        held.built = None
        self._list = None
        if event.metadata is not UNSET:
            self._merge_call(held, call, event.metadata)
        return _MESSAGES

    def _call_end(self, event: ToolCallEndEvent) -> int:
        known = self._calls.get(event.tool_call_id)
        if known is None:
            return self._skip(event, "/toolCallId", f"no message holds a tool call {event.tool_call_id!r}")
        return self._merge_call(*known, event.metadata)

    def _call_result(self, event: ToolCallResultEvent) -> int:
        self._unanswered.pop(event.tool_call_id, None)
        self._freeze()
        message = ToolMessage(
            id=event.message_id,
            content=event.content,
            tool_call_id=event.tool_call_id,
            subagent_run_id=event.subagent_run_id,
            metadata=event.metadata,
        )
        held = self._by_id.get(event.message_id)
        if held is not None and isinstance(held.message, ToolMessage):
            self._warn(event, "/messageId", f"message {event.message_id!r} is held; its content is replaced")
            self._adopt(held, message)
            return _MESSAGES
        call = self._calls.get(event.tool_call_id)
        self._append(message, behind=None if call is None else call[0])
        return _MESSAGES

    # Reasoning's sealed values

    def _encrypted_value(self, event: ReasoningEncryptedValueEvent) -> int:
        if event.subtype == "tool-call":
            known = self._calls.get(event.entity_id)
            if known is None:
                return self._skip(event, "/entityId", f"no message holds a tool call {event.entity_id!r}")
            self._freeze()
            held, call = known
            call.encrypted_value = event.encrypted_value
        else:
            found = self._by_id.get(event.entity_id)
            if found is None or isinstance(found.message, ActivityMessage):
                what = "is not held" if found is None else "is an activity"
                return self._skip(event, "/entityId", f"message {event.entity_id!r} {what}")
            self._freeze()
            held = found
            held.message = msgspec.structs.replace(held.message, encrypted_value=event.encrypted_value)
        held.built = self._list = None
        return _MESSAGES

    # State

    def _state_snapshot(self, event: StateSnapshotEvent) -> int:
        self._state.replace(event.snapshot)
        return _STATE

    def _state_delta(self, event: StateDeltaEvent) -> int:
        try:
            self._patch(self._state, event.delta)
        except PatchError as error:
            return self._skip(event, f"/delta/{error.index}", f"Failed to apply state patch, all of it: {error}")
        return _STATE

    # The conversation itself

    def _messages_snapshot(self, event: MessagesSnapshotEvent) -> int:
        self._freeze()
        said: dict[str, Message] = {}
        with Reporter(self._on_deviation, self._max_deviations) as warn:
            for position, message in enumerate(event.messages):
                if message.id in said:
                    detail = f"message {message.id!r} comes twice; the last stands"
                    warn(Deviation("application", event.type, f"/messages/{position}", detail, self._index))
                said[message.id] = message
        spared = [
            role
            for role in (ActivityMessage, ReasoningMessage)
            if not any(isinstance(message, role) for message in said.values())
        ]
        kept: list[_Held] = []
        placed: set[str] = set()
        for held in self._all():
            message_id = held.message.id
            if message_id in said and message_id not in placed:
                kept.append(_Held(said[message_id]))
                placed.add(message_id)
            elif message_id not in said and isinstance(held.message, tuple(spared)):
                kept.append(held)
        kept += [_Held(message) for message_id, message in said.items() if message_id not in placed]
        self._clear()
        for held in kept:
            self._place(held)
        return _MESSAGES

    # Activities

    def _activity_snapshot(self, event: ActivitySnapshotEvent) -> int:
        held = self._by_id.get(event.message_id)
        keeps = event.replace is False
        if held is not None and keeps:
            return self._merge(held, event.metadata) if held.is_activity else 0
        self._freeze()
        message = ActivityMessage(
            id=event.message_id,
            activity_type=event.activity_type,
            content=event.content,
            subagent_run_id=event.subagent_run_id,
        )
        if held is None:
            held = self._append(message)
        else:
            if held.is_activity:
                message = msgspec.structs.replace(message, metadata=held.message.metadata)
            else:
                self._warn(event, "/messageId", f"message {event.message_id!r} becomes an activity")
            self._adopt(held, message)
        self._merge(held, event.metadata)
        return _MESSAGES

    def _activity_delta(self, event: ActivityDeltaEvent) -> int:
        held = self._by_id.get(event.message_id)
        if held is None or held.activity is None:
            what = "is not held" if held is None else "is not an activity"
            return self._skip(event, "/messageId", f"message {event.message_id!r} {what}")
        changed = self._merge(held, event.metadata)
        self._freeze()
        try:
            self._patch(held.activity, event.patch, must_be_object=True)
        except PatchError as error:
            path = f"/patch/{error.index}"
            self._skip(event, path, f"Failed to apply activity patch, all of it: {error}")
            return changed
        held.activity_changed(event.activity_type)
        self._list = None
        return _MESSAGES

    def _patch(self, value: SharedValue, operations: JsonPatch, *, must_be_object: bool = False) -> None:
        # By name and one by one: unpacking them from a dict is a twentieth of what a delta costs.
        value.apply(
            operations,
            max_operations=self._max_operations,
            max_pointer_length=self._max_pointer_length,
            max_copied_bytes=self._max_copied_bytes,
            max_depth=self._max_depth,
            must_be_object=must_be_object,
        )

    # Holding messages

    def _append(self, message: Message, *, behind: _Held | None = None) -> _Held:
        """Holds a new message: at the end, or behind the message given and the tool messages that follow it."""
        held = _Held(message)
        self._place(held, behind)
        return held

    def _clear(self) -> None:
        self._first = self._last = self._list = None
        self._count, self._by_id, self._calls = 0, {}, {}

    def _all(self) -> Iterator[_Held]:
        held = self._first
        while held is not None:
            yield held
            held = held.next

    def _place(self, held: _Held, behind: _Held | None = None) -> None:
        if self._count >= self._max_messages:
            raise ProtocolViolation(
                f"more than {self._max_messages} messages (max_messages)",
                stage="application",
                rule="message-limit",
                index=self._index,
            )
        self._count += 1
        self._link(held, behind)
        self._by_id.setdefault(held.message.id, held)
        self._index_calls(held)
        self._list = None

    def _link(self, held: _Held, behind: _Held | None) -> None:
        if behind is not None:
            held.run = behind.run
            before: _Held | None = held.run.last
        else:
            before = self._last
            held.run = before.run if before is not None and isinstance(held.message, ToolMessage) else _Run(held)
        held.run.last = held
        held.before = before
        if before is None:
            held.next = None
            self._first = held
        else:
            held.next, before.next = before.next, held
        if held.next is None:
            self._last = held
        else:
            held.next.before = held

    def _adopt(self, held: _Held, message: Message) -> None:
        """Puts `message` in the place of what `held` held."""
        for call in held.calls:
            if self._calls[call.id][0] is held:
                del self._calls[call.id]
        was_tool, is_tool = isinstance(held.message, ToolMessage), isinstance(message, ToolMessage)
        held.hold(message)
        if was_tool and not is_tool:
            held.begin_run()
        elif is_tool and not was_tool:
            held.join_run()
        self._index_calls(held)
        self._list = None

    def _index_calls(self, held: _Held) -> None:
        for call in held.calls:
            self._calls.setdefault(call.id, (held, call))

    def _merge(self, held: _Held, metadata: Metadata | UnsetType) -> int:
        if metadata is UNSET:
            return 0
        self._freeze()
        held.message = msgspec.structs.replace(held.message, metadata=_merged(held.message.metadata, metadata))
        held.built = self._list = None
        return _MESSAGES

    def _merge_call(self, held: _Held, call: _Call, metadata: Metadata | UnsetType) -> int:
        if metadata is UNSET:
            return 0
        self._freeze()
        call.metadata = _merged(call.metadata, metadata)
        held.built = self._list = None
        return _MESSAGES

    def _freeze(self) -> None:
        """Lets a view that somebody kept and has not read take its copy before anything changes."""
        if self._handed_out is not None:
            view = self._handed_out()
            if view is not None:
                view.freeze()
            self._handed_out = None

    # Warnings

    def _warn(self, event: Event, path: str, detail: str) -> None:
        report(Deviation("application", event.type, path, detail, self._index), self._on_deviation)

    def _skip(self, event: Event, path: str, detail: str) -> int:
        self._warn(event, path, f"{detail}; skipped")
        return 0


class _Call:
    """A tool call that is held: its argument text in pieces."""

    __slots__ = ("encrypted_value", "id", "metadata", "name", "parts")

    def __init__(self, identifier: str, name: str) -> None:
        self.id = identifier
        self.name = name
        self.parts: list[str] = []
        self.encrypted_value: str | UnsetType = UNSET
        self.metadata: Metadata | UnsetType = UNSET

    def view(self) -> ToolCall:
        """The call as it stands."""
        if len(self.parts) > 1:
            self.parts = [_joined(self.parts)]
        return ToolCall(
            id=self.id,
            type="function",
            function=FunctionCall(name=self.name, arguments=self.parts[0] if self.parts else ""),
            encrypted_value=self.encrypted_value,
            metadata=self.metadata,
        )


class _Run:
    """A message and the tool messages behind it, up to the next message of another kind."""

    __slots__ = ("last",)

    def __init__(self, last: _Held) -> None:
        self.last = last


class _Held:
    """A message that is held: the message as last built, and what has come since; its neighbours and its run."""

    __slots__ = (
        "activity",
        "before",
        "built",
        "calls",
        "is_activity",
        "lists_calls",
        "message",
        "next",
        "parts",
        "run",
    )

    run: _Run

    def __init__(self, message: Message) -> None:
        self.before: _Held | None = None
        self.next: _Held | None = None
        self.hold(message)

    def begin_run(self) -> None:
        """No longer a tool message, it is the first of a run of its own.

        Of the run it was in, the shorter side is given another: so it is cheap however often this happens.
        """
        run, before = self.run, self.before
        ahead: list[_Held] = []
        behind = [self]
        while before is not None and before.run is run:
            ahead.append(before)
            if behind[-1] is run.last:
                run.last = ahead[0]
                _relabel(behind, _Run(behind[-1]))
                return
            if (following := behind[-1].next) is not None:
                behind.append(following)
            before = before.before
        if ahead:
            _relabel(ahead, _Run(ahead[0]))

    def join_run(self) -> None:
        """A tool message now, it joins the run in front of it, and with it the tool messages that followed it."""
        if self.before is None:
            return
        run, joined = self.run, self.before.run
        each: _Held | None = self
        while each is not None and each.run is run:
            each.run = joined
            each = each.next
        joined.last = run.last

    def hold(self, message: Message) -> None:
        """Starts over from `message`."""
        self.message = message
        self.parts: list[str] = []
        self.built: Message | None = message
        self.is_activity = isinstance(message, ActivityMessage)
        self.activity = SharedValue(message.content) if isinstance(message, ActivityMessage) else None
        self.calls: list[_Call] = []
        self.lists_calls = False
        if isinstance(message, AssistantMessage) and message.tool_calls is not UNSET:
            self.lists_calls = True
            for each in message.tool_calls:
                call = _Call(each.id, each.function.name)
                call.parts = [each.function.arguments]
                call.encrypted_value, call.metadata = each.encrypted_value, each.metadata
                self.calls.append(call)

    def view(self) -> Message:
        """The message as it stands."""
        if self.built is not None:
            return self.built
        changes: dict[str, Any] = {}
        if self.parts:
            changes["content"] = _appended(getattr(self.message, "content", UNSET), self.parts)
            self.parts = []
        if self.lists_calls:
            changes["tool_calls"] = [call.view() for call in self.calls]
        if self.activity is not None:
            changes["content"] = self.activity.value
        self.message = self.built = msgspec.structs.replace(self.message, **changes) if changes else self.message
        return self.built

    def activity_changed(self, activity_type: str) -> None:
        """Its content has been patched, and it is of this type from here on."""
        self.message = msgspec.structs.replace(self.message, activity_type=activity_type)
        self.built = None


def _relabel(held: Iterable[_Held], run: _Run) -> None:
    for each in held:
        each.run = run


_TEXT_MESSAGES: dict[str, Callable[..., Message]] = {
    "developer": DeveloperMessage,
    "system": SystemMessage,
    "assistant": AssistantMessage,
    "user": UserMessage,
}
_SURROGATE = re.compile("[\ud800-\udfff]")


def _appended(content: Any, parts: list[str]) -> Any:
    """Content with text behind it; behind a list of parts it joins the last text, so that nothing is lost."""
    if isinstance(content, list):
        if content and isinstance(content[-1], TextPart):
            last = msgspec.structs.replace(content[-1], text=_joined([content[-1].text, *parts]))
            return [*content[:-1], last]
        return [*content, TextPart(text=_joined(parts))]
    return _joined(parts if content is UNSET else [content, *parts])


def _joined(parts: list[str]) -> str:
    """The text of the pieces; a surrogate pair cut in two by a producer becomes its character (rules section 2)."""
    text = "".join(parts)
    if not text.isascii() and _SURROGATE.search(text):
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return text


def _merged(held: Metadata | UnsetType, incoming: Metadata) -> Metadata:
    """Key by key, the last write wins, no recursion."""
    return {**held, **incoming} if held is not UNSET else dict(incoming)


def _tell(callback: Callable[[Any], None], value: Any, event: Event) -> None:
    try:
        callback(value)
    except Exception:  # an observer must not end what it observes
        _logger.exception("a subscriber failed on %s", event.type)


def _given(value: Any) -> Any:
    return None if value is UNSET else value
