"""Report 26: any number of runs at once on two agents of one application, and nothing crosses over."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI

from accord.agents import Agent, ChatOptions, FunctionResultContent, Message, ScriptedChatClient, scripted_call, tool
from accord.agui import AGUIAgent, add_agui_endpoint, current_run, state_update
from agui.talk import PREDICT_RECIPE, Talk
from support.serving import serve

RUNS = 50


def kitchen(name: str) -> AGUIAgent:
    """An agent that works with what it was asked alone, through every way it has to share something."""

    def answer(messages: Sequence[Message], options: ChatOptions) -> Any:
        last = messages[-1].contents[-1]
        asked = next(message.text for message in reversed(messages) if message.role == "user")
        if isinstance(last, FunctionResultContent):
            return f"{name} {asked}: {last.result}"
        return [scripted_call("update_recipe", {"recipe": {"of": name, "asked": asked}}), scripted_call("note")]

    @tool
    async def update_recipe(recipe: dict[str, Any]) -> str:
        await asyncio.sleep(0.001 * (len(recipe["asked"]) % 3))
        return f"made {recipe['asked']}"

    @tool
    def note() -> Any:
        run = current_run()
        with run.state.edit() as draft:
            draft["count"] = draft.get("count", 0) + 1
            draft["by"] = run.thread_id
        return state_update(run.thread_id, state={"secret": run.thread_id}, tool_result={"thread": run.thread_id})

    client = ScriptedChatClient(answer, piece_size=8)
    return AGUIAgent(
        Agent(client, tools=[update_recipe, note]),
        state_schema={
            "recipe": {"type": "object"},
            "count": {"type": "integer"},
            "by": {"type": "string"},
            "secret": {"type": "string"},
            "list": {"type": "array", "default": []},
        },
        private_state=["secret"],
        predict_state_config=PREDICT_RECIPE,
    )


async def test_fifty_runs_on_two_agents() -> None:
    app = FastAPI()
    for name in ("one", "two"):
        add_agui_endpoint(app, kitchen(name), f"/{name}")

    async def talk_twice(number: int, base: str) -> None:
        name = ("one", "two")[number % 2]
        talk = Talk(url=f"{base}/{name}", thread_id=f"thread {number}")
        async with talk.client:
            for turn in (1, 2):
                asked = f"dish {number}.{turn}"
                run = await talk.say(asked)
                assert run.outcome == "success"
                assert talk.state == {
                    "recipe": {"of": name, "asked": asked},
                    "count": turn,
                    "by": f"thread {number}",
                    "list": [],
                }
                results = sorted(talk.results.values())
                assert results == sorted([f"made {asked}", json.dumps({"thread": f"thread {number}"})])
                assert talk.text.startswith(f"{name} {asked}: ")
                seen = json.dumps(talk.events)
                for other in range(RUNS):
                    if other != number:
                        assert f'thread {other}"' not in seen
                        assert f"dish {other}." not in seen
            assert len(talk.messages) == 2 * 5

    async with serve(app) as base:
        await asyncio.gather(*(talk_twice(number, base) for number in range(RUNS)))


async def test_one_run_waits_while_another_ends() -> None:
    release, waits = asyncio.Event(), asyncio.Event()

    @tool
    async def work(n: int) -> str:
        if n == 1:
            waits.set()
            await release.wait()
        with current_run().state.edit() as draft:
            draft["v"] = n
        return str(n)

    def answer(messages: Sequence[Message], options: ChatOptions) -> Any:
        return "ok" if messages[-1].role == "tool" else scripted_call("work", {"n": int(messages[-1].text)})

    served = AGUIAgent(Agent(ScriptedChatClient(answer), tools=[work]), state_schema={"v": {"default": 0}})
    first, second = Talk(served), Talk(served)
    waiting = asyncio.create_task(first.say("1"))
    await waits.wait()
    await second.say("2")
    assert second.state == {"v": 2}
    release.set()
    await waiting
    assert first.state == {"v": 1}
    assert second.state == {"v": 2}
