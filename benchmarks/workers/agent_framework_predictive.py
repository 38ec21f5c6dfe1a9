"""The same agent in agent-framework: its events, encoded as its endpoint encodes them."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from ag_ui.core import EventType
from ag_ui.encoder import EventEncoder
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    tool,
)
from agent_framework_ag_ui import AgentFrameworkAgent

from benchmarks.material import prose, recipe, run_input
from benchmarks.workers.rounds import Round, serve


@tool(approval_mode="never_require")
def update_recipe(recipe: dict[str, Any]) -> str:
    """Puts a recipe on the screen."""
    return "ok"


@tool(approval_mode="never_require")
def write_document(document: str) -> str:
    """Puts a document on the screen."""
    return "ok"


class Model(FunctionInvocationLayer, BaseChatClient):
    """Calls a tool with arguments in pieces, and is done when it has the result."""

    def __init__(self, name: str, arguments: str, piece: int) -> None:
        super().__init__()
        self._name = name
        self._pieces = [arguments[start : start + piece] for start in range(0, len(arguments), piece)]

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **more: Any
    ) -> Awaitable[ChatResponse] | ResponseStream[ChatResponseUpdate, ChatResponse]:
        assert stream
        return self._build_response_stream(self._answer(messages))

    async def _answer(self, messages: Sequence[Message]) -> AsyncIterator[ChatResponseUpdate]:
        if messages[-1].role == "tool":
            yield ChatResponseUpdate(role="assistant", contents=[Content.from_text(text="Done.")])
            return
        name = self._name
        for piece in ["", *self._pieces]:
            call = Content.from_function_call(call_id="call-1", name=name, arguments=piece)
            yield ChatResponseUpdate(role="assistant", contents=[call])
            name = ""


def predict(kind: str, size: int, piece: int) -> Callable[[], Round]:
    """One run: a `recipe` is an object, a `document` a string, of about so many bytes."""
    value: Any
    name, value = ("update_recipe", recipe(size)) if kind == "recipe" else ("write_document", prose(size))
    model = Model(name, json.dumps({kind: value}, ensure_ascii=False), piece)
    served = AgentFrameworkAgent(
        Agent(client=model, tools=[update_recipe, write_document]),
        state_schema={"recipe": {"type": "object"}, "document": {"type": "string"}},
        predict_state_config={
            "recipe": {"tool": "update_recipe", "tool_argument": "recipe"},
            "document": {"tool": "write_document", "tool_argument": "document"},
        },
        require_confirmation=False,
    )
    asked = run_input(messages=1, message_size=20)

    async def run() -> dict[str, int]:
        encoder = EventEncoder()
        counted = {"deltas": 0, "snapshots": 0}
        event = None
        async for event in served.run(asked):
            size = len(encoder.encode(event).encode()) - len(b"data: \n\n")
            if event.type == EventType.STATE_DELTA:
                counted["deltas"] += size
            elif event.type == EventType.STATE_SNAPSHOT:
                counted["snapshots"] += size
        assert event is not None
        assert event.type == EventType.RUN_FINISHED, event
        return counted

    def take() -> Round:
        start, cpu = time.perf_counter(), time.process_time()
        counted = asyncio.run(run())
        found = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}
        return {**found, "operations": 1, **counted}

    return take


if __name__ == "__main__":
    logging.disable(logging.INFO)
    serve({"predict": predict})
