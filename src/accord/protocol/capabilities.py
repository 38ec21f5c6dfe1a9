"""What an agent says it can do."""

from msgspec import UNSET, UnsetType

from accord.protocol.run_input import Tool
from accord.protocol.values import Count, JSONObject, Metadata, Shape


class IdentityCapabilities(Shape, frozen=True, kw_only=True):
    """Who the agent is."""

    name: str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    version: str | UnsetType = UNSET
    provider: str | UnsetType = UNSET
    documentation_url: str | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class TransportCapabilities(Shape, frozen=True, kw_only=True):
    """How it can be reached."""

    streaming: bool | UnsetType = UNSET
    websocket: bool | UnsetType = UNSET
    http_binary: bool | UnsetType = UNSET
    push_notifications: bool | UnsetType = UNSET
    resumable: bool | UnsetType = UNSET


class ToolsCapabilities(Shape, frozen=True, kw_only=True):
    """Its tools, and whether it takes the application's."""

    supported: bool | UnsetType = UNSET
    items: list[Tool] | UnsetType = UNSET
    parallel_calls: bool | UnsetType = UNSET
    client_provided: bool | UnsetType = UNSET


class OutputCapabilities(Shape, frozen=True, kw_only=True):
    """What its answers can be."""

    structured_output: bool | UnsetType = UNSET
    supported_mime_types: list[str] | UnsetType = UNSET


class StateCapabilities(Shape, frozen=True, kw_only=True):
    """How it keeps state."""

    snapshots: bool | UnsetType = UNSET
    deltas: bool | UnsetType = UNSET
    memory: bool | UnsetType = UNSET
    persistent_state: bool | UnsetType = UNSET


class SubagentInfo(Shape, frozen=True, kw_only=True):
    """A subagent it may call."""

    name: str
    description: str | UnsetType = UNSET


class MultiAgentCapabilities(Shape, frozen=True, kw_only=True):
    """How it works with other agents."""

    supported: bool | UnsetType = UNSET
    delegation: bool | UnsetType = UNSET
    handoffs: bool | UnsetType = UNSET
    subagents: list[SubagentInfo] | UnsetType = UNSET


class ReasoningCapabilities(Shape, frozen=True, kw_only=True):
    """Whether it shows what it thinks."""

    supported: bool | UnsetType = UNSET
    streaming: bool | UnsetType = UNSET
    encrypted: bool | UnsetType = UNSET


class MultimodalInputCapabilities(Shape, frozen=True, kw_only=True):
    """The media it reads."""

    image: bool | UnsetType = UNSET
    audio: bool | UnsetType = UNSET
    video: bool | UnsetType = UNSET
    pdf: bool | UnsetType = UNSET
    file: bool | UnsetType = UNSET


class MultimodalOutputCapabilities(Shape, frozen=True, kw_only=True):
    """The media it makes."""

    image: bool | UnsetType = UNSET
    audio: bool | UnsetType = UNSET


class MultimodalCapabilities(Shape, frozen=True, kw_only=True):
    """The media it reads and makes."""

    input: MultimodalInputCapabilities | UnsetType = UNSET
    output: MultimodalOutputCapabilities | UnsetType = UNSET


class ExecutionCapabilities(Shape, frozen=True, kw_only=True):
    """How it runs; `max_execution_time` is in milliseconds."""

    code_execution: bool | UnsetType = UNSET
    sandboxed: bool | UnsetType = UNSET
    max_iterations: Count | UnsetType = UNSET
    max_execution_time: Count | UnsetType = UNSET


class HumanInTheLoopCapabilities(Shape, frozen=True, kw_only=True):
    """How a person takes part."""

    supported: bool | UnsetType = UNSET
    approvals: bool | UnsetType = UNSET
    interventions: bool | UnsetType = UNSET
    feedback: bool | UnsetType = UNSET
    interrupts: bool | UnsetType = UNSET
    approve_with_edits: bool | UnsetType = UNSET


class AgentCapabilities(Shape, frozen=True, kw_only=True):
    """Everything an agent declares of itself."""

    identity: IdentityCapabilities | UnsetType = UNSET
    transport: TransportCapabilities | UnsetType = UNSET
    tools: ToolsCapabilities | UnsetType = UNSET
    output: OutputCapabilities | UnsetType = UNSET
    state: StateCapabilities | UnsetType = UNSET
    multi_agent: MultiAgentCapabilities | UnsetType = UNSET
    reasoning: ReasoningCapabilities | UnsetType = UNSET
    multimodal: MultimodalCapabilities | UnsetType = UNSET
    execution: ExecutionCapabilities | UnsetType = UNSET
    human_in_the_loop: HumanInTheLoopCapabilities | UnsetType = UNSET
    custom: JSONObject | UnsetType = UNSET
