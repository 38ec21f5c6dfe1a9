from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from accord.consumer import Pipeline
from accord.errors import ProtocolViolation, TruncatedRun
from accord.wire import MAX_FRAME_BYTES, ProtobufReader, frame, protobuf_reader
from wire.envelopes import GOLDEN, Raw, encoded

FRAMES = [frame(bytes.fromhex(hexed)) for _, hexed in GOLDEN]
EVENTS = [raw for raw, _ in GOLDEN]
TEXT: Raw = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "d"}
BAD = frame(b"\xff")


def read(pieces: Iterable[bytes], **limits: int) -> tuple[list[Any], str]:
    """What a reader makes of a body: its events and how it ended."""
    reader = ProtobufReader(**limits)
    events: list[Any] = []
    try:
        for piece in pieces:
            events += map(plain, reader.feed(piece))
        reader.close()
    except TruncatedRun:
        return events, "truncated"
    except ProtocolViolation as violation:
        return events, f"{violation.stage} {violation.rule} {violation.index}"
    return events, "clean"


def plain(event: bytes | Raw) -> Any:
    return json.loads(event) if isinstance(event, bytes) else event


def by_the_book(body: bytes, limit: int) -> tuple[int, str]:
    """How many frames a body has before it ends, read naively, and how it ends."""
    count = 0
    while body:
        if len(body) < 4:
            return count, "truncated"
        size = 4 + int.from_bytes(body[:4], "big")
        if size > limit:
            return count, f"wire frame-limit {count}"
        if len(body) < size:
            return count, "truncated"
        if body[:size] not in FRAMES:
            return count, f"wire undecodable {count}"
        count += 1
        body = body[size:]
    return count, "clean"


def cut(body: bytes, places: Iterable[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(body) + 1) for place in places), len(body)]
    return [body[start:end] for start, end in pairwise(bounds)]


bodies = st.tuples(
    st.lists(st.sampled_from([*FRAMES, *FRAMES, BAD]), max_size=8).map(b"".join),
    st.sampled_from([b"", b"", b"\0", b"\0\0\0", b"\0\0\0\2\0", b"\0\xa0\0\0", FRAMES[0][:-1]]),
).map(b"".join)


@settings(max_examples=300, deadline=None)
@given(body=bodies, places=st.lists(st.integers(0, 400), max_size=6), limit=st.just(1 << 20) | st.integers(4, 80))
@example(body=FRAMES[0] + BAD + FRAMES[1], places=[], limit=1 << 20)
@example(body=FRAMES[0] * 3, places=[2, len(FRAMES[0]), len(FRAMES[0]) + 4], limit=len(FRAMES[0]))
def test_any_split_reads_the_same(body: bytes, places: list[int], limit: int) -> None:
    whole = read([body], max_frame_bytes=limit)
    count, end = by_the_book(body, limit)
    assert (len(whole[0]), whole[1]) == (count, end)
    assert read(cut(body, places), max_frame_bytes=limit) == whole
    assert read([body[at : at + 1] for at in range(len(body))], max_frame_bytes=limit) == whole


def test_frames_are_handed_out_by_the_read_that_ends_them() -> None:
    one, two = FRAMES[0], FRAMES[1]
    reader = ProtobufReader()
    assert reader.feed(one[:3]) == []
    assert reader.feed(one[3:7]) == []
    assert list(map(plain, reader.feed(one[7:] + two + one[:5]))) == EVENTS[:2]
    assert reader.feed(b"") == []
    assert list(map(plain, reader.feed(one[5:]))) == EVENTS[:1]
    reader.close()


def test_all_golden_events_in_one_read() -> None:
    assert read([b"".join(FRAMES)]) == (EVENTS, "clean")


def test_what_is_handed_out_enters_the_pipeline() -> None:
    snapshot: Raw = {"type": "STATE_SNAPSHOT", "snapshot": {"a": ["x" * 10_000, 1.5, None]}}
    sent = [{"type": "RUN_STARTED", "threadId": "t", "runId": "r"}, snapshot]
    pipeline = Pipeline()
    handed = ProtobufReader().feed(b"".join(frame(encoded(raw)) for raw in sent))
    assert [type(each) for each in handed] == [bytes, dict]  # a short event as text, a long one as it is
    events = [event for each in handed for event in pipeline.feed(each)]
    assert [event.type for event in events] == ["RUN_STARTED", "STATE_SNAPSHOT"]
    assert events[1].snapshot == snapshot["snapshot"]  # type: ignore[union-attr]


