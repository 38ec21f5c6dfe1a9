from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from accord.errors import EncodingError, ProtocolViolation, TruncatedRun
from accord.wire import SSEReader, comment, encode_frame, encode_frames, sse

BOM = b"\xef\xbb\xbf"
TOO_LONG = "wire frame-limit"


def read(pieces: Iterable[bytes], *, limit: int = 1 << 20) -> tuple[list[bytes], str]:
    """What a reader makes of a stream: its payloads and how it ended."""
    reader = SSEReader(max_frame_bytes=limit)
    payloads: list[bytes] = []
    try:
        for piece in pieces:
            payloads += reader.feed(piece)
        reader.close()
    except TruncatedRun:
        return payloads, "truncated"
    except ProtocolViolation as violation:
        return payloads, f"{violation.stage} {violation.rule}"
    return payloads, "clean"


def by_the_book(stream: bytes, *, limit: int = 1 << 20) -> tuple[list[bytes], str]:
    """The same by the grammar, read naively from the whole stream."""
    payloads: list[bytes] = []
    data: list[bytes] = []
    held = 0
    *lines, rest = re.split(rb"\r\n|\r|\n", b"" if stream in (BOM[:1], BOM[:2]) else stream.removeprefix(BOM))
    for line in lines:
        if held + len(line) > limit:
            return payloads, TOO_LONG
        if line == b"":
            if data:
                payloads.append(b"\n".join(data))
            data, held = [], 0
            continue
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
            held += len(line)
    if held + len(rest) > limit:
        return payloads, TOO_LONG
    may_be_data = rest != b"" and (b"data:".startswith(rest) or rest.startswith(b"data:"))
    return payloads, "truncated" if data or may_be_data else "clean"


