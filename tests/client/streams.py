"""Raw streams to feed to a client, short to write, and what a client makes of them."""

from __future__ import annotations

import json
from typing import Any

from accord.client import AGUIClient, ClientRun, ReplayTransport, Response
from accord.errors import AccordError
from accord.protocol import RunAgentInput

Raw = dict[str, Any]


def started(run_id: str = "r1", **members: Any) -> Raw:
    return {"type": "RUN_STARTED", "threadId": "t1", "runId": run_id, **members}


def finished(run_id: str = "r1", **members: Any) -> Raw:
    return {"type": "RUN_FINISHED", "threadId": "t1", "runId": run_id, **members}


def failed(message: str = "no model", **members: Any) -> Raw:
    return {"type": "RUN_ERROR", "message": message, **members}


def text(*deltas: str, message_id: str = "m1") -> list[Raw]:
    return [
        {"type": "TEXT_MESSAGE_START", "messageId": message_id, "role": "assistant"},
        *({"type": "TEXT_MESSAGE_CONTENT", "messageId": message_id, "delta": delta} for delta in deltas),
        {"type": "TEXT_MESSAGE_END", "messageId": message_id},
    ]


def call(name: str, arguments: str = "{}", call_id: str = "c1") -> list[Raw]:
    return [
        {"type": "TOOL_CALL_START", "toolCallId": call_id, "toolCallName": name},
        {"type": "TOOL_CALL_ARGS", "toolCallId": call_id, "delta": arguments},
        {"type": "TOOL_CALL_END", "toolCallId": call_id},
    ]


def interrupted(*interrupt_ids: str, run_id: str = "r1", **members: Any) -> Raw:
    interrupts = [{"id": each, "reason": "confirm", **members} for each in interrupt_ids]
    return finished(run_id, outcome={"type": "interrupt", "interrupts": interrupts})


def pending(*call_ids: str, run_id: str = "r1") -> Raw:
    return finished(run_id, outcome={"type": "success", "pendingToolCallIds": list(call_ids)})


def sse(*events: Raw) -> bytes:
    """Events as the body of a stream."""
    return b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)


class Script:
    """A transport that answers each input with the next recording, or with an error."""

    def __init__(self, *recordings: list[Raw] | AccordError) -> None:
        self._recordings = list(recordings)
        self.sent: list[RunAgentInput] = []

    async def open(self, run_input: RunAgentInput) -> Response:
        self.sent.append(run_input)
        recording = self._recordings.pop(0)
        if isinstance(recording, AccordError):
            raise recording
        return await ReplayTransport(recording).open(run_input)

    async def aclose(self) -> None:
        """Nothing is kept."""


async def until_error(run: ClientRun) -> tuple[list[str], AccordError]:
    """The types of the events that a run delivers, and the error it then raises."""
    types: list[str] = []
    try:
        async for event in run:
            types.append(event.type)
    except AccordError as error:
        return types, error
    raise AssertionError("the run ended without an error")


def contents(client: AGUIClient) -> list[Any]:
    """What the messages say."""
    return [getattr(message, "content", None) for message in client.messages]
