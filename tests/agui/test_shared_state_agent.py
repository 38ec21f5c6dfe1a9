from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from accord import Agent, ChatOptions, Message, ScriptedChatClient, tool
from accord.agents import AgentResponseUpdate, FunctionApprovalRequestContent, FunctionCallContent, scripted_call
from accord.agui import DefaultConfirmationStrategy, SharedStateAgent, StateSchema
from accord.producer import drive
from accord.protocol import RunErrorEvent, Tool, ToolMessage, UserMessage, to_wire
from agui.talk import Talk
from producer.recording import Recording, a_run, an_input, consumed

OLD = {"title": "Carbonara", "steps": ["boil"], "note": "x" * 300}
NEW = {"title": "Cacio e pepe", "steps": ["boil", "grate"], "note": "x" * 300}


class Recipe(BaseModel):
    title: str
    steps: list[str]
    note: str = ""


class Model:
    """Answers by a list of turns, and remembers what it was asked."""

    def __init__(self, *turns: Any) -> None:
        self.asked: list[tuple[list[Message], ChatOptions]] = []
        self._turns = list(turns)

    def __call__(self, messages: Sequence[Message], options: ChatOptions) -> Any:
        self.asked.append((list(messages), options))
        return self._turns[len(self.asked) - 1]


async def answered(
    model: Model, state: Any, *, schema: Any = Recipe, failed: bool = False, **options: Any
) -> Recording:
    run_input = an_input(state=state, messages=[UserMessage(id="u", content="Make it Cacio e pepe")])
    run, outlet = a_run(run_input)
    tools = options.pop("tools", ())
    await drive(SharedStateAgent(Agent(ScriptedChatClient(model), tools=tools), schema, **options), run)
    consumed(outlet, run_input, failed=failed)
    return outlet


async def test_the_state_is_written_and_then_summarized() -> None:
    model = Model(json.dumps(NEW), "It is Cacio e pepe now.")
    outlet = await answered(model, OLD)
    (message,) = [each for each in consumed(outlet, an_input(state=OLD)).messages if each.id != "u"]
    assert to_wire(message)["content"] == "It is Cacio e pepe now."
    assert consumed(outlet, an_input(state=OLD)).state == NEW

    (first, first_options), (second, second_options) = model.asked
    assert first_options.response_format is not None
    assert second_options.response_format is None
    assert any('"title": "Carbonara"' in each.text for each in first)
    assert any('"title": "Cacio e pepe"' in each.text for each in second)
    assert "two sentences" in second[-1].text


async def test_the_state_streams_while_it_is_written() -> None:
    outlet = await answered(Model(json.dumps(NEW), "Done."), OLD)
    shown = [to_wire(event) for event in outlet.events if event.type == "STATE_DELTA"]
    titles = [each["value"] for event in shown for each in event["delta"] if each["path"] == "/title"]
    assert len(titles) > 1
    assert titles[-1] == "Cacio e pepe"


async def test_a_small_change_of_a_large_state_is_small() -> None:
    large = {**OLD, "note": "y" * 20_000}
    model = Model(json.dumps({**large, "title": "Gricia"}), "Done.")
    outlet = await answered(model, large)
    assert "STATE_SNAPSHOT" not in outlet.types
    assert consumed(outlet, an_input(state=large)).state == {**large, "title": "Gricia"}


@pytest.mark.parametrize("state", [{}, None, "text", []])
async def test_without_a_state_it_answers_as_ever(state: Any) -> None:
    model = Model("Hello.")
    outlet = await answered(model, state, schema=StateSchema({"title": {"type": "string"}}))
    assert len(model.asked) == 1
    assert model.asked[0][1].response_format is None
    assert not any(event.type.startswith("STATE_") for event in outlet.events)


async def test_what_does_not_fit_is_asked_for_once_more() -> None:
    model = Model('{"title": 5}', json.dumps(NEW), "Done.")
    outlet = await answered(model, OLD)
    assert consumed(outlet, an_input(state=OLD)).state == NEW
    assert "no valid state" in model.asked[1][0][-1].text


@pytest.mark.parametrize("text", ["no json", '{"title": 1}', "[]", '{"title": "only"}', ""])
async def test_what_never_fits_is_a_failed_run(text: str) -> None:
    outlet = await answered(Model(text, text), OLD, failed=True)
    failed = outlet.events[-1]
    assert isinstance(failed, RunErrorEvent)
    assert failed.code == "invalid_state"
    assert consumed(outlet, an_input(state=OLD), failed=True).state == OLD


