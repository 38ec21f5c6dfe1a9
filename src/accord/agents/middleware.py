"""What stands between an agent and its model, and between an agent and its tools.

Chat middleware is an async generator around each model call: it may change what the model is sent, for that call
only, and what the model answers. Where it only changes what is sent, it may be a plain function that returns the
answer of the next. Function middleware is a coroutine around each tool call: it may change the arguments, replace the
result, refuse. The first in the list is the outermost.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from accord.agents.chat import ChatClient, ChatOptions
from accord.agents.errors import AgentSetupError
from accord.agents.message import Message
from accord.agents.tools import FunctionTool, ToolContext
from accord.agents.update import AgentResponseUpdate
from accord.sessions import AgentSession


@dataclass(slots=True)
class ChatRequest:
    """One call of the model. `messages` is a list of this call's own: no change to it outlives the call."""

    messages: list[Message]
    options: ChatOptions
    session: AgentSession | None = None


@dataclass(slots=True)
class FunctionCall:
    """One call of a tool. `arguments` is the JSON object that the model sent, not validated yet."""

    tool: FunctionTool[..., Any]
    call_id: str
    arguments: Mapping[str, Any]
    context: ToolContext


ChatNext = Callable[[ChatRequest], AsyncIterator[AgentResponseUpdate]]
ChatHandler = Callable[[ChatRequest, ChatNext], AsyncIterator[AgentResponseUpdate]]
FunctionNext = Callable[[FunctionCall], Awaitable[Any]]
FunctionHandler = Callable[[FunctionCall, FunctionNext], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class ChatMiddleware:
    """An async generator `handler(request, call_next)` that yields the updates of the model call.

    A plain function that returns `call_next(request)` costs the updates nothing.
    """

    handler: ChatHandler


@dataclass(frozen=True, slots=True)
class FunctionMiddleware:
    """A coroutine function `handler(call, call_next)` that returns the call's result, as a tool would.

    To refuse, return a `FunctionResultContent` with `error`, or raise.
    """

    handler: FunctionHandler


Middleware = ChatMiddleware | FunctionMiddleware


def chat_middleware(handler: ChatHandler) -> ChatMiddleware:
    """Decorator for chat middleware:

    @chat_middleware
    async def note_date(request, call_next):
        request.messages.append(Message("system", f"Today is {date.today()}."))
        async for update in call_next(request):
            yield update
    """
    return ChatMiddleware(handler)


def function_middleware(handler: FunctionHandler) -> FunctionMiddleware:
    """Decorator for function middleware:

    @function_middleware
    async def read_only(call, call_next):
        if call.tool.name.startswith("delete_"):
            return FunctionResultContent(call.call_id, error="deleting is not allowed")
        return await call_next(call)
    """
    return FunctionMiddleware(handler)


class ModelCall:
    """`async with` gives the answer of the model, and closes it with every generator of the chain when it is left.

    No generator of its own: an event loop that shuts down closes those one beside the other, this one first or last.
    """

    def __init__(self, handlers: Sequence[ChatHandler], client: ChatClient, request: ChatRequest) -> None:
        self._handlers = handlers
        self._client = client
        self._request = request
        self._opened: list[AsyncIterator[AgentResponseUpdate]] = []

    async def __aenter__(self) -> AsyncIterator[AgentResponseUpdate]:
        try:
            return self._from(0)(self._request)
        except BaseException:
            await self._close()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    def _from(self, level: int) -> ChatNext:
        def call_next(request: ChatRequest) -> AsyncIterator[AgentResponseUpdate]:
            if level == len(self._handlers):
                stream = self._client.stream(tuple(request.messages), request.options)
            else:
                stream = self._handlers[level](request, self._from(level + 1))
            if all(each is not stream for each in self._opened):  # a plain function gives what the next one gave
                self._opened.append(stream)
            return stream

        return call_next

    async def _close(self) -> None:
        # `async for` closes nothing when it is left early: the model would go on until it is collected.
        async with AsyncExitStack() as closing:
            for stream in reversed(self._opened):  # left last in, first out: the outermost is closed first
                if (close := getattr(stream, "aclose", None)) is not None:
                    closing.push_async_callback(close)


class MiddlewareChain:
    """Middleware of both kinds, in order. Raises `AgentSetupError` for anything that is neither."""

    def __init__(self, middleware: Iterable[Middleware] = ()) -> None:
        self._chat: list[ChatHandler] = []
        self._function: list[FunctionHandler] = []
        for index, item in enumerate(middleware):
            if isinstance(item, ChatMiddleware):
                self._chat.append(item.handler)
            elif isinstance(item, FunctionMiddleware):
                self._function.append(item.handler)
            else:
                raise AgentSetupError(
                    f"middleware[{index}]: {type(item).__name__} is neither chat nor function middleware; "
                    "decorate it with @chat_middleware or @function_middleware"
                )

    def stream(self, client: ChatClient, request: ChatRequest) -> ModelCall:
        """Call the model through the chat middleware."""
        return ModelCall(self._chat, client, request)

    async def invoke(self, call: FunctionCall, run: FunctionNext) -> Any:
        """Call a tool through the function middleware; `run` is the call itself."""

        def from_level(level: int) -> FunctionNext:
            if level == len(self._function):
                return run

            async def call_next(call: FunctionCall) -> Any:
                return await self._function[level](call, from_level(level + 1))

            return call_next

        return await from_level(0)(call)
