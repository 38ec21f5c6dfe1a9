"""Agent and application in agreed state over AG-UI 1.0.

The names an agent's author uses stand here; they are loaded when they are first used, so that a program that needs
only a part, such as `accord.client`, loads only that. The parts: `accord.protocol` (the shapes), `accord.wire`,
`accord.state`, `accord.consumer`, `accord.producer`, `accord.client`, `accord.hosting`, `accord.agents`,
`accord.agui` and `accord.openai`.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from accord.errors import (
    AccordError,
    EncodingError,
    InputRejected,
    PatchError,
    ProtocolViolation,
    RunFailed,
    TransportError,
    TruncatedRun,
)

if TYPE_CHECKING:
    from accord.agents import (
        Agent,
        AgentResponse,
        AgentResponseUpdate,
        ChatClient,
        ChatOptions,
        DataContent,
        ErrorContent,
        FunctionApprovalRequestContent,
        FunctionApprovalResponseContent,
        FunctionCallContent,
        FunctionResultContent,
        FunctionTool,
        Message,
        ReasoningContent,
        Role,
        ScriptedChatClient,
        TextContent,
        ToolContext,
        ToolDefinition,
        UriContent,
        Usage,
        UsageContent,
        chat_middleware,
        function_middleware,
        tool,
    )
    from accord.sessions import AgentSession

__version__ = "0.1.0"

# What deserves a warning goes to the `accord` logger and is printed by nobody who did not ask for it (rules section 2).
logging.getLogger("accord").addHandler(logging.NullHandler())

__all__ = [
    "AccordError",
    "Agent",
    "AgentResponse",
    "AgentResponseUpdate",
    "AgentSession",
    "ChatClient",
    "ChatOptions",
    "DataContent",
    "EncodingError",
    "ErrorContent",
    "FunctionApprovalRequestContent",
    "FunctionApprovalResponseContent",
    "FunctionCallContent",
    "FunctionResultContent",
    "FunctionTool",
    "InputRejected",
    "Message",
    "PatchError",
    "ProtocolViolation",
    "ReasoningContent",
    "Role",
    "RunFailed",
    "ScriptedChatClient",
    "TextContent",
    "ToolContext",
    "ToolDefinition",
    "TransportError",
    "TruncatedRun",
    "UriContent",
    "Usage",
    "UsageContent",
    "__version__",
    "chat_middleware",
    "function_middleware",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'accord' has no attribute {name!r}")
    part = "accord.sessions" if name == "AgentSession" else "accord.agents"
    value = getattr(import_module(part), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
