"""What a tool writes of a predicted member itself stands; what it was called with does not go over it."""

from __future__ import annotations

from typing import Any

import pytest

from accord import Agent, FunctionTool, ScriptedChatClient, tool
from accord.agents import Usage, scripted_call
from accord.agui import AGUIAgent, current_run, state_update
from accord.agui.emission import token_usage
from accord.producer import drive
from accord.protocol import UserMessage
from producer.recording import a_run, an_input, consumed


@tool
def by_update(recipe: dict[str, Any]) -> Any:
    """Normalise what the model wrote."""
    return state_update("ok", state={"recipe": {"title": recipe["title"].strip(), "id": 7}})


@tool
def by_edit(recipe: dict[str, Any]) -> str:
    """The same, through the run."""
    with current_run().state.edit() as draft:
        draft["recipe"] = {"title": recipe["title"].strip(), "id": 7}
    return "ok"


@tool
def by_removal(recipe: dict[str, Any]) -> str:
    """Remove it."""
    with current_run().state.edit() as draft:
        del draft["recipe"]
    return "ok"


@tool
def elsewhere(recipe: dict[str, Any]) -> str:
    """Write another member."""
    with current_run().state.edit() as draft:
        draft["count"] = 1
    return "ok"


WRITTEN = {"title": "Carbonara", "id": 7}


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (by_update, {"recipe": WRITTEN}),
        (by_edit, {"recipe": WRITTEN}),
        (by_removal, {}),
        (elsewhere, {"recipe": {"title": " Carbonara "}, "count": 1}),
    ],
)
async def test_a_tools_own_write_stands(function: FunctionTool[..., Any], expected: Any) -> None:
    call = scripted_call(function.name, {"recipe": {"title": " Carbonara "}})
    agent = AGUIAgent(
        Agent(ScriptedChatClient([call, "done"]), tools=[function]),
        predict_state_config={"recipe": {"tool": function.name, "tool_argument": "recipe"}},
    )
    run_input = an_input(state={"recipe": None}, messages=[UserMessage(id="u", content="x")])
    run, outlet = a_run(run_input)
    await drive(agent, run)
    assert consumed(outlet, run_input).state == expected


@pytest.mark.parametrize("count", [-1, 1.5, True, "12", 2**60])
def test_a_count_that_is_none_is_left_out(count: Any) -> None:
    from msgspec import UNSET

    usage = token_usage(Usage(model="m", input_tokens=count, output_tokens=2))
    assert usage.input_tokens is UNSET
    assert usage.output_tokens == 2


async def test_a_tool_that_exits_is_an_error_for_the_model() -> None:
    @tool
    def cli() -> str:
        """Exit, as argparse does."""
        raise SystemExit(2)

    agent = Agent(ScriptedChatClient([scripted_call("cli"), "done"]), tools=[cli])
    response = await agent.run("x")
    assert response.text == "done"
    assert response.messages[1].contents[0].error is not None  # type: ignore[attr-defined]
