"""The binary wire of an endpoint: who gets it, and that a run on it is the run that an event stream would have been."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from accord.hosting import AGUIEndpoint
from accord.producer import OutletOverflow, Producer, Run
from accord.protocol import AddOperation, Interrupt, RunErrorEvent, StateDeltaEvent, TextPart, TokenUsage, to_wire
from accord.wire import PROTOBUF_MEDIA_TYPE, SSE_MEDIA_TYPE, encode_protobuf, frame
from hosting.exchange import (
    Board,
    Recorder,
    connect,
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


async def say_hi(run: Run) -> None:
    with run.text("m1") as message:
        message.write("hi")


async def say_everything(run: Run) -> None:
    with run.step("plan"), run.reasoning("q1", span_id="s1") as reasoning:
        reasoning.write("hm")
    with run.text("m1", metadata={"k": [None, 1, 1.5]}) as message:
        message.write("Zürich \U0001f95a ")
        message.write("")
    with run.tool_call("find", "c1") as call:
        call.write('{"q": ')
        call.write("1}")
    run.tool_result("c1", [TextPart(text="found")], message_id="m2")
    run.state.set({"list": [1, 2.5, None, True, "é"], "empty": {}, "null": None})
    with run.state.edit() as draft:
        draft["list"].append({"a": "b"})
        draft["large"] = "x" * 10_000
    run.activity("plan", {"steps": []}, message_id="a1")
    run.custom("c", {"": [0, -0.5]})
    run.raw({"any": None}, source="s")
    run.encrypted_value("message", "m1", "sealed")
    with run.subagent("helper", "s1", description="helps"), run.text("m3", subagent_run_id="s1") as message:
        message.write("from within")
    run.usage(TokenUsage(provider="p", model="m", input_tokens=3, output_tokens=0))
    run.interrupt(Interrupt(id="i1", reason="confirm", metadata={"k": None}))
    run.result = {"done": [True]}


# Who gets it


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ([PROTOBUF_MEDIA_TYPE], PROTOBUF_MEDIA_TYPE),
        (["*/*"], PROTOBUF_MEDIA_TYPE),
        (["application/*;q=0.1"], PROTOBUF_MEDIA_TYPE),
        ([f"text/event-stream, {PROTOBUF_MEDIA_TYPE};q=0.1"], PROTOBUF_MEDIA_TYPE),
        (["text/event-stream", PROTOBUF_MEDIA_TYPE], PROTOBUF_MEDIA_TYPE),
        (["text/event-stream"], SSE_MEDIA_TYPE),
        ([f"*/*, {PROTOBUF_MEDIA_TYPE};q=0"], SSE_MEDIA_TYPE),
        (["*/*;q=0"], SSE_MEDIA_TYPE),
        (["text/*, application/json"], SSE_MEDIA_TYPE),
        ([f'text/html;x=", {PROTOBUF_MEDIA_TYPE}'], SSE_MEDIA_TYPE),
        (["\xff\xfe;;,"], SSE_MEDIA_TYPE),
        ([""], SSE_MEDIA_TYPE),
        ([], SSE_MEDIA_TYPE),
    ],
)
async def test_the_wire_is_the_one_that_accept_admits(board: Board, accept: list[str], content_type: str) -> None:
    async with board.serve(AGUIEndpoint(say_hi)) as url, http_client() as client:
        del client.headers["Accept"]
        headers = [(b"accept", each.encode("latin-1")) for each in accept]
        response = await client.post(url, json=run_input(), headers=headers)
    assert response.status_code == 200
    assert response.headers["content-type"] == content_type
    assert response.headers["vary"] == "Accept"
    assert types_of(read_events(response.content, content_type)) == [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]


async def test_a_refusal_is_json_whatever_was_asked_for(board: Board) -> None:
    async with board.serve(AGUIEndpoint(say_hi)) as url, http_client(PROTOBUF_MEDIA_TYPE) as client:
        response = await client.post(url, json={})
    assert (response.status_code, response.headers["content-type"]) == (422, "application/json")
    assert response.json()["error"]["code"] == "invalid_input"


# What it is


async def test_each_event_is_a_frame(board: Board) -> None:
    async with board.serve(AGUIEndpoint(say_everything)) as url, http_client(PROTOBUF_MEDIA_TYPE) as client:
        response = await client.post(url, json=run_input())
        assert response.headers["cache-control"] == "no-cache"
        assert response.headers["x-accel-buffering"] == "no"
        events = read_events(response.content, PROTOBUF_MEDIA_TYPE)
        assert b"".join(frame(encode_protobuf(event)) for event in events) == response.content
        assert [to_wire(event) for event in events] == [to_wire(event) for event in await post(url)]
    assert len(set(types_of(events))) > 20


async def test_frames_are_cut_where_a_send_is_full(board: Board) -> None:
    app = Recorder(AGUIEndpoint(say_everything, batch_bytes=7))
    async with board.serve(app) as url:
        events = await post(url, accept=PROTOBUF_MEDIA_TYPE)
        assert max(map(len, app.bodies)) == 7
        assert types_of(events) == types_of(await post(url))


async def test_an_event_arrives_before_the_next_is_made(board: Board) -> None:
    gates = [asyncio.Event() for _ in range(5)]

    async def produce(run: Run) -> None:
        for number, gate in enumerate(gates):
            run.custom("n", f"number {number}")
            await gate.wait()

    async with board.serve(AGUIEndpoint(produce)) as url, exchange(url, accept=PROTOBUF_MEDIA_TYPE) as run:
        for number, gate in enumerate(gates):
            await run.until(b"number %d" % number)
            gate.set()
        assert values_of(await run.rest()) == [f"number {number}" for number in range(5)]


async def test_nothing_is_sent_to_keep_a_connection_open(board: Board) -> None:
    go_on = asyncio.Event()

    async def hold(run: Run) -> None:
        run.custom("n", 1)
        await go_on.wait()

    endpoint = AGUIEndpoint(hold, keep_alive=0.005)
    binary, text = Recorder(endpoint), Recorder(endpoint)
    async with (
        board.serve(binary) as binary_url,
        board.serve(text) as text_url,
        exchange(binary_url, accept=PROTOBUF_MEDIA_TYPE) as run,
        exchange(text_url) as clock,
    ):
        await run.until(b"n")
        while clock.body.count(b": keep-alive\n\n") < 3:
            await clock.until(b": keep-alive\n\n" * (clock.body.count(b": keep-alive\n\n") + 1))
        go_on.set()
        assert types_of(await run.rest()) == ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]
        await clock.rest()
    assert [bool(body) for body in binary.bodies] == [True, True, False]


# Runs that fail


async def fail(run: Run) -> None:
    run.text("m1").write("hi")
    raise RuntimeError("the password is swordfish")


async def cancel(run: Run) -> None:
    raise asyncio.CancelledError


def sends(value: Any) -> Producer:
    async def produce(run: Run) -> None:
        run.custom("fine", 1)
        run.emit(StateDeltaEvent(delta=[AddOperation(path="/a", value=value)]))

    return produce


async def bad_result(run: Run) -> None:
    run.result = "\ud83d"


@pytest.mark.parametrize(
    ("producer", "code"),
    [
        (fail, "internal_error"),
        (sends(float("nan")), "invalid_event"),
        (sends(float("-inf")), "invalid_event"),
        (sends("\ud83d"), "invalid_event"),
        (sends(object()), "invalid_event"),
        (bad_result, "invalid_event"),
    ],
    ids=["error", "nan", "infinity", "surrogate", "object", "result"],
)
async def test_a_run_fails_as_it_does_in_an_event_stream(board: Board, producer: Producer, code: str) -> None:
    async with board.serve(AGUIEndpoint(producer)) as url:
        binary, text = await post(url, accept=PROTOBUF_MEDIA_TYPE), await post(url)
    assert [to_wire(event) for event in binary] == [to_wire(event) for event in text]
    last = binary[-1]
    assert isinstance(last, RunErrorEvent)
    assert last.code == code


async def test_a_cancelled_run_is_told(board: Board) -> None:
    async with board.serve(AGUIEndpoint(cancel)) as url:
        assert to_wire((await post(url, accept=PROTOBUF_MEDIA_TYPE))[-1])["outcome"] == {"type": "cancelled"}


async def test_a_number_that_no_frame_holds_fails_the_run_and_nothing_of_it_leaves(board: Board) -> None:
    async with board.serve(AGUIEndpoint(sends(10**400))) as url:
        events = await post(url, accept=PROTOBUF_MEDIA_TYPE)
    assert types_of(events) == ["RUN_STARTED", "CUSTOM", "RUN_ERROR"]


async def test_a_refused_event_is_followed_by_a_framed_error(board: Board) -> None:
    async def overlook(run: Run) -> None:
        with suppress(OutletOverflow):
            run.custom("large", "x" * 20_000)
        await asyncio.Event().wait()

    async with board.serve(AGUIEndpoint(overlook, max_buffered_bytes=10_000, high_water=100)) as url:
        events = await post(url, accept=PROTOBUF_MEDIA_TYPE)
    assert types_of(events) == ["RUN_STARTED", "RUN_ERROR"]
    assert isinstance(events[-1], RunErrorEvent)
    assert events[-1].code == "reader_too_slow"


async def test_leaving_cancels_the_producer(board: Board) -> None:
    waiting, ended = asyncio.Event(), asyncio.Event()

    async def wait(run: Run) -> None:
        waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    app = Recorder(AGUIEndpoint(wait))
    async with board.serve(app) as url:
        async with connect(url) as client:
            client.request("Accept: */*")
            await soon(waiting.wait())
            assert await client.until(b"\x62")  # the arm of RUN_STARTED
        await app.until_over()
    assert ended.is_set()
    assert app.errors == [None]
    assert app.after_disconnect == []
