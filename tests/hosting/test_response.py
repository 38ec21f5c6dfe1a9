from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import logging
from contextlib import suppress
from typing import Any

import httpx
import pytest

from accord.errors import TruncatedRun
from accord.hosting import AGUIEndpoint
from accord.producer import OutletOverflow, Producer, Run
from accord.protocol import RunErrorEvent, RunFinishedCancelledOutcome, RunFinishedEvent
from hosting.exchange import (
    Board,
    Recorder,
    connect,
    deltas_of,
    exchange,
    http_client,
    post,
    read_events,
    run_input,
    soon,
    types_of,
    values_of,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

SAY_HI = [
    "RUN_STARTED",
    "TEXT_MESSAGE_START",
    "TEXT_MESSAGE_CONTENT",
    "TEXT_MESSAGE_END",
    "RUN_FINISHED",
]


async def say_hi(run: Run) -> None:
    with run.text("m1") as message:
        message.write("hi")


class Held:
    """A producer that says one thing, waits, and tells what became of it."""

    def __init__(self) -> None:
        self.waiting = asyncio.Event()
        self.go_on = asyncio.Event()
        self.ended: list[str] = []

    async def __call__(self, run: Run) -> None:
        with run.text("m1") as message:
            message.write("first")
            self.waiting.set()
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                for _ in range(20):  # cleaning up takes its time
                    await asyncio.sleep(0)
                self.ended.append("cancelled")
                raise
            message.write("second")
        self.ended.append("finished")


class Flood:
    """A producer that writes much and waits for its reader, and tells when it is made to wait, or done."""

    def __init__(self, pieces: int = 1_000_000, size: int = 50_000) -> None:
        self.piece = "x" * size
        self.whole = pieces * size
        self.written = 0
        self.held = asyncio.Event()
        self.ended: list[str] = []

    async def __call__(self, run: Run) -> None:
        try:
            with run.text("m1") as message:
                while self.written < self.whole:
                    message.write(self.piece)
                    self.written += len(self.piece)
                    draining = asyncio.ensure_future(run.drain())
                    for _ in range(50):
                        await asyncio.sleep(0)
                    if not draining.done():
                        self.held.set()
                    await draining
            self.held.set()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise


# What a response is


async def test_a_run_as_it_is_on_the_wire(board: Board) -> None:
    async with board.serve(AGUIEndpoint(say_hi)) as url, http_client() as client:
        response = await client.post(url, json=run_input())
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream"
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["x-accel-buffering"] == "no"
    assert response.headers["vary"] == "Accept"
    frames = response.content.split(b"\n\n")
    assert frames.pop() == b""
    assert [json.loads(frame.removeprefix(b"data: "))["type"] for frame in frames] == SAY_HI
    assert b"\r" not in response.content
    assert types_of(read_events(response.content)) == SAY_HI


async def test_a_producer_that_fails_ends_in_run_error_and_tells_nothing_of_itself(board: Board) -> None:
    async def fail(run: Run) -> None:
        run.text("m1").write("hi")
        raise RuntimeError("the password is swordfish")

    async with board.serve(AGUIEndpoint(fail)) as url, exchange(url) as run:
        events = await run.rest()
        assert types_of(events)[-1] == "RUN_ERROR"
        assert b"swordfish" not in run.body
        assert b"Traceback" not in run.body


async def test_a_producer_that_cancels_itself_ends_in_the_cancelled_outcome(board: Board) -> None:
    async def give_up(run: Run) -> None:
        raise asyncio.CancelledError

    async with board.serve(AGUIEndpoint(give_up)) as url:
        last = (await post(url))[-1]
    assert isinstance(last, RunFinishedEvent)
    assert isinstance(last.outcome, RunFinishedCancelledOutcome)


async def test_what_the_request_was_served_in_is_there_for_the_producer(board: Board) -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who")

    async def tell(run: Run) -> None:
        run.custom("who", who.get())

    endpoint = AGUIEndpoint(tell)

    async def authenticated(scope: Any, receive: Any, send: Any) -> None:
        who.set("ann")
        await endpoint(scope, receive, send)

    async with board.serve(authenticated) as url, exchange(url) as run:
        await run.rest()
        assert b'"value":"ann"' in run.body


async def test_events_from_a_thread(board: Board) -> None:
    async def produce(run: Run) -> None:
        def work() -> None:
            for number in range(500):
                run.custom("n", number)

        await asyncio.to_thread(work)

    async with board.serve(AGUIEndpoint(produce)) as url:
        assert values_of(await post(url)) == list(range(500))


# When events leave


async def test_an_event_arrives_before_the_producer_goes_on(board: Board) -> None:
    held = Held()
    async with board.serve(AGUIEndpoint(held)) as url, exchange(url) as run:
        await run.until(b'"first"')
        assert not held.go_on.is_set()
        assert b'"second"' not in run.body
        held.go_on.set()
        events = await run.rest()
    assert types_of(events) == [*SAY_HI[:3], *SAY_HI[2:]]
    assert held.ended == ["finished"]


async def test_each_of_many_events_arrives_before_the_next_is_made(board: Board) -> None:
    gates = [asyncio.Event() for _ in range(5)]

    async def produce(run: Run) -> None:
        for number, gate in enumerate(gates):
            run.custom("n", f"number {number}")
            await gate.wait()

    async with board.serve(AGUIEndpoint(produce)) as url, exchange(url) as run:
        for number, gate in enumerate(gates):
            await run.until(b"number %d" % number)
            gate.set()
        await run.rest()


async def test_events_that_are_ready_together_leave_together(board: Board) -> None:
    async def produce(run: Run) -> None:
        for number in range(100):
            run.custom("n", number)

    app = Recorder(AGUIEndpoint(produce))
    async with board.serve(app) as url:
        events = await post(url)
    assert len(events) == 102
    assert [bool(body) for body in app.bodies] == [True, False]  # all events, the end


async def test_one_send_is_bounded(board: Board) -> None:
    async def produce(run: Run) -> None:
        for number in range(100):
            run.custom("n", number)
        run.custom("large", "x" * 5000)

    app = Recorder(AGUIEndpoint(produce, batch_bytes=1000))
    async with board.serve(app) as url:
        assert len(await post(url)) == 103
    sizes = [len(body) for body in app.bodies]
    assert max(sizes) == 1000
    assert len(sizes) == -(-sum(sizes) // 1000) + 1


async def test_events_that_follow_one_another_closely_gather_and_the_first_does_not_wait(board: Board) -> None:
    async def produce(run: Run) -> None:
        for number in range(100):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            run.custom("n", number)

    app = Recorder(AGUIEndpoint(produce, batch_bytes=1000, batch_delay=3600))
    async with board.serve(app) as url:
        assert len(await post(url)) == 102
    first, *others = app.bodies
    assert first.count(b"data:") < 3
    assert len(others) <= sum(map(len, others)) // 1000 + 2


async def test_a_producer_that_waits_for_room_is_not_held_until_more_has_gathered(board: Board) -> None:
    async def produce(run: Run) -> None:
        for number in range(100):
            run.custom("n", number)
            await run.drain()

    async with board.serve(AGUIEndpoint(produce, high_water=0, batch_delay=3600)) as url:
        assert len(await post(url)) == 102


async def test_comments_keep_an_idle_connection_open(board: Board) -> None:
    held = Held()
    app = Recorder(AGUIEndpoint(held, keep_alive=0.005))
    async with board.serve(app) as url, exchange(url) as run:
        while run.body.count(b": keep-alive\n\n") < 3:
            await run.until(b": keep-alive\n\n" * (run.body.count(b": keep-alive\n\n") + 1))
        held.go_on.set()
        assert types_of(await run.rest()) == [*SAY_HI[:3], *SAY_HI[2:]]
    assert all(body == b": keep-alive\n\n" or b"keep-alive" not in body for body in app.bodies)


# A reader that does not keep up


async def test_a_slow_reader_holds_the_producer_and_loses_nothing(board: Board) -> None:
    flood = Flood(pieces=400)
    async with board.serve(AGUIEndpoint(flood)) as url, exchange(url) as run:
        await soon(flood.held.wait())
        assert flood.written < flood.whole / 2  # of 20 MB; the sockets hold some of them
        events = await run.rest()
    assert flood.written == flood.whole
    assert deltas_of(events) == [flood.piece] * 400


async def test_a_producer_that_does_not_wait_for_its_reader_fails_its_run(board: Board) -> None:
    refused: list[OutletOverflow] = []

    async def produce(run: Run) -> None:
        with run.text("m1") as message:
            try:
                for number in range(1000):
                    message.write(f"number {number}")
            except OutletOverflow as error:
                refused.append(error)
                raise

    async with board.serve(AGUIEndpoint(produce, max_buffered_bytes=10_000, high_water=100)) as url:
        events = await post(url)
    assert refused
    *delivered, last = events
    assert isinstance(last, RunErrorEvent)
    assert last.code == "reader_too_slow"
    deltas = deltas_of(delivered)
    assert 0 < len(deltas) < 1000
    assert deltas == [f"number {number}" for number in range(len(deltas))]  # and no hole


async def overlook_and_return(run: Run) -> None:
    with suppress(OutletOverflow):
        run.custom("large", "x" * 20_000)
    with suppress(OutletOverflow):
        run.custom("small", 1)


async def overlook_and_go_on(run: Run) -> None:
    await overlook_and_return(run)
    await asyncio.Event().wait()


async def overlook_and_clean_up(run: Run) -> None:
    try:
        await overlook_and_go_on(run)
    finally:
        with suppress(OutletOverflow):
            run.custom("small", 1)


@pytest.mark.parametrize("producer", [overlook_and_return, overlook_and_go_on, overlook_and_clean_up])
async def test_a_refused_event_is_never_followed_by_a_success(board: Board, producer: Producer) -> None:
    async with board.serve(AGUIEndpoint(producer, max_buffered_bytes=10_000, high_water=100)) as url:
        assert types_of(await post(url)) == ["RUN_STARTED", "RUN_ERROR"]


async def test_a_client_that_takes_nothing_is_given_up(board: Board, caplog: pytest.LogCaptureFixture) -> None:
    flood = Flood()
    app = Recorder(AGUIEndpoint(flood, send_timeout=0.02))
    async with board.serve(app) as url, exchange(url):
        await app.until_over()
    assert flood.ended == ["cancelled"]
    assert "send_timeout" in caplog.text


# A client that leaves


async def test_leaving_while_the_producer_waits(board: Board) -> None:
    held = Held()
    app = Recorder(AGUIEndpoint(held))
    async with board.serve(app) as url:
        async with exchange(url) as run:
            await run.until(b'"first"')
        await app.until_over()
        assert held.ended == ["cancelled"]  # its cleaning up is over when the request is
    assert app.errors == [None]
    assert app.after_disconnect == []


async def test_leaving_before_the_first_event_is_read(board: Board) -> None:
    held = Held()
    app = Recorder(AGUIEndpoint(held))
    async with board.serve(app) as url:
        async with connect(url) as client:
            client.request()
            await soon(held.waiting.wait())
        await app.until_over()
    assert held.ended == ["cancelled"]
    assert app.errors == [None]
    assert app.after_disconnect == []


async def test_leaving_during_a_slow_send(board: Board) -> None:
    flood = Flood()
    app = Recorder(AGUIEndpoint(flood))
    async with board.serve(app) as url:
        async with exchange(url):
            await soon(flood.held.wait())
        await app.until_over()
    assert flood.ended == ["cancelled"]
    assert app.errors == [None]
    assert app.after_disconnect == []


async def test_closing_the_sending_half_is_leaving(board: Board) -> None:
    held = Held()
    app = Recorder(AGUIEndpoint(held))
    async with board.serve(app) as url, connect(url) as client:
        client.request()
        await client.until(b'"first"')
        client.writer.write_eof()
        await app.until_over()
    assert held.ended == ["cancelled"]
    assert app.after_disconnect == []


async def test_leaving_after_the_end(board: Board) -> None:
    app = Recorder(AGUIEndpoint(say_hi))
    async with board.serve(app) as url:
        async with connect(url) as client:
            client.request()
            await client.until(b"0\r\n\r\n")
        await app.until_over()
    assert app.errors == [None]
    assert app.bodies[-1] == b""


async def test_a_producer_that_goes_on_is_reported_and_left_to_itself(
    board: Board, caplog: pytest.LogCaptureFixture
) -> None:
    waiting, go_on, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def stubborn(run: Run) -> None:
        waiting.set()
        while not go_on.is_set():
            with suppress(asyncio.CancelledError):
                await go_on.wait()
        for _ in range(10):
            run.custom("nobody", "reads this")
            await run.drain()
        ended.set()

    app = Recorder(AGUIEndpoint(stubborn, cancel_grace=0.01, max_buffered_bytes=200, high_water=0))
    async with board.serve(app) as url:
        async with exchange(url, runId="r-7"):
            await soon(waiting.wait())
        await app.until_over()
        assert not ended.is_set()
        [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert "r-7" in record.getMessage()
        assert "cancel_grace" in record.getMessage()
        go_on.set()
        await soon(ended.wait())
    assert app.errors == [None]
    assert app.after_disconnect == []


async def test_a_producer_left_to_itself_is_not_lost(board: Board) -> None:
    waiting = asyncio.Event()

    async def stubborn(run: Run) -> None:
        waiting.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    app = Recorder(AGUIEndpoint(stubborn, cancel_grace=0))
    async with board.serve(app) as url:
        async with exchange(url, runId="r-8"):
            await soon(waiting.wait())
        await app.until_over()
    gc.collect()
    [task] = [task for task in asyncio.all_tasks() if task.get_name() == "accord run r-8"]
    task.cancel()


# A server that stops. It cancels the application, as here is done without the server's waiting before it.


async def test_stopping_lets_the_last_words_leave(board: Board) -> None:
    held = Held()
    app = Recorder(AGUIEndpoint(held))
    async with board.serve(app) as url, exchange(url) as run:
        await run.until(b'"first"')
        assert app.task is not None
        app.task.cancel()
        await app.until_over()
        last = (await run.rest())[-1]
    assert held.ended == ["cancelled"]
    assert isinstance(app.errors[0], asyncio.CancelledError)
    assert isinstance(last, RunFinishedEvent)
    assert isinstance(last.outcome, RunFinishedCancelledOutcome)


async def test_cleaning_up_is_not_cut_short_by_a_client_that_leaves_meanwhile(board: Board) -> None:
    waiting, cleaning, tidy = asyncio.Event(), asyncio.Event(), asyncio.Event()
    cleaned = []

    async def produce(run: Run) -> None:
        waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await tidy.wait()
            cleaned.append(run.run_id)

    app = Recorder(AGUIEndpoint(produce))
    async with board.serve(app) as url:
        async with exchange(url):
            await soon(waiting.wait())
            assert app.task is not None
            app.task.cancel()
            await soon(cleaning.wait())
        await app.until_left()
        for _ in range(20):
            await asyncio.sleep(0)
        tidy.set()
        await app.until_over()
    assert cleaned == ["r1"]


async def test_stopping_does_not_wait_for_a_reader_that_takes_nothing(board: Board) -> None:
    flood = Flood()
    app = Recorder(AGUIEndpoint(flood, cancel_grace=0.01))
    async with board.serve(app) as url, exchange(url) as run:
        await soon(flood.held.wait())
        assert app.task is not None
        app.task.cancel()
        await app.until_over()
        assert flood.ended == ["cancelled"]
        with pytest.raises((httpx.RemoteProtocolError, TruncatedRun)):
            await run.rest()


async def test_stopping_twice_stops_at_once(board: Board) -> None:
    go_on, waiting = asyncio.Event(), asyncio.Event()

    async def stubborn(run: Run) -> None:
        waiting.set()
        while not go_on.is_set():
            with suppress(asyncio.CancelledError):
                await go_on.wait()

    app = Recorder(AGUIEndpoint(stubborn, cancel_grace=3600))
    async with board.serve(app) as url, exchange(url):
        await soon(waiting.wait())
        assert app.task is not None
        while not app.task.done():
            app.task.cancel()
            await asyncio.sleep(0)
        go_on.set()


# Servers of other kinds, played by hand


async def played(endpoint: AGUIEndpoint, send: Any, *, leave: asyncio.Event | None = None) -> None:
    """One request; `http.disconnect` comes when `leave` is set."""
    messages = [{"type": "http.request", "body": json.dumps(run_input()).encode(), "more_body": False}]

    async def receive() -> Any:
        if messages:
            return messages.pop()
        await (leave or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    headers = [(b"content-type", b"application/json")]
    await endpoint({"type": "http", "method": "POST", "headers": headers}, receive, send)


async def test_nothing_is_sent_to_one_who_leaves_before_the_first_byte() -> None:
    held, leave = Held(), asyncio.Event()
    sent = []

    async def send(message: Any) -> None:
        leave.set()
        await held.go_on.wait()
        sent.append(message)

    await played(AGUIEndpoint(held), send, leave=leave)
    assert held.ended == ["cancelled"]
    held.go_on.set()
    await asyncio.sleep(0)
    assert sent == []


async def test_the_last_events_do_not_wait_for_others() -> None:
    sent, ended = asyncio.Event(), asyncio.Event()
    bodies: list[bytes] = []

    async def produce(run: Run) -> None:
        await sent.wait()
        run.custom("n", 1)
        ended.set()

    async def send(message: Any) -> None:
        bodies.append(message.get("body", b""))
        if b"RUN_STARTED" in bodies[-1]:
            sent.set()
            await ended.wait()
            for _ in range(5):
                await asyncio.sleep(0)

    await soon(played(AGUIEndpoint(produce, batch_delay=3600), send))
    assert b"RUN_FINISHED" in bodies[-2]


async def test_an_event_made_at_the_moment_of_leaving_is_not_sent() -> None:
    leave = asyncio.Event()
    after: list[str] = []

    async def produce(run: Run) -> None:
        run.custom("n", 1)
        await leave.wait()
        run.custom("n", 2)
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        if leave.is_set():
            after.append(message["type"])
        if b'"value":1' in message.get("body", b""):
            asyncio.get_running_loop().call_soon(leave.set)

    await played(AGUIEndpoint(produce, batch_delay=0), send, leave=leave)
    assert after == []


async def test_a_send_that_fails_because_the_client_left() -> None:
    held = Held()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            raise OSError("the client has left")

    await played(AGUIEndpoint(held), send)
    assert held.ended == ["cancelled"]


async def test_a_server_that_is_broken_is_told_so() -> None:
    held = Held()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            raise KeyError("server")

    with pytest.raises(KeyError):
        await played(AGUIEndpoint(held), send)
    assert held.ended == ["cancelled"]
