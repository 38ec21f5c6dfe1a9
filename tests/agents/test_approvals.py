from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from accord.agents import (
    Agent,
    AgentResponse,
    ChatOptions,
    FunctionApprovalRequestContent,
    FunctionApprovalResponseContent,
    FunctionCallContent,
    FunctionResultContent,
    Message,
    Role,
    ScriptedChatClient,
    TextContent,
    ToolDefinition,
    function_middleware,
    scripted_call,
    tool,
)
from accord.agents.approvals import REFUSED, take_answers


class Office:
    """An agent with a tool that needs approval and one that needs none, and what they have done."""

    def __init__(self, *turns: Any, **options: Any) -> None:
        self.ran: list[Any] = []
        self.shown: list[list[Message]] = []
        ran = self.ran

        @tool(approval_mode="always_require")
        async def send(to: str, copies: int = 1) -> str:
            await asyncio.sleep(0)
            ran.append(("send", to, copies))
            if to == "nobody":
                raise ValueError("there is no such address")
            return f"sent to {to}"

        @tool
        def look() -> str:
            ran.append("look")
            return "seen"

        def answer(messages: Sequence[Message], options: ChatOptions) -> Any:
            self.shown.append(list(messages))
            return turns[len(self.shown) - 1]

        self.agent = Agent(ScriptedChatClient(answer), tools=[send, look], **options)

    async def ask(self, **options: Any) -> tuple[list[Message], list[FunctionApprovalRequestContent]]:
        """The conversation after the first run, and what was asked."""
        said = Message("user", "Hello", message_id="u1")
        response = await self.agent.run(said, **options)
        return [said, *response.messages], requests(response)


def send(to: str, call_id: str = "") -> FunctionCallContent:
    return scripted_call("send", {"to": to}, call_id=call_id)


def requests(response: AgentResponse) -> list[FunctionApprovalRequestContent]:
    return [
        content
        for message in response.messages
        for content in message.contents
        if isinstance(content, FunctionApprovalRequestContent)
    ]


def results(response: AgentResponse) -> dict[str, str]:
    found = [
        content
        for message in response.messages
        for content in message.contents
        if isinstance(content, FunctionResultContent)
    ]
    assert len({content.call_id for content in found}) == len(found), "one result each"
    return {content.call_id: content.text for content in found}


def answers(*given: FunctionApprovalResponseContent) -> Message:
    return Message("user", list(given))


class TestAsking:
    async def test_the_run_ends_with_the_question(self) -> None:
        office = Office(["Let me. ", send("ada")])
        response = await office.agent.run("Hello")
        (request,) = requests(response)
        assert request.call == FunctionCallContent("call_1", "send", '{"to": "ada"}')
        assert office.ran == []
        assert response.pending_calls == [request.call]

    async def test_what_needs_none_runs_beside_it(self) -> None:
        office = Office([send("ada"), scripted_call("look"), send("bob")])
        response = await office.agent.run("Hello")
        assert [request.call.call_id for request in requests(response)] == ["call_1", "call_3"]
        assert results(response) == {"call_2": "seen"}
        assert office.ran == ["look"]

    async def test_a_policy_decides_in_place_of_the_tools(self) -> None:
        seen: list[tuple[str, bool]] = []

        def policy(call: FunctionCallContent, required: bool) -> bool:
            seen.append((call.name, required))
            return call.name == "look"

        office = Office([send("ada"), scripted_call("look")])
        response = await office.agent.run("Hello", approval=policy)
        assert [request.call.name for request in requests(response)] == ["look"]
        assert office.ran == [("send", "ada", 1)]
        assert sorted(seen) == [("look", False), ("send", True)]

    @pytest.mark.parametrize("arguments", ["{", "[]", '{"too": 1}', '{"to": "ada", "copies": "many"}'])
    async def test_nobody_is_asked_about_arguments_that_do_not_fit(self, arguments: str) -> None:
        office = Office([scripted_call("send", arguments), send("ada")], "never")
        response = await office.agent.run("Hello")
        assert [request.call.call_id for request in requests(response)] == ["call_2"]
        assert results(response)["call_1"].startswith("Error: wrong arguments")

    async def test_when_there_is_nothing_left_to_ask_the_model_goes_on(self) -> None:
        office = Office(scripted_call("send", "{"), "Sorry.")
        response = await office.agent.run("Hello")
        assert response.text == "Sorry."
        assert office.ran == []

    async def test_middleware_cannot_run_what_was_not_approved(self) -> None:
        @function_middleware
        async def repair(call: Any, call_next: Any) -> Any:
            call.arguments = {"to": "eve"}
            return await call_next(call)

        office = Office([scripted_call("send", '{"too": 1}'), send("ada")], middleware=[repair])
        await office.agent.run("Hello")
        assert office.ran == []

    async def test_a_declared_tool_is_left_without_a_question(self) -> None:
        office = Office([scripted_call("pick"), send("ada")])
        response = await office.agent.run("Hello", tools=[ToolDefinition("pick")])
        assert [request.call.name for request in requests(response)] == ["send"]
        assert [call.name for call in response.pending_calls] == ["pick", "send"]


