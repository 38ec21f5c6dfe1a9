from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from accord.client import AGUIClient, InProcessTransport
from accord.consumer import Deviation
from accord.errors import InputRejected, RunFailed, TruncatedRun
from accord.producer import OutletOverflow, Run
from accord.protocol import RunAgentInput, StateDeltaEvent, UserMessage
from client.streams import contents, until_error


def client_of(producer: Any, **options: Any) -> AGUIClient:
    return AGUIClient(transport=InProcessTransport(producer, **options))


async def test_both_ends_in_one_process() -> None:
    async def producer(run: Run) -> None:
        with run.text() as message:
            message.write("Hello")
        run.state.set({"count": (run.input.state or {}).get("count", 0) + 1})
        run.result = [1]

    client = client_of(producer)
    for count in (1, 2):
        run = await client.run("hi")
        assert (run.outcome, run.result, client.state) == ("success", [1], {"count": count})
    assert contents(client) == ["hi", "Hello", "hi", "Hello"]


async def test_what_goes_over_is_a_copy() -> None:
    received: list[RunAgentInput] = []

    async def producer(run: Run) -> None:
        received.append(run.input)
        state: Any = run.input.state
        state["list"].append("mine")
        value = {"list": ["theirs"]}
        run.state.set(value)
        value["list"].append("later")

    client = client_of(producer)
    state = {"list": [1]}
    await client.run(state=state)
    assert state == {"list": [1]}
    assert client.state == {"list": ["theirs"]}
    assert received[0] is not None


async def test_state_goes_over_as_patches() -> None:
    async def producer(run: Run) -> None:
        with run.state.edit() as draft:
            draft["a/b"] = {"c": None}

    client = client_of(producer)
    deltas = [event async for event in client.run(state={"x": 1}) if isinstance(event, StateDeltaEvent)]
    assert [operation.path for operation in deltas[0].delta] == ["/a~1b"]
    assert client.state == {"x": 1, "a/b": {"c": None}}


