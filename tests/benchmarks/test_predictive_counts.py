"""The benchmark's workloads, counted: what an agent sends while a tool's argument is being written."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from accord.agents import Agent, ScriptedChatClient, scripted_call
from accord.agui import AGUIAgent
from accord.producer import Run, drive
from benchmarks.material import compact, prose, recipe
from benchmarks.workers.predictive import update_recipe, write_document
from producer.recording import Recording, an_input, consumed

SIZE = 20_000


def answered(name: str, member: str, value: Any) -> Recording:
    """What leaves while a model writes a call of a tool, four characters at a time, and the tool runs."""
    model = ScriptedChatClient([scripted_call(name, {member: value}), "Done."])
    served = AGUIAgent(
        Agent(client=model, tools=[update_recipe, write_document]),
        predict_state_config={member: {"tool": name, "tool_argument": member}},
    )
    outlet = Recording()
    asyncio.run(drive(served, Run(an_input(), outlet)))
    assert consumed(outlet).state == {member: value}
    return outlet


@pytest.mark.parametrize(
    ("name", "member", "value", "times"),
    [
        ("update_recipe", "recipe", recipe(SIZE), 3),
        ("write_document", "document", prose(SIZE), 10),
    ],
)
def test_deltas_are_a_small_multiple_of_the_value(name: str, member: str, value: Any, times: int) -> None:
    payloads = answered(name, member, value).payloads
    deltas = [payload for payload in payloads if payload.startswith(b'{"type":"STATE_DELTA"')]
    assert len(deltas) > 20, "it is seen while it is being written"
    assert sum(map(len, deltas)) <= times * len(compact(value))


def test_the_first_member_is_on_the_wire_within_the_first_pieces() -> None:
    payloads = answered("update_recipe", "recipe", recipe(SIZE)).payloads
    first = next(
        place
        for place, payload in enumerate(payloads)
        if "Carbonara”".encode() in payload and b'"STATE_DELTA"' in payload
    )
    pieces = sum(payload.startswith(b'{"type":"TOOL_CALL_ARGS"') for payload in payloads[:first])
    assert pieces <= len(compact(recipe(SIZE))) / 4 / 100