@pytest.mark.parametrize("tail", [b"\0", b"\0\0\0", b"\0\0\0\1", b"\0\0\0\5\x12"])
def test_ending_inside_a_frame_is_truncation(tail: bytes) -> None:
    assert read([FRAMES[0], tail]) == (EVENTS[:1], "truncated")
    assert read([FRAMES[0] + tail]) == (EVENTS[:1], "truncated")
    assert read([tail]) == ([], "truncated")


def test_truncation_says_how_much_came() -> None:
    reader = ProtobufReader()
    reader.feed(FRAMES[0] + b"\0\0\0\x10abc")
    with pytest.raises(TruncatedRun, match="7 of at least 20 bytes"):
        reader.close()


def test_ending_between_frames_is_clean() -> None:
    assert read([]) == ([], "clean")
    assert read([b""]) == ([], "clean")
    assert read([FRAMES[0]]) == (EVENTS[:1], "clean")


def test_an_empty_frame_holds_no_event() -> None:
    assert read([FRAMES[0], b"\0\0\0\0"]) == (EVENTS[:1], "wire no-event 1")


def test_a_violation_waits_for_what_came_before_it_and_stays() -> None:
    reader = ProtobufReader()
    assert list(map(plain, reader.feed(FRAMES[0] + FRAMES[1] + BAD + FRAMES[2]))) == EVENTS[:2]
    for call in (lambda: reader.feed(FRAMES[0]), reader.close):
        with pytest.raises(ProtocolViolation, match="event 2"):
            call()


# --- limits


def test_the_limit_counts_the_length_and_passes_itself() -> None:
    whole = frame(encoded(TEXT))
    assert read([whole], max_frame_bytes=len(whole)) == ([TEXT], "clean")
    assert read([whole], max_frame_bytes=len(whole) - 1) == ([], "wire frame-limit 0")


def test_a_long_frame_is_refused_by_its_length_alone() -> None:
    longest = MAX_FRAME_BYTES - 4
    assert ProtobufReader().feed(longest.to_bytes(4, "big")) == []
    for length in (longest + 1, 2**32 - 1):
        with pytest.raises(ProtocolViolation, match=f"{length + 4} bytes is longer than max_frame_bytes=10485760"):
            ProtobufReader().feed(length.to_bytes(4, "big"))
    reader = ProtobufReader()
    *before, last = (longest + 1).to_bytes(4, "big")
    for byte in before:
        assert reader.feed(bytes([byte])) == []
    with pytest.raises(ProtocolViolation, match="max_frame_bytes"):
        reader.feed(bytes([last]))


def test_nesting_is_bounded() -> None:
    nested: Raw = {"type": "CUSTOM", "name": "n", "value": [[[0]]]}
    assert read([frame(encoded(nested))], max_depth=3) == ([nested], "clean")
    assert read([frame(encoded(nested))], max_depth=2) == ([], "wire depth 0")


# --- work, counted in bytes copied


def metered(base: type[Any], spent: list[int]) -> type[Any]:
    """A subclass of `bytes` or `bytearray` that notes in `spent` how many bytes it copies."""

    class Metered(base):  # type: ignore[misc]
        def __getitem__(self, key: Any) -> Any:
            part = super().__getitem__(key)
            spent.append(1 if isinstance(key, int) else len(part))
            return part

        def __iadd__(self, other: Any) -> Any:
            spent.append(len(other))
            return super().__iadd__(other)

        def __bytes__(self) -> bytes:
            spent.append(len(self))
            return bytes(memoryview(self))

    return Metered


@pytest.mark.parametrize("size", [1, 100, 4096, 1 << 20])
@pytest.mark.parametrize(
    "make", [lambda: frame(encoded(TEXT)) * 2_000, lambda: frame(encoded({**TEXT, "delta": "x" * 80_000}))]
)
def test_bytes_cost_their_number(monkeypatch: pytest.MonkeyPatch, make: Callable[[], bytes], size: int) -> None:
    body = make()
    spent: list[int] = []
    kind = metered(bytes, spent)
    monkeypatch.setattr(protobuf_reader, "bytearray", metered(bytearray, spent), raising=False)
    events, end = read(kind(body[at : at + size]) for at in range(0, len(body), size))
    assert (len(events), end) == (body.count(b"\x08\x01\x12\x01m"), "clean")
    assert len(body) / 2 < sum(spent) < 5 * len(body)
