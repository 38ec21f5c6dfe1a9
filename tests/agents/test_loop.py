from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from accord.agents import (
    Agent,
    AgentResponse,
    AgentResponseUpdate,
    ChatClientError,
    ChatOptions,
    DataContent,
    FunctionApprovalRequestContent,
    FunctionCallContent,
    FunctionResultContent,
    Interleaved,
    Message,
    Role,
    ScriptedChatClient,
    ToolContext,
    ToolDefinition,
    Usage,
    scripted_call,
    tool,
)
from accord.agents.scripted import Turn
from accord.sessions import AgentSession


@tool
def double(x: int) -> int:
    return 2 * x


@tool
async def fail(message: str = "no such city") -> None:
    raise ValueError(message)


@tool(approval_mode="always_require")
def delete_all() -> None:
    raise AssertionError("must not run")


FRONTEND = ToolDefinition("ask_user", "Ask the user.")


def results(response: AgentResponse) -> dict[str, FunctionResultContent]:
    found = [
        content
        for message in response.messages
        for content in message.contents
        if isinstance(content, FunctionResultContent)
    ]
    assert len({result.call_id for result in found}) == len(found)
    return {result.call_id: result for result in found}


async def run_calls(*calls: FunctionCallContent, **settings: Any) -> AgentResponse:
    """One turn of calls, then an answer."""
    settings.setdefault("tools", [double, fail, delete_all, FRONTEND])
    return await Agent(ScriptedChatClient([list(calls), "Done."]), **settings).run("Hello")


class TestRounds:
    async def test_the_model_reads_the_results_and_goes_on(self) -> None:
        asked: list[list[Message]] = []

        def answer(messages: Sequence[Message], options: ChatOptions) -> Turn:
            asked.append(list(messages))
            last = messages[-1].contents[-1]
            if not isinstance(last, FunctionResultContent):
                return ["Let me see. ", scripted_call("double", {"x": 1})]
            return scripted_call("double", {"x": last.result}) if last.result < 8 else "It is 8."

        response = await Agent(ScriptedChatClient(answer), "Be brief.", name="Bob", tools=[double]).run("Hello")
        assert response.text == "Let me see. It is 8."
        assert response.finish_reason == "stop"
        assert [len(messages) for messages in asked] == [2, 4, 6, 8]
        # What the model is sent is what the run brought forth, and nothing else.
        assert asked[-1] == [Message("system", "Be brief."), Message("user", "Hello"), *response.messages[:-1]]
        assert {message.author_name for message in response.messages if message.role is Role.ASSISTANT} == {"Bob"}

    async def test_usage_adds_up(self) -> None:
        client = ScriptedChatClient(
            [scripted_call("double", {"x": 1}), "ok"], usage=Usage(input_tokens=3, output_tokens=1)
        )
        assert (await Agent(client, tools=[double]).run("Hello")).usage == Usage(input_tokens=6, output_tokens=2)

    async def test_after_the_last_round_the_model_must_answer(self) -> None:
        choices: list[str | None] = []

        def answer(messages: Sequence[Message], options: ChatOptions) -> Turn:
            choices.append(options.tool_choice)
            return "I give up." if options.tool_choice == "none" else scripted_call("double", {"x": 1})

        agent = Agent(ScriptedChatClient(answer), tools=[double], max_rounds=3)
        response = await agent.run("Hello")
        assert choices == [None, None, None, "none"]
        assert response.text == "I give up."
        assert len(results(response)) == 3

    async def test_calls_after_the_last_round_are_answered_but_not_run(self) -> None:
        ran = 0

        @tool
        def count() -> None:
            nonlocal ran
            ran += 1

        def answer(messages: Sequence[Message], options: ChatOptions) -> Turn:
            return [scripted_call("count"), scripted_call("ask_user")]

        response = await Agent(ScriptedChatClient(answer), tools=[count], max_rounds=2).run("Hello")
        assert ran == 2
        assert [result.error for result in results(response).values()][-1] == (
            "not run: the limit of tool rounds is reached"
        )
        assert response.pending_calls == []

    async def test_no_rounds_at_all(self) -> None:
        response = await run_calls(scripted_call("double", {"x": 1}), max_rounds=0)
        assert results(response)["call_1"].error is not None

    async def test_a_required_call_is_required_once(self) -> None:
        choices: list[str | None] = []

        def answer(messages: Sequence[Message], options: ChatOptions) -> Turn:
            choices.append(options.tool_choice)
            return scripted_call("double", {"x": 1}) if len(choices) < 3 else "ok"

        agent = Agent(ScriptedChatClient(answer), tools=[double], options=ChatOptions(tool_choice="required"))
        await agent.run("Hello")
        assert choices == ["required", "auto", "auto"]

    async def test_an_answer_of_nothing_ends_the_run(self) -> None:
        response = await Agent(ScriptedChatClient([[]])).run("Hello")
        assert (response.messages, response.text, response.finish_reason) == ((), "", "stop")


