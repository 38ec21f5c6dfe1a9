"""Verification: what must open before it goes on, and close before the run ends (rules sections 3, 4 and 6).

How it works. A stream is a series of runs; `_Phase` says where in it we are, `_FOLLOWS` which events may come there.
Within a run a few sets say what is open (one for each row of `_ITEMS`, and steps and subagents), and a few maps say who
owns what: an item belongs to the subagent whose tag its opener carried, or to the parent. Owners are remembered until
the run ends, open or not. Each event type has at most one rule, in `_RULES`; types without one need no check.

The verifier sees expanded events only, keeps no content, and is asked by the consumer and by the producer alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from enum import Enum
from typing import Any, NoReturn, TypeAlias

from msgspec import UNSET, UnsetType

from accord.errors import ProtocolViolation
from accord.protocol.events import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    Event,
    MessagesSnapshotEvent,
    ReasoningEncryptedValueEvent,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from accord.protocol.messages import ActivityMessage, AssistantMessage, Message, ReasoningMessage
from accord.protocol.outcomes import RunFinishedInterruptOutcome

#: A subagent's id, or UNSET for the parent, which is an owner like any other.
Owner: TypeAlias = str | UnsetType


class _Phase(Enum):
    """Where in the stream we are."""

    BEFORE = "nothing has come yet"
    ACTIVE = "a run is active"
    FINISHED = "the run has already finished with RUN_FINISHED"
    FAILED = "the run has already failed with RUN_ERROR"


#: What may come outside an active run.
_FOLLOWS: dict[_Phase, tuple[type, ...]] = {
    _Phase.BEFORE: (RunStartedEvent, RunErrorEvent),
    _Phase.FINISHED: (RunStartedEvent, RunErrorEvent),
    _Phase.FAILED: (RunStartedEvent,),
}


@dataclass(frozen=True, slots=True)
class _Item:
    """A kind of streamed item: its events, its id's member, the namespace its owners are kept in."""

    name: str
    plural: str
    opens: type
    goes_on: type | None
    closes: type
    id_member: str
    id_path: str
    owners: str


_ITEMS = (
    _Item(
        "text message",
        "text messages",
        TextMessageStartEvent,
        TextMessageContentEvent,
        TextMessageEndEvent,
        "message_id",
        "/messageId",
        "message",
    ),
    _Item(
        "reasoning message",
        "reasoning messages",
        ReasoningMessageStartEvent,
        ReasoningMessageContentEvent,
        ReasoningMessageEndEvent,
        "message_id",
        "/messageId",
        "reasoning",
    ),
    _Item(
        "reasoning span",
        "reasoning spans",
        ReasoningStartEvent,
        None,
        ReasoningEndEvent,
        "message_id",
        "/messageId",
        "reasoning",
    ),
    _Item(
        "tool call",
        "tool calls",
        ToolCallStartEvent,
        ToolCallArgsEvent,
        ToolCallEndEvent,
        "tool_call_id",
        "/toolCallId",
        "tool call",
    ),
)


_OWNERS_OF = {item.opens: item.owners for item in _ITEMS}


