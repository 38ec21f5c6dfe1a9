"""The shapes in which users of the agent framework we follow call things: names, keywords, and what comes back."""

from __future__ import annotations

import json
from typing import Any

import jsonpatch
import pytest
from fastapi import FastAPI
from pydantic import BaseModel, Field

from accord import Agent, DataContent, Message, Role, ScriptedChatClient, tool
from accord.agents import scripted_call
from accord.agui import (
    AGUIAgent,
    AGUIChatClient,
    ConfirmationStrategy,
    DefaultConfirmationStrategy,
    DocumentWriterConfirmationStrategy,
    RecipeConfirmationStrategy,
    TaskPlannerConfirmationStrategy,
    add_agui_endpoint,
)
from accord.openai import OpenAIChatCompletionClient
from support.serving import serve


class Meal(BaseModel):
    """A meal."""

    name: str = Field(..., description="What it is called")
    courses: list[str] = Field(default_factory=list)


@tool
def serve_meal(meal: Meal) -> str:
    """Serve a meal.

    Args:
        meal: The whole meal.

    Returns:
        That it is served.
    """
    return f"{meal.name} is served."


@tool
def set_table(guests: list[Meal]) -> str:
    """Set the table."""
    return "set"


@tool
def write_card(title: str, text: str, extra: dict[str, Any]) -> str:
    """Write a menu card."""
    return "written"


class Credential:
    """Stands in for one of `azure.identity`."""

    def get_token(self, *scopes: str, **options: Any) -> Any:
        raise AssertionError("nobody asks before a request is made")


def test_a_server_is_put_together_by_keywords() -> None:
    agent = Agent(
        name="cook",
        instructions="You cook.",
        client=OpenAIChatCompletionClient(
            model="deployment",
            azure_endpoint="https://example.openai.azure.com",
            api_version="2024-10-21",
            credential=Credential(),
        ),
        tools=[serve_meal],
    )
    served = AGUIAgent(
        agent=agent,
        name="Cook",
        description="Cooks",
        state_schema={"meal": {"type": "object", "description": "The meal"}},
        predict_state_config={"meal": {"tool": "serve_meal", "tool_argument": "meal"}},
        require_confirmation=True,
        confirmation_strategy=RecipeConfirmationStrategy(),
    )
    app = FastAPI(title="Meals")
    add_agui_endpoint(app, served, "/")
    add_agui_endpoint(app, agent, "/plain")
    assert (served.name, served.description) == ("Cook", "Cooks")


@pytest.mark.parametrize("options", [{}, {"state_schema": {"meal": {"type": "object"}}}])
def test_a_schema_alone_and_none(options: Any) -> None:
    AGUIAgent(agent=Agent(client=ScriptedChatClient([])), **options)


def test_every_form_of_prediction() -> None:
    agent = Agent(client=ScriptedChatClient([]), tools=[serve_meal, set_table, write_card])
    AGUIAgent(
        agent=agent,
        state_schema={
            "meal": {"type": "object", "description": "a"},
            "guests": {"type": "array", "description": "b"},
            "card": {"type": "object", "description": "c"},
        },
        predict_state_config={
            "meal": {"tool": "serve_meal", "tool_argument": "meal"},
            "guests": {"tool": "set_table", "tool_argument": "guests"},
            "card": {"tool": "write_card", "tool_argument": "*"},
        },
    )


@pytest.mark.parametrize(
    "strategy",
    [
        DefaultConfirmationStrategy,
        RecipeConfirmationStrategy,
        DocumentWriterConfirmationStrategy,
        TaskPlannerConfirmationStrategy,
    ],
)
def test_every_strategy_says_everything(strategy: type[ConfirmationStrategy]) -> None:
    steps = [{"description": "One", "status": "enabled"}, {"description": "Two", "status": "disabled"}]
    made = strategy()
    said = [
        made.on_approval_accepted(steps),
        made.on_approval_rejected(steps),
        made.on_state_confirmed(),
        made.on_state_rejected(),
    ]
    assert all(said)
    assert "1. One" in said[0]
    assert "Two" not in said[0]


async def test_a_client_that_keeps_the_state_itself() -> None:
    meal = {"name": "Dinner", "courses": ["soup", "fish"]}
    model = ScriptedChatClient([scripted_call("serve_meal", {"meal": meal}), "Enjoy.", "Anything else?"])
    app = FastAPI()
    served = AGUIAgent(
        agent=Agent(client=model, tools=[serve_meal]),
        predict_state_config={"meal": {"tool": "serve_meal", "tool_argument": "meal"}},
    )
    add_agui_endpoint(app, served, "/")
    async with serve(app) as base:
        chat_client = AGUIChatClient(server_url=f"{base}/")
        agent = Agent(name="client", client=chat_client, instructions="You are a helpful assistant.")
        thread = agent.create_session()
        state: dict[str, Any] = {}
        text = ""
        seen: list[str] = []
        for said in ("Dinner, please", Message(Role.USER, "Thanks")):
            async for update in agent.run(said, session=thread, stream=True):
                text += update.text
                for content in update.contents:
                    if hasattr(content, "media_type") and content.media_type == "application/json":
                        assert isinstance(content, DataContent)
                        state = json.loads(content.data.decode() if isinstance(content.data, bytes) else content.data)
                        seen.append("snapshot")
                    if hasattr(content, "delta") and content.delta:
                        state = jsonpatch.JsonPatch(content.delta).apply(state)
                        seen.append("delta")
        assert state == {"meal": meal}
        assert state == chat_client.state
        assert text == "Enjoy.Anything else?"
        assert seen.count("snapshot") == 1
        assert seen.count("delta") > 3
        await chat_client.aclose()
