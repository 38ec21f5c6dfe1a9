"""An agent at a path of a FastAPI or Starlette application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord.agents import Agent
from accord.agui.agent import AGUIAgent
from accord.hosting import AGUIEndpoint
from accord.producer import Producer

if TYPE_CHECKING:
    from starlette.applications import Starlette


def add_agui_endpoint(app: Starlette, agent: Agent | AGUIAgent | Producer, path: str = "/", **options: Any) -> None:
    """Serves an agent, or any `async def producer(run)`, at `path`: POST a run input, get the run's events.

    `options` are those of `accord.hosting.AGUIEndpoint`: `authorize`, which says on whose behalf a run is, limits,
    keep-alive.
    """
    from starlette.routing import Route

    app.router.routes.append(Route(path, AGUIEndpoint(as_producer(agent), **options)))


def as_producer(agent: Agent | AGUIAgent | Producer) -> Producer:
    """What serves as a producer: an agent in its wrapping, anything else as it is."""
    if isinstance(agent, Agent):
        return AGUIAgent(agent)
    if not callable(agent):
        raise TypeError(f"an Agent, an AGUIAgent or an async function of a run is due, not {type(agent).__name__}")
    return agent
