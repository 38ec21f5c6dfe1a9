"""Agents over real HTTP on either wire: the same events, messages, state and ends."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from fastapi import FastAPI

from accord.agents import scripted_call
from accord.agui import AGUIAgent, add_agui_endpoint
from accord.client import AGUIClient, Cancelled, Wire
from accord.demo.app import create_app
from accord.hosting import AGUIEndpoint
from accord.producer import Run
from accord.protocol import Interrupt, ToolMessage, UserMessage, to_wire
from agui.talk import Raw, Talk, recipe_agent
from client.streams import contents
from support.serving import ASGIApplication, serve

WIRES: list[Wire] = ["sse", "protobuf", "auto"]
CONTENT_TYPES = {
    "sse": "text/event-stream",
    "protobuf": "application/vnd.ag-ui.event+proto",
    "auto": "application/vnd.ag-ui.event+proto",
}
RECIPE = {"title": "Zürich \U0001f95a", "steps": ["fry", 'mix "well"'], "fat": None, "nested": {"": [1, [2.5, -1e-9]]}}


class Noting:
    """An application that passes requests on and keeps the content types of the answers."""

    def __init__(self, app: ASGIApplication) -> None:
        self._app = app
        self.content_types: set[str] = set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def noting(message: Any) -> None:
            if message["type"] == "http.response.start":
                self.content_types.add(dict(message["headers"])[b"content-type"].decode())
            await send(message)

        await self._app(scope, receive, noting)


def served(agent: AGUIAgent) -> FastAPI:
    app = FastAPI()
    add_agui_endpoint(app, agent, "/")
    return app


def numbered(value: Any) -> Any:
    """A value with ids that were made up in it replaced by the order they appear in."""
    names: dict[str, str] = {}
    pattern = re.compile(r"msg_[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

    def named(each: Any) -> Any:
        if isinstance(each, dict):
            return {key: named(member) for key, member in each.items()}
        if isinstance(each, list):
            return [named(element) for element in each]
        if isinstance(each, str):
            return pattern.sub(lambda found: names.setdefault(found[0], f"#{len(names)}"), each)
        return each

    return named(value)


async def told(app: ASGIApplication, wire: Wire, *turns: Any) -> list[Raw]:
    """What a client holds after each turn: text that is said, or the payload of every open question.

    How many deltas the state comes in is a matter of time, so of the events there are those of other kinds.
    """
    found: list[Raw] = []
    noting = Noting(app)
    async with serve(noting) as url:
        talk = Talk(url=f"{url}/", wire=wire, thread_id="t", state={"kept": [None, 1, 1.5]})
        async with talk.client:
            for number, turn in enumerate(turns):
                said = isinstance(turn, str)
                run = await (talk.say(UserMessage(id=f"u{number}", content=turn)) if said else talk.answer(turn))
                assert run.error is None
                found.append(
                    {
                        "outcome": run.outcome,
                        "result": run.result,
                        "interrupts": [to_wire(each) for each in run.interrupts],
                        "events": [event for event in talk.events if event["type"] != "STATE_DELTA"],
                        "messages": talk.messages,
                        "state": talk.state,
                    }
                )
                assert "STATE_DELTA" in talk.types or not said
    assert noting.content_types == {CONTENT_TYPES[wire]}
    return [numbered(each) for each in found]


async def test_the_demo() -> None:
    turns = ("I want to make a classic Italian pasta carbonara", "double it")
    text, binary, either = [await told(create_app(), wire, *turns) for wire in WIRES]
    assert binary == text
    assert either == text
    assert text[1]["state"]["recipe"]["title"] == "Pasta alla Carbonara"
    assert text[0]["state"]["recipe"] != text[1]["state"]["recipe"]


@pytest.mark.parametrize(
    "payload", [{"approved": True}, {"approved": False}, Cancelled], ids=["yes", "no", "cancelled"]
)
async def test_a_recipe_that_waits_for_the_user(payload: Any) -> None:
    async def at(wire: Wire) -> list[Raw]:
        script = scripted_call("update_recipe", {"recipe": RECIPE}), "Done \U0001f600."
        agent, _ = recipe_agent(script, require_confirmation=True)
        return await told(served(agent), wire, "go", payload)

    text, binary = await at("sse"), await at("protobuf")
    assert binary == text
    assert [each["outcome"] for each in text] == ["interrupt", "success"]
    assert text[0]["state"]["recipe"] == RECIPE


async def talk_about_everything(run: Run) -> None:
    last = run.input.messages[-1]
    if run.input.resume:
        run.result = {"nulls": [None]}
    elif isinstance(last, ToolMessage):
        run.state.set({**run.state.value, "city": last.content})
        run.interrupt(Interrupt(id="i1", reason="ask", response_schema={"type": "boolean"}, metadata={"k": None}))
    else:
        with run.text("m1") as message:
            message.write("Let me look. ")
        with run.tool_call("locate", "c1", parent_message_id="m1") as call:
            call.write("{}")


def locate() -> str:
    return "Zürich"


async def test_state_tools_and_a_question() -> None:
    results = []
    for wire in WIRES:
        noting = Noting(AGUIEndpoint(talk_about_everything))
        async with (
            serve(noting) as url,
            AGUIClient(url, wire=wire, tools=[locate], thread_id="t", state={"n": [0, None]}) as client,
        ):
            events = [to_wire(event) async for event in client.run(UserMessage(id="u1", content="Where am I?"))]
            last = client.resume({"i1": True})
            events += [to_wire(event) async for event in last]
            messages = [to_wire(message) for message in client.messages]
            outcomes = [record.status for record in client.runs]
            results.append(numbered([events, messages, client.state, outcomes, last.result]))
        assert noting.content_types == {CONTENT_TYPES[wire]}
    assert results[1] == results[0]
    assert results[2] == results[0]
    _, messages, state, outcomes, result = results[0]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool"]
    assert (state, outcomes) == ({"n": [0, None], "city": "Zürich"}, ["success", "interrupt", "success"])
    assert result == {"nulls": [None]}


async def test_threads_on_both_wires_do_not_meet() -> None:
    async def producer(run: Run) -> None:
        with run.text() as message:
            message.write(str(run.input.messages[-1].content))
            await run.drain()
            await asyncio.sleep(0)
            message.write("!")
        run.state.set({"of": run.thread_id})

    async def talk(url: str, number: int) -> None:
        async with AGUIClient(url, wire=WIRES[number % 2], thread_id=f"t{number}") as client:
            await client.run(f"number {number}")
            assert contents(client) == [f"number {number}", f"number {number}!"]
            assert client.state == {"of": f"t{number}"}

    async with serve(AGUIEndpoint(producer)) as url:
        await asyncio.gather(*(talk(url, number) for number in range(30)))


async def test_silence_between_events_is_no_end() -> None:
    async def producer(run: Run) -> None:
        run.custom("n", 1)
        await asyncio.sleep(0.05)
        run.custom("n", 2)

    async with (
        serve(AGUIEndpoint(producer, keep_alive=0.005)) as url,
        AGUIClient(url, wire="protobuf") as client,
    ):
        run = client.run("hi")
        assert [event.type async for event in run] == ["RUN_STARTED", "CUSTOM", "CUSTOM", "RUN_FINISHED"]


@pytest.mark.parametrize("how", ["break", "aclose"])
async def test_leaving_is_seen_by_the_producer(how: str) -> None:
    cancelled = asyncio.Event()

    async def producer(run: Run) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with serve(AGUIEndpoint(producer)) as url, AGUIClient(url, wire="protobuf") as client:
        if how == "break":
            async for _ in client.run("hi"):
                break
        else:
            async with client.run("hi") as run:
                await anext(run)
        async with asyncio.timeout(30):
            await cancelled.wait()
        assert client.runs[-1].status == "truncated"
