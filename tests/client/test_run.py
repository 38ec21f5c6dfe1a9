from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from accord.client import AGUIClient, ClientRun, InProcessTransport, ReplayTransport
from accord.errors import InputRejected, ProtocolViolation, RunFailed, TruncatedRun
from accord.producer import Run
from accord.protocol import RunFinishedEvent
from client.streams import Script, call, contents, failed, finished, interrupted, started, text, until_error


def replaying(*events: dict[str, Any], **options: Any) -> AGUIClient:
    return AGUIClient(transport=ReplayTransport(events), **options)


# The six ends


async def test_success() -> None:
    client = replaying(started(), *text("Hello"), finished(result={"n": 1}))
    run = client.run("hi", run_id="mine")
    assert (run.run_id, run.outcome) == ("mine", None)
    async for _ in run:
        assert run.outcome is None
    assert (run.outcome, run.result, run.error) == ("success", {"n": 1}, None)
    assert [message.id for message in run.new_messages] == ["m1"]


async def test_interrupt() -> None:
    run = await replaying(started(), interrupted("i1", "i2")).run()
    assert (run.outcome, run.error) == ("interrupt", None)
    assert [interrupt.id for interrupt in run.interrupts] == ["i1", "i2"]


async def test_cancelled() -> None:
    run = await replaying(started(), finished(outcome={"type": "cancelled"})).run()
    assert (run.outcome, run.error) == ("cancelled", None)


async def test_failed() -> None:
    run = replaying(started(), *text("par")[:2], failed("no model", code="busy")).run()
    types, error = await until_error(run)
    assert types[-1] == "RUN_ERROR"
    assert isinstance(error, RunFailed)
    assert (error.message, error.code) == ("no model", "busy")
    assert (run.outcome, run.error) == ("failed", error)


async def test_rejected() -> None:
    run = replaying(started(), finished("another")).run()
    types, error = await until_error(run)
    assert types == ["RUN_STARTED"]
    assert isinstance(error, ProtocolViolation)
    assert (run.outcome, run.error) == ("rejected", error)


async def test_truncated() -> None:
    run = replaying(started(), *text("par")[:2]).run()
    types, error = await until_error(run)
    assert len(types) == 3
    assert isinstance(error, TruncatedRun)
    assert (run.outcome, run.error) == ("truncated", error)


async def test_an_outcome_nobody_knows_is_success() -> None:
    assert (await replaying(started(), finished(outcome={"type": "shelved"})).run()).outcome == "success"


async def test_an_end_is_no_other_end_the_second_time() -> None:
    for events, error in [
        ([started(), failed()], RunFailed),
        ([started(), failed(), failed()], ProtocolViolation),
        ([started()], TruncatedRun),
    ]:
        run = replaying(*events).run()
        for _ in range(3):
            with pytest.raises(error):
                await run
    run = await replaying(started(), finished()).run()
    assert [event async for event in run] == []


# Several runs on one stream


async def test_the_last_run_of_a_stream_says_how_it_ended() -> None:
    run = replaying(started("r1"), failed("first"), started("r2"), *text("b"), finished("r2", result=2)).run()
    assert len([event async for event in run]) == 7
    assert (run.outcome, run.result) == ("success", 2)


async def test_a_late_error_makes_the_run_failed() -> None:
    client = replaying(started(), finished(result=1), failed("disk full"))
    run = client.run()
    types, error = await until_error(run)
    assert types == ["RUN_STARTED", "RUN_FINISHED", "RUN_ERROR"]
    assert isinstance(error, RunFailed)
    assert run.outcome == "failed"
    assert client.runs[-1].status == "failed"


async def test_a_run_that_begins_after_another_and_is_cut_is_truncated() -> None:
    run = replaying(started("r1"), finished("r1"), started("r2")).run()
    types, error = await until_error(run)
    assert len(types) == 3
    assert isinstance(error, TruncatedRun)


# Awaiting, leaving


async def endless(run: Run) -> None:
    with run.text() as message:
        while True:
            message.write("more ")
            await run.drain()
            await asyncio.sleep(0)


