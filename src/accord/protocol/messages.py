"""The seven kinds of message, told apart by `role`."""

from typing import Literal, TypeAlias

from msgspec import UNSET, UnsetType

from accord.protocol.content import ContentPart
from accord.protocol.values import Identified, JSONObject, Metadata, Shape

Role: TypeAlias = Literal["developer", "system", "assistant", "user", "tool", "activity", "reasoning"]
#: The roles a streamed text message may have; absent means `assistant`.
TextMessageRole: TypeAlias = Literal["developer", "system", "assistant", "user"]


class FunctionCall(Shape, frozen=True, kw_only=True):
    """A function's name and its arguments as JSON text, exactly as the model wrote them."""

    name: str
    arguments: str


class ToolCall(Shape, frozen=True, kw_only=True):
    """A call an assistant message asks for."""

    id: str
    type: Literal["function"]
    function: FunctionCall
    encrypted_value: str | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class DeveloperMessage(Identified, frozen=True, kw_only=True, tag_field="role", tag="developer"):
    """Instructions by the developer."""

    id: str
    content: str
    name: str | UnsetType = UNSET
    encrypted_value: str | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class SystemMessage(Identified, frozen=True, kw_only=True, tag_field="role", tag="system"):
    """Instructions by the system."""

    id: str
    content: str
    name: str | UnsetType = UNSET
    encrypted_value: str | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class AssistantMessage(Identified, frozen=True, kw_only=True, tag_field="role", tag="assistant"):
    """What the agent said, and the calls it asked for."""

    id: str
    content: str | UnsetType = UNSET
    tool_calls: list[ToolCall] | UnsetType = UNSET
    name: str | UnsetType = UNSET
    encrypted_value: str | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class UserMessage(Identified, frozen=True, kw_only=True, tag_field="role", tag="user"):
    """What the person said: text, or a list of parts."""

    id: str
    content: str | list[ContentPart]
    name: str | UnsetType = UNSET
    encrypted_value: str | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class ToolMessage(Identified, frozen=True, kw_only=True, tag_field="role", tag="tool"):
    """The answer to one tool call."""

    id: str
    content: str | list[ContentPart]
    tool_call_id: str
    error: str | UnsetType = UNSET
    encrypted_value: str | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class ActivityMessage(Identified, frozen=True, kw_only=True, tag_field="role", tag="activity"):
    """Something the agent is doing, as open content for the interface; it never travels to a producer."""

    id: str
    activity_type: str
    content: JSONObject
    metadata: Metadata | UnsetType = UNSET


class ReasoningMessage(Identified, frozen=True, kw_only=True, tag_field="role", tag="reasoning"):
    """What the model thought, as far as it is shown."""

    id: str
    content: str
    encrypted_value: str | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


Message: TypeAlias = (
    DeveloperMessage | SystemMessage | AssistantMessage | UserMessage | ToolMessage | ActivityMessage | ReasoningMessage
)
