"""Chunk expansion: shorthand becomes the start, content and end events it stands for (rules section 4, "Chunks").

One stream of shorthand at most is open in each lane, the parent's or a subagent's. The end is synthesised when another
item opens in the lane, when an event that ends shorthand arrives there, and in every lane at a run-level event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from msgspec import UNSET, UnsetType

from accord.errors import ProtocolViolation
from accord.protocol.events import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    Event,
    MessagesSnapshotEvent,
    RawEvent,
    ReasoningEncryptedValueEvent,
    ReasoningMessageChunkEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    SubagentStartedEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallChunkEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)

#: A lane's key: the subagent's id, or UNSET for the parent. The empty string is an id.
Lane: TypeAlias = str | UnsetType
Chunk: TypeAlias = TextMessageChunkEvent | ToolCallChunkEvent | ReasoningMessageChunkEvent


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of shorthand: the events it stands for, the member with its id, and the members that only open it."""

    start: type
    content: type
    end: type
    id_member: str
    id_wire_name: str
    openers: tuple[tuple[str, str, str | UnsetType], ...]  # member, wire name, what an absent one counts as
    required: tuple[tuple[str, str], ...]


_KINDS: dict[type, _Kind] = {
    TextMessageChunkEvent: _Kind(
        TextMessageStartEvent,
        TextMessageContentEvent,
        TextMessageEndEvent,
        "message_id",
        "messageId",
        (("role", "role", "assistant"), ("name", "name", UNSET)),
        (("message_id", "messageId"),),
    ),
    ToolCallChunkEvent: _Kind(
        ToolCallStartEvent,
        ToolCallArgsEvent,
        ToolCallEndEvent,
        "tool_call_id",
        "toolCallId",
        (("tool_call_name", "toolCallName", UNSET), ("parent_message_id", "parentMessageId", UNSET)),
        (("tool_call_id", "toolCallId"), ("tool_call_name", "toolCallName")),
    ),
    ReasoningMessageChunkEvent: _Kind(
        ReasoningMessageStartEvent,
        ReasoningMessageContentEvent,
        ReasoningMessageEndEvent,
        "message_id",
        "messageId",
        (),
        (("message_id", "messageId"),),
    ),
}
CHUNK_TYPES = frozenset(_KINDS)
#: Explicit events that carry on an item, by the kind of shorthand that could be building the same item.
_EXPLICIT: dict[type, _Kind] = {
    event: kind for kind in _KINDS.values() for event in (kind.start, kind.content, kind.end)
}
_RUN_LEVEL = frozenset({RunStartedEvent, RunFinishedEvent, RunErrorEvent, MessagesSnapshotEvent})
_ASIDE = frozenset(
    {RawEvent, ActivitySnapshotEvent, ActivityDeltaEvent, ReasoningEncryptedValueEvent, SubagentStartedEvent}
)


@dataclass(frozen=True, slots=True)
class _Open:
    """The shorthand a lane is building."""

    kind: _Kind
    id: str
    opened_by: Any