class Endless:
    """A producer that goes on until it is cancelled, and tells."""

    def __init__(self) -> None:
        self.cancelled = asyncio.Event()
        self.client = AGUIClient(transport=InProcessTransport(self))

    async def __call__(self, run: Run) -> None:
        try:
            await endless(run)
        finally:
            self.cancelled.set()


async def test_nothing_is_sent_before_the_first_event_is_asked_for() -> None:
    transport = ReplayTransport([started(), finished()])
    client = AGUIClient(transport=transport)
    run = client.run("hi")
    await asyncio.sleep(0)
    assert transport.sent == []
    await run.aclose()
    assert (run.outcome, type(run.error)) == ("truncated", TruncatedRun)
    assert [event async for event in run] == []
    assert transport.sent == []
    await client.run("hello")
    assert contents(client) == ["hello"]


async def test_closing_within_the_loop_ends_it() -> None:
    endless = Endless()
    run = endless.client.run()
    seen = 0
    async for _ in run:
        seen += 1
        if seen == 3:
            await run.aclose()
    assert seen == 3
    assert endless.cancelled.is_set()
    assert (run.outcome, run.result) == ("truncated", None)
    assert "stopped by the application" in str(run.error)
    with pytest.raises(TruncatedRun):
        await run
    await run.aclose()


async def test_closing_after_the_end_changes_nothing() -> None:
    run = await replaying(started(), finished()).run()
    await run.aclose()
    assert (run.outcome, run.error) == ("success", None)
    run = replaying(started(), failed()).run()
    await until_error(run)
    await run.aclose()
    with pytest.raises(RunFailed):
        await anext(run)


async def test_leaving_after_run_finished_has_come_is_no_success_either() -> None:
    async with replaying(started(), finished()).run() as run:
        async for event in run:
            if isinstance(event, RunFinishedEvent):
                break
    assert run.outcome == "truncated"


async def test_a_with_block_closes_the_run() -> None:
    endless = Endless()
    async with endless.client.run() as run:
        await anext(run)
    assert endless.cancelled.is_set()
    assert run.outcome == "truncated"


async def test_a_break_closes_a_run_that_nobody_holds() -> None:
    endless = Endless()
    async for _ in endless.client.run():
        break
    await endless.cancelled.wait()
    assert endless.client.runs[-1].status == "truncated"
    assert not gc.garbage


async def test_a_break_leaves_a_run_that_somebody_holds_to_the_next_one() -> None:
    endless = Endless()
    run = endless.client.run("one")
    async for _ in run:
        break
    assert run.outcome is None
    async with endless.client.run("two") as second:
        await anext(second)
        assert run.outcome == "truncated"
        assert endless.cancelled.is_set()
    with pytest.raises(TruncatedRun, match="next one began"):
        await anext(run)


async def test_a_run_inside_another_one_ends_it() -> None:
    client = replaying(started(), *text("a"), finished())
    outer = client.run("outer")
    types = []

    async def nested() -> None:
        async for event in outer:
            types.append(event.type)
            await client.run("inner")

    with pytest.raises(TruncatedRun):
        await nested()
    assert types == ["RUN_STARTED"]


async def test_a_run_that_another_task_reads_stands_in_the_way() -> None:
    endless = Endless()
    run = endless.client.run("one")
    reading = asyncio.ensure_future(_read(run))
    while endless.client.runs == []:  # noqa: ASYNC110  there is nothing to wait on before the run has begun
        await asyncio.sleep(0)
    second = endless.client.run("two")
    with pytest.raises(InputRejected, match="open in another task"):
        await second
    assert second.outcome == "rejected"
    assert run.outcome is None
    await run.aclose()
    await reading
    async with endless.client.run("three") as third:
        await anext(third)


async def test_a_run_whose_reader_has_ended_stands_in_nobodys_way() -> None:
    endless = Endless()
    run = endless.client.run("one")
    reading: asyncio.Task[object] = asyncio.ensure_future(anext(run))
    await reading
    async with endless.client.run("two") as second:
        await anext(second)
    assert run.outcome == "truncated"


