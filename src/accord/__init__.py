"""Agent and application in agreed state over AG-UI 1.0.

The names an agent's author uses stand here; they are loaded when they are first used, so that a program that needs
only a part, such as `accord.client`, loads only that. The parts: `accord.protocol` (the shapes), `accord.wire`,
`accord.state`, `accord.consumer`, `accord.producer`, `accord.client`, `accord.hosting`, `accord.agents`,
`accord.agui` and `accord.openai`.
"""

import logging
from collections.abc import Callable, Mapping
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


def _on_demand(
    package: dict[str, Any], homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package, whose globals are given, some of whose names wait to be used (PEP 562).

    `homes` has the module that each of those names comes from.
    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        value = package[name] = getattr(import_module(homes[name]), name)
        return value

    return load, lambda: sorted({*package, *homes})


if not TYPE_CHECKING:  # for a type checker, `__getattr__` would stand for every name there is not
    __getattr__, __dir__ = _on_demand(
        globals(), dict.fromkeys(__all__, "accord.agents") | {"AgentSession": "accord.sessions"}
    )
