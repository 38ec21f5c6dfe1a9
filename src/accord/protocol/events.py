"""The 31 events, in their eight families.

Each class is one event; its tag is the wire's `type`. Members are snake_case here and camelCase on the wire.
"""

from typing import Literal, TypeAlias, get_args

from msgspec import UNSET, UnsetType

from accord.protocol.content import ContentPart
from accord.protocol.messages import Message, TextMessageRole
from accord.protocol.outcomes import RunFinishedOutcome, SubagentFinishedOutcome
from accord.protocol.patch import JsonPatch
from accord.protocol.run_input import RunAgentInput
from accord.protocol.usage import TokenUsage
from accord.protocol.values import JSON, JSONObject, Metadata, NonNull, SafeInt, Shape, SubagentRunId


class BaseEvent(Shape, frozen=True, kw_only=True, tag_field="type"):
    """What every event may carry. `timestamp` is in milliseconds by convention and orders nothing; `raw_event` is what
    the event was made from and drives nothing; `metadata` merges into the item that the event builds."""

    timestamp: SafeInt | UnsetType = UNSET
    raw_event: NonNull | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET

    @property
    def type(self) -> str:
        """The event's type, as on the wire."""
        return str(self.__struct_config__.tag)


class OwnedEvent(BaseEvent, frozen=True, kw_only=True):
    """An event that may belong to a subagent's invocation; without the id it is the parent's."""

    subagent_run_id: SubagentRunId | UnsetType = UNSET


# Runs and steps


class RunStartedEvent(BaseEvent, frozen=True, kw_only=True, tag="RUN_STARTED"):
    """A run begins; `input` is what the producer was asked, if it says so."""

    thread_id: str
    run_id: str
    protocol_version: str | UnsetType = UNSET
    parent_run_id: str | UnsetType = UNSET
    input: RunAgentInput | UnsetType = UNSET


class RunFinishedEvent(BaseEvent, frozen=True, kw_only=True, tag="RUN_FINISHED"):
    """A run ends; an absent outcome means success."""

    thread_id: str
    run_id: str
    result: NonNull | UnsetType = UNSET
    outcome: RunFinishedOutcome | UnsetType = UNSET
    usage: list[TokenUsage] | UnsetType = UNSET


class RunErrorEvent(BaseEvent, frozen=True, kw_only=True, tag="RUN_ERROR"):
    """A run failed; `message` is for the person."""

    message: str
    code: str | UnsetType = UNSET
    usage: list[TokenUsage] | UnsetType = UNSET


class StepStartedEvent(OwnedEvent, frozen=True, kw_only=True, tag="STEP_STARTED"):
    """A named step of the run begins."""

    step_name: str


class StepFinishedEvent(OwnedEvent, frozen=True, kw_only=True, tag="STEP_FINISHED"):
    """A named step of the run ends."""

    step_name: str


# Text


class TextMessageStartEvent(OwnedEvent, frozen=True, kw_only=True, tag="TEXT_MESSAGE_START"):
    """A text message opens; an absent role means `assistant`."""

    message_id: str
    role: TextMessageRole | UnsetType = UNSET
    name: str | UnsetType = UNSET


class TextMessageContentEvent(OwnedEvent, frozen=True, kw_only=True, tag="TEXT_MESSAGE_CONTENT"):
    """Text to append."""

    message_id: str
    delta: str


class TextMessageEndEvent(OwnedEvent, frozen=True, kw_only=True, tag="TEXT_MESSAGE_END"):
    """A text message closes."""

    message_id: str


class TextMessageChunkEvent(OwnedEvent, frozen=True, kw_only=True, tag="TEXT_MESSAGE_CHUNK"):
    """Shorthand for opening, appending and closing a text message."""

    message_id: str | UnsetType = UNSET
    role: TextMessageRole | UnsetType = UNSET
    delta: str | UnsetType = UNSET
    name: str | UnsetType = UNSET


# Tool calls


class ToolCallStartEvent(OwnedEvent, frozen=True, kw_only=True, tag="TOOL_CALL_START"):
    """A tool call opens, on the assistant message named or on one made for it."""

    tool_call_id: str
    tool_call_name: str
    parent_message_id: str | UnsetType = UNSET


class ToolCallArgsEvent(OwnedEvent, frozen=True, kw_only=True, tag="TOOL_CALL_ARGS"):
    """Argument text to append; nothing acts on it before the call closes."""

    tool_call_id: str
    delta: str


class ToolCallEndEvent(OwnedEvent, frozen=True, kw_only=True, tag="TOOL_CALL_END"):
    """A tool call closes; its arguments are whole."""

    tool_call_id: str


class ToolCallChunkEvent(OwnedEvent, frozen=True, kw_only=True, tag="TOOL_CALL_CHUNK"):
    """Shorthand for opening, appending and closing a tool call."""

    tool_call_id: str | UnsetType = UNSET
    tool_call_name: str | UnsetType = UNSET
    parent_message_id: str | UnsetType = UNSET
    delta: str | UnsetType = UNSET


class ToolCallResultEvent(OwnedEvent, frozen=True, kw_only=True, tag="TOOL_CALL_RESULT"):
    """A tool call's answer, a tool message of its own."""

    message_id: str
    tool_call_id: str
    content: str | list[ContentPart]
    role: Literal["tool"] | UnsetType = UNSET


# Reasoning


