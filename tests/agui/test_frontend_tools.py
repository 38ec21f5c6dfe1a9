"""Tools that the application runs: named as pending, answered by the next input (rules section 7)."""

from __future__ import annotations

from typing import Any

import pytest

from accord.agents import Agent, Interleaved, scripted_call, tool
from accord.agui import AGUIAgent
from accord.protocol import Tool, UserMessage
from agui.talk import Model, Talk, raw, run_alone

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_has_run() -> None:
    ran.clear()


@tool
def look() -> str:
    ran.append("server look")
    return "seen by the server"


def pick_color(options: list[str]) -> str:
    """Let the person pick a color."""
    ran.append(f"pick {options}")
    return options[0]


COLOR = {"options": ["blue", "red"]}


def offered(*names: str, **members: Any) -> list[Tool]:
    return [Tool(**{"name": name, "description": "", "parameters": {"type": "object"}, **members}) for name in names]


async def test_the_application_runs_it_and_the_agent_goes_on() -> None:
    model = Model([scripted_call("pick_color", COLOR), "Blue it is."])
    talk = Talk(AGUIAgent(Agent(model, tools=[look])), tools=[pick_color])
    run = await talk.say("paint it")
    assert run.outcome == "success"
    assert ran == ["pick ['blue', 'red']"]
    assert [type_ for type_ in talk.types if type_.startswith("RUN")] == ["RUN_STARTED", "RUN_FINISHED"] * 2
    finished = talk.of("RUN_FINISHED")
    assert finished[0]["outcome"] == {"type": "success", "pendingToolCallIds": ["call_1"]}
    assert "outcome" not in finished[1]
    assert talk.results == {}, "the producer does not answer it"
    assert model.results() == ["blue"]
    assert talk.text == "Blue it is."


async def test_the_model_is_told_of_it() -> None:
    model = Model(["ok"])
    await Talk(AGUIAgent(Agent(model, tools=[look])), tools=[pick_color]).say()
    tools = {each.name: each for each in model.options[0].tools}
    assert set(tools) == {"look", "pick_color"}
    assert tools["pick_color"].parameters["properties"]["options"]["type"] == "array"


async def test_beside_tools_of_the_servers_own() -> None:
    calls = [scripted_call("pick_color", COLOR), scripted_call("look")]
    model = Model([[Interleaved(*calls)], "Both."])
    talk = Talk(AGUIAgent(Agent(model, tools=[look])), tools=[pick_color])
    await talk.say()
    assert ran == ["server look", "pick ['blue', 'red']"]
    assert talk.results == {"call_2": "seen by the server"}
    assert len(model.shown) == 2, "the model is asked again when all are answered"
    assert sorted(model.results()) == ["blue", "seen by the server"]


async def test_left_to_be_answered_later() -> None:
    model = Model([scripted_call("pick_color", COLOR), "Blue it is."])
    (color,) = offered("pick_color")
    talk = Talk(AGUIAgent(Agent(model)), tools=[color])
    run = await talk.say()
    assert (run.outcome, run.pending_tool_call_ids) == ("success", ("call_1",))
    assert len(model.shown) == 1


async def test_one_that_is_called_like_the_servers_own_is_the_servers() -> None:
    def look() -> str:
        ran.append("client look")
        return "seen by the client"

    model = Model([scripted_call("look"), "ok"])
    served = AGUIAgent(Agent(model, tools=[globals()["look"]]))
    talk = Talk(served, tools=[look, pick_color])
    await talk.say()
    assert ran == ["server look"]
    assert talk.results == {"call_1": "seen by the server"}
    assert [each.name for each in model.options[0].tools] == ["look", "pick_color"]


async def test_one_called_like_the_servers_own_that_is_asked_about() -> None:
    @tool(approval_mode="always_require")
    def delete() -> str:
        ran.append("deleted")
        return "gone"

    model = Model([scripted_call("delete"), "ok"])
    served = AGUIAgent(Agent(model, tools=[delete]))
    outlet = await run_alone(served, messages=[UserMessage(id="u", content="go")], tools=offered("delete"))
    assert raw(outlet)[-1]["outcome"]["type"] == "interrupt"
    assert ran == []


async def test_two_of_one_name_are_one() -> None:
    model = Model(["ok"])
    outlet = await run_alone(AGUIAgent(Agent(model)), tools=offered("a", "a", "b"))
    assert outlet.types[-1] == "RUN_FINISHED"
    assert [each.name for each in model.options[0].tools] == ["a", "b"]


@pytest.mark.parametrize("parameters", [None, [], "object", {}, {"type": "nonsense"}])
async def test_parameters_are_the_applications_and_may_be_anything(parameters: Any) -> None:
    model = Model([scripted_call("a"), "ok"])
    outlet = await run_alone(AGUIAgent(Agent(model)), tools=offered("a", parameters=parameters))
    assert raw(outlet)[-1]["outcome"] == {"type": "success", "pendingToolCallIds": ["call_1"]}
    assert isinstance(model.options[0].tools[0].parameters, dict)  # type: ignore[index]