def cut(stream: bytes, places: Iterable[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[start:end] for start, end in pairwise(bounds)]


fragments = st.sampled_from(
    [
        b"data: ", b"data:", b"data", b"da", b"data: {}\n\n", b"data: [1]\n\n", b"\n\ndata: ", b"{}", b" ", b":",
        b": ping\n\n", b"event: x", b"id: 1\n", b"retry:5\r\n", b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r", b"\r\n\r\n",
        BOM, BOM[:2], BOM[2:], "😀".encode(), "\u2028\u2029\u0085".encode(), b"\x00", b"\xff",
    ]
)  # fmt: skip
lines = st.tuples(
    st.sampled_from([b"data: {}", b"data:  1 ", b"data", b": ping", b"event: x", b"", b""]),
    st.sampled_from([b"\n", b"\r", b"\r\n"]),
).map(b"".join)
frames = st.sampled_from([b"data: {}\n\n", b"data: {}\r\n\r\n", b": ping\n\n"])
streams = st.one_of([st.lists(part, max_size=16).map(b"".join) for part in (fragments, lines, frames)])


@settings(max_examples=600, deadline=None)
@given(stream=streams, places=st.lists(st.integers(0, 200), max_size=6), limit=st.just(1 << 20) | st.integers(1, 40))
@example(stream=BOM + b"data: {}\n\n", places=[1, 2], limit=1 << 20)
@example(stream=b"data: {}\r\n\r\ndata: {}\n\n", places=[9, 11], limit=1 << 20)
@example(stream=b"data: 1\r\ndata: 2\r\n\r\n", places=[8], limit=1 << 20)
@example(stream=b"data: 1\n\ndata: 22\n\ndata: 333\n\n", places=[], limit=8)
def test_any_split_reads_as_the_grammar_says(stream: bytes, places: list[int], limit: int) -> None:
    expected = by_the_book(stream, limit=limit)
    assert read([stream], limit=limit) == expected
    assert read(cut(stream, places), limit=limit) == expected
    assert read([stream[i : i + 1] for i in range(len(stream))], limit=limit) == expected


@pytest.mark.parametrize(
    ("stream", "payloads"),
    [
        (b"data: {}\n\n", [b"{}"]),
        (b"data: {}\r\n\r\n", [b"{}"]),
        (b"data: {}\r\r", [b"{}"]),
        (b"data: 1\r\n\ndata: 2\n\r\n", [b"1", b"2"]),
        (b"data:{}\n\n", [b"{}"]),
        (b"data:  {}\n\n", [b" {}"]),
        (b"data:\t{}\n\n", [b"\t{}"]),
        (b'data: {"a":\ndata: 1}\n\n', [b'{"a":\n1}']),
        (b"event: message\nid: 7\nretry: 10\ndata: {}\n\n", [b"{}"]),
        (b"data: {}\nid: 7\n\n", [b"{}"]),
        (b": hello\n\n: again\ndata: {}\n: within\n\n", [b"{}"]),
        (b"event: ping\n\n\n\n", []),
        (b"data\n\n", [b""]),
        (b"data:\n\n", [b""]),
        (b"data: \n\n", [b""]),
        (b"data\ndata\n\n", [b"\n"]),
        (b"datax: 1\nDATA: 2\n data: 3\n\n", []),
        (BOM + b"data: {}\n\n", [b"{}"]),
        (BOM + BOM + b"data: 1\n\ndata: 2\n\n", [b"2"]),
        (b"data: 1\n\n" + BOM + b"data: 2\n\n", [b"1"]),
        ('data: "a\u2028b\u2029c\u0085d"\n\n'.encode(), ['"a\u2028b\u2029c\u0085d"'.encode()]),
        (b"data: \x00\xff\xf0\x9f\n\n", [b"\x00\xff\xf0\x9f"]),
        (b"data: 1\n\n\n\ndata: 2\n\n\n", [b"1", b"2"]),
    ],
)
def test_grammar(stream: bytes, payloads: list[bytes]) -> None:
    assert by_the_book(stream) == (payloads, "clean")
    assert read([stream]) == (payloads, "clean")
    assert read(cut(stream, range(len(stream)))) == (payloads, "clean")


def test_an_event_is_handed_out_by_the_read_that_ends_it() -> None:
    reader = SSEReader()
    assert reader.feed(b"data: 1\n") == []
    assert reader.feed(b"\n") == [b"1"]
    assert reader.feed(b"data: 2\r\n\r") == [b"2"]
    assert reader.feed(b"\ndata: 3\n\ndata: ") == [b"3"]
    assert reader.feed(b"") == []
    reader.feed(b"4\n\n")
    reader.close()


def test_a_character_split_between_reads_stays_whole() -> None:
    stream = 'data: "😀"\n\n'.encode()
    for at in range(len(stream)):
        assert read([stream[:at], stream[at:]]) == (['"😀"'.encode()], "clean")


@pytest.mark.parametrize(
    "tail",
    [
        b"data: {}",
        b"data: {}\n",
        b"data: {}\r\n",
        b"data: {}\n: comment",
        b"data",
        b"d",
        b"data: {}\n\ndata: {",
        b"data\n",
    ],
)
def test_ending_inside_an_event_is_truncation(tail: bytes) -> None:
    assert read([b"data: 1\n\n", tail])[1] == "truncated"


@pytest.mark.parametrize(
    "tail", [b"", b": bye", b": bye\n", b"\n", b"\r", b"event: x", b"event: x\n", b"datax", BOM, BOM[:2]]
)
def test_ending_between_events_is_clean(tail: bytes) -> None:
    assert read([b"data: 1\n\n", tail]) == ([b"1"], "clean")
    assert read([tail]) == ([], "clean")


def test_truncation_says_how_much_came() -> None:
    reader = SSEReader()
    reader.feed(b"data: {}\n\ndata: 12\ndata:")
    with pytest.raises(TruncatedRun, match="13 bytes"):
        reader.close()


# --- limits


def test_the_limit_itself_passes() -> None:
    frame = b"data: " + b"x" * 94
    assert read([frame + b"\n\n"], limit=100) == ([b"x" * 94], "clean")
    assert read([frame + b"x\n\n"], limit=100) == ([], TOO_LONG)
    assert read([frame, b"x"], limit=100) == ([], TOO_LONG)
    assert read([(frame + b"\n\n") * 3 + frame + b"x\n\n"], limit=100) == ([b"x" * 94] * 3, TOO_LONG)


def test_lines_of_one_event_count_together() -> None:
    assert read([b"data: x\n" * 14 + b"\n"], limit=100)[1] == "clean"
    assert read([b"data: x\n" * 15 + b"\n"], limit=100) == ([], TOO_LONG)
    assert read([b"data: x\n\n" * 1000], limit=100)[1] == "clean"


@pytest.mark.parametrize("line", [b"data: ", b": ", b"event: "])
def test_the_line_being_read_counts_with_the_event(line: bytes) -> None:
    event = b"data: " + b"x" * 54 + b"\n"
    line += b"x" * (41 - len(line))
    for pieces in ([event, line], [event, line, b"\n\n"], [event + line + b"\n\n"], [event, line[:-1], line[-1:]]):
        assert read(pieces, limit=100) == ([], TOO_LONG)
    assert read([event, line[:-1], b"\n\n"], limit=100)[1] == "clean"


def test_comments_do_not_count_once_ended() -> None:
    assert read([b"data: x\n", *[b": keep-alive\n"] * 1000, b"\n"], limit=100) == ([b"x"], "clean")


@pytest.mark.parametrize("start", [b": ", b"event: ", b"data: ", b"<!doctype html>"])
def test_a_line_without_end_is_refused(start: bytes) -> None:
    assert read([start, *[b"x" * 10] * 10], limit=100) == ([], TOO_LONG)


def test_a_violation_waits_for_what_came_before_it_and_stays() -> None:
    reader = SSEReader(max_frame_bytes=10)
    assert reader.feed(b"data: 1\n\ndata: " + b"x" * 10) == [b"1"]
    for call in (lambda: reader.feed(b"data: 2\n\n"), reader.close):
        with pytest.raises(ProtocolViolation, match="max_frame_bytes=10"):
            call()


def test_an_ignored_line_takes_no_memory() -> None:
    reader = SSEReader()
    reader.feed(b": ")
    tracemalloc.start()
    for _ in range(200):
        reader.feed(b"x" * 10_000)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 50_000


# --- work, counted in bytes searched, copied or appended

WHOLE = ("find", "rfind", "index", "split", "splitlines", "count", "replace", "partition", "__contains__", "__add__")


def metered(base: type[Any], spent: list[int]) -> type[Any]:
    """A subclass of `bytes` or `bytearray` that notes in `spent` how many bytes each of its methods goes over."""

    def noting(name: str, cost: Callable[[Any, Any, Any], int]) -> Callable[..., Any]:
        method = getattr(base, name)

        def call(buffer: Any, *arguments: Any) -> Any:
            result = method(buffer, *arguments)
            spent.append(cost(buffer, arguments, result))
            if isinstance(result, list):
                return [kind(part) for part in result]
            return kind(result) if type(result) is bytes else result

        return call

    def noting_copy(buffer: Any) -> bytes:
        spent.append(len(buffer))
        return memoryview(buffer).tobytes()

    methods: dict[str, Any] = {name: noting(name, lambda buffer, _, __: len(buffer)) for name in WHOLE}
    methods["__getitem__"] = noting("__getitem__", lambda _, __, part: 1 if isinstance(part, int) else len(part))
    if base is bytearray:
        methods["__iadd__"] = noting("__iadd__", lambda _, arguments, __: len(arguments[0]))
        methods["__bytes__"] = noting_copy
    kind = type(f"metered_{base.__name__}", (base,), methods)
    return kind


def work(monkeypatch: pytest.MonkeyPatch, stream: bytes, size: int) -> float:
    """Bytes gone over for each byte of `stream`, read in pieces of `size`."""
    spent: list[int] = []
    kind = metered(bytes, spent)
    monkeypatch.setattr(sse, "bytearray", metered(bytearray, spent), raising=False)
    start = b":\n"  # settles that there is no BOM, so that what follows is read as it is given
    pieces = [kind(stream[at : at + size]) for at in range(0, len(stream), size)]
    assert read([start, *pieces], limit=1 << 30) == by_the_book(start + stream, limit=1 << 30)
    return sum(spent) / len(stream)


@pytest.mark.parametrize("size", [1, 100, 65536])
@pytest.mark.parametrize("start", [b"data: ", b": ", b"data: x\ndata: "])
def test_a_long_frame_costs_its_length(monkeypatch: pytest.MonkeyPatch, start: bytes, size: int) -> None:
    stream = start + b"x" * (1_000 * size if size < 1_000 else 500_000) + b"\n\n"
    assert 1 <= work(monkeypatch, stream, size) <= 12


@pytest.mark.parametrize("size", [100, 4096, 1 << 20])
@pytest.mark.parametrize(
    "frame", [b"data: {}\n\n", b"data: {}\r\n\r\n", b"data:{}\n\n", b"event: x\ndata: {}\n\n", b": ping\n\n", b"\r"]
)
def test_many_frames_cost_their_length(monkeypatch: pytest.MonkeyPatch, frame: bytes, size: int) -> None:
    assert 1 <= work(monkeypatch, frame * 3_000, size) <= 12


# --- writing


def test_a_frame_reads_back() -> None:
    payloads = [b'{"a":"b"}', b"[]", '"\u2028😀"'.encode(), b""]
    stream = comment("keep-alive").join(map(encode_frame, payloads))
    assert read([stream]) == (payloads, "clean")


@given(st.lists(st.text().map(lambda text: json.dumps(text).encode())))
def test_frames_together_are_the_frames_one_by_one(payloads: list[bytes]) -> None:
    assert encode_frames(payloads) == b"".join(map(encode_frame, payloads))


def test_frames_are_one_data_line_with_lf() -> None:
    assert encode_frame(b"{}") == b"data: {}\n\n"
    assert comment("keep-alive") == b": keep-alive\n\n"
    assert read([comment() * 3]) == ([], "clean")


@pytest.mark.parametrize("line_break", ["\n", "\r", "\r\n"])
def test_a_line_break_cannot_be_written(line_break: str) -> None:
    with pytest.raises(EncodingError, match="line break"):
        encode_frame(b"{}" + line_break.encode() + b"{}")
    with pytest.raises(EncodingError, match="line break"):
        encode_frames([b"{}", b"{}" + line_break.encode() + b"{}", b"{}"])
    with pytest.raises(EncodingError, match="line break"):
        comment(f"x{line_break}data: {{}}")
