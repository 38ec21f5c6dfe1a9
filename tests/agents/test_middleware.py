from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from accord.agents import (
    Agent,
    AgentResponseUpdate,
    AgentSetupError,
    ChatMiddleware,
    ChatNext,
    ChatOptions,
    ChatRequest,
    FunctionCall,
    FunctionNext,
    FunctionResultContent,
    Message,
    Role,
    ScriptedChatClient,
    ToolContext,
    chat_middleware,
    function_middleware,
    scripted_call,
    tool,
)
from accord.agents.scripted import Turn
from accord.sessions import AgentSession

SESSION = AgentSession()


@tool
def double(x: int) -> int:
    return 2 * x


@tool
def delete_all() -> None:
    raise AssertionError("must not run")


class Model:
    """Calls `double` once, then says what it was told; keeps the conversations it was sent."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.client = ScriptedChatClient(self.answer)

    def answer(self, messages: Sequence[Message], options: ChatOptions) -> Turn:
        self.asked.append([message.text for message in messages if message.text])
        results = [c for message in messages for c in message.contents if isinstance(c, FunctionResultContent)]
        return f"It is {results[-1].text}." if results else scripted_call("double", {"x": 2})


class TestChat:
    async def test_runs_around_each_model_call_and_changes_that_call_only(self) -> None:
        model = Model()
        number = 0

        @chat_middleware
        async def note(request: ChatRequest, call_next: ChatNext) -> AsyncIterator[AgentResponseUpdate]:
            nonlocal number
            number += 1
            request.messages.insert(0, Message(Role.SYSTEM, f"note {number}"))
            async for update in call_next(request):
                yield update

        response = await Agent(model.client, "instructions", tools=[double], middleware=[note]).run("Hello")
        assert model.asked == [["note 1", "instructions", "Hello"], ["note 2", "instructions", "Hello"]]
        assert [message.role for message in response.messages] == [Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]

    async def test_may_change_options_and_see_the_session(self) -> None:
        seen: list[Any] = []

        def answer(messages: Sequence[Message], options: ChatOptions) -> Turn:
            seen.append(options.model)
            return "ok"

        @chat_middleware
        async def choose(request: ChatRequest, call_next: ChatNext) -> AsyncIterator[AgentResponseUpdate]:
            seen.append(request.session)
            request.options = ChatOptions(model="small").over(request.options)
            async for update in call_next(request):
                yield update

        await Agent(ScriptedChatClient(answer), middleware=[choose]).run("Hello", session=SESSION)
        assert seen == [SESSION, "small"]

    async def test_may_answer_by_itself_and_change_updates(self) -> None:
        @chat_middleware
        async def shout(request: ChatRequest, call_next: ChatNext) -> AsyncIterator[AgentResponseUpdate]:
            async for update in call_next(request):
                yield AgentResponseUpdate(update.text.upper())

        @chat_middleware
        async def cached(request: ChatRequest, call_next: ChatNext) -> AsyncIterator[AgentResponseUpdate]:
            yield AgentResponseUpdate("from the cache")

        # The script is empty: the model must not be asked.
        response = await Agent(ScriptedChatClient([]), middleware=[shout, cached]).run("Hello")
        assert response.text == "FROM THE CACHE"

    async def test_one_that_only_changes_the_request_may_be_a_plain_function(self) -> None:
        class Asked:
            async def stream(
                self, messages: Sequence[Message], options: ChatOptions
            ) -> AsyncIterator[AgentResponseUpdate]:
                yield AgentResponseUpdate(messages[-1].text)

        @chat_middleware
        def correct(request: ChatRequest, call_next: ChatNext) -> AsyncIterator[AgentResponseUpdate]:
            request.messages.append(Message(Role.USER, "I meant: goodbye"))
            return call_next(request)

        @chat_middleware
        def refuse(request: ChatRequest, call_next: ChatNext) -> AsyncIterator[AgentResponseUpdate]:
            raise ValueError("not today")

        assert (await Agent(Asked(), middleware=[correct]).run("Hello")).text == "I meant: goodbye"
        with pytest.raises(ValueError, match="not today"):
            await Agent(Asked(), middleware=[correct, refuse]).run("Hello")

    async def test_what_a_plain_function_hands_on_is_closed_once(self) -> None:
        class Connection:
            """An answer that is no generator."""

            def __init__(self) -> None:
                self.closed = 0

            def stream(self, messages: Sequence[Message], options: ChatOptions) -> Connection:
                return self

            def __aiter__(self) -> Connection:
                return self

            async def __anext__(self) -> AgentResponseUpdate:
                raise StopAsyncIteration

            async def aclose(self) -> None:
                self.closed += 1

        @chat_middleware
        def plain(request: ChatRequest, call_next: ChatNext) -> AsyncIterator[AgentResponseUpdate]:
            return call_next(request)

        connection = Connection()
        await Agent(connection, middleware=[plain, plain]).run("Hello")
        assert connection.closed == 1

    async def test_the_first_is_the_outermost_and_a_runs_own_are_inside(self) -> None:
        order: list[str] = []

        def named(name: str) -> ChatMiddleware:
            @chat_middleware
            async def handler(request: ChatRequest, call_next: ChatNext) -> AsyncIterator[AgentResponseUpdate]:
                order.append(f"{name} in")
                async for update in call_next(request):
                    yield update
                order.append(f"{name} out")

            return handler

        agent = Agent(ScriptedChatClient(["ok"]), middleware=[named("a"), named("b")])
        await agent.run("Hello", middleware=[named("c")])
        assert order == ["a in", "b in", "c in", "c out", "b out", "a out"]

    async def test_all_are_closed_from_the_outside_in_when_the_run_is(self) -> None:
        closed: list[str] = []

        class Endless:
            async def stream(
                self, messages: Sequence[Message], options: ChatOptions
            ) -> AsyncIterator[AgentResponseUpdate]:
                try:
                    while True:
                        yield AgentResponseUpdate("again ")
                finally:
                    closed.append("model")

        @chat_middleware
        async def outer(request: ChatRequest, call_next: ChatNext) -> AsyncIterator[AgentResponseUpdate]:
            try:
                async for update in call_next(request):
                    yield update
            finally:
                closed.append("middleware")

        async with Agent(Endless(), middleware=[outer]).run("Hello", stream=True) as stream:
            await anext(stream)
            assert closed == []
        assert closed == ["middleware", "model"]


class TestFunction:
    async def test_may_change_arguments_and_result(self) -> None:
        model = Model()
        contexts: list[ToolContext] = []

        @function_middleware
        async def watch(call: FunctionCall, call_next: FunctionNext) -> Any:
            contexts.append(call.context)
            call.arguments = {"x": call.arguments["x"] + 1}
            return {"doubled": await call_next(call)}

        response = await Agent(model.client, tools=[double], middleware=[watch]).run("Hello", session=SESSION)
        assert response.text == 'It is {"doubled": 6}.'
        assert (contexts[0].call_id, contexts[0].name, contexts[0].session) == ("call_1", "double", SESSION)

    async def test_the_tool_sees_the_arguments_it_runs_with_and_the_extras(self) -> None:
        seen: list[ToolContext] = []

        @tool
        def keep(x: int, context: ToolContext) -> None:
            seen.append(context)

        @function_middleware
        async def change(call: FunctionCall, call_next: FunctionNext) -> Any:
            call.context.extras["trace"] = "t"
            call.arguments = {"x": 5}
            return await call_next(call)

        client = ScriptedChatClient([scripted_call("keep", {"x": 1}), "ok"])
        extras = {"tenant": "a"}
        await Agent(client, tools=[keep], middleware=[change]).run("Hello", extras=extras)
        assert seen[0].arguments == {"x": 5}
        assert seen[0].extras == {"tenant": "a", "trace": "t"}
        assert extras == {"tenant": "a"}

    @pytest.mark.parametrize("by_raising", [True, False])
    async def test_may_refuse(self, by_raising: bool) -> None:
        @function_middleware
        async def read_only(call: FunctionCall, call_next: FunctionNext) -> Any:
            if by_raising:
                raise PermissionError("not allowed")
            return FunctionResultContent(call.call_id, error="not allowed")

        client = ScriptedChatClient([scripted_call("delete_all"), "ok"])
        response = await Agent(client, tools=[delete_all], middleware=[read_only]).run("Hello")
        (result,) = response.messages[1].contents
        assert isinstance(result, FunctionResultContent)
        assert result.error is not None
        assert result.text.endswith("not allowed")

    async def test_the_first_is_the_outermost(self) -> None:
        @function_middleware
        async def add(call: FunctionCall, call_next: FunctionNext) -> Any:
            return 10 + await call_next(call)

        @function_middleware
        async def times(call: FunctionCall, call_next: FunctionNext) -> Any:
            return 100 * await call_next(call)

        response = await Agent(Model().client, tools=[double], middleware=[add, times]).run("Hello")
        assert response.text == "It is 410."


def test_what_is_no_middleware_is_refused_at_once() -> None:
    async def plain(request: ChatRequest, call_next: ChatNext) -> None: ...

    with pytest.raises(AgentSetupError, match=r"middleware\[0\]: function is neither"):
        Agent(ScriptedChatClient([]), middleware=[plain])  # type: ignore[list-item]
    with pytest.raises(AgentSetupError, match=r"middleware\[0\]"):
        Agent(ScriptedChatClient([])).run("Hello", stream=True, middleware=[plain])  # type: ignore[call-overload]