async def test_two_tasks_that_begin_at_once_do_not_both_run() -> None:
    client = replaying(started(), *text("a"), finished())
    ends = await asyncio.gather(client.run("one"), client.run("two"), return_exceptions=True)
    assert [type(end) for end in ends] == [ClientRun, InputRejected]
    assert contents(client) == ["one", "a"]


async def _read(run: ClientRun) -> int:
    return len([event async for event in run])


async def test_closing_from_several_tasks() -> None:
    endless = Endless()
    run = endless.client.run()
    reading = asyncio.ensure_future(_read(run))
    while endless.client.runs == []:  # noqa: ASYNC110
        await asyncio.sleep(0)
    await asyncio.gather(run.aclose(), run.aclose(), endless.client.aclose())
    await reading
    assert run.outcome == "truncated"


async def test_closing_while_the_reader_works_on_an_event() -> None:
    cleaning = asyncio.Event()
    clean = asyncio.Event()

    async def slow_to_leave(run: Run) -> None:
        try:
            await endless(run)
        finally:
            cleaning.set()
            await clean.wait()

    client = AGUIClient(transport=InProcessTransport(slow_to_leave))
    run = client.run()
    await anext(run)
    closing = asyncio.ensure_future(run.aclose())
    await cleaning.wait()
    reading = asyncio.ensure_future(_read(run))  # asks for the next event while the run is being closed
    await asyncio.sleep(0)
    clean.set()
    await closing
    assert await reading == 0


async def test_a_cancellation_from_outside_is_not_swallowed_by_a_stop() -> None:
    endless = Endless()
    run = endless.client.run()
    reading = asyncio.ensure_future(_read(run))
    while endless.client.runs == []:  # noqa: ASYNC110
        await asyncio.sleep(0)
    stopping = asyncio.ensure_future(run.aclose())
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await stopping


async def test_two_tasks_cannot_wait_for_one_runs_events() -> None:
    endless = Endless()
    run = endless.client.run()
    reading = asyncio.ensure_future(_read(run))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="another task"):
        await anext(run)
    await run.aclose()
    await reading
    assert endless.cancelled.is_set()


async def test_a_stop_is_not_lost_in_middleware_that_swallows_it() -> None:
    waiting = asyncio.Event()

    async def stubborn(raw: dict[str, Any]) -> dict[str, Any]:
        if raw["type"] == "RUN_FINISHED":
            waiting.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return raw
        return raw

    run = replaying(started(), *text("a"), finished(), middleware=[stubborn]).run()
    reading = asyncio.ensure_future(_read(run))
    await waiting.wait()
    await run.aclose()
    assert await reading == 4
    assert reading.cancelling() == 0
    assert run.outcome == "truncated"


async def test_a_run_that_fails_has_no_result() -> None:
    def beep() -> None: ...

    calls = [started("r1"), *call("beep"), finished("r1", result=1)]
    client = AGUIClient(transport=Script(calls, [started("r2"), failed()]), tools=[beep])
    run = client.run()
    await until_error(run)
    assert (run.outcome, run.result) == ("failed", None)


async def test_a_deadline_around_a_run() -> None:
    endless = Endless()
    run = endless.client.run()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await run
    assert endless.cancelled.is_set()
    assert run.outcome == "truncated"


async def test_new_messages_are_those_of_the_run_and_stay_so() -> None:
    transport = ReplayTransport([started(), *text("a"), finished()])
    client = AGUIClient(transport=transport, messages=["before"])
    run = client.run("hi")
    await anext(run)
    assert run.new_messages == []
    await run
    client.messages = []
    assert [message.id for message in run.new_messages] == ["m1"]


async def test_an_error_of_the_callback_for_deviations_ends_the_run() -> None:
    def strict(deviation: object) -> None:
        raise KeyError(str(deviation))

    run = replaying(started(), {"type": "NEWS"}, finished(), on_deviation=strict).run()
    await anext(run)
    with pytest.raises(KeyError):
        await anext(run)
    assert run.outcome == "truncated"
    assert isinstance(run.error, KeyError)
