"""The runs of agents under `ag-ui-validate`, which somebody else has written: nothing at error level.

It forgets with each run what the last one announced, so it misses the call whose result comes in the run that approves
it (report 16). It speaks protocol 0.1, where a result is text, so results of parts are not put before it; nor are
arguments that a model has written badly, which no agent can help.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from ag_ui_validate.pytest_plugin import validate_agui, validate_agui_endpoint
from fastapi import FastAPI

from accord.agents import Agent, Interleaved, ReasoningContent, Usage, scripted_call, tool
from accord.agui import AGUIAgent, add_agui_endpoint, current_run, state_update
from agui.talk import PREDICT_RECIPE, Model, Raw, Talk, update_recipe
from support.serving import serve

NEW = {"title": "New \U0001f95a", "steps": ["fry", "mix"], "fat": None}


UNKNOWN_CALL = "AGUI207"


@tool
def draw(title: str) -> list[str]:
    return ["Here:", title]


@tool
def count() -> Any:
    with current_run().state.edit() as draft:
        draft["count"] = draft.get("count", 0) + 1
    with current_run().step("counting"):
        current_run().activity("progress", {"done": 1})
    return state_update("counted", state={"a/b": [1]}, tool_result={"n": 1})


@tool
def fail() -> None:
    raise ValueError


def change() -> Any:
    return scripted_call("update_recipe", {"recipe": NEW})


def serve_turns(*turns: Any, **options: Any) -> AGUIAgent:
    model = Model(list(turns), usage=Usage(provider="p", model="m", input_tokens=1, output_tokens=2))
    return AGUIAgent(
        Agent(model, tools=[update_recipe, draw, count, fail]), predict_state_config=PREDICT_RECIPE, **options
    )


async def plain(talk: Talk) -> None:
    await talk.say()


async def twice(talk: Talk) -> None:
    await talk.say()
    await talk.say("again")


async def accept(talk: Talk) -> None:
    await talk.say()
    await talk.answer({"approved": True})


async def refuse(talk: Talk) -> None:
    await talk.say()
    await talk.answer({"approved": False})


def pick() -> str:
    return "blue"


@pytest.mark.parametrize(
    ("served", "talk_through"),
    [
        (serve_turns("Hello."), plain),
        (serve_turns([ReasoningContent("I think", "sealed"), "So. ", change()], "Done."), plain),
        (
            serve_turns([change(), scripted_call("draw", {"title": "x"})], "Done.", [scripted_call("count"), "."], "."),
            twice,
        ),
        (serve_turns([Interleaved(change(), scripted_call("count"), scripted_call("fail"))], "Done."), plain),
        (serve_turns(change(), "Done.", require_confirmation=True), accept),
        (serve_turns(change(), "Done.", require_confirmation=True), refuse),
        (serve_turns(["So far", change(), RuntimeError("gone")]), plain),
        (serve_turns(scripted_call("pick"), "Blue."), plain),
    ],
    ids=["text", "predictive", "twice", "interleaved", "accepted", "refused", "failed", "frontend"],
)
async def test_nothing_at_error_level(
    served: AGUIAgent, talk_through: Callable[[Talk], Any], caplog: pytest.LogCaptureFixture
) -> None:
    runs: list[list[Raw]] = []

    class Kept(Talk):
        async def read(self, run: Any) -> Any:
            read = await super().read(run)
            runs.append(self.events)
            return read

    with caplog.at_level(logging.CRITICAL, "accord"):
        await talk_through(Kept(served, tools=[pick]))
    errors = [each for events in runs for each in validate_agui(events).diagnostics if each.severity == "error"]
    if talk_through in (accept, refuse):
        assert [each.rule for each in errors] == [UNKNOWN_CALL]
    else:
        assert errors == []


async def test_the_endpoint() -> None:
    app = FastAPI()
    add_agui_endpoint(app, serve_turns([change()], "Done."), "/agent")
    async with serve(app) as base:
        report = await validate_agui_endpoint(f"{base}/agent")
    assert [each for each in report.diagnostics if each.severity == "error"] == []
    assert report.event_count > 20


def test_it_would_find_something() -> None:
    broken = [
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
    ]
    assert validate_agui(broken).summary.errors > 0
