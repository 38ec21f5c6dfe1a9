"""An agent of ours with a model that says a piece of text again and again."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Sequence

from fastapi import FastAPI

from accord import Agent
from accord.agents import AgentResponseUpdate, ChatOptions, Message, TextContent
from accord.agui import add_agui_endpoint
from benchmarks.workers.serving import serve_application
from benchmarks.workers.ticking import ticks


class TickingModel:
    """A chat client that never comes to an end."""

    def __init__(self, rate: float) -> None:
        self._rate = rate

    async def stream(self, messages: Sequence[Message], options: ChatOptions) -> AsyncIterator[AgentResponseUpdate]:
        async for piece in ticks(self._rate):
            yield AgentResponseUpdate((TextContent(piece),))


if __name__ == "__main__":
    parameters = json.loads(sys.argv[2])
    app = FastAPI()
    add_agui_endpoint(app, Agent(client=TickingModel(parameters["rate"])), "/")
    serve_application(app, http=parameters["http"])