class TestResults:
    async def test_of_every_kind(self) -> None:
        class City(BaseModel):
            name: str

        image = DataContent(b"a", "image/png")

        @tool
        def model() -> Any:
            return City(name="Oslo")

        @tool
        def picture() -> Any:
            return ["A picture:", image]

        @tool
        def text() -> Any:
            return "as it is"

        response = await run_calls(*map(scripted_call, ["model", "picture", "text"]), tools=[model, picture, text])
        found = results(response)
        assert found["call_1"].text == '{"name": "Oslo"}'
        assert found["call_2"].contents[1] is image
        assert found["call_3"].result == "as it is"
        assert [found[f"call_{number}"].name for number in (1, 2, 3)] == ["model", "picture", "text"]

    async def test_an_exception_is_a_result(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING, "accord.agents"):
            response = await run_calls(scripted_call("fail"))
        assert results(response)["call_1"].error_detail == "ValueError: no such city"
        assert response.text == "Done."
        (record,) = caplog.records
        assert record.exc_info
        assert isinstance(record.exc_info[1], ValueError)

    async def test_without_detail_where_that_is_wanted(self) -> None:
        response = await run_calls(scripted_call("fail", {"message": "password=secret"}), detailed_errors=False)
        assert results(response)["call_1"].error == "the tool failed"

    @pytest.mark.parametrize(
        ("call", "error"),
        [
            (scripted_call("nowhere", {}), "there is no tool called 'nowhere'"),
            (scripted_call("double", '{"x": 1'), "line 1 column 7"),
            (scripted_call("double", '{"x": 1}{"x": 2}'), "line 1 column 9"),
            (scripted_call("double", "[1]"), r"no JSON object, but \[\.\.\."),
            (scripted_call("double", '{"x": 1e999}'), "/x: inf is no JSON number"),
            (scripted_call("double", {"x": "two"}), "/x: Input should be a valid integer"),
            (scripted_call("double", ""), "/x: Field required"),
        ],
    )
    async def test_what_is_wrong_with_a_call_is_told_to_the_model(self, call: FunctionCallContent, error: str) -> None:
        response = await run_calls(call)
        found = results(response)["call_1"].error
        assert found is not None
        assert re.search(error, found)
        assert response.text == "Done."

    async def test_a_result_that_cannot_be_encoded_is_an_error_result(self) -> None:
        @tool
        def odd() -> Any:
            return {"a": [float("nan")]}

        response = await run_calls(scripted_call("odd"), tools=[odd])
        assert results(response)["call_1"].error == (
            "the tool's result cannot be given to you: /a/0: nan is no JSON number"
        )

    async def test_a_tool_cancelled_by_itself_does_not_cancel_the_run(self) -> None:
        @tool
        async def gives_up() -> None:
            raise asyncio.CancelledError

        response = await run_calls(scripted_call("gives_up"), tools=[gives_up])
        assert results(response)["call_1"].error == "the tool was cancelled"

    async def test_arguments_may_be_left_out(self) -> None:
        @tool
        def now() -> str:
            return "noon"

        for arguments in ("", "  ", "{}"):
            assert results(await run_calls(scripted_call("now", arguments), tools=[now]))["call_1"].result == "noon"


class TestPending:
    async def test_a_declared_tool_ends_the_run_once_the_others_have_run(self) -> None:
        response = await run_calls(
            scripted_call("ask_user", {"q": 1}), scripted_call("double", {"x": 2}), scripted_call("nowhere")
        )
        assert results(response).keys() == {"call_2", "call_3"}
        assert response.pending_calls == [FunctionCallContent("call_1", "ask_user", '{"q": 1}')]
        assert response.text == ""
        assert response.finish_reason == "tool_calls"

    async def test_what_needs_approval_does_not_run_without(self) -> None:
        response = await run_calls(scripted_call("delete_all"), scripted_call("double", {"x": 2}))
        assert [call.name for call in response.pending_calls] == ["delete_all"]
        assert results(response)["call_2"].result == 4

    async def test_the_caller_answers_and_the_run_goes_on(self) -> None:
        agent = Agent(ScriptedChatClient([scripted_call("ask_user"), "Thanks."]), tools=[FRONTEND])
        first = await agent.run("Hello")
        answer = Message(Role.TOOL, FunctionResultContent(first.pending_calls[0].call_id, "blue"))
        second = await agent.run([Message(Role.USER, "Hello"), *first.messages, answer])
        assert second.text == "Thanks."


