"""A recipe that fills in while the model is still writing it.

    OPENAI_API_KEY=... OPENAI_MODEL=... python examples/recipe_server.py
    python examples/recipe_client.py

With `--confirm`, every change waits on the screen until the user has accepted it, and is taken back if not.
"""

from __future__ import annotations

import sys
from enum import StrEnum

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel, Field

from accord import Agent, ChatClient, tool
from accord.agui import AGUIAgent, RecipeConfirmationStrategy, add_agui_endpoint
from accord.openai import OpenAIChatCompletionClient


class Effort(StrEnum):
    """How much work a dish is."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Ingredient(BaseModel):
    """Something that goes into the dish."""

    name: str
    amount: str = Field(description="How much, with its unit")


class Recipe(BaseModel):
    """A whole recipe."""

    title: str
    effort: Effort = Effort.MEDIUM
    ingredients: list[Ingredient]
    steps: list[str] = Field(description="One sentence each, in order")
    note: str | None = None


class State(BaseModel):
    """What the agent and the application share."""

    recipe: Recipe | None = None


@tool
def write_recipe(recipe: Recipe) -> str:
    """Put a recipe on the user's screen.

    Args:
        recipe: The whole recipe, with all that has not changed.
    """
    return f"The user now sees {recipe.title}."


def create_app(client: ChatClient, *, confirm: bool = False) -> FastAPI:
    """The agent at `/`, answering with the model behind `client`."""
    agent = Agent(
        client,
        "You and the user work on one recipe. Call write_recipe with the whole of it for every change, then say in a "
        "sentence what you did.",
        name="recipe_writer",
        tools=[write_recipe],
    )
    app = FastAPI()
    add_agui_endpoint(
        app,
        AGUIAgent(
            agent,
            state_schema=State,
            predict_state_config={"recipe": {"tool": "write_recipe", "tool_argument": "recipe"}},
            require_confirmation=confirm,
            confirmation_strategy=RecipeConfirmationStrategy(),
        ),
    )
    return app


if __name__ == "__main__":
    uvicorn.run(create_app(OpenAIChatCompletionClient(), confirm="--confirm" in sys.argv), port=8888)
