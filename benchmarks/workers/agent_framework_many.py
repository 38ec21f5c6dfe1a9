"""The same agent in agent-framework, served by its own endpoint as it is by default."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import Any

from agent_framework import Agent, BaseChatClient, ChatResponse, ChatResponseUpdate, Content, Message, ResponseStream
from agent_framework_ag_ui import add_agent_framework_fastapi_endpoint
from fastapi import FastAPI

from benchmarks.workers.serving import serve_application
from benchmarks.workers.ticking import ticks


class TickingModel(BaseChatClient):
    """A chat client that never comes to an end."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self._rate = rate

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **more: Any
    ) -> Awaitable[ChatResponse] | ResponseStream[ChatResponseUpdate, ChatResponse]:
        assert stream

        async def updates() -> AsyncIterator[ChatResponseUpdate]:
            async for piece in ticks(self._rate):
                yield ChatResponseUpdate(role="assistant", contents=[Content.from_text(text=piece)])

        return self._build_response_stream(updates())


if __name__ == "__main__":
    parameters = json.loads(sys.argv[2])
    logging.disable(logging.WARNING)
    app = FastAPI()
    agent = Agent(client=TickingModel(parameters["rate"]), name="ticking", instructions="Count.")
    add_agent_framework_fastapi_endpoint(app, agent, "/", single_user=True)
    serve_application(app, http=parameters["http"])