class TestConcurrency:
    async def test_calls_of_one_turn_run_at_once_and_results_come_as_they_are_there(self) -> None:
        turn = {name: asyncio.Event() for name in "abc"}
        turn["c"].set()
        after = {"c": "a", "a": "b"}

        @tool
        async def wait(name: str) -> str:
            # Each waits for the one that is to finish before it: run one after the other, none would.
            await turn[name].wait()
            if name in after:
                turn[after[name]].set()
            return name

        client = ScriptedChatClient([[scripted_call("wait", {"name": name}) for name in "abc"], "ok"])
        async with asyncio.timeout(10):
            response = await Agent(client, tools=[wait]).run("Hello")
        assert [result.result for result in results(response).values()] == ["c", "a", "b"]

    async def test_a_result_is_out_before_the_other_calls_are_done(self) -> None:
        released = threading.Event()

        @tool
        def slow() -> bool:
            return released.wait(10)

        client = ScriptedChatClient([[scripted_call("slow"), scripted_call("double", {"x": 1})], "ok"])
        found: list[Any] = []
        async for update in Agent(client, tools=[slow, double]).run("Hello", stream=True):
            for content in update.contents:
                if isinstance(content, FunctionResultContent):
                    found.append((content.name, content.result))
                    released.set()
        assert found == [("double", 2), ("slow", True)]

    @settings(max_examples=20)
    @given(st.permutations(range(4)), st.sets(st.integers(0, 3)))
    async def test_every_order_of_completion_gives_each_call_its_result(
        self, order: list[int], failing: set[int]
    ) -> None:
        done = [asyncio.Event() for _ in range(5)]
        done[0].set()

        @tool
        async def work(number: int) -> int:
            place = order.index(number)
            await done[place].wait()
            done[place + 1].set()
            if number in failing:
                raise ValueError(number)
            return number

        client = ScriptedChatClient([Interleaved(*(scripted_call("work", {"number": n}) for n in range(4))), "ok"])
        found = results(await Agent(client, tools=[work]).run("Hello"))
        assert [int(call_id.removeprefix("call_")) - 1 for call_id in found] == list(order)
        for number in range(4):
            result = found[f"call_{number + 1}"]
            assert result.error_detail == f"ValueError: {number}" if number in failing else result.result == number

    async def test_fifty_runs_of_one_agent_do_not_cross(self) -> None:
        together = threading.Barrier(50)

        @tool
        def whoami(me: str, context: ToolContext) -> Any:
            together.wait(10)  # every run is in its tool at the same time
            assert context.session is not None
            return {"me": me, "session": context.session.session_id, "extras": context.extras}

        def answer(messages: Sequence[Message], options: ChatOptions) -> Turn:
            last = messages[-1].contents[-1]
            if isinstance(last, FunctionResultContent):
                return f"{options.model}: {last.text}"
            return [f"{messages[-1].text} ", scripted_call("whoami", {"me": messages[-1].text})]

        agent = Agent(ScriptedChatClient(answer, piece_size=1), tools=[whoami])

        async def one(name: str) -> str:
            response = await agent.run(
                name, session=AgentSession(name), extras={"x": name}, options=ChatOptions(model=name)
            )
            return response.text

        names = [f"run{number}" for number in range(50)]
        texts = await asyncio.gather(*map(one, names))
        assert texts == [
            f'{name} {name}: {{"me": "{name}", "session": "{name}", "extras": {{"x": "{name}"}}}}' for name in names
        ]


