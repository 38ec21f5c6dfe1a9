"""An outlet that remembers, and a consumer that reads what it remembers as a peer would."""

from __future__ import annotations

from typing import Any

from accord.consumer import Conversation, Pipeline
from accord.producer import Run
from accord.protocol import Event, RunAgentInput, decode_event


class Recording:
    """An outlet whose reader is always up to date."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []

    def put(self, payload: bytes) -> None:
        self.payloads.append(payload)

    async def drain(self) -> None:
        return

    @property
    def events(self) -> list[Event]:
        return [decode_event(payload) for payload in self.payloads]

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]


def an_input(**members: Any) -> RunAgentInput:
    return RunAgentInput(**{"thread_id": "t1", "run_id": "r1", "messages": [], **members})


def a_run(run_input: RunAgentInput | None = None) -> tuple[Run, Recording]:
    outlet = Recording()
    return Run(run_input or an_input(), outlet), outlet


def consumed(outlet: Recording, run_input: RunAgentInput | None = None, *, failed: bool = False) -> Conversation:
    """The conversation of a consumer that started from `run_input` and read it all, without one warning.

    A run that has failed must be meant to: whatever a producer raises ends its run and not its test.
    """
    warnings: list[object] = []
    pipeline = Pipeline(on_deviation=warnings.append)
    conversation = Conversation(run_input or an_input(), on_deviation=warnings.append)
    for payload in outlet.payloads:
        for event in pipeline.feed(payload):
            conversation.apply(event)
    pipeline.finish()
    assert warnings == []
    assert (outlet.types[-1] == "RUN_ERROR") is failed
    return conversation