async def test_a_producer_that_fails() -> None:
    async def producer(run: Run) -> None:
        with run.text() as message:
            message.write("so far")
            raise KeyError("a secret")

    client = client_of(producer)
    types, error = await until_error(client.run())
    assert isinstance(error, RunFailed)
    assert "secret" not in str(error)
    assert types[-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert contents(client) == ["so far"]


async def test_a_producer_that_gives_up() -> None:
    async def producer(run: Run) -> None:
        raise asyncio.CancelledError

    assert (await client_of(producer).run()).outcome == "cancelled"


async def test_the_producer_strips_and_rejects_as_over_http() -> None:
    async def producer(run: Run) -> None:
        raise AssertionError("started")

    class Unchecked(InProcessTransport):
        async def open(self, run_input: RunAgentInput) -> Any:
            bad = UserMessage(id="u1", content=5)  # type: ignore[arg-type]
            return await super().open(RunAgentInput(thread_id="t", run_id="r", messages=[bad]))

    run = AGUIClient(transport=Unchecked(producer)).run()
    with pytest.raises(InputRejected) as caught:
        await run
    assert caught.value.path == "/messages/0/content"
    assert run.outcome == "rejected"


async def test_deviations_of_the_producers_side() -> None:
    async def producer(run: Run) -> None: ...

    warnings: list[Deviation] = []
    await client_of(producer, on_deviation=warnings.append).run("hi")
    assert warnings == []


async def test_the_warnings_of_an_input_are_bounded() -> None:
    async def producer(run: Run) -> None: ...

    tool: Any = {"name": "t", "description": "", **dict.fromkeys("abcde", 1)}
    run_input = RunAgentInput(thread_id="t", run_id="r", messages=[], tools=[tool])
    for limit, told in ((2, 3), (5, 5)):
        warnings: list[Deviation] = []
        transport = InProcessTransport(producer, on_deviation=warnings.append, max_deviations=limit)
        await (await transport.open(run_input)).aclose()
        assert len(warnings) == told


# Backpressure


async def test_a_slow_reader_holds_the_producer_back() -> None:
    written = 0

    async def producer(run: Run) -> None:
        nonlocal written
        with run.text() as message:
            for _ in range(1000):
                message.write("x" * 100)
                written += 1
                await run.drain()

    client = client_of(producer, high_water=1000)
    run = client.run()
    await anext(run)
    for _ in range(50):
        await asyncio.sleep(0)
    assert 0 < written < 20
    assert len([event async for event in run]) == 1003
    assert (written, run.outcome) == (1000, "success")


async def test_a_producer_that_does_not_wait_is_cut_off_at_the_limit() -> None:
    refused = 0

    async def producer(run: Run) -> None:
        nonlocal refused
        with run.text() as message:
            while refused < 3:
                try:
                    message.write("x" * 1000)
                except OutletOverflow:
                    refused += 1
            await asyncio.Event().wait()

    client = client_of(producer, high_water=1000, max_buffered_bytes=10_000)
    run = client.run()
    types, error = await until_error(run)
    assert isinstance(error, TruncatedRun)
    assert "max_buffered_bytes" in str(error)
    assert 0 < types.count("TEXT_MESSAGE_CONTENT") < 10
    assert run.outcome == "truncated"


@pytest.mark.parametrize("limits", [{"high_water": -1}, {"high_water": 11, "max_buffered_bytes": 10}])
def test_limits_that_contradict_each_other(limits: dict[str, Any]) -> None:
    async def producer(run: Run) -> None: ...

    with pytest.raises(ValueError, match="max_buffered_bytes"):
        InProcessTransport(producer, **limits)


async def test_events_from_another_thread() -> None:
    async def producer(run: Run) -> None:
        def work() -> None:
            with run.text() as message:
                for number in range(200):
                    message.write(f"{number} ")
                assert read.wait(5)  # the reader is woken while the producer goes on

        await asyncio.to_thread(work)

    read = threading.Event()
    client = client_of(producer)
    run = client.run()
    async for _ in run:
        if contents(client) == ["".join(f"{number} " for number in range(200))]:
            read.set()
    assert run.outcome == "success"


# Leaving


async def test_leaving_cancels_the_producer_and_waits_for_it() -> None:
    steps: list[str] = []

    async def producer(run: Run) -> None:
        try:
            with run.text() as message:
                message.write("x")
                await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            for number in range(20):
                run.state.set({"cleaned": number * 1000 * "x"})  # nobody hears it, and nothing breaks
            await run.drain()
            steps.append("cleaned up")

    client = client_of(producer, high_water=1000, max_buffered_bytes=3000)
    async with client.run() as run:
        await anext(run)
    assert steps == ["cleaned up"]
    assert client.state == {}
    assert len(asyncio.all_tasks()) == 1


async def test_a_producer_that_does_not_leave_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    go_on = asyncio.Event()

    async def producer(run: Run) -> None:
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                continue

    client = client_of(producer, cancel_grace=0.01)
    run = client.run()
    await anext(run)
    with caplog.at_level(logging.ERROR, "accord"):
        await run.aclose()
    assert "cancel_grace" in caplog.text
    (left,) = asyncio.all_tasks() - {asyncio.current_task()}
    go_on.set()
    await asyncio.wait({left})


async def test_a_producer_held_back_is_let_go_when_the_reader_leaves() -> None:
    async def producer(run: Run) -> None:
        with run.text() as message:
            while True:
                message.write("x" * 1000)
                await run.drain()

    client = client_of(producer, high_water=1000)
    run = client.run()
    await anext(run)
    await asyncio.sleep(0)
    await run.aclose()
    assert len(asyncio.all_tasks()) == 1


async def test_whoever_else_waits_for_the_reader_is_let_go_too() -> None:
    waiting: list[asyncio.Task[None]] = []

    async def producer(run: Run) -> None:
        with run.text() as message:
            await read.wait()
            message.write("x" * 2000)
            waiting.append(asyncio.ensure_future(run.drain()))
            await asyncio.Event().wait()

    read = asyncio.Event()
    client = client_of(producer, high_water=1000)
    run = client.run()
    await anext(run)
    read.set()
    for _ in range(3):
        await asyncio.sleep(0)
    assert not waiting[0].done()
    await run.aclose()
    await waiting[0]


async def test_a_producer_that_goes_on_does_not_hold_the_loop() -> None:
    over = asyncio.Event()
    rounds = 0

    async def producer(run: Run) -> None:
        nonlocal rounds
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            while not over.is_set() and rounds < 100_000:
                rounds += 1
                await run.drain()

    client = client_of(producer)
    run = client.run()
    await anext(run)
    closing = asyncio.ensure_future(run.aclose())
    for _ in range(5):
        await asyncio.sleep(0)
    over.set()
    await closing
    assert rounds < 100


async def test_many_at_once_keep_to_themselves() -> None:
    async def producer(run: Run) -> None:
        said = run.input.messages[-1].content
        with run.text() as message:
            for part in str(said):
                message.write(part)
                await asyncio.sleep(0)
        run.state.set({"said": said})

    async def talk(number: int) -> None:
        client = client_of(producer)
        await client.run(f"number {number}")
        assert contents(client)[-1] == f"number {number}"
        assert client.state == {"said": f"number {number}"}

    await asyncio.gather(*(talk(number) for number in range(50)))
    assert threading.active_count() < 100
