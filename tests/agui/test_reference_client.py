"""Agents served to `@ag-ui/client`: it ends where our client ends, and has nothing to complain of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from accord.agents import (
    Agent,
    ChatOptions,
    FunctionResultContent,
    Interleaved,
    Message,
    ReasoningContent,
    ScriptedChatClient,
    scripted_call,
    tool,
)
from accord.agui import AGUIAgent, add_agui_endpoint, current_run, state_update
from accord.client import Cancelled
from accord.protocol import UserMessage
from agui.talk import PREDICT_RECIPE, Raw, Talk, update_recipe
from support.node import run_node
from support.serving import serve_in_thread

pytestmark = pytest.mark.usefixtures("node_modules")

OLD = {"recipe": {"title": "Old", "a/b": [None, True, 1.5]}, "kept": "\U0001f95a"}
NEW = {"title": 'New \U0001f95a "quoted"', "steps": ["fry", "mix"], "fat": None, "nested": {"": {"~": [1, [2]]}}}


@tool
def note(text: str) -> Any:
    with current_run().state.edit() as draft:
        draft.setdefault("notes", []).append(text)
    return state_update("noted", tool_result={"text": text}, state={"last/note": text})


def answer(messages: Sequence[Message], options: ChatOptions) -> Any:
    last = messages[-1].contents[-1]
    if isinstance(last, FunctionResultContent):
        return "Done \u2028 \U0001f600."
    calls = [scripted_call("update_recipe", {"recipe": NEW}), scripted_call("note", {"text": messages[-1].text})]
    return [ReasoningContent("I think"), "Let me see. ", Interleaved(*calls)]


@contextmanager
def served(*, require_confirmation: bool = False) -> Iterator[str]:
    app = FastAPI()
    agent = Agent(ScriptedChatClient(answer), "Be kind.", tools=[update_recipe, note])
    shared = AGUIAgent(agent, predict_state_config=PREDICT_RECIPE, require_confirmation=require_confirmation)
    add_agui_endpoint(app, shared, "/agent")
    with serve_in_thread(app) as base:
        yield f"{base}/agent"


def reference(url: str, *runs: Raw, state: Any = OLD, tools: Sequence[Raw] = ()) -> list[Raw]:
    """What the reference client holds after each run; its console is empty."""
    asked = {"url": url, "threadId": "reference", "state": state, "tools": list(tools), "runs": list(runs)}
    done = json.loads(run_node(Path("agent-thread.mjs"), stdin=json.dumps(asked)))
    assert done["console"] == []
    return list(done["runs"])


def numbered(messages: Sequence[Raw]) -> list[Raw]:
    """The messages with ids that are made up anew in each thread by the order they appear in."""
    names: dict[str, str] = {}

    def name(identifier: str) -> str:
        return names.setdefault(identifier, f"#{len(names)}")

    return [
        {key: name(value) if key == "id" and message["role"] != "user" else value for key, value in message.items()}
        for message in messages
    ]


def said(number: int) -> Raw:
    return {"say": {"id": f"u{number}", "content": f"go {number}"}}


async def ours(url: str, *runs: Raw) -> list[Raw]:
    """The same with our client."""
    found: list[Raw] = []
    talk = Talk(url=url, state=OLD)
    async with talk.client:
        for run in runs:
            if "say" in run:
                done = await talk.say(UserMessage(**run["say"]))
            else:
                done = await talk.answer(Cancelled if run["answer"] is None else run["answer"])
            assert done.error is None
            found.append({"state": talk.state, "messages": talk.messages, "outcome": done.outcome})
    return found


async def test_two_runs_with_text_call_prediction_and_result() -> None:
    with served() as url:
        theirs = reference(url, said(1), said(2))
        own = await ours(url, said(1), said(2))
    for their, our in zip(theirs, own, strict=True):
        assert their["error"] is None
        assert their["state"] == our["state"]
        assert numbered(their["messages"]) == numbered(our["messages"])
    assert theirs[-1]["state"] == {**OLD, "recipe": NEW, "notes": ["go 1", "go 2"], "last/note": "go 2"}
    titles = [state["recipe"].get("title") for state in theirs[0]["states"]]
    assert len(set(titles)) > 3, "it saw the title being written"


@pytest.mark.parametrize(
    ("payload", "accepted"),
    [
        ({"approved": True}, True),
        ({"accepted": True}, True),
        ({"approved": True, "editedArgs": {"recipe": {"title": "Mine"}}}, True),
        ({"approved": False, "reason": "no"}, False),
        ({"nonsense": 1}, False),
        (None, False),
    ],
    ids=["accept", "alias", "edit", "refuse", "unfit", "cancel"],
)
async def test_confirmation(payload: Any, accepted: bool) -> None:
    runs = [said(1), {"answer": payload}]
    with served(require_confirmation=True) as url:
        theirs = reference(url, *runs)
        own = await ours(url, *runs)
    asked, done = theirs
    assert [interrupt["reason"] for interrupt in asked["interrupts"]] == ["tool_call"]
    assert asked["state"]["recipe"] == NEW, "the prediction stays on the screen"
    assert done["interrupts"] == []
    expected = OLD["recipe"]
    if accepted:
        expected = (payload.get("editedArgs") or {"recipe": NEW})["recipe"]
    assert done["state"]["recipe"] == expected
    for their, our in zip(theirs, own, strict=True):
        assert their["error"] is None
        assert their["state"] == our["state"]
        assert numbered(their["messages"]) == numbered(our["messages"])
    calls = [call["id"] for message in done["messages"] for call in message.get("toolCalls", ())]
    results = [message["toolCallId"] for message in done["messages"] if message["role"] == "tool"]
    assert sorted(calls) == sorted(results)


async def test_a_question_is_asked_again_when_a_third_run_follows_the_second() -> None:
    runs = [said(1), {"answer": {"approved": False}}, said(2), {"answer": {"approved": True}}]
    with served(require_confirmation=True) as url:
        theirs = reference(url, *runs)
    assert [run["error"] for run in theirs] == [None] * 4
    assert [run["state"]["recipe"] for run in theirs] == [NEW, OLD["recipe"], NEW, NEW]
