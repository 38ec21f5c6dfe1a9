"""An agent's updates as events, where a model's server does not keep to the rules."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import msgspec
import pytest

from accord.agents import (
    Agent,
    AgentResponseUpdate,
    ChatOptions,
    FunctionApprovalRequestContent,
    FunctionApprovalResponseContent,
    FunctionCallContent,
    FunctionResultContent,
    Message,
    Role,
    TextContent,
    tool,
)
from accord.agui import AGUIAgent
from accord.protocol import (
    AssistantMessage,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    Tool,
    ToolMessage,
    UserMessage,
)
from agui.talk import Talk, resolved, run_alone
from producer.recording import an_input, consumed


class Nameless:
    """A model that calls a tool and never says which."""

    def __init__(self, finish_reason: str | None) -> None:
        self._finish_reason = finish_reason

    async def stream(self, messages: Sequence[Message], options: ChatOptions) -> AsyncIterator[AgentResponseUpdate]:
        if messages[-1].role == "tool":
            yield AgentResponseUpdate(TextContent("Sorry."), finish_reason="stop")
            return
        yield AgentResponseUpdate(FunctionCallContent("c", "", '{"a":'))
        yield AgentResponseUpdate(FunctionCallContent("c", "", "1}"), finish_reason=self._finish_reason)


async def check(finish_reason: str | None) -> None:
    talk = Talk(AGUIAgent(Agent(Nameless(finish_reason))))
    run = await talk.say()
    assert run.outcome == "success", run.error
    of_call = [event for event in talk.events if event.get("toolCallId") == "c"]
    assert [event["type"] for event in of_call] == [
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
    ]
    assert of_call[0]["toolCallName"] == "unknown"
    assert "".join(event.get("delta", "") for event in of_call) == '{"a":1}'
    assert talk.warnings == []


async def test_a_call_that_never_gets_a_name_is_announced_before_its_result() -> None:
    await check("tool_calls")


async def test_a_call_that_never_gets_a_name_in_an_answer_without_an_end() -> None:
    await check(None)


class Saying:
    """A model whose server makes the same updates of every answer, and runs the tools it calls itself."""

    def __init__(self, *answers: Sequence[AgentResponseUpdate]) -> None:
        self.answers = iter(answers)
        self.shown: list[Sequence[Message]] = []

    async def stream(self, messages: Sequence[Message], options: ChatOptions) -> AsyncIterator[AgentResponseUpdate]:
        self.shown.append(messages)
        for update in next(self.answers):
            yield update


def call(call_id: str, name: str = "search", arguments: str = "{}") -> FunctionCallContent:
    return FunctionCallContent(call_id, name, arguments)


async def test_each_result_of_the_models_server_is_a_message_of_its_own() -> None:
    told = [FunctionResultContent(call_id, call_id.upper()) for call_id in ("c1", "c2", "c3")]
    answer = [
        AgentResponseUpdate([call("c1"), call("c2"), call("c3")], message_id="m"),
        AgentResponseUpdate(told[0], Role.TOOL),
        AgentResponseUpdate(told[1], Role.TOOL),
        AgentResponseUpdate(told[2], Role.TOOL, message_id="m"),
        AgentResponseUpdate("Done.", message_id="m", finish_reason="stop"),
    ]
    model = Saying(answer, [AgentResponseUpdate("Again.", finish_reason="stop")])
    talk = Talk(AGUIAgent(Agent(model)))
    await talk.say()
    held = talk.client.messages
    assert len({message.id for message in held}) == len(held)
    assert {each.tool_call_id: each.content for each in held if isinstance(each, ToolMessage)} == {
        "c1": "C1",
        "c2": "C2",
        "c3": "C3",
    }
    await talk.say()
    results = [part for message in model.shown[1] for part in message.contents if part.type == "function_result"]
    assert [part.result for part in results if isinstance(part, FunctionResultContent)] == ["C1", "C2", "C3"]
    assert talk.warnings == []


async def test_pieces_of_a_call_may_come_between_those_of_another_message() -> None:
    answer = [
        AgentResponseUpdate(call("c1", "search", '{"q":'), message_id="m1"),
        AgentResponseUpdate(call("c2", "lookup", '{"k":'), message_id="m2"),
        AgentResponseUpdate(call("c1", "", "1}"), message_id="m1"),
        AgentResponseUpdate("So.", message_id="m3"),
        AgentResponseUpdate(call("c2", "", "2}"), message_id="m2"),
        AgentResponseUpdate([FunctionResultContent("c1", 1), FunctionResultContent("c2", 2)], Role.TOOL),
        AgentResponseUpdate("Done.", message_id="m4", finish_reason="stop"),
    ]
    talk = Talk(AGUIAgent(Agent(Saying(answer))))
    await talk.say()
    calls = [
        each
        for message in talk.client.messages
        if isinstance(message, AssistantMessage)
        for each in message.tool_calls or ()
    ]
    assert [(each.id, each.function.name, each.function.arguments) for each in calls] == [
        ("c1", "search", '{"q":1}'),
        ("c2", "lookup", '{"k":2}'),
    ]
    assert [event["type"] for event in talk.events].count("TOOL_CALL_START") == 2
    assert talk.warnings == []


async def test_a_message_id_of_the_thread_that_the_model_is_not_shown_is_taken_all_the_same() -> None:
    orphan = ToolMessage(id="1", content="of a call that nobody knows", tool_call_id="c0")
    asked = [orphan, UserMessage(id="u", content="go")]
    answer = [AgentResponseUpdate([TextContent("Hi."), call("c1")], message_id="1", finish_reason="stop")]
    outlet = await run_alone(Agent(Saying(answer)), messages=asked, tools=[Tool(name="search", description="")])
    held = consumed(outlet, an_input(messages=asked)).messages
    assert [message.id for message in held[:2]] == ["1", "u"]
    (said,) = held[2:]
    assert isinstance(said, AssistantMessage)
    assert (said.content, [each.id for each in said.tool_calls or ()]) == ("Hi.", ["c1"])
    assert said.id not in ("1", "u")


async def test_the_answer_to_a_question_of_the_models_service_goes_back_under_its_id() -> None:
    asked = AgentResponseUpdate([call("c1"), FunctionApprovalRequestContent("r1", call("c1"))])
    model = Saying([asked], [AgentResponseUpdate("Done.", finish_reason="stop")])
    talk = Talk(AGUIAgent(Agent(model)))
    assert (await talk.say()).outcome == "interrupt"
    assert (await talk.answer({"approved": True})).outcome == "success"
    parts = [part for message in model.shown[1] for part in message.contents]
    (answer,) = [part for part in parts if isinstance(part, FunctionApprovalResponseContent)]
    assert (answer.id, answer.approved, answer.call.call_id) == ("r1", True, "c1")
    assert talk.text == "Done."


async def test_the_models_service_hears_a_refusal_and_goes_on() -> None:
    asked = AgentResponseUpdate([call("c1"), FunctionApprovalRequestContent("r1", call("c1"))])
    heard = [
        AgentResponseUpdate(FunctionResultContent("c1", error="refused"), Role.TOOL),
        AgentResponseUpdate("As you wish.", finish_reason="stop"),
    ]
    talk = Talk(AGUIAgent(Agent(Saying([asked], heard))))
    assert (await talk.say()).outcome == "interrupt"
    assert (await talk.answer({"approved": False})).outcome == "success"
    assert talk.text.endswith("As you wish.")


async def test_a_result_ends_its_own_call_and_no_other() -> None:
    answer = [
        AgentResponseUpdate([call("c1", "search"), call("c2", "lookup", '{"k":')], message_id="m"),
        AgentResponseUpdate(FunctionResultContent("c1", 1), Role.TOOL),
        AgentResponseUpdate(call("c2", "", "2}"), message_id="m"),
        AgentResponseUpdate(FunctionResultContent("c2", 2), Role.TOOL),
        AgentResponseUpdate("Done.", message_id="m2", finish_reason="stop"),
    ]
    talk = Talk(AGUIAgent(Agent(Saying(answer))))
    await talk.say()
    of_second = [event["type"] for event in talk.events if event.get("toolCallId") == "c2"]
    assert of_second == ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"]
    assert talk.results == {"c1": "1", "c2": "2"}


class TestBesideAQuestionOfTheService:
    """A service asks about a call of its own, and a tool here needs approval, in one answer of the model."""

    def served(self, *after: Sequence[AgentResponseUpdate]) -> tuple[AGUIAgent, Saying, list[int]]:
        ran: list[int] = []

        @tool(approval_mode="always_require")
        def own(x: int) -> str:
            """Ours."""
            ran.append(x)
            return "done"

        question = FunctionApprovalRequestContent("r1", call("c1", "remote"))
        calls = [call("c1", "remote"), call("c2", "own", '{"x": 1}')]
        model = Saying([AgentResponseUpdate([TextContent("Well."), *calls, question])], *after)
        return AGUIAgent(Agent(model, tools=[own])), model, ran

    @pytest.mark.parametrize("approved", [True, False])
    async def test_both_are_answered_and_the_model_goes_on(self, approved: bool) -> None:
        served, model, ran = self.served([AgentResponseUpdate("Done.", finish_reason="stop")])
        talk = Talk(served)
        assert (await talk.say()).outcome == "interrupt"
        assert len(talk.client.pending_interrupts) == 2
        assert (await talk.answer({"approved": approved})).outcome == "success"
        assert ran == [1] * approved
        assert talk.text.endswith("Done.")
        parts = [part for message in model.shown[1] for part in message.contents]
        assert "Well." in [part.text for part in parts if isinstance(part, TextContent)]
        assert [part.call_id for part in parts if isinstance(part, FunctionCallContent)] == ["c1", "c2"]
        assert [part.id for part in parts if isinstance(part, FunctionApprovalResponseContent)] == ["r1"]
        assert [part.call_id for part in parts if isinstance(part, FunctionResultContent)] == ["c2"]

    @pytest.mark.parametrize("name", ["remote", "own"])
    async def test_one_that_is_answered_alone_is_asked_again_with_the_other(self, name: str) -> None:
        served, model, ran = self.served([AgentResponseUpdate("Done.", finish_reason="stop")])
        talk = Talk(served)
        await talk.say()
        asked, held = talk.client.pending_interrupts, talk.client.messages
        (answered,) = [each.id for each in asked if f" {name}?" in str(each.message)]
        run_input = an_input(messages=held, resume=[resolved(answered, {"approved": True})])
        outlet = await run_alone(served, msgspec.structs.replace(run_input, thread_id=talk.client.thread_id))
        (outcome,) = [event.outcome for event in outlet.events if isinstance(event, RunFinishedEvent)]
        assert isinstance(outcome, RunFinishedInterruptOutcome)
        assert {each.id for each in outcome.interrupts} == {each.id for each in asked}
        assert (ran, len(model.shown)) == ([], 1)
