"""Recordings through the whole client: the streams of the field reports, and the corpus."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from accord.client import AGUIClient, ReplayTransport
from accord.consumer import Deviation
from accord.errors import AccordError, ProtocolViolation, TransportError, TruncatedRun
from accord.protocol import RunFinishedEvent, RunStartedEvent, TextMessageChunkEvent, to_wire
from client.streams import contents, finished, sse, started, text, until_error
from support.corpus import corpus_files


def playing(recording: Any, **options: Any) -> AGUIClient:
    return AGUIClient(transport=ReplayTransport(recording, **options))


async def test_typed_and_raw_events_make_the_same_recording() -> None:
    raw = [started(), {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m1", "delta": "é"}, finished()]
    typed = [
        RunStartedEvent(thread_id="t1", run_id="r1"),
        TextMessageChunkEvent(message_id="m1", delta="é"),
        RunFinishedEvent(thread_id="t1", run_id="r1"),
    ]
    clients = [playing(recording) for recording in (raw, typed, sse(*raw))]
    for client in clients:
        await client.run()
    assert [contents(client) for client in clients] == [["é"]] * 3


async def test_each_run_plays_it_from_the_beginning() -> None:
    transport = ReplayTransport([started(), *text("a"), finished()])
    client = AGUIClient(transport=transport)
    assert [len([event async for event in client.run()]) for _ in range(2)] == [5, 5]
    assert len(transport.sent) == 2


async def test_a_recording_of_something_else() -> None:
    with pytest.raises(TransportError, match="application/json"):
        await playing(b"{}", content_type="application/json").run()
    with pytest.raises(TruncatedRun):
        await playing(b"").run()


async def test_a_raw_recording_may_be_as_broken_as_it_likes() -> None:
    for broken in ({"type": "STATE_SNAPSHOT", "snapshot": float("nan")}, {"type": 5}, {}):
        with pytest.raises(ProtocolViolation):
            await playing([started(), broken]).run()


# Field reports

WHOLE = sse(started(), *text("half", " more"), finished())


@pytest.mark.parametrize("chunk_bytes", [1, 7, 100_000])
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (sse(started(), *text("half", " more")[:2]), ["half"]),
        (b"", []),
        (b": ping\n\n: ping\n\n", []),
        (sse(started(), *text("half", " more")[:2]) + b'data: {"type":"TEXT_MESSAGE_CONTENT"', ["half"]),
        (sse(started(), *text("half", " more")[:3])[:-1], ["half"]),
        (WHOLE[:-1], ["half more"]),
    ],
)  # fmt: skip
async def test_a_cut_stream_is_no_success(body: bytes, said: list[str], chunk_bytes: int) -> None:
    client = playing(body, chunk_bytes=chunk_bytes)
    run = client.run()
    _, error = await until_error(run)
    assert isinstance(error, TruncatedRun)
    assert (run.outcome, run.result) == ("truncated", None)
    assert contents(client) == said


@settings(max_examples=40, deadline=None)
@given(st.integers(0, len(WHOLE)), st.integers(1, 60))
@example(len(WHOLE), 60)
async def test_a_stream_cut_anywhere_is_truncated_and_keeps_what_came(cut: int, chunk_bytes: int) -> None:
    client = playing(WHOLE[:cut], chunk_bytes=chunk_bytes)
    run = client.run()
    types: list[str] = []
    try:
        async for event in run:
            types.append(event.type)
    except TruncatedRun:
        assert run.outcome == "truncated"
    else:
        assert run.outcome == "success"
    assert (run.outcome == "success") is (cut == len(WHOLE))
    assert len(types) == WHOLE[:cut].count(b"\n\n")
    assert "half more".startswith("".join(contents(client)))


@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 5, 1000])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
async def test_line_separators_in_text_split_nothing(line_end: bytes, chunk_bytes: int) -> None:
    deltas = ["a\u2028b", "c\u2029d", "e\u0085f", "\U0001f600", "\u00e9\n\r\t"]
    frames = [
        b"data:" + json.dumps(each, ensure_ascii=False).encode() for each in (started(), *text(*deltas), finished())
    ]
    client = playing(b"".join(frame + 2 * line_end for frame in frames), chunk_bytes=chunk_bytes)
    assert (await client.run()).outcome == "success"
    assert contents(client) == ["".join(deltas)]


async def test_a_surrogate_pair_cut_in_two_is_one_character() -> None:
    transport = ReplayTransport([started(), *text("smile \ud83d", "\ude00!"), finished()])
    client = AGUIClient(transport=transport)
    run = client.run()
    deltas = [event.delta async for event in run if event.type == "TEXT_MESSAGE_CONTENT"]  # type: ignore[union-attr]
    assert deltas == ["smile \ud83d", "\ude00!"]
    assert run.outcome == "success"
    assert contents(client) == ["smile \U0001f600!"]
    await client.run("again")
    assert to_wire(transport.sent[1])["messages"][0]["content"] == "smile \U0001f600!"


# The corpus


CASES = {path.stem: json.loads(path.read_text()) for path in corpus_files("streams/*.json")}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_the_corpus_through_the_client(case: dict[str, Any]) -> None:
    expected = case["expect"]
    warnings: list[Deviation] = []
    client = AGUIClient(
        transport=ReplayTransport(case["stream"]),
        state=case.get("input", {}).get("state", {}),
        peer_version=case.get("client", {}).get("maxProtocolVersion"),
        on_deviation=warnings.append,
    )
    run = client.run()
    types: list[str] = []
    failure: AccordError | None = None
    try:
        async for event in run:
            types.append(event.type)
    except AccordError as error:
        failure = error
    outcomes = {
        "completed": {"success", "interrupt", "cancelled", "failed"},
        "failed": {"rejected"},
        "truncated": {"truncated"},
    }
    assert run.outcome in outcomes[expected["outcome"]], failure
    assert (failure is None) is (run.outcome in {"success", "interrupt", "cancelled"})
    if "runError" in expected:
        assert expected["runError"] in [record.error for record in client.runs]
    if "eventTypes" in expected:
        assert types == expected["eventTypes"]
    if "messageCount" in expected and "input" not in case:
        assert len(client.messages) == expected["messageCount"]
    if "state" in expected:
        assert client.state == expected["state"]
    if expected.get("noWarnings"):
        assert warnings == []
