"""The agent runtime: a model, tools, and the loop between them. Knows nothing of AG-UI."""

from accord.agents.agent import Agent
from accord.agents.approvals import ApprovalPolicy
from accord.agents.chat import ChatClient, ChatOptions
from accord.agents.content import (
    Content,
    DataContent,
    ErrorContent,
    FunctionApprovalRequestContent,
    FunctionApprovalResponseContent,
    FunctionCallContent,
    FunctionResultContent,
    ReasoningContent,
    TextContent,
    UriContent,
    UsageContent,
)
from accord.agents.errors import (
    AgentSetupError,
    ChatClientError,
    MessageError,
    RunIncomplete,
    StructuredOutputError,
    ToolArgumentsError,
    ToolDefinitionError,
)
from accord.agents.message import Message, MessagesInput, Role
from accord.agents.middleware import (
    ChatMiddleware,
    ChatNext,
    ChatRequest,
    FunctionCall,
    FunctionMiddleware,
    FunctionNext,
    Middleware,
    chat_middleware,
    function_middleware,
)
from accord.agents.response import AgentResponse, ResponseBuilder
from accord.agents.schema import JSONSchema
from accord.agents.scripted import Interleaved, ScriptedChatClient, scripted_call
from accord.agents.stream import AgentRunStream
from accord.agents.structured import ResponseFormat, parse_response, response_schema
from accord.agents.tools import ApprovalMode, FunctionTool, ToolContext, ToolDefinition, ToolLike, tool
from accord.agents.update import AgentResponseUpdate
from accord.agents.usage import Usage

__all__ = [
    "Agent",
    "AgentResponse",
    "AgentResponseUpdate",
    "AgentRunStream",
    "AgentSetupError",
    "ApprovalMode",
    "ApprovalPolicy",
    "ChatClient",
    "ChatClientError",
    "ChatMiddleware",
    "ChatNext",
    "ChatOptions",
    "ChatRequest",
    "Content",
    "DataContent",
    "ErrorContent",
    "FunctionApprovalRequestContent",
    "FunctionApprovalResponseContent",
    "FunctionCall",
    "FunctionCallContent",
    "FunctionMiddleware",
    "FunctionNext",
    "FunctionResultContent",
    "FunctionTool",
    "Interleaved",
    "JSONSchema",
    "Message",
    "MessageError",
    "MessagesInput",
    "Middleware",
    "ReasoningContent",
    "ResponseBuilder",
    "ResponseFormat",
    "Role",
    "RunIncomplete",
    "ScriptedChatClient",
    "StructuredOutputError",
    "TextContent",
    "ToolArgumentsError",
    "ToolContext",
    "ToolDefinition",
    "ToolDefinitionError",
    "ToolLike",
    "UriContent",
    "Usage",
    "UsageContent",
    "chat_middleware",
    "function_middleware",
    "parse_response",
    "response_schema",
    "scripted_call",
    "tool",
]
