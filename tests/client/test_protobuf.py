"""The binary wire at the client: asked for by name, read by what the answer declares, ending as any stream does."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from accord.client import AGUIClient, HTTPTransport, InProcessTransport, ReplayTransport, Wire
from accord.consumer import Deviation
from accord.errors import AccordError, ProtocolViolation, RunFailed, TransportError, TruncatedRun
from accord.producer import Run
from accord.protocol import RunFinishedEvent, RunStartedEvent, TextMessageChunkEvent, decode_event, to_wire
from accord.wire import PROTOBUF_MEDIA_TYPE, SSE_MEDIA_TYPE, encode_protobuf, frame
from client.raw_server import CHUNKED, STREAM, answer, chunk, raw_server, until_left, until_told
from client.streams import contents, failed, finished, interrupted, sse, started, text, until_error

Raw = dict[str, Any]


def frames(*events: Raw) -> bytes:
    """Events as the body of a binary response."""
    return b"".join(frame(encode_protobuf(decode_event(json.dumps(event), max_depth=1_000))) for event in events)


FRAMES = answer("200 OK", PROTOBUF_MEDIA_TYPE)
CHUNKED_FRAMES = CHUNKED.replace(SSE_MEDIA_TYPE.encode(), PROTOBUF_MEDIA_TYPE.encode())
RUN = [started(), *text("Zür", "ich"), finished(result={"n": [None, 1.5]})]
WHOLE = frames(*RUN)
#: A frame whose envelope is no message, and one that is longer than any may be.
UNDECODABLE = b"\0\0\0\1\xff"
ENDLESS = b"\x7f\xff\xff\xff"


def playing(recording: Any, **options: Any) -> AGUIClient:
    return AGUIClient(transport=ReplayTransport(recording, content_type=PROTOBUF_MEDIA_TYPE, **options))


# Asking


@pytest.mark.parametrize(
    ("wire", "accept"),
    [
        ({}, "text/event-stream"),
        ({"wire": "sse"}, "text/event-stream"),
        ({"wire": "protobuf"}, PROTOBUF_MEDIA_TYPE),
        ({"wire": "auto"}, f"text/event-stream, {PROTOBUF_MEDIA_TYPE}"),
    ],
)
async def test_what_is_asked_for(wire: dict[str, Any], accept: str) -> None:
    headers = {"ACCEPT": "text/html"}
    async with raw_server(FRAMES, WHOLE) as peer, AGUIClient(peer.url, headers=headers, **wire) as client:
        await client.run()
    assert peer.requests[0].headers["accept"] == accept


def test_a_wire_that_cannot_be_asked_for() -> None:
    with pytest.raises(ValueError, match="wire='json' must be one of auto, sse, protobuf"):
        HTTPTransport("http://127.0.0.1/", wire="json")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="wire= belong to a url"):
        AGUIClient(transport=ReplayTransport([]), wire="protobuf")


# Reading


@pytest.mark.parametrize("wire", ["auto", "sse", "protobuf"])
@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (PROTOBUF_MEDIA_TYPE, WHOLE),
        (f"{PROTOBUF_MEDIA_TYPE}; charset=utf-8", WHOLE),
        ("Application/Vnd.AG-UI.Event+Proto ;v=1", WHOLE),
        (SSE_MEDIA_TYPE, sse(*RUN)),
        ("text/event-stream;charset=UTF-8", sse(*RUN)),
    ],
)
async def test_the_answer_is_read_as_what_it_declares(wire: Wire, content_type: str, body: bytes) -> None:
    async with raw_server(answer("200 OK", content_type), body) as peer, AGUIClient(peer.url, wire=wire) as client:
        run = client.run("hi")
        assert [to_wire(event) async for event in run] == RUN
        assert (run.outcome, run.result) == ("success", {"n": [None, 1.5]})
        assert contents(client) == ["hi", "Zürich"]


@pytest.mark.parametrize("wire", ["auto", "sse", "protobuf"])
@pytest.mark.parametrize(
    "content_type",
    ["text/html", "application/json", "application/x-protobuf", "application/vnd.ag-ui.event", "application/*", None],
)
async def test_another_content_type_is_an_error(wire: Wire, content_type: str | None) -> None:
    async with raw_server(answer("200 OK", content_type), WHOLE) as peer, AGUIClient(peer.url, wire=wire) as client:
        run = client.run("hi")
        with pytest.raises(TransportError) as caught:
            await run
        assert (run.outcome, client.messages, caught.value.status) == ("truncated", [], 200)
        assert f"where {SSE_MEDIA_TYPE} or {PROTOBUF_MEDIA_TYPE} is due" in str(caught.value)
        assert str(caught.value).isprintable()


async def test_frames_that_are_called_an_event_stream_are_no_success() -> None:
    for head, body in ((STREAM, WHOLE), (FRAMES, sse(*RUN))):
        async with raw_server(head, body) as peer, AGUIClient(peer.url) as client:
            types, error = await until_error(client.run("hi"))
            assert types == []
            assert isinstance(error, TruncatedRun | ProtocolViolation)


async def test_an_event_is_handed_out_before_the_next_read() -> None:
    steps = (CHUNKED_FRAMES, chunk(frames(*RUN[:3])), until_told, chunk(frames(*RUN[3:])), chunk(b""))
    async with raw_server(*steps) as peer, AGUIClient(peer.url, wire="protobuf") as client:
        run = client.run()
        assert [(await anext(run)).type for _ in range(3)][-1] == "TEXT_MESSAGE_CONTENT"
        assert contents(client) == ["Zür"]
        peer.go_on.set()
        await run
        assert contents(client) == ["Zürich"]


async def test_an_event_of_a_later_version_is_dropped_with_a_warning() -> None:
    warnings: list[Deviation] = []
    recording = frames(*RUN[:2]) + frame(b"\x9a\x06\x00") + frames(*RUN[2:])
    transport = ReplayTransport(recording, content_type=PROTOBUF_MEDIA_TYPE)
    client = AGUIClient(transport=transport, on_deviation=warnings.append)
    assert [event.type async for event in client.run()] == [event["type"] for event in RUN]
    assert [(warning.stage, warning.event_type, warning.index) for warning in warnings] == [
        ("enforcement", "(envelope arm 99)", 2)
    ]


async def test_middleware_sees_raw_events() -> None:
    seen: list[Any] = []

    def look(event: Any) -> Any:
        seen.append(event)
        return event

    transport = ReplayTransport(WHOLE, content_type=PROTOBUF_MEDIA_TYPE)
    client = AGUIClient(transport=transport, middleware=[look])
    await client.run()
    assert seen == RUN


# Ends


@pytest.mark.parametrize(
    ("ending", "outcome", "error"),
    [
        ([finished()], "success", None),
        ([finished(outcome={"type": "cancelled"})], "cancelled", None),
        ([interrupted("i1")], "interrupt", None),
        ([failed("no model")], "failed", RunFailed),
        ([finished(), failed("late")], "failed", RunFailed),
        ([], "truncated", TruncatedRun),
        ([finished("another")], "rejected", ProtocolViolation),
    ],
)
async def test_each_end_is_told_apart(ending: list[Raw], outcome: str, error: type[AccordError] | None) -> None:
    events = [started(), *text("a"), *ending]
    client = playing(frames(*events))
    run = client.run()
    if error is None:
        await run
    else:
        with pytest.raises(error):
            await run
    assert run.outcome == outcome
    assert contents(client) == ["a"]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(WHOLE)), st.integers(1, 60))
@example(len(WHOLE), 60)
async def test_a_body_cut_anywhere_is_truncated_and_keeps_what_came(cut: int, chunk_bytes: int) -> None:
    client = playing(WHOLE[:cut], chunk_bytes=chunk_bytes)
    run = client.run()
    types: list[str] = []
    try:
        async for event in run:
            types.append(event.type)
    except TruncatedRun:
        assert run.outcome == "truncated"
    assert (run.outcome == "success") is (cut == len(WHOLE))
    ends = [len(frames(*RUN[: number + 1])) for number in range(len(RUN))]
    assert len(types) == sum(end <= cut for end in ends)
    assert "Zürich".startswith("".join(contents(client)))


@pytest.mark.parametrize("left", [1, 4, 5, 11])
async def test_a_connection_that_ends_inside_a_frame(left: int) -> None:
    body = frames(*RUN[:3]) + frames(RUN[3])[:left]
    for steps in ((FRAMES, body), (CHUNKED_FRAMES, chunk(body))):
        async with raw_server(*steps) as peer, AGUIClient(peer.url, wire="protobuf") as client:
            run = client.run()
            types, error = await until_error(run)
            assert (run.outcome, types[-1], contents(client)) == ("truncated", "TEXT_MESSAGE_CONTENT", ["Zür"])
            assert isinstance(error, TruncatedRun)
            assert f"inside a frame: {left} of" in str(error)


async def test_a_frame_that_begins_after_the_run_is_cut_too() -> None:
    run = playing(WHOLE + b"\0").run()
    types, error = await until_error(run)
    assert (run.outcome, types[-1], type(error)) == ("truncated", "RUN_FINISHED", TruncatedRun)


@pytest.mark.parametrize(
    ("bad", "rule"),
    [
        (UNDECODABLE, "undecodable"),
        (ENDLESS, "frame-limit"),
        (b"\0\0\0\0", "no-event"),
        (frame(bytes.fromhex("620a0a02080b1201741a01726a0a0a02080c1201741a0172")), "several-arms"),
        (frame(bytes.fromhex("620a0a02080c1201741a0172")), "type"),
    ],
)
@pytest.mark.parametrize("apart", [False, True], ids=["in one read", "in two reads"])
async def test_what_is_wrong_ends_the_run_at_once_and_what_came_before_stays(
    bad: bytes, rule: str, apart: bool
) -> None:
    before = frames(*RUN[:3])
    steps: tuple[Any, ...] = (chunk(before), until_told, chunk(bad)) if apart else (chunk(before + bad),)
    async with (
        raw_server(CHUNKED_FRAMES, *steps, until_left) as peer,
        AGUIClient(peer.url, wire="protobuf") as client,
    ):
        run = client.run()
        types = [(await anext(run)).type for _ in range(3)]
        peer.go_on.set()
        async with asyncio.timeout(30):
            with pytest.raises(ProtocolViolation) as caught:
                await anext(run)
            await peer.left.wait()
        assert types[-1] == "TEXT_MESSAGE_CONTENT"
        assert (caught.value.stage, caught.value.rule, caught.value.index) == ("wire", rule, 3)
        assert (run.outcome, contents(client)) == ("rejected", ["Zür"])


async def test_what_is_wrong_in_an_event_stream_ends_the_run_at_once_too() -> None:
    body = sse(*RUN[:3]) + b"data: " + b"x" * 2_000
    async with (
        raw_server(CHUNKED, chunk(body), until_left) as peer,
        AGUIClient(peer.url, max_frame_bytes=1_000) as client,
    ):
        async with asyncio.timeout(30):
            types, error = await until_error(client.run())
        assert (len(types), type(error)) == (3, ProtocolViolation)


@pytest.mark.parametrize(
    ("limits", "events"),
    [
        ({"max_events": 2}, RUN),
        ({"max_depth": 3}, [started(), {"type": "STATE_SNAPSHOT", "snapshot": [[[[]]]]}, finished()]),
        ({"max_depth": 6}, [started(), {"type": "STATE_SNAPSHOT", "snapshot": [[[[[[5_000 * "x"]]]]]]}, finished()]),
        ({"max_messages": 1}, [started(), *text("a"), *text("b", message_id="m2"), finished()]),
        ({"max_frame_bytes": 100}, [started(), *text("a" * 100), finished()]),
    ],
)
async def test_a_limit_that_is_passed_names_itself(limits: dict[str, Any], events: list[Raw]) -> None:
    for head, body in ((FRAMES, frames(*events)), (STREAM, sse(*events))):
        async with raw_server(head, body) as peer, AGUIClient(peer.url, **limits) as client:
            run = client.run()
            with pytest.raises(ProtocolViolation, match=next(iter(limits))):
                await run
            assert run.outcome == "rejected"


async def test_a_limit_that_is_raised_holds_on_both_wires() -> None:
    value: Any = "x" * 5_000
    for _ in range(300):
        value = [value]
    events = [started(), {"type": "STATE_SNAPSHOT", "snapshot": value}, finished()]
    for recording, content_type in ((frames(*events), PROTOBUF_MEDIA_TYPE), (sse(*events), SSE_MEDIA_TYPE)):
        transport = ReplayTransport(recording, content_type=content_type)
        client = AGUIClient(transport=transport, max_depth=400)
        await client.run()
        assert client.state == value
        with pytest.raises(ProtocolViolation, match="max_depth"):
            await AGUIClient(transport=transport).run()


async def test_the_limit_itself_passes() -> None:
    events = [started(), *text("a" * 100), finished()]
    longest = max(len(frames(event)) for event in events)
    async with raw_server(FRAMES, frames(*events)) as peer, AGUIClient(peer.url, max_frame_bytes=longest) as client:
        assert (await client.run()).outcome == "success"


# Recordings


async def test_typed_and_raw_events_make_the_same_recording() -> None:
    raw = [started(), {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m1", "delta": "é"}, finished()]
    typed = [
        RunStartedEvent(thread_id="t1", run_id="r1"),
        TextMessageChunkEvent(message_id="m1", delta="é"),
        RunFinishedEvent(thread_id="t1", run_id="r1"),
    ]
    for recording in (raw, typed, frames(*raw)):
        client = playing(recording, chunk_bytes=3)
        await client.run()
        assert contents(client) == ["é"]


def test_frames_hold_nothing_that_is_malformed() -> None:
    for broken in ({"type": "STATE_SNAPSHOT", "snapshot": float("nan")}, {"type": "FUTURE"}, started(future=1), {}):
        with pytest.raises(ProtocolViolation):
            playing([started(), broken])


async def test_a_producer_in_process_and_its_recording_say_the_same() -> None:
    async def producer(run: Run) -> None:
        with run.text("m1") as message:
            message.write("hi")
        run.state.set({"a": [None]})

    client = AGUIClient(transport=InProcessTransport(producer))
    events = [event async for event in client.run()]
    again = playing(events)
    assert [event async for event in again.run()] == events
    assert (again.state, contents(again)) == (client.state, contents(client))