async def test_other_contents_pass() -> None:
    @tool
    def look_up(name: str) -> str:
        """Look a recipe up."""
        return "grate the cheese"

    model = Model([scripted_call("look_up", {"name": "Cacio"})], json.dumps(NEW), "Done.")
    outlet = await answered(model, OLD, tools=[look_up])
    assert "TOOL_CALL_RESULT" in outlet.types
    assert consumed(outlet, an_input(state=OLD)).state == NEW


async def test_members_that_are_not_the_models_stay() -> None:
    schema = StateSchema(Recipe, read_only=["note"])
    model = Model(json.dumps({**NEW, "note": "mine"}), "Done.")
    state = {"title": "a", "steps": [], "note": "client"}
    outlet = await answered(model, state, schema=schema)
    assert consumed(outlet, an_input(state=state)).state == {**NEW, "note": ""}


async def test_a_call_for_the_application_in_the_first_phase_ends_the_run() -> None:
    model = Model(scripted_call("pick_color", call_id="c1"))
    asked = [UserMessage(id="u", content="Make it nice")]
    run_input = an_input(state=OLD, messages=asked, tools=[Tool(name="pick_color", description="")])
    run, outlet = a_run(run_input)
    await drive(SharedStateAgent(Agent(ScriptedChatClient(model)), Recipe), run)
    held = consumed(outlet, run_input)
    assert to_wire(outlet.events[-1])["outcome"] == {"type": "success", "pendingToolCallIds": ["c1"]}
    assert held.state == OLD

    answered = [*held.messages, ToolMessage(id="t", content="red", tool_call_id="c1")]
    model = Model(json.dumps(NEW), "It is red now.")
    run_input = an_input(state=OLD, messages=answered)
    run, outlet = a_run(run_input)
    await drive(SharedStateAgent(Agent(ScriptedChatClient(model)), Recipe), run)
    assert consumed(outlet, run_input).state == NEW
    assert [part.type for message in model.asked[0][0] for part in message.contents].count("function_result") == 1


@tool
def rename(title: str) -> str:
    """Rename the recipe."""
    return "renamed"


def talk_about_names(model: Model) -> Talk:
    """With an agent that may rename the recipe, and asks before it does."""
    served = SharedStateAgent(
        Agent(ScriptedChatClient(model), tools=[rename]),
        Recipe,
        predict_state_config={"title": {"tool": "rename", "tool_argument": "title"}},
        require_confirmation=True,
    )
    return Talk(served, state=OLD)


async def test_what_was_done_is_told_before_the_summary_begins() -> None:
    first = Model(
        scripted_call("rename", {"title": "Gricia"}), json.dumps({**OLD, "title": "Gricia"}), ["It is ", "Gricia now."]
    )
    talk = talk_about_names(first)
    assert (await talk.say()).outcome == "interrupt"
    assert (await talk.answer({"approved": True})).outcome == "success"
    told = [str(event.get("delta", event["type"])) for event in talk.events if event["type"].startswith("TEXT_")]
    start, confirmed, end, *summary = told
    assert (start, end) == ("TEXT_MESSAGE_START", "TEXT_MESSAGE_END")
    assert confirmed == DefaultConfirmationStrategy().on_state_confirmed()
    assert "".join(summary[1:-1]) == "It is Gricia now."


async def test_a_call_of_the_application_that_is_left_when_another_is_answered_ends_the_run_again() -> None:
    model = Model([scripted_call("pick_color", call_id="c1"), scripted_call("rename", {"title": "X"}, call_id="c2")])
    talk = talk_about_names(model)
    tools = [Tool(name="pick_color", description="")]
    assert (await talk.read(talk.client.run("Make it nice", tools=tools))).outcome == "interrupt"
    (asked,) = talk.client.pending_interrupts
    run = await talk.read(talk.client.resume({asked.id: {"approved": True}}, tools=tools))
    assert run.outcome == "success"
    assert len(model.asked) == 1
    assert talk.events[-1]["outcome"] == {"type": "success", "pendingToolCallIds": ["c1"]}


async def test_a_question_of_the_models_service_in_the_first_phase() -> None:
    class Service:
        """Asks about a call of its own, and is done when it has heard the answer."""

        def __init__(self) -> None:
            call = FunctionCallContent("c1", "remote", "{}")
            asked: list[Any] = [[call, FunctionApprovalRequestContent("r1", call)]]
            self.answers = iter([*asked, json.dumps(NEW), "Done."])

        async def stream(self, messages: Sequence[Message], options: ChatOptions) -> AsyncIterator[AgentResponseUpdate]:
            yield AgentResponseUpdate(next(self.answers), finish_reason="stop")

    talk = Talk(SharedStateAgent(Agent(Service()), Recipe), state=OLD)
    assert (await talk.say()).outcome == "interrupt"
    assert (await talk.answer({"approved": True})).outcome == "success"
    assert talk.state == NEW
    assert talk.text == "Done."
