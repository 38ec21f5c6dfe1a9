"""An agent of ours whose tool's argument is shown in the state while the model writes it: bytes sent, time used."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from accord import Agent, tool
from accord.agents import AgentResponseUpdate, ChatOptions, FunctionCallContent, Message, Role, TextContent
from accord.agui import AGUIAgent
from accord.producer import Run, drive
from accord.protocol import decode_input
from benchmarks.material import prose, recipe, run_input
from benchmarks.workers.rounds import Round, serve


@tool
def update_recipe(recipe: dict[str, Any]) -> str:
    """Puts a recipe on the screen."""
    return "ok"


@tool
def write_document(document: str) -> str:
    """Puts a document on the screen."""
    return "ok"


class Model:
    """Calls a tool with arguments in pieces, and is done when it has the result."""

    def __init__(self, name: str, arguments: str, piece: int) -> None:
        self._name = name
        self._pieces = [arguments[start : start + piece] for start in range(0, len(arguments), piece)]

    async def stream(self, messages: Sequence[Message], options: ChatOptions) -> AsyncIterator[AgentResponseUpdate]:
        if messages[-1].role is Role.TOOL:
            yield AgentResponseUpdate((TextContent("Done."),), finish_reason="stop")
            return
        yield AgentResponseUpdate((FunctionCallContent("call-1", self._name, ""),))
        for piece in self._pieces:
            yield AgentResponseUpdate((FunctionCallContent("call-1", "", piece),))
        yield AgentResponseUpdate((), finish_reason="tool_calls")


class Counting:
    """An outlet that counts bytes by the events' type."""

    def __init__(self) -> None:
        self.deltas = 0
        self.snapshots = 0
        self.last = b""

    def put(self, payload: bytes) -> None:
        self.last = payload
        if payload.startswith(b'{"type":"STATE_DELTA"'):
            self.deltas += len(payload)
        elif payload.startswith(b'{"type":"STATE_SNAPSHOT"'):
            self.snapshots += len(payload)

    async def drain(self) -> None:
        """There is no reader to wait for."""


def predict(kind: str, size: int, piece: int) -> Callable[[], Round]:
    """One run: a `recipe` is an object, a `document` a string, of about so many bytes."""
    value: Any
    name, value = ("update_recipe", recipe(size)) if kind == "recipe" else ("write_document", prose(size))
    model = Model(name, json.dumps({kind: value}, ensure_ascii=False), piece)
    served = AGUIAgent(
        Agent(client=model, tools=[update_recipe, write_document]),
        predict_state_config={
            "recipe": {"tool": "update_recipe", "tool_argument": "recipe"},
            "document": {"tool": "write_document", "tool_argument": "document"},
        },
    )
    asked = decode_input(json.dumps(run_input(messages=1, message_size=20)))

    def take() -> Round:
        outlet = Counting()
        start, cpu = time.perf_counter(), time.process_time()
        asyncio.run(drive(served, Run(asked, outlet)))
        found = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}
        assert outlet.last.startswith(b'{"type":"RUN_FINISHED"'), outlet.last
        return {**found, "operations": 1, "deltas": outlet.deltas, "snapshots": outlet.snapshots}

    return take


if __name__ == "__main__":
    serve({"predict": predict})
