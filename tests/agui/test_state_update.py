"""A tool's answer to three readers apart: the model, the interface and the state."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from accord.agents import Agent, scripted_call, tool
from accord.agui import AGUIAgent, StateUpdate, current_run, state_update
from agui.talk import PREDICT_RECIPE, Model, Talk, deltas

OLD = {"list": [1, 2], "kept": {"a": None}, "filler": "x" * 200}


class Weather(BaseModel):
    city: str
    wind: int | None = None


async def updated(update: Any, *, state: Any = OLD, **options: Any) -> tuple[Talk, Model]:
    """A run in which a tool returns `update`."""

    @tool
    def act() -> Any:
        return update

    model = Model([scripted_call("act"), "ok"])
    talk = Talk(AGUIAgent(Agent(model, tools=[act]), **options), state=state)
    await talk.say()
    return talk, model


async def test_three_readers() -> None:
    talk, model = await updated(
        state_update("It is windy.", tool_result=Weather(city="Kiel"), state={"weather": Weather(city="Kiel", wind=9)})
    )
    assert model.results() == ["It is windy."]
    assert json.loads(talk.results["call_1"]) == {"city": "Kiel", "wind": None}
    assert talk.state == {**OLD, "weather": {"city": "Kiel", "wind": 9}}
    assert deltas(talk.events) == [{"op": "add", "path": "/weather", "value": {"city": "Kiel", "wind": 9}}]


async def test_text_alone_is_for_both() -> None:
    talk, model = await updated(state_update("Done."))
    assert model.results() == ["Done."]
    assert talk.results == {"call_1": "Done."}
    assert talk.of("STATE_DELTA", "STATE_SNAPSHOT") == []


async def test_a_result_for_the_interface_alone() -> None:
    talk, model = await updated(state_update(tool_result=[1, None]))
    assert (model.results(), talk.results) == ([""], {"call_1": "[1, null]"})


async def test_members_are_set_and_the_others_stay() -> None:
    talk, _ = await updated(state_update("ok", state={"list": [3], "n/~": None}))
    assert talk.state == {**OLD, "list": [3], "n/~": None}
    assert {operation["path"] for operation in deltas(talk.events)} == {"/list", "/n~1~0"}


async def test_a_patch_reaches_within_and_removes() -> None:
    talk, _ = await updated(
        state_update(
            "ok",
            patch=[
                {"op": "add", "path": "/list/-", "value": 3},
                {"op": "remove", "path": "/kept/a"},
                {"op": "test", "path": "/list/0", "value": 1},
            ],
        )
    )
    assert talk.state == {**OLD, "list": [1, 2, 3], "kept": {}}


async def test_both_are_made_or_neither() -> None:
    talk, model = await updated(
        state_update("ok", state={"list": []}, patch=[{"op": "replace", "path": "/nowhere", "value": 1}])
    )
    assert talk.state == OLD
    assert talk.of("STATE_DELTA", "STATE_SNAPSHOT") == []
    assert "/nowhere" in model.results()[0]
    assert talk.results["call_1"] == model.results()[0], "the interface reads that it failed as well"


@pytest.mark.parametrize(
    "update",
    [
        state_update("ok", state={"x": float("nan")}),
        state_update("ok", state={"x": {1, 2}}),
        state_update("ok", state={"x": "\ud800"}),
        state_update("ok", patch=[{"op": "add", "path": "list", "value": 1}]),
        state_update("ok", patch=[{"op": "swirl", "path": "/list", "value": 1}]),
        state_update("ok", patch=[{"path": "/list", "value": 1}]),
        state_update("ok", tool_result=object()),
    ],
    ids=str,
)
async def test_what_cannot_be_done_is_an_error_for_the_model(update: StateUpdate) -> None:
    """Report 21: and never the end of the stream."""
    talk, model = await updated(update)
    assert talk.types[-1] == "RUN_FINISHED"
    assert talk.state == OLD
    assert model.results()[0].startswith("Error: ")


async def test_a_change_that_the_schema_refuses() -> None:
    schema = {"list": {"type": "array", "items": {"type": "integer"}}}
    talk, model = await updated(
        state_update("ok", patch=[{"op": "add", "path": "/list/0", "value": "one"}]), state_schema=schema
    )
    assert talk.state == OLD
    assert "/list/0" in model.results()[0]


async def test_a_result_that_is_no_json_leaves_the_state_alone() -> None:
    talk, model = await updated(state_update("ok", state={"x": 1}, tool_result={"when": object()}))
    assert talk.state == OLD
    assert "/when" in model.results()[0]


async def test_a_refused_prediction_is_an_error_for_the_interface_as_well() -> None:
    @tool
    def update_recipe(recipe: Any) -> Any:
        return state_update("ok", tool_result={"fine": True})

    model = Model([scripted_call("update_recipe", {"recipe": 5}), "ok"])
    served = AGUIAgent(
        Agent(model, tools=[update_recipe]),
        predict_state_config=PREDICT_RECIPE,
        state_schema={"recipe": {"type": "object"}},
    )
    talk = Talk(served)
    await talk.say()
    assert talk.results["call_1"].startswith("Error: the state was not changed: /recipe")


async def test_a_state_that_is_no_object_becomes_one() -> None:
    talk, _ = await updated(state_update("ok", state={"a": 1}), state=[1, 2])
    assert talk.state == {"a": 1}


async def test_later_changes_of_what_was_returned_change_nothing() -> None:
    """Report 26: what was emitted stays as it was."""
    value: dict[str, Any] = {"list": [1]}

    @tool
    def act() -> Any:
        return state_update("ok", state={"mine": value}, tool_result=value)

    @tool
    def spoil() -> str:
        value["list"].append("later")
        return "ok"

    model = Model([scripted_call("act"), scripted_call("spoil"), "ok"])
    talk = Talk(AGUIAgent(Agent(model, tools=[act, spoil])))
    await talk.say()
    assert talk.state == {"mine": {"list": [1]}}


async def test_it_goes_with_what_the_tool_predicts() -> None:
    @tool
    def update_recipe(recipe: dict[str, Any]) -> Any:
        return state_update("ok", state={"saved": True})

    model = Model([scripted_call("update_recipe", {"recipe": {"title": "A"}}), "ok"])
    talk = Talk(AGUIAgent(Agent(model, tools=[update_recipe]), predict_state_config=PREDICT_RECIPE))
    await talk.say()
    assert talk.state == {"saved": True, "recipe": {"title": "A"}}


async def test_models_and_dataclasses_are_json() -> None:
    @dataclass
    class Point:
        x: float
        y: float | None = None

    talk, _ = await updated(state_update("ok", state={"at": Point(1.5), "all": (Point(1, 2),)}))
    assert talk.state["at"] == {"x": 1.5, "y": None}
    assert talk.state["all"] == [{"x": 1, "y": 2}]


async def test_parallel_tools_lose_nothing() -> None:
    """Report 7, by patches."""
    gates = [asyncio.Event() for _ in range(3)]

    @tool
    async def find(n: int) -> Any:
        await gates[n].wait()
        if n:
            asyncio.get_running_loop().call_soon(gates[n - 1].set)
        return state_update("ok", patch=[{"op": "add", "path": "/results/-", "value": n}])

    gates[2].set()
    model = Model([[scripted_call("find", {"n": n}) for n in range(3)], "ok"])
    talk = Talk(AGUIAgent(Agent(model, tools=[find])), state={"results": []})
    await talk.say()
    assert talk.state == {"results": [2, 1, 0]}


async def test_a_plain_agent_shows_the_model_something_sensible() -> None:
    @tool
    def act() -> Any:
        current_run()
        return state_update("All well.", state={"x": 1})

    model = Model([scripted_call("act"), "ok"])
    talk = Talk(Agent(model, tools=[act]))
    await talk.say()
    assert (model.results(), talk.state) == (["All well."], {"x": 1})