class ReasoningStartEvent(OwnedEvent, frozen=True, kw_only=True, tag="REASONING_START"):
    """A span of reasoning opens."""

    message_id: str


class ReasoningMessageStartEvent(OwnedEvent, frozen=True, kw_only=True, tag="REASONING_MESSAGE_START"):
    """A reasoning message opens."""

    message_id: str
    role: Literal["reasoning"]


class ReasoningMessageContentEvent(OwnedEvent, frozen=True, kw_only=True, tag="REASONING_MESSAGE_CONTENT"):
    """Reasoning text to append."""

    message_id: str
    delta: str


class ReasoningMessageEndEvent(OwnedEvent, frozen=True, kw_only=True, tag="REASONING_MESSAGE_END"):
    """A reasoning message closes."""

    message_id: str


class ReasoningMessageChunkEvent(OwnedEvent, frozen=True, kw_only=True, tag="REASONING_MESSAGE_CHUNK"):
    """Shorthand for opening, appending and closing a reasoning message."""

    message_id: str | UnsetType = UNSET
    delta: str | UnsetType = UNSET


class ReasoningEndEvent(OwnedEvent, frozen=True, kw_only=True, tag="REASONING_END"):
    """A span of reasoning closes."""

    message_id: str


class ReasoningEncryptedValueEvent(OwnedEvent, frozen=True, kw_only=True, tag="REASONING_ENCRYPTED_VALUE"):
    """An opaque value to keep on the message or tool call named and to return unmodified."""

    subtype: Literal["tool-call", "message"]
    entity_id: str
    encrypted_value: str


# State and the conversation itself


class StateSnapshotEvent(OwnedEvent, frozen=True, kw_only=True, tag="STATE_SNAPSHOT"):
    """The whole state, any JSON value."""

    snapshot: JSON


class StateDeltaEvent(OwnedEvent, frozen=True, kw_only=True, tag="STATE_DELTA"):
    """A JSON Patch on the consumer's current state."""

    delta: JsonPatch


class MessagesSnapshotEvent(BaseEvent, frozen=True, kw_only=True, tag="MESSAGES_SNAPSHOT"):
    """The complete list of the producer's messages."""

    messages: list[Message]


# Activity


class ActivitySnapshotEvent(OwnedEvent, frozen=True, kw_only=True, tag="ACTIVITY_SNAPSHOT"):
    """The whole content of an activity; `replace` absent means true."""

    message_id: str
    activity_type: str
    content: JSONObject
    replace: bool | UnsetType = UNSET


class ActivityDeltaEvent(OwnedEvent, frozen=True, kw_only=True, tag="ACTIVITY_DELTA"):
    """A JSON Patch on an activity's content."""

    message_id: str
    activity_type: str
    patch: JsonPatch


# Subagents


class SubagentStartedEvent(BaseEvent, frozen=True, kw_only=True, tag="SUBAGENT_STARTED"):
    """An invocation of a subagent begins."""

    subagent_run_id: SubagentRunId
    name: str
    description: str | UnsetType = UNSET
    parent_subagent_run_id: SubagentRunId | UnsetType = UNSET
    parent_tool_call_id: str | UnsetType = UNSET
    parent_message_id: str | UnsetType = UNSET


class SubagentFinishedEvent(BaseEvent, frozen=True, kw_only=True, tag="SUBAGENT_FINISHED"):
    """An invocation of a subagent ends."""

    subagent_run_id: SubagentRunId
    result: NonNull | UnsetType = UNSET
    outcome: SubagentFinishedOutcome | UnsetType = UNSET


class SubagentErrorEvent(BaseEvent, frozen=True, kw_only=True, tag="SUBAGENT_ERROR"):
    """An invocation of a subagent failed; the run goes on."""

    subagent_run_id: SubagentRunId
    message: str
    code: str | UnsetType = UNSET


# Passthrough


class RawEvent(OwnedEvent, frozen=True, kw_only=True, tag="RAW"):
    """Something another system said, passed on as it is."""

    event: JSON
    source: str | UnsetType = UNSET


class CustomEvent(OwnedEvent, frozen=True, kw_only=True, tag="CUSTOM"):
    """A signal of the application's own."""

    name: str
    value: JSON


Event: TypeAlias = (
    RunStartedEvent
    | RunFinishedEvent
    | RunErrorEvent
    | StepStartedEvent
    | StepFinishedEvent
    | TextMessageStartEvent
    | TextMessageContentEvent
    | TextMessageEndEvent
    | TextMessageChunkEvent
    | ToolCallStartEvent
    | ToolCallArgsEvent
    | ToolCallEndEvent
    | ToolCallChunkEvent
    | ToolCallResultEvent
    | ReasoningStartEvent
    | ReasoningMessageStartEvent
    | ReasoningMessageContentEvent
    | ReasoningMessageEndEvent
    | ReasoningMessageChunkEvent
    | ReasoningEndEvent
    | ReasoningEncryptedValueEvent
    | StateSnapshotEvent
    | StateDeltaEvent
    | MessagesSnapshotEvent
    | ActivitySnapshotEvent
    | ActivityDeltaEvent
    | SubagentStartedEvent
    | SubagentFinishedEvent
    | SubagentErrorEvent
    | RawEvent
    | CustomEvent
)

#: Every event's class by its wire type.
EVENT_TYPES: dict[str, type[Event]] = {str(event.__struct_config__.tag): event for event in get_args(Event)}
