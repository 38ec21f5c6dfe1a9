"""An agent: a model, its instructions and its tools. Holds nothing of a run, so any number may run at once."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, Literal, overload

from accord.agents.approvals import ApprovalPolicy
from accord.agents.chat import ChatClient, ChatOptions
from accord.agents.errors import AgentSetupError
from accord.agents.loop import FunctionLoop
from accord.agents.message import MessagesInput, as_messages
from accord.agents.middleware import Middleware, MiddlewareChain
from accord.agents.response import AgentResponse, ResponseBuilder
from accord.agents.stream import AgentRunStream
from accord.agents.tools import ToolLike, as_tools, definition_of
from accord.sessions import AgentSession


class Agent:
    """Answers messages with a model that may call tools.

    `tools`: what `@tool` makes, plain functions, and `ToolDefinition`s for tools that the caller runs. `middleware`:
    the first is the outermost. `options`: how the model is to answer, unless a run says otherwise. `max_rounds`: how
    often the model may call tools before it has to answer without (0: no tool is ever run). `detailed_errors`:
    whether the model reads what an exception in a tool says, or only that the tool failed (an interface is
    never shown more). `executor`: where tools
    that are not async run (by default threads of the package's own).

    Raises `AgentSetupError` for parts that do not fit.
    """

    def __init__(
        self,
        client: ChatClient,
        instructions: str | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        tools: ToolLike | Iterable[ToolLike] | None = None,
        middleware: Iterable[Middleware] = (),
        options: ChatOptions | None = None,
        max_rounds: int = 40,
        detailed_errors: bool = True,
        executor: Executor | None = None,
    ) -> None:
        if not isinstance(client, ChatClient):
            raise AgentSetupError(f"client: {type(client).__name__} has no stream() and is no chat client")
        if max_rounds < 0:
            raise AgentSetupError(f"max_rounds: {max_rounds} is negative")
        self.client = client
        self.name = name
        self.description = description
        self.instructions = instructions
        self.tools = as_tools(tools)
        self.middleware = tuple(middleware)
        self.options = options or ChatOptions()
        self.max_rounds = max_rounds
        self.detailed_errors = detailed_errors
        self._executor = executor
        MiddlewareChain(self.middleware)  # refuses now what would be refused in every run

    @overload
    def run(
        self,
        messages: MessagesInput = (),
        *,
        session: AgentSession | None = None,
        stream: Literal[False] = False,
        tools: ToolLike | Iterable[ToolLike] | None = None,
        middleware: Iterable[Middleware] | None = None,
        options: ChatOptions | None = None,
        extras: Mapping[str, Any] | None = None,
        approval: ApprovalPolicy | None = None,
    ) -> Coroutine[Any, Any, AgentResponse]: ...

    @overload
    def run(
        self,
        messages: MessagesInput = (),
        *,
        session: AgentSession | None = None,
        stream: Literal[True],
        tools: ToolLike | Iterable[ToolLike] | None = None,
        middleware: Iterable[Middleware] | None = None,
        options: ChatOptions | None = None,
        extras: Mapping[str, Any] | None = None,
        approval: ApprovalPolicy | None = None,
    ) -> AgentRunStream: ...

    def run(
        self,
        messages: MessagesInput = (),
        *,
        session: AgentSession | None = None,
        stream: bool = False,
        tools: ToolLike | Iterable[ToolLike] | None = None,
        middleware: Iterable[Middleware] | None = None,
        options: ChatOptions | None = None,
        extras: Mapping[str, Any] | None = None,
        approval: ApprovalPolicy | None = None,
    ) -> Coroutine[Any, Any, AgentResponse] | AgentRunStream:
        """Answer `messages`: `await agent.run("Hello")`, or `async for update in agent.run("Hello", stream=True)`.

        `tools`, `middleware` and `options` add to the agent's own for this run (middleware inside the agent's,
        options over them). `session` (one of the run's own, unless given) and `extras` reach tools by their
        `ToolContext`. `approval` says which calls need a person's approval, in place of the tools' own
        `approval_mode`. Raises `MessageError` and `AgentSetupError` at once; the run raises what the model's client
        raises, `ChatClientError` first of all.
        """
        conversation = as_messages(messages)
        run_options = self.options if options is None else options.over(self.options)
        run_tools = as_tools((*self.tools, *as_tools(tools), *run_options.tools))
        session = session or self.create_session()
        loop = FunctionLoop(
            client=self.client,
            middleware=MiddlewareChain((*self.middleware, *(middleware or ()))),
            options=replace(run_options, tools=tuple(map(definition_of, run_tools)), session=session),
            tools={tool.name: tool for tool in run_tools},
            max_rounds=self.max_rounds,
            detailed_errors=self.detailed_errors,
            instructions=self.instructions,
            author_name=self.name,
            session=session,
            extras=extras or {},
            executor=self._executor,
            approval=approval,
        )
        response = ResponseBuilder(run_options.response_format)
        updates = AgentRunStream(loop.run(conversation, response), response)
        return updates if stream else _whole(updates)

    def create_session(self, *, session_id: str | None = None) -> AgentSession:
        """A new session, to be given to each run of one conversation."""
        return AgentSession(session_id)

    def get_session(self, service_session_id: str, *, session_id: str | None = None) -> AgentSession:
        """A session for a conversation that the model's service keeps, under the service's id for it.

        The id is no credential: take it from storage of your own, for the user that the conversation belongs to.
        """
        return AgentSession(session_id, service_session_id=service_session_id)


async def _whole(updates: AgentRunStream) -> AgentResponse:
    async with updates:
        return await updates.response()