class ChunkExpander:
    """Expands the chunks of one stream. While `lanes` is empty only chunks have to be expanded."""

    def __init__(self) -> None:
        #: The shorthand that is open, by lane, in the order it opened.
        self.lanes: dict[Lane, _Open] = {}

    def expand(self, event: Event) -> list[Event]:
        """What `event` stands for: itself if it is no chunk, after the ends it brings about."""
        if isinstance(event, TextMessageChunkEvent | ToolCallChunkEvent | ReasoningMessageChunkEvent):
            return self._chunk(event)
        return [*self._ends(event), event]

    def close_all(self) -> list[Event]:
        """The ends of all shorthand that is open, for a producer that ends its run."""
        return [self._close(lane) for lane in list(self.lanes)]

    def take_back(self, lanes: Mapping[Lane, _Open], said: Sequence[Event]) -> None:
        """Undoes an expansion that was not gone through with: `lanes` is what was open before it, `said` are those of
        its events that count all the same."""
        self.lanes.clear()
        self.lanes.update(lanes)
        for event in said:
            for lane, building in lanes.items():
                if type(event) is building.kind.end and getattr(event, building.kind.id_member) == building.id:
                    del self.lanes[lane]

    def _ends(self, event: Event) -> list[Event]:
        kind = type(event)
        if kind in _ASIDE:
            return []
        if kind in _RUN_LEVEL:
            return self.close_all()
        lanes: list[Lane] = [event.subagent_run_id]  # type: ignore[union-attr]
        explicit = _EXPLICIT.get(kind)
        if explicit is not None:
            holder = self._holder(explicit, getattr(event, explicit.id_member))
            if holder is not None and holder != lanes[0]:
                lanes.append(holder)
        return [self._close(lane) for lane in lanes if lane in self.lanes]

    def _close(self, lane: Lane) -> Event:
        building = self.lanes.pop(lane)
        end: Event = building.kind.end(
            **{building.kind.id_member: building.id}, subagent_run_id=building.opened_by.subagent_run_id
        )
        return end

    def _chunk(self, chunk: Chunk) -> list[Event]:
        kind = _KINDS[type(chunk)]
        identifier: str | UnsetType = getattr(chunk, kind.id_member)
        lane = self._lane(chunk, kind, identifier)
        building = self.lanes.get(lane)
        events: list[Event] = []
        if building is not None and building.kind is kind and identifier in (UNSET, building.id):
            self._agree(chunk, building)
        else:
            if building is not None:
                events.append(self._close(lane))
            building = self._open(chunk, kind, lane)
            events.append(self._start(chunk, kind))
        carries = chunk.delta is not UNSET or chunk.raw_event is not UNSET
        if carries or (not events and chunk.metadata is not UNSET):
            owner = chunk.subagent_run_id
            events.append(
                kind.content(
                    **{kind.id_member: building.id},
                    delta="" if chunk.delta is UNSET else chunk.delta,
                    metadata=chunk.metadata,
                    raw_event=chunk.raw_event,
                    subagent_run_id=building.opened_by.subagent_run_id if owner is UNSET else owner,
                )
            )
        return events

    def _lane(self, chunk: Chunk, kind: _Kind, identifier: str | UnsetType) -> Lane:
        owner = chunk.subagent_run_id
        if identifier is not UNSET:
            holder = self._holder(kind, identifier)
            if holder is None:
                return owner
            if owner is not UNSET and owner != holder:
                self._refuse(
                    chunk,
                    "attribution",
                    f"subagent {owner!r} does not match the owner of {identifier!r}, {_owner(holder)}",
                    "/subagentRunId",
                )
            return holder
        if owner is not UNSET:
            return owner
        lanes = [lane for lane, building in self.lanes.items() if building.kind is kind]
        if UNSET in lanes or not lanes:
            return UNSET
        if len(lanes) > 1:
            self._refuse(
                chunk,
                "ambiguous-chunk",
                f"neither an id nor an owner, and {len(lanes)} subagents have such a stream open",
                f"/{kind.id_wire_name}",
            )
        return lanes[0]

    def _holder(self, kind: _Kind, identifier: str) -> Lane | None:
        for lane, building in self.lanes.items():
            if building.kind is kind and building.id == identifier:
                return lane
        return None

    def _open(self, chunk: Chunk, kind: _Kind, lane: Lane) -> _Open:
        for member, wire_name in kind.required:
            if getattr(chunk, member) is UNSET:
                self._refuse(
                    chunk, "first-chunk", f"the first chunk of a stream must name its {wire_name}", f"/{wire_name}"
                )
        building = _Open(kind, getattr(chunk, kind.id_member), chunk)
        self.lanes[lane] = building
        return building

    @staticmethod
    def _start(chunk: Chunk, kind: _Kind) -> Event:
        members: dict[str, Any] = {kind.id_member: getattr(chunk, kind.id_member)}
        for member, _, default in kind.openers:
            given = getattr(chunk, member)
            members[member] = default if given is UNSET else given
        if kind.start is ReasoningMessageStartEvent:
            members["role"] = "reasoning"
        start: Event = kind.start(**members, metadata=chunk.metadata, subagent_run_id=chunk.subagent_run_id)
        return start

    def _agree(self, chunk: Chunk, building: _Open) -> None:
        for member, wire_name, default in building.kind.openers:
            given, opened = getattr(chunk, member), getattr(building.opened_by, member)
            opened = default if opened is UNSET else opened
            if given is not UNSET and given != opened:
                self._refuse(
                    chunk,
                    "conflicting-chunk",
                    f"{given!r} does not match the open stream's {wire_name}, {_shown(opened)}",
                    f"/{wire_name}",
                )

    @staticmethod
    def _refuse(chunk: Chunk, rule: str, message: str, path: str) -> None:
        raise ProtocolViolation(message, stage="chunks", rule=rule, path=path, event_type=chunk.type)


def _shown(value: str | UnsetType) -> str:
    return "absent" if value is UNSET else repr(value)


def _owner(lane: Lane) -> str:
    return "the parent" if lane is UNSET else repr(lane)
