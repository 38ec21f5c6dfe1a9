from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from accord.agents import (
    Agent,
    AgentResponseUpdate,
    AgentRunStream,
    ChatClientError,
    ChatOptions,
    Message,
    RunIncomplete,
    ScriptedChatClient,
    scripted_call,
    tool,
)


class Hanging:
    """A model that says one thing and then nothing more; knows whether it was let go."""

    def __init__(self) -> None:
        self.silent = asyncio.Event()
        self.closed = asyncio.Event()

    async def stream(self, messages: Sequence[Message], options: ChatOptions) -> AsyncIterator[AgentResponseUpdate]:
        try:
            yield AgentResponseUpdate("a")
            self.silent.set()
            await asyncio.Event().wait()
        finally:
            self.closed.set()


class HangingTools:
    """Two tools that never finish; know whether they were cancelled."""

    def __init__(self) -> None:
        self.running = 0
        self.started = asyncio.Event()

    @tool
    async def hang(self) -> None:
        self.running += 1
        if self.running == 2:
            self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.running -= 1

    def run(self) -> AgentRunStream:
        client = ScriptedChatClient([[scripted_call("hang"), scripted_call("hang")]])
        return Agent(client, tools=[self.hang]).run("Hello", stream=True)


@pytest.fixture(autouse=True)
async def no_test_hangs() -> AsyncIterator[None]:
    task = asyncio.current_task()
    assert task is not None
    watch = asyncio.get_running_loop().call_later(20, task.cancel)
    yield
    watch.cancel()


async def read(stream: AgentRunStream) -> list[str]:
    return [update.text async for update in stream]


async def test_response_reads_what_is_left() -> None:
    stream = Agent(ScriptedChatClient(["abcdefgh"])).run("Hello", stream=True)
    assert (await anext(stream)).text == "abcd"
    assert (await stream.response()).text == "abcdefgh"
    assert (await stream.response()).text == "abcdefgh"
    await stream.aclose()
    assert (await stream.response()).text == "abcdefgh"


async def test_leaving_early_lets_the_model_go() -> None:
    model = Hanging()
    async with Agent(model).run("Hello", stream=True) as stream:
        assert (await anext(stream)).text == "a"
    assert model.closed.is_set()


async def test_closing_cancels_the_tools() -> None:
    tools = HangingTools()
    stream = tools.run()
    reader = asyncio.create_task(read(stream))
    await tools.started.wait()
    await stream.aclose()
    assert tools.running == 0
    # For the reader the run has ended; it is not cancelled itself.
    assert (await reader)[-1] == ""
    assert reader.cancelling() == 0


async def test_closing_while_the_model_is_silent() -> None:
    model = Hanging()
    stream = Agent(model).run("Hello", stream=True)
    assert (await anext(stream)).text == "a"
    reader = asyncio.create_task(read(stream))
    await model.silent.wait()
    await stream.aclose()
    assert model.closed.is_set()
    assert await reader == []


async def test_cancelling_the_reader_cancels_the_tools() -> None:
    tools = HangingTools()
    reader = asyncio.create_task(read(tools.run()))
    await tools.started.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert tools.running == 0


async def test_cancelling_a_run_that_does_not_stream() -> None:
    model = Hanging()
    run = asyncio.create_task(Agent(model).run("Hello"))
    await model.silent.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert model.closed.is_set()


async def test_a_run_that_was_closed_has_no_response() -> None:
    stream = Agent(ScriptedChatClient(["abcdefgh"])).run("Hello", stream=True)
    await anext(stream)
    await stream.aclose()
    with pytest.raises(RunIncomplete):
        await stream.response()
    never_begun = Agent(ScriptedChatClient(["a"])).run("Hello", stream=True)
    await never_begun.aclose()
    with pytest.raises(RunIncomplete):
        await never_begun.response()


async def test_a_run_that_failed_has_no_response() -> None:
    failure = ChatClientError("gone", code="cut")
    stream = Agent(ScriptedChatClient([["abcd", failure]])).run("Hello", stream=True)
    with contextlib.suppress(ChatClientError):
        await read(stream)
    with pytest.raises(RunIncomplete) as caught:
        await stream.response()
    assert caught.value.__cause__ is failure
    with pytest.raises(ChatClientError):
        await Agent(ScriptedChatClient([["abcd", failure]])).run("Hello")


async def test_a_run_whose_reader_was_cancelled_has_no_response() -> None:
    model = Hanging()
    stream = Agent(model).run("Hello", stream=True)
    reader = asyncio.create_task(read(stream))
    await model.silent.wait()
    reader.cancel()
    await asyncio.wait([reader])
    with pytest.raises(RunIncomplete):
        await stream.response()


async def test_all_who_close_wait_until_the_reader_has_left() -> None:
    model = Hanging()
    stream = Agent(model).run("Hello", stream=True)
    reader = asyncio.create_task(texts_of(stream))
    await asyncio.wait_for(model.silent.wait(), 10)
    assert stream.so_far().text == "a"
    await asyncio.wait_for(asyncio.gather(stream.aclose(), stream.aclose()), 10)
    assert model.closed.is_set()
    assert await reader == ["a"]


async def texts_of(stream: AgentRunStream) -> list[str]:
    return [update.text async for update in stream]


class Slow:
    """A model that takes its time to be let go."""

    async def stream(self, messages: Sequence[Message], options: ChatOptions) -> AsyncIterator[AgentResponseUpdate]:
        try:
            while True:
                yield AgentResponseUpdate("a")
        finally:
            for _ in range(5):
                await asyncio.sleep(0)


async def test_two_may_close_while_nobody_reads() -> None:
    stream = Agent(Slow()).run("Hello", stream=True)
    assert (await anext(stream)).text == "a"
    closing = [asyncio.create_task(stream.aclose()) for _ in range(2)]
    await asyncio.sleep(0)
    assert await texts_of(stream) == []  # who comes to read meanwhile finds it over
    await asyncio.gather(*closing)
    with pytest.raises(RunIncomplete):
        await stream.response()


async def test_a_run_adds_one_generator_to_the_models_own() -> None:
    # An event loop that shuts down closes generators one beside the other: each is one more that may be closed twice.
    begun: list[Any] = []
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(firstiter=begun.append)
    try:
        stream = Agent(ScriptedChatClient(["ok"])).run("Hello", stream=True)
        await anext(stream)
    finally:
        sys.set_asyncgen_hooks(*hooks)
    await stream.aclose()
    assert len(begun) == 2, begun
