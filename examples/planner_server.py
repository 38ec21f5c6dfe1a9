"""Several fields of the state, each written by a tool's argument: a list of tasks, and how the user likes to work.

OPENAI_API_KEY=... OPENAI_MODEL=... python examples/planner_server.py
"""

from __future__ import annotations

from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from accord import Agent, ChatClient, tool
from accord.agui import AGUIAgent, TaskPlannerConfirmationStrategy, add_agui_endpoint, state_update
from accord.openai import OpenAIChatCompletionClient


class Task(BaseModel):
    """One thing to do; `status` is `disabled` for one the user has struck out."""

    description: str
    status: str = "enabled"
    minutes: int = 5


@tool
def plan_tasks(steps: list[Task], summary: str) -> Any:
    """Put a plan on the user's screen, with a summary of it.

    Args:
        steps: All tasks, in order.
        summary: One sentence.
    """
    total = sum(task.minutes for task in steps)
    # The model reads the text, the interface gets the result, and the state has one more member.
    return state_update(f"Planned {len(steps)} tasks.", tool_result={"minutes": total}, state={"minutes": total})


@tool
def remember_preferences(preferences: dict[str, Any]) -> str:
    """Keep what the user has said about how they work."""
    return "Remembered."


def create_app(client: ChatClient, *, confirm: bool = False) -> FastAPI:
    """The agent at `/`, answering with the model behind `client`."""
    agent = Agent(
        client,
        "You plan the user's tasks. Keep what they tell you about how they work.",
        name="planner",
        tools=[plan_tasks, remember_preferences],
    )
    app = FastAPI()
    add_agui_endpoint(
        app,
        AGUIAgent(
            agent,
            state_schema={
                "steps": {"type": "array", "description": "The tasks", "default": []},
                "summary": {"type": "string", "description": "The plan in a sentence"},
                "minutes": {"type": "integer", "description": "How long it takes"},
                "preferences": {"type": "object", "description": "How the user works", "default": {}},
            },
            predict_state_config={
                "steps": {"tool": "plan_tasks", "tool_argument": "steps"},
                "summary": {"tool": "plan_tasks", "tool_argument": "summary"},
                "preferences": {"tool": "remember_preferences", "tool_argument": "preferences"},
            },
            read_only_state=["minutes"],
            require_confirmation=confirm,
            confirmation_strategy=TaskPlannerConfirmationStrategy(),
        ),
    )
    return app


if __name__ == "__main__":
    uvicorn.run(create_app(OpenAIChatCompletionClient()), port=8888)
