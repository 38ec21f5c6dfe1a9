"""The fast way and the long way give one verdict; any bytes give an `AccordError` or events; no split matters."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from accord.consumer import Conversation, Pipeline
from accord.consumer.boundary import Boundary
from accord.errors import AccordError, ProtocolViolation, TruncatedRun
from accord.protocol import EVENT_TYPES, conform
from accord.protocol.codec import decode_object, strict_event_decoder
from accord.wire import SSEReader, encode_frame
from consumer.feeding import FINISHED, STARTED, Raw, raw
from support.corpus import corpus_files
from support.shapes import JSON_VALUES, wire
from support.streams import Stream, damage_event, make_stream

pytestmark = pytest.mark.usefixtures("quiet")
MANY = settings(max_examples=250, suppress_health_check=list(HealthCheck), deadline=None)
SOME = settings(MANY, max_examples=120)


@dataclass
class Verdict:
    """All that a consumer can see of a stream. Events are kept as text, where `1` and `1.0` and `true` differ."""

    events: list[str]
    warnings: list[str]
    error: tuple[str, ...] | None
    messages: str
    state: str


def judge(payloads: list[Any], *, error_of_reading: AccordError | None = None, **options: Any) -> Verdict:
    warnings: list[str] = []
    pipeline = Pipeline(on_deviation=lambda each: warnings.append(f"{each.index} {each}"), **options)
    conversation = Conversation(on_deviation=lambda each: warnings.append(f"{each.index} {each}"))
    events: list[str] = []
    error: AccordError | None = error_of_reading

    def deliver(delivered: Any) -> None:
        for event in delivered:
            conversation.apply(event)
            events.append(shown(event))

    try:
        for payload in payloads:
            deliver(pipeline.feed(payload))
        if error is None:
            pipeline.finish()
    except ProtocolViolation as violation:
        deliver(violation.delivered)
        error = violation
    except TruncatedRun as truncated:
        error = truncated
    return Verdict(events, warnings, described(error), shown(conversation.messages), shown(conversation.state))


def shown(value: Any) -> str:
    return json.dumps(msgspec.to_builtins(value))


def described(error: AccordError | None) -> tuple[str, ...] | None:
    if isinstance(error, ProtocolViolation):
        return (error.stage, error.rule, error.path, str(error.index), str(error.event_type), str(error))
    return None if error is None else (type(error).__name__, str(error))


def passes(event: Raw) -> Raw:
    return event


def assert_one_verdict(events: list[Raw], dump: Callable[[Raw], bytes] | None = None) -> None:
    """Bytes without middleware, bytes with one that does nothing, and raw events."""
    payloads = [(dump or (lambda event: json.dumps(event).encode()))(event) for event in events]
    fast = judge(payloads)
    assert judge(payloads, middleware=[passes]) == fast
    assert judge([json.loads(payload) for payload in payloads]) == fast


def shuffled(rng: random.Random, event: Raw) -> bytes:
    """The event as text in one of the many ways to write it."""
    members = list(event.items())
    rng.shuffle(members)
    separators = rng.choice(((",", ":"), (", ", ": "), (" ,\n", "\t:\r ")))
    ascii_only = rng.random() < 0.5 or bool(re.search(r"\\ud[89a-f]", json.dumps(event)))  # a surrogate has no UTF-8
    return json.dumps(dict(members), ensure_ascii=ascii_only, separators=separators).encode()


# One verdict


SHAPED = st.sampled_from(sorted(EVENT_TYPES)).flatmap(lambda name: wire(EVENT_TYPES[name]))


@MANY
@given(event=SHAPED, faults=st.integers(0, 2), rng=st.randoms(use_true_random=False))
def test_of_any_event_extended_or_broken(event: Raw, faults: int, rng: random.Random) -> None:
    for _ in range(faults):
        if event:
            damage_event(rng, event)
    opened = [raw("TEXT_MESSAGE_START", "m"), raw("TOOL_CALL_START", "c", toolCallName="n")]
    assert_one_verdict([STARTED, *opened, event], lambda each: shuffled(rng, each))


@SOME
@given(seed=st.integers(0, 2**32), damage=st.integers(0, 3))
def test_of_whole_streams(seed: int, damage: int) -> None:
    assert_one_verdict(make_stream(seed, damage=damage).events)


@pytest.mark.parametrize("file", corpus_files("streams/*.json"), ids=lambda file: file.stem)
def test_of_the_corpus(file: Any) -> None:
    events = json.loads(file.read_text())["stream"]
    if "THINKING" not in file.read_text():  # whose ids are new each time
        assert_one_verdict(events)


@pytest.mark.parametrize(
    "case",
    [
        case
        for file in corpus_files("schema-cases.json")
        for case in json.loads(file.read_text())
        if case["definition"].endswith("Event")
    ],
)
def test_of_the_schema_cases(case: Raw) -> None:
    assert_one_verdict([STARTED, case["value"]])


NUMBERS = ["1.0", "1e2", "-0", "-0.0", "1e400", "NaN", "123456789012345678901234567890", "9007199254740992", "1" * 5000]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("member", ["timestamp", "rawEvent", "value"])
def test_of_numbers(number: str, member: str) -> None:
    members = {"value": "0", member: number}
    text = '{"type":"CUSTOM","name":"n",' + ",".join(f'"{name}":{value}' for name, value in members.items()) + "}"
    payloads = [json.dumps(STARTED).encode(), text.encode()]
    assert judge(payloads) == judge(payloads, middleware=[passes])


@pytest.mark.parametrize("seed", range(300))
def test_of_broken_text(seed: int) -> None:
    rng = random.Random(seed)
    text = bytearray(json.dumps({**raw("CUSTOM", name="é\ud83d", value=[1, {"a": None}]), "metadata": {}}).encode())
    for _ in range(rng.randrange(1, 4)):
        position = rng.randrange(len(text))
        what = rng.randrange(3)
        if what == 0:
            del text[position]
        elif what == 1:
            text[position] = rng.choice(b'"{}[],:\\0-.eEu\x00\xff\xed\xa0 nt')
        else:
            text.insert(position, rng.choice(b'"{}[],:\\0-.eEu\x00\xff\xed\xa0 nt'))
    payloads = [json.dumps(STARTED).encode(), bytes(text)]
    assert judge(payloads) == judge(payloads, middleware=[passes])


@MANY
@given(event=SHAPED, faults=st.integers(0, 2), rng=st.randoms(use_true_random=False))
def test_the_strict_decoder_takes_only_what_needs_nothing_done(event: Raw, faults: int, rng: random.Random) -> None:
    for _ in range(faults):
        if event:
            damage_event(rng, event)
    text = json.dumps(event)
    try:
        strict = strict_event_decoder.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return
    value = decode_object(text)
    warnings: list[Any] = []
    assert Boundary(warnings.append).translate(value, 0) is value
    shape, stripped = conform(value, type(strict))
    assert (warnings, stripped) == ([], [])
    assert shown(shape) == shown(strict)


# Any bytes


BYTES = st.lists(
    st.binary(max_size=30)
    | st.sampled_from(
        [b"data:", b"data: ", b"\n\n", b"\r\n\r\n", b"\r", b":", b"\xef\xbb\xbf", b"event: x\n", b"{}", b"null"]
    )
    | st.sampled_from([encode_frame(json.dumps(event).encode()) for event in (STARTED, FINISHED, raw("NOVEL"))])
    | JSON_VALUES.map(lambda value: encode_frame(json.dumps(value).encode()))
    | SHAPED.map(lambda event: encode_frame(json.dumps(event).encode())),
    max_size=12,
).map(b"".join)


def read(pieces: list[bytes]) -> Verdict:
    """Bytes through the reader and all that follows; only an `AccordError` may come of them."""
    reader = SSEReader(max_frame_bytes=2_000)
    payloads: list[bytes] = []
    error: AccordError | None = None
    try:
        for piece in pieces:
            payloads += reader.feed(piece)
        reader.close()
    except AccordError as caught:
        error = caught
    return judge(payloads, error_of_reading=error)


@MANY
@given(data=BYTES, cuts=st.lists(st.integers(0, 400), max_size=6))
@example(data=b"data: " + b"[" * 1_500 + b"\n\n", cuts=[])
def test_any_bytes_in_any_pieces_give_one_result_and_no_other_error(data: bytes, cuts: list[int]) -> None:
    whole = read([data])
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    assert read([data[start:end] for start, end in itertools.pairwise(edges)]) == whole


@SOME
@given(seed=st.integers(0, 2**32), damage=st.integers(0, 2), rng=st.randoms(use_true_random=False))
def test_a_stream_gives_one_result_in_any_pieces(seed: int, damage: int, rng: random.Random) -> None:
    data = framed(make_stream(seed, damage=damage), rng)
    cuts = sorted(rng.randrange(len(data)) for _ in range(rng.randrange(8)))
    edges = [0, *cuts, len(data)]
    whole = read([data])
    assert read([data[start:end] for start, end in itertools.pairwise(edges)]) == whole
    if seed % 8 == 0:
        assert read([data[position : position + 1] for position in range(len(data))]) == whole


def framed(stream: Stream, rng: random.Random) -> bytes:
    """The stream as an event stream with the freedoms the grammar gives, sometimes cut short."""
    end = rng.choice(("\n", "\n", "\r\n", "\r"))
    text = "".join(
        rng.choice(("", ": ping" + end, "id: 7" + end)) + f"data: {json.dumps(event, ensure_ascii=False)}" + end + end
        for event in stream.events
    )
    data = text.encode("utf-8", "replace")
    return data[: rng.randrange(1, len(data))] if rng.random() < 0.2 else data


@MANY
@given(data=st.binary(max_size=80) | JSON_VALUES.map(lambda value: json.dumps(value).encode()))
def test_any_payload_is_an_event_or_an_accord_error(data: bytes) -> None:
    for options in ({}, {"middleware": [passes]}, {"peer_version": "0.0.39"}):
        pipeline = Pipeline(**options)
        try:
            pipeline.feed(data)
            pipeline.finish()
        except AccordError:
            continue


@MANY
@given(
    value=st.dictionaries(st.sampled_from(["type", "messages", "input", "delta", "outcome", "content"]), JSON_VALUES)
)
def test_any_raw_event_is_an_event_or_an_accord_error(value: Raw) -> None:
    for event_type in ("MESSAGES_SNAPSHOT", "RUN_STARTED", "STATE_DELTA", "THINKING_START", value.get("type")):
        pipeline = Pipeline()
        pipeline.feed(STARTED)
        try:
            pipeline.feed({**value, "type": event_type})
        except AccordError:
            continue
