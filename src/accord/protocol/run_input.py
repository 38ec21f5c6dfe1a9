"""What a consumer asks of a producer: the conversation, the state, the tools and the answers to interrupts."""

from msgspec import UNSET, UnsetType

from accord.protocol.messages import Message
from accord.protocol.outcomes import ResumeEntry
from accord.protocol.values import JSON, Metadata, NonNull, Shape


class Tool(Shape, frozen=True, kw_only=True):
    """A tool the application offers and runs itself; `parameters` is a JSON Schema."""

    name: str
    description: str
    parameters: NonNull | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class Context(Shape, frozen=True, kw_only=True):
    """A piece of information about where the person is, claimed by the application."""

    description: str
    value: str


class RunAgentInput(Shape, frozen=True, kw_only=True):
    """The body of a run's request. An absent `state` means `{}` (rules section 5)."""

    thread_id: str
    run_id: str
    protocol_version: str | UnsetType = UNSET
    parent_run_id: str | UnsetType = UNSET
    state: JSON | UnsetType = UNSET
    messages: list[Message]
    tools: list[Tool] | UnsetType = UNSET
    context: list[Context] | UnsetType = UNSET
    forwarded_props: NonNull | UnsetType = UNSET
    resume: list[ResumeEntry] | UnsetType = UNSET