class Verifier:
    """The state machine of one stream. `check(event)` returns, or raises `ProtocolViolation` and changes nothing."""

    def __init__(self) -> None:
        #: What judges the events that only append, while a run is active; empty otherwise. Nearly every event of a
        #: stream is one of these, and a caller may ask here first and `check` what is not found.
        self.appending: dict[type, Callable[[Any], None]] = {}
        self._phase = _Phase.BEFORE
        self._thread_id: str | None = None
        self._begin("")

    @property
    def run_active(self) -> bool:
        """Whether a run has started and not ended."""
        return self._phase is _Phase.ACTIVE

    @property
    def started(self) -> bool:
        """Whether any event has come."""
        return self._phase is not _Phase.BEFORE

    def check(self, event: Event) -> None:
        """Judges `event` where the stream stands and takes note of it."""
        kind = type(event)
        if self._phase is not _Phase.ACTIVE:
            self._between_runs(event, kind)
        rule = self._rules.get(kind)
        if rule is not None:
            rule(event)

    def open_ids(self, opener: type) -> Set[str]:
        """The ids of the items that are open in this run, of the kind that `opener` opens: a view that goes with it."""
        return self._open[opener]

    def owners(self, opener: type) -> Mapping[str, Owner]:
        """Who owns what has an id, open or not, in the namespace of the kind that `opener` opens: a view as well."""
        return self._owners[_OWNERS_OF[opener]]

    def step_is_open(self, name: str, owner: Owner = UNSET) -> bool:
        """Whether a step of this name and owner is open."""
        return (owner, name) in self._steps

    def subagent_is_active(self, subagent_run_id: str) -> bool:
        """Whether an announced subagent has not ended."""
        return subagent_run_id in self._active_subagents

    def closing_events(self) -> list[Event]:
        """The events that close all that is open, for a producer that ends its run."""
        events: list[Event] = [
            item.closes(**{item.id_member: identifier}, subagent_run_id=self._owners[item.owners][identifier])
            for item in _ITEMS
            for identifier in sorted(self._open[item.opens])
        ]
        events += [StepFinishedEvent(step_name=name, subagent_run_id=owner) for owner, name in self._steps]
        events += [SubagentFinishedEvent(subagent_run_id=name) for name in sorted(self._active_subagents)]
        return events

    # Runs

    def _begin(self, run_id: str) -> None:
        """Forgets the run before."""
        self._run_id = run_id
        self._steps: set[tuple[Owner, str]] = set()
        self._active_subagents: set[str] = set()
        self._ended_subagents: set[str] = set()
        self._owners: dict[str, dict[str, Owner]] = {
            "message": {},
            "tool call": {},
            "reasoning": {},
            "activity": {},
        }
        self._open: dict[type, set[str]] = {item.opens: set() for item in _ITEMS}
        self._rules: dict[type, Callable[[Any], None]] = {
            RunStartedEvent: self._run_started,
            RunFinishedEvent: self._run_finished,
            RunErrorEvent: self._run_error,
            StepStartedEvent: self._step_started,
            StepFinishedEvent: self._step_finished,
            ToolCallResultEvent: self._tool_call_result,
            MessagesSnapshotEvent: self._messages_snapshot,
            ReasoningEncryptedValueEvent: self._encrypted_value,
            ActivitySnapshotEvent: self._activity_snapshot,
            ActivityDeltaEvent: self._activity_delta,
            SubagentStartedEvent: self._subagent_started,
            SubagentFinishedEvent: self._subagent_ended,
            SubagentErrorEvent: self._subagent_ended,
        }
        for item in _ITEMS:
            self._rules[item.opens] = self._opening(item)
            self._rules[item.closes] = self._going_on(item, closes=True)
            if item.goes_on is not None:
                self._rules[item.goes_on] = self._going_on(item, closes=False)

    def _between_runs(self, event: Event, kind: type) -> None:
        if kind not in _FOLLOWS[self._phase]:
            if self._phase is _Phase.BEFORE:
                _refuse(event, "first-event", "the first event must be RUN_STARTED or RUN_ERROR", "/type")
            _refuse(event, "after-run", f"{self._phase.value}; only a new run may follow", "/type")

    def _run_started(self, event: RunStartedEvent) -> None:
        if self._phase is _Phase.ACTIVE:
            _refuse(
                event,
                "nested-run",
                f"run {self._run_id!r} is still active",
                "/type",
            )
        if self._thread_id is not None and event.thread_id != self._thread_id:
            _refuse(
                event,
                "thread",
                f"thread {event.thread_id!r} does not match the stream's thread {self._thread_id!r}",
                "/threadId",
            )
        self._phase, self._thread_id = _Phase.ACTIVE, event.thread_id
        self._begin(event.run_id)
        self.appending.update((item.goes_on, self._rules[item.goes_on]) for item in _ITEMS if item.goes_on is not None)
        if event.input is not UNSET:
            self._own_messages(event.input.messages, overwrite=False)

    def _run_finished(self, event: RunFinishedEvent) -> None:
        for mine, given, path in (
            (self._thread_id, event.thread_id, "/threadId"),
            (self._run_id, event.run_id, "/runId"),
        ):
            if given != mine:
                _refuse(event, "run-ids", f"{given!r} does not match the {mine!r} that RUN_STARTED gave", path)
        if isinstance(event.outcome, RunFinishedInterruptOutcome):
            seen: set[str] = set()
            for position, interrupt in enumerate(event.outcome.interrupts):
                if interrupt.id in seen:
                    path = f"/outcome/interrupts/{position}/id"
                    _refuse(event, "duplicate-interrupt", f"interrupt {interrupt.id!r} comes twice", path)
                seen.add(interrupt.id)
        still_open = [("steps", [f"{name}{_of(owner)}" for owner, name in self._steps])]
        still_open += [(item.plural, list(self._open[item.opens])) for item in _ITEMS]
        still_open.append(("subagents", list(self._active_subagents)))
        for plural, names in still_open:
            if names:
                listed = ", ".join(sorted(names))
                _refuse(event, "still-open", f"{plural} are still open: {listed}")
        self._phase = _Phase.FINISHED
        self.appending.clear()

    def _run_error(self, event: RunErrorEvent) -> None:
        self._phase = _Phase.FAILED
        self.appending.clear()
        for identifiers in self._open.values():  # an error ends whatever was open
            identifiers.clear()
        self._steps.clear()
        self._active_subagents.clear()

    # Streamed items

    def _opening(self, item: _Item) -> Callable[[Any], None]:
        is_open, owners = self._open[item.opens], self._owners[item.owners]
        is_tool_call = item.opens is ToolCallStartEvent

        def rule(event: Any) -> None:
            identifier = getattr(event, item.id_member)
            if identifier in is_open:
                _refuse(event, "already-open", f"{item.name} {identifier!r} is already open", item.id_path)
            tag = event.subagent_run_id
            owner, known = self._call_owner(event) if is_tool_call else (tag, tag is not UNSET)
            if known and owners.get(identifier, owner) != owner:
                _disagree(event, owner, owners[identifier], item.name, identifier)
            is_open.add(identifier)
            owners.setdefault(identifier, owner)

        return rule

    def _going_on(self, item: _Item, *, closes: bool) -> Callable[[Any], None]:
        is_open, owners = self._open[item.opens], self._owners[item.owners]
        name, path = item.name, item.id_path
        by_message = item.id_member == "message_id"

        def goes_on(event: Any) -> None:
            identifier = event.message_id if by_message else event.tool_call_id
            if identifier not in is_open:
                _refuse(event, "not-open", f"{name} {identifier!r} is not open", path)
            tag = event.subagent_run_id
            if tag is not UNSET and owners[identifier] != tag:
                _disagree(event, tag, owners[identifier], name, identifier)

        def ends(event: Any) -> None:
            goes_on(event)
            is_open.remove(event.message_id if by_message else event.tool_call_id)

        return ends if closes else goes_on

    def _call_owner(self, event: ToolCallStartEvent) -> tuple[Owner, bool]:
        """Whose a call is, and whether anything says so: its own tag, or the message that holds it."""
        messages = self._owners["message"]
        tag, parent = event.subagent_run_id, event.parent_message_id
        if parent is UNSET or parent not in messages:
            return tag, tag is not UNSET
        if tag is not UNSET and tag != messages[parent]:
            _disagree(event, tag, messages[parent], "message", parent)
        return messages[parent], True

    def _tool_call_result(self, event: ToolCallResultEvent) -> None:
        self._owners["message"][event.message_id] = event.subagent_run_id

    def _encrypted_value(self, event: ReasoningEncryptedValueEvent) -> None:
        for namespace in ("tool call",) if event.subtype == "tool-call" else ("message", "reasoning"):
            if event.entity_id in self._owners[namespace]:
                self._agree(event, event.subagent_run_id, self._owners[namespace], event.entity_id, namespace)
                return

    # Steps

    def _step_started(self, event: StepStartedEvent) -> None:
        step = (event.subagent_run_id, event.step_name)
        if step in self._steps:
            _refuse(event, "already-open", f"step {event.step_name!r} is already open", "/stepName")
        self._steps.add(step)

    def _step_finished(self, event: StepFinishedEvent) -> None:
        step = (event.subagent_run_id, event.step_name)
        if step not in self._steps:
            others = [owner for owner, name in self._steps if name == event.step_name]
            where = f", though one of that name{_of(others[0]) or ' of the parent'} is" if others else ""
            message = f"step {event.step_name!r}{_of(event.subagent_run_id)} is not open{where}"
            _refuse(event, "not-open", message, "/stepName")
        self._steps.remove(step)

    # Activities and whole conversations

    def _activity_snapshot(self, event: ActivitySnapshotEvent) -> None:
        owners = self._owners["activity"]
        if event.replace is not False or event.message_id not in owners:
            owners[event.message_id] = event.subagent_run_id

    def _activity_delta(self, event: ActivityDeltaEvent) -> None:
        self._agree(event, event.subagent_run_id, self._owners["activity"], event.message_id, "activity")

    def _messages_snapshot(self, event: MessagesSnapshotEvent) -> None:
        self._own_messages(event.messages, overwrite=True)

    def _own_messages(self, messages: list[Message], *, overwrite: bool) -> None:
        for message in messages:
            namespace = "message"
            if isinstance(message, ReasoningMessage):
                namespace = "reasoning"
            elif isinstance(message, ActivityMessage):
                namespace = "activity"
            owned = [(namespace, message.id)]
            if isinstance(message, AssistantMessage) and message.tool_calls is not UNSET:
                owned += [("tool call", call.id) for call in message.tool_calls]
            for kind, identifier in owned:
                if overwrite or identifier not in self._owners[kind]:
                    self._owners[kind][identifier] = message.subagent_run_id

    # Subagents

    def _subagent_started(self, event: SubagentStartedEvent) -> None:
        name = event.subagent_run_id
        if name in self._active_subagents:
            _refuse(event, "already-open", f"subagent {name!r} is already active", "/subagentRunId")
        if name in self._ended_subagents:
            _refuse(event, "subagent-reused", f"subagent {name!r} has already ended in this run", "/subagentRunId")
        parent = event.parent_subagent_run_id
        if parent is not UNSET and parent not in self._active_subagents and parent not in self._ended_subagents:
            _refuse(event, "unknown-parent", f"subagent {parent!r} was never announced", "/parentSubagentRunId")
        self._active_subagents.add(name)

    def _subagent_ended(self, event: SubagentFinishedEvent | SubagentErrorEvent) -> None:
        name = event.subagent_run_id
        if name not in self._active_subagents:
            _refuse(event, "not-open", f"subagent {name!r} is not active", "/subagentRunId")
        self._active_subagents.remove(name)
        self._ended_subagents.add(name)

    # Attribution

    @staticmethod
    def _agree(event: Event, tag: Owner, owners: dict[str, Owner], identifier: str, name: str) -> None:
        """A tag, when there is one, names the owner on record, when there is one."""
        if tag is not UNSET and identifier in owners and owners[identifier] != tag:
            _disagree(event, tag, owners[identifier], name, identifier)


def _of(owner: Owner) -> str:
    return "" if owner is UNSET else f" of subagent {owner!r}"


def _disagree(event: Event, tag: Owner, owner: Owner, name: str, identifier: str) -> NoReturn:
    of = "the parent" if owner is UNSET else f"subagent {owner!r}"
    message = f"subagent {tag!r} does not match the owner of {name} {identifier!r}, {of}"
    _refuse(event, "attribution", message, "/subagentRunId")


def _refuse(event: Event, rule: str, message: str, path: str = "") -> NoReturn:
    raise ProtocolViolation(message, stage="verification", rule=rule, path=path, event_type=event.type)