class TestAnswering:
    async def test_approved(self) -> None:
        office = Office(send("ada"), "Sent.")
        conversation, (request,) = await office.ask()
        response = await office.agent.run([*conversation, answers(request.answer(True))])
        assert office.ran == [("send", "ada", 1)]
        assert results(response) == {"call_1": "sent to ada"}
        assert response.text == "Sent."
        assert [message.role for message in office.shown[-1]] == ["user", "assistant", "tool"]

    async def test_approved_with_other_arguments(self) -> None:
        office = Office(send("ada"), "Sent.")
        conversation, (request,) = await office.ask()
        await office.agent.run([*conversation, answers(request.answer(True, arguments={"to": "bob", "copies": 2}))])
        assert office.ran == [("send", "bob", 2)]

    @pytest.mark.parametrize(("reason", "told"), [(None, REFUSED), ("not to her", "not to her")])
    async def test_refused(self, reason: str | None, told: str) -> None:
        office = Office(send("ada"), "As you like.")
        conversation, (request,) = await office.ask()
        response = await office.agent.run([*conversation, answers(request.answer(False, reason=reason))])
        assert office.ran == []
        assert results(response) == {"call_1": f"Error: {told}"}
        assert response.text == "As you like."

    async def test_neither_content_reaches_the_model(self) -> None:
        office = Office(send("ada"), "Sent.", "Bye.")
        conversation, (request,) = await office.ask()
        said = Message("user", ["Yes. ", request.answer(True)], message_id="u2")
        response = await office.agent.run([*conversation, said])
        for message in office.shown[-1]:
            for content in message.contents:
                assert not isinstance(content, FunctionApprovalRequestContent | FunctionApprovalResponseContent)
        assert office.shown[-1][-1].contents == (TextContent("Yes. "),)
        assert office.shown[-1][-1].message_id == "u2"
        # The same history again: it is answered, and nothing runs.
        again = await office.agent.run([*conversation, said, *response.messages, "Bye"])
        assert again.text == "Bye."
        assert len(office.ran) == 1

    async def test_results_stand_behind_the_call_whatever_was_said_since(self) -> None:
        office = Office([send("ada"), scripted_call("look")], "Sent.")
        conversation, (request,) = await office.ask()
        await office.agent.run([*conversation, "Hurry up", answers(request.answer(True))])
        assert [message.role for message in office.shown[-1]] == ["user", "assistant", "tool", "tool", "user"]

    async def test_results_of_calls_in_several_messages_stand_behind_their_own(self) -> None:
        office = Office("Sent.")
        conversation = [
            Message("assistant", send("ada", "c1")),
            Message("user", "well?"),
            Message("assistant", send("bob", "c2")),
            Message("user", "and?"),
        ]
        given = [
            FunctionApprovalResponseContent(call_id, True, send(to, call_id))
            for call_id, to in (("c2", "bob"), ("c1", "ada"))
        ]
        await office.agent.run([*conversation, answers(*given)])
        shown: list[Any] = office.shown[-1]
        assert [message.role for message in shown] == ["assistant", "tool", "user", "assistant", "tool", "user"]
        assert [content.call_id for message in (shown[1], shown[4]) for content in message.contents] == ["c1", "c2"]

    async def test_what_is_not_answered_is_asked_again_and_the_model_is_not(self) -> None:
        office = Office([send("ada"), send("bob")], "Sent.")
        conversation, (first, second) = await office.ask()
        response = await office.agent.run([*conversation, answers(second.answer(True))])
        assert office.ran == [("send", "bob", 1)]
        assert [request.call.call_id for request in requests(response)] == [first.call.call_id]
        assert len(office.shown) == 1
        last = await office.agent.run([*conversation, *response.messages, answers(first.answer(False))])
        assert results(last) == {"call_1": f"Error: {REFUSED}"}
        assert last.text == "Sent."

    async def test_a_tool_that_fails_after_all(self) -> None:
        office = Office(send("nobody"), "Sorry.")
        conversation, (request,) = await office.ask()
        response = await office.agent.run([*conversation, answers(request.answer(True))])
        assert "no such address" in results(response)["call_1"]
        assert response.text == "Sorry."

    async def test_it_streams_each_result_as_it_is_there(self) -> None:
        office = Office([send("ada"), send("bob")], "Sent.")
        conversation, asked = await office.ask()
        said = answers(*(request.answer(True) for request in asked))
        updates = [update async for update in office.agent.run([*conversation, said], stream=True)]
        assert [update.role for update in updates[:2]] == [Role.TOOL, Role.TOOL]
        assert updates[0].message_id != updates[1].message_id


