"""`@ag-ui/client` at our endpoint: what it makes of a run on the binary wire is what it makes of the event stream."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from accord.agents import Agent
from accord.agui import AGUIAgent, add_agui_endpoint
from accord.demo.model import scripted_cook
from accord.demo.recipe import INSTRUCTIONS, recipe_agent, update_recipe
from accord.hosting import AGUIEndpoint
from accord.producer import Run
from accord.protocol import Interrupt, TextPart, TokenUsage
from accord.wire import PROTOBUF_MEDIA_TYPE, SSE_MEDIA_TYPE
from support.node import run_node
from support.serving import serve_in_thread

pytestmark = pytest.mark.usefixtures("node_modules")

Raw = dict[str, Any]
CONTENT_TYPES = {
    SSE_MEDIA_TYPE: SSE_MEDIA_TYPE,
    PROTOBUF_MEDIA_TYPE: PROTOBUF_MEDIA_TYPE,
    "*/*": PROTOBUF_MEDIA_TYPE,
    f"{SSE_MEDIA_TYPE}, {PROTOBUF_MEDIA_TYPE};q=0.5": PROTOBUF_MEDIA_TYPE,
    f"*/*, {PROTOBUF_MEDIA_TYPE};q=0": SSE_MEDIA_TYPE,
}


async def everything(run: Run) -> None:
    with run.step("plan"), run.reasoning("q1", span_id="s1") as reasoning:
        reasoning.write("hm")
    with run.text("m1", metadata={"k": [None, 1, 1.5]}) as message:
        message.write("Zürich \U0001f95a ")
        message.write("")
        message.write("\u2028")
    with run.tool_call("find", "c1", parent_message_id="m1") as call:
        call.write('{"q": ')
        call.write("1}")
    run.tool_result("c1", [TextPart(text="found")], message_id="m2")
    run.tool_result("c1", "again", message_id="m4")
    run.state.set({"list": [1, 2.5, None, True, "é"], "empty": {}, "null": None})
    with run.state.edit() as draft:
        draft["list"].append({"a": "b"})
        draft["large"] = "x" * 100_000
    run.activity("plan", {"steps": []}, message_id="a1").replace({"steps": ["one"]})
    run.custom("c", {"": [0, -0.5]})
    run.raw({"any": None}, source="s")
    run.encrypted_value("message", "m1", "sealed")
    with run.subagent("helper", "s1", description="helps"), run.text("m3", subagent_run_id="s1") as message:
        message.write("from within")
    run.usage(TokenUsage(provider="p", model="m", input_tokens=3, output_tokens=0))
    run.result = {"done": [True, None]}


async def asking(run: Run) -> None:
    run.interrupt(Interrupt(id="i1", reason="confirm", message="Sure?", metadata={"k": None}))


async def failing(run: Run) -> None:
    run.text("m1").write("hi")
    raise RuntimeError("no model")


@pytest.mark.parametrize("producer", [everything, asking, failing])
def test_a_run(producer: Any) -> None:
    with serve_in_thread(AGUIEndpoint(producer)) as url:
        found = json.loads(run_node("http-client.mjs", f"{url}/", *CONTENT_TYPES))
    assert [each.pop("contentType") for each in found] == list(CONTENT_TYPES.values())
    assert found[1:] == found[:1] * (len(found) - 1)
    assert found[0]["error"] is None
    if producer is everything:
        assert [message["id"] for message in found[0]["messages"]] == ["q1", "m1", "m2", "m4", "a1", "m3"]
        assert found[0]["state"]["list"] == [1, 2.5, None, True, "é", {"a": "b"}]
        assert found[0]["result"] == {"done": [True, None]}


def numbered(runs: list[Raw]) -> Any:
    """What is held after each run; ids that were made up in the thread are numbered in their order."""
    text = json.dumps([{name: value for name, value in run.items() if name != "states"} for run in runs])
    ids = re.findall(r"msg_[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", text)
    for number, made_up in enumerate(dict.fromkeys(ids)):
        text = text.replace(made_up, f"made-up-{number}")
    return json.loads(text)


def test_a_thread_with_the_recipe_agent() -> None:
    app = FastAPI()
    add_agui_endpoint(app, recipe_agent(scripted_cook()), "/plain")
    asking_first = AGUIAgent(
        Agent(scripted_cook(), INSTRUCTIONS, tools=[update_recipe]),
        predict_state_config={"recipe": {"tool": "update_recipe", "tool_argument": "recipe"}},
        require_confirmation=True,
    )
    add_agui_endpoint(app, asking_first, "/asking")
    said = [{"say": {"id": f"u{number}", "content": text}} for number, text in enumerate(["a carbonara", "double it"])]
    threads = {"/plain": said, "/asking": [said[0], {"answer": {"approved": True}}]}
    with serve_in_thread(app) as url:
        for path, runs in threads.items():
            found = []
            for accept in (SSE_MEDIA_TYPE, PROTOBUF_MEDIA_TYPE):
                asked = {
                    "url": f"{url}{path}",
                    "threadId": "t",
                    "state": {},
                    "tools": [],
                    "runs": runs,
                    "accept": accept,
                }
                done = json.loads(run_node(Path("agent-thread.mjs"), stdin=json.dumps(asked)))
                assert done["console"] == []
                assert {run.pop("contentType") for run in done["runs"]} == {accept}
                assert [run["error"] for run in done["runs"]] == [None, None]
                assert len(done["runs"][0]["states"]) > 3
                found.append(numbered(done["runs"]))
            assert found[0] == found[1]
            assert "Carbonara" in found[0][1]["state"]["recipe"]["title"]