class TestUpdates:
    async def stream(self, agent: Agent) -> list[AgentResponseUpdate]:
        return [update async for update in agent.run("Hello", stream=True)]

    async def test_fragments_surface_as_they_come(self) -> None:
        client = ScriptedChatClient([["Text. ", scripted_call("double", {"x": 21})], "ok"], piece_size=3)
        updates = await self.stream(Agent(client, tools=[double]))
        calls = [c for update in updates for c in update.contents if isinstance(c, FunctionCallContent)]
        assert calls == [
            FunctionCallContent("call_1", "double"),
            FunctionCallContent("call_1", "", '{"x'),
            FunctionCallContent("call_1", "", '": '),
            FunctionCallContent("call_1", "", "21}"),
        ]
        assert [update.text for update in updates if update.text] == ["Tex", "t. ", "ok"]

    async def test_the_updates_of_one_answer_share_an_id_and_each_result_has_its_own(self) -> None:
        client = ScriptedChatClient([["a", scripted_call("double", {"x": 1}), scripted_call("fail")], "bcdefg"])
        updates = await self.stream(Agent(client, name="Bob", tools=[double, fail]))
        ids = Counter((update.role, update.message_id, update.author_name) for update in updates)
        assert [(role, author) for role, _, author in ids] == [
            (Role.ASSISTANT, "Bob"),
            (Role.TOOL, None),
            (Role.TOOL, None),
            (Role.ASSISTANT, "Bob"),
        ]
        assert len({message_id for _, message_id, _ in ids}) == 4
        assert None not in {message_id for _, message_id, _ in ids}

    async def test_the_response_is_what_the_updates_amount_to(self) -> None:
        client = ScriptedChatClient([["a", scripted_call("double", {"x": 1})], "b"], usage=Usage(input_tokens=1))
        stream = Agent(client, tools=[double]).run("Hello", stream=True)
        updates = [update async for update in stream]
        response = await stream.response()
        assert response == AgentResponse.from_updates(updates)
        assert response.text == "".join(update.text for update in updates) == "ab"

    async def test_an_id_that_comes_back_is_given_to_no_second_call(self) -> None:
        # Some servers count their calls anew with each answer.
        client = ScriptedChatClient(
            [scripted_call("double", {"x": 1}, call_id="0"), scripted_call("double", {"x": 2}, call_id="0"), "ok"]
        )
        response = await Agent(client, tools=[double]).run("Hello")
        found = results(response)
        assert [result.result for result in found.values()] == [2, 4]
        assert next(iter(found)) == "0"
        calls = [call.call_id for message in response.messages for call in message.function_calls]
        assert calls == list(found)

    async def test_a_call_that_its_service_asks_about_stays_pending_under_its_new_id(self) -> None:
        class Service:
            async def stream(
                self, messages: Sequence[Message], options: ChatOptions
            ) -> AsyncIterator[AgentResponseUpdate]:
                call = FunctionCallContent("c1", "delete", "{}")
                yield AgentResponseUpdate([call, FunctionApprovalRequestContent("r1", call)])

        earlier = [Message(Role.ASSISTANT, FunctionCallContent("c1", "delete", "{}")), Message(Role.USER, "Again")]
        response = await Agent(Service()).run(earlier)
        (message,) = response.messages
        call, request = message.contents
        assert isinstance(call, FunctionCallContent)
        assert isinstance(request, FunctionApprovalRequestContent)
        assert call.call_id != "c1"
        assert (request.id, request.call) == ("r1", call)

    async def test_a_message_id_that_comes_back_is_given_to_no_second_message(self) -> None:
        class Counting:
            """A model server that counts its messages anew with each answer."""

            def __init__(self) -> None:
                self.calls = iter([[FunctionCallContent("c1", "double", '{"x": 1}')], []])

            async def stream(
                self, messages: Sequence[Message], options: ChatOptions
            ) -> AsyncIterator[AgentResponseUpdate]:
                yield AgentResponseUpdate("a", message_id="m0")
                yield AgentResponseUpdate(["b", *next(self.calls)], message_id="m0")

        asked = [Message(Role.USER, "Hello", message_id="u1"), Message(Role.ASSISTANT, "Hi", message_id="m1")]
        stream = Agent(Counting(), tools=[double]).run(asked, stream=True)
        updates = [update async for update in stream]
        response = await stream.response()
        first, told, second = response.messages
        assert [message.role for message in response.messages] == [Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
        assert (first.text, second.text) == ("ab", "ab")
        assert first.message_id == "m0"
        assert len({first.message_id, told.message_id, second.message_id, "u1", "m1"}) == 5
        assert response == AgentResponse.from_updates(updates)
        again = await Agent(Counting(), tools=[double]).run([*asked, *response.messages])
        assert not {message.message_id for message in again.messages} & {each.message_id for each in response.messages}

    async def test_what_a_client_has_run_itself_is_not_run_again(self) -> None:
        class Remote:
            async def stream(
                self, messages: Sequence[Message], options: ChatOptions
            ) -> AsyncIterator[AgentResponseUpdate]:
                yield AgentResponseUpdate(FunctionCallContent("c1", "double", '{"x": 1}'), message_id="r1")
                yield AgentResponseUpdate(FunctionResultContent("c1", "done there"), Role.TOOL, message_id="r2")
                yield AgentResponseUpdate("Done.", message_id="r3")

        response = await Agent(Remote(), name="Bob", tools=[double]).run("Hello")
        assert [(message.message_id, message.author_name) for message in response.messages] == [
            ("r1", "Bob"),
            ("r2", None),
            ("r3", "Bob"),
        ]
        assert results(response)["c1"].result == "done there"
        assert response.text == "Done."

    async def test_what_the_model_raises_comes_after_what_it_said(self) -> None:
        client = ScriptedChatClient([["abcd", ChatClientError("gone", code="cut")]])
        stream = Agent(client).run("Hello", stream=True)
        assert (await anext(stream)).text == "abcd"
        with pytest.raises(ChatClientError, match="gone"):
            await anext(stream)