class TestOnce:
    """Only calls that are open run, each once."""

    async def test_two_answers_to_one_call(self) -> None:
        office = Office(send("ada"), "As you like.")
        conversation, (request,) = await office.ask()
        await office.agent.run([*conversation, answers(request.answer(False)), answers(request.answer(True))])
        assert office.ran == []

    async def test_an_answer_to_a_call_that_has_its_result(self) -> None:
        office = Office(send("ada"), "Sent.", "Bye.")
        conversation, (request,) = await office.ask()
        response = await office.agent.run([*conversation, answers(request.answer(True))])
        await office.agent.run([*conversation, *response.messages, answers(request.answer(True))])
        assert len(office.ran) == 1

    async def test_a_history_that_holds_the_call_twice(self) -> None:
        office = Office(send("ada"), "Sent.")
        conversation, (request,) = await office.ask()
        response = await office.agent.run([*conversation, *conversation, answers(request.answer(True))])
        assert office.ran == [("send", "ada", 1)]
        assert len(results(response)) == 1

    async def test_an_answer_to_a_call_that_was_never_made(self) -> None:
        office = Office("Hm.")
        answer = FunctionApprovalResponseContent("x", True, send("eve", "c9"))
        await office.agent.run(["Hello", answers(answer)])
        assert office.ran == []

    async def test_an_answer_does_not_change_which_tool_is_meant(self) -> None:
        office = Office(scripted_call("look", "{}"), "Hm.")
        conversation, (request,) = await office.ask(approval=lambda call, required: True)
        other = FunctionApprovalResponseContent(request.id, True, send("eve", request.call.call_id))
        response = await office.agent.run([*conversation, answers(other)])
        assert ("send", "eve", 1) not in office.ran
        assert list(results(response)) == ["call_1"]

    def test_answers_about_calls_that_run_elsewhere_are_left_in_place(self) -> None:
        call = FunctionCallContent("c1", "theirs", "{}")
        said = answers(FunctionApprovalResponseContent("i1", True, call))
        taken = take_answers([Message("assistant", call), said], lambda name: False)
        assert not taken.given
        assert taken.conversation[-1] == said

    def test_a_conversation_without_any_is_what_it_was(self) -> None:
        conversation = [Message("user", "Hello"), Message("assistant", "Hi", message_id="a")]
        taken = take_answers(conversation, lambda name: True)
        assert not taken.given
        assert taken.conversation == conversation
        assert all(new is old for new, old in zip(taken.conversation, conversation, strict=True))
