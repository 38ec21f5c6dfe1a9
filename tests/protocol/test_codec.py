from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.errors import EncodingError, ProtocolViolation
from accord.protocol import (
    EVENT_TYPES,
    MAX_DEPTH,
    MAX_SAFE_INTEGER,
    UNSET,
    ActivitySnapshotEvent,
    AddOperation,
    AssistantMessage,
    CustomEvent,
    Event,
    MessagesSnapshotEvent,
    RawEvent,
    RemoveOperation,
    RunAgentInput,
    RunFinishedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
    TokenUsage,
    UserMessage,
    check_json,
    decode_event,
    decode_input,
    decode_json,
    definitions,
    encode,
    encode_event,
    encode_input,
    to_wire,
)
from accord.protocol.codec import check_depth, check_plain, decode_object
from support.shapes import JSON_VALUES, Raw, fullest, smallest, wire

SHAPES = sorted(definitions())
QUICK = settings(deadline=None)


def custom(value: str) -> bytes:
    return b'{"type":"CUSTOM","name":"n","value":' + value.encode() + b"}"


def timestamp(value: str) -> bytes:
    return b'{"type":"CUSTOM","name":"n","value":0,"timestamp":' + value.encode() + b"}"


def value_of(event: Event) -> Any:
    assert isinstance(event, CustomEvent)
    return event.value


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def refused(data: bytes | str, **limits: int) -> ProtocolViolation:
    with pytest.raises(ProtocolViolation) as caught:
        decode_event(data, **limits)
    return caught.value


# Round trips


@pytest.mark.parametrize("example", [smallest, fullest])
@pytest.mark.parametrize("event_type", sorted(EVENT_TYPES))
def test_events_come_back_as_they_went(event_type: str, example: Any) -> None:
    raw = example(EVENT_TYPES[event_type])
    event = decode_event(json.dumps(raw))
    assert type(event) is EVENT_TYPES[event_type]
    assert event.type == event_type
    assert json.loads(encode_event(event)) == raw
    assert to_wire(event) == raw
    assert decode_event(encode_event(event)) == event


@pytest.mark.parametrize("example", [smallest, fullest])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes_come_back_as_they_went(name: str, example: Any) -> None:
    struct = definitions()[name].struct
    raw = example(struct)
    shape = msgspec.json.decode(json.dumps(raw), type=struct)
    assert json.loads(encode(shape)) == raw


@QUICK
@given(st.sampled_from(sorted(EVENT_TYPES)).flatmap(lambda name: wire(EVENT_TYPES[name])))
def test_any_event_comes_back_as_it_went(raw: Raw) -> None:
    event = decode_event(json.dumps(raw))
    assert encode_event(event) == encode_event(decode_event(encode_event(event)))
    assert json.dumps(to_wire(event), sort_keys=True) == json.dumps(raw, sort_keys=True)


def test_the_wire_is_compact_camel_case_utf8() -> None:
    event = TextMessageStartEvent(message_id="m1", role="user", name="Zoë", subagent_run_id="s1")
    members = '"subagentRunId":"s1","messageId":"m1","role":"user","name":"Zoë"'
    assert encode_event(event) == ('{"type":"TEXT_MESSAGE_START",' + members + "}").encode()


def test_inputs_come_back_as_they_went() -> None:
    raw = fullest(RunAgentInput)
    assert json.loads(encode_input(decode_input(json.dumps(raw)))) == raw
    assert decode_input(b'{"threadId":"t","runId":"r","messages":[]}').state is UNSET


def test_wire_form_shares_nothing_with_the_event() -> None:
    snapshot = {"list": [1]}
    wire_form = to_wire(StateSnapshotEvent(snapshot=snapshot))
    wire_form["snapshot"]["list"].append(2)
    assert snapshot == {"list": [1]}


# Absent means absent


def test_absent_is_not_written() -> None:
    assert b"null" not in encode_event(RunFinishedEvent(thread_id="t", run_id="r"))
    assert to_wire(AssistantMessage(id="m")) == {"role": "assistant", "id": "m"}


@pytest.mark.parametrize("event_type", sorted(EVENT_TYPES))
def test_null_is_not_absent(event_type: str) -> None:
    struct = EVENT_TYPES[event_type]
    for name in set(fullest(struct)) - set(smallest(struct)):
        violation = refused(json.dumps({**smallest(struct), name: None}))
        assert (violation.stage, violation.rule, violation.path) == ("enforcement", "malformed", f"/{name}")


@pytest.mark.parametrize(
    "event",
    [
        StateSnapshotEvent(snapshot=None),
        CustomEvent(name="n", value=None),
        RawEvent(event=None),
        CustomEvent(name="n", value={"a": [None, {"b": None}]}, metadata={"key": None}, raw_event={"a": None}),
        StateDeltaEvent(delta=[AddOperation(path="/a", value=None)]),
    ],
)
def test_null_in_an_open_value_is_data(event: Event) -> None:
    assert decode_event(encode_event(event)) == event
    assert b"null" in encode_event(event)


# Numbers


@pytest.mark.parametrize(("text", "value"), [("1.0", 1), ("1e2", 100), ("-0.0", 0), ("10e-1", 1), ("-3", -3)])
def test_a_whole_number_is_an_integer(text: str, value: int) -> None:
    found = decode_event(timestamp(text)).timestamp
    assert found == value
    assert type(found) is int


@pytest.mark.parametrize("text", ["1.5", "true", '"1"', "null", "9007199254740992", "-9007199254740992", "1e300"])
def test_another_number_is_no_integer(text: str) -> None:
    assert refused(timestamp(text)).path == "/timestamp"


@pytest.mark.parametrize("edge", [MAX_SAFE_INTEGER, -MAX_SAFE_INTEGER])
def test_the_range_of_integers_includes_its_ends(edge: int) -> None:
    assert decode_event(timestamp(str(edge))).timestamp == edge


def test_counts_are_not_negative() -> None:
    raw = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "usage": [{"inputTokens": 0}, {"inputTokens": -1}]}
    assert refused(json.dumps(raw)).path == "/usage/1/inputTokens"


@pytest.mark.parametrize("text", ["1", "1.0", "-0", "1.5", "123456789012345678901234567890", "1e-400", "1e308"])
def test_numbers_in_open_values_keep_their_value_and_kind(text: str) -> None:
    found = value_of(decode_event(custom(text)))
    assert found == json.loads(text)
    assert type(found) is type(json.loads(text))


@pytest.mark.parametrize(
    "text", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1" * 5000, "01", "1.", ".5", "+1"]
)
def test_what_is_no_number_is_refused(text: str) -> None:
    violation = refused(custom(text))
    assert violation.stage == "wire"
    assert violation.rule in ("json", "number")


# Non-empty lists


def test_an_interrupt_outcome_asks_something() -> None:
    raw = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "interrupt", "interrupts": []}}
    assert refused(json.dumps(raw)).path == "/outcome/interrupts"


# Text


def test_a_surrogate_pair_is_its_character() -> None:
    assert value_of(decode_event(custom('"\\ud83d\\ude00"'))) == "😀"


@pytest.mark.parametrize("escape", ["\\ud83d", "\\ude00", "a\\ud83db", "\\ud83d\\ud83d\\ude00", "\\ud83dA"])
def test_a_lone_surrogate_survives_reading(escape: str) -> None:
    assert value_of(decode_event(custom(f'"{escape}"'))) == json.loads(f'"{escape}"')
    raw = '{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"' + escape + '"}'
    event = decode_event(raw)
    assert isinstance(event, TextMessageContentEvent)
    assert event.delta == json.loads(f'"{escape}"')


def test_a_lone_surrogate_in_str_input_survives() -> None:
    assert value_of(decode_event('{"type":"CUSTOM","name":"n","value":"\\ud83d"}')) == "\ud83d"


@pytest.mark.parametrize(
    "data", [b"\xff", b'{"type":"CUSTOM","name":"n","value":"\xed\xa0\xbd"}', b'{"type":"\xc0\x80"}', b"\xef\xbb\xbf{}"]
)
def test_undecodable_bytes_are_refused(data: bytes) -> None:
    assert refused(data).stage == "wire"


@pytest.mark.parametrize("data", ["", "[]", "null", '"RAW"', "{", "{}x", '{"type":"RAW",}', "{'type':1}"])
def test_what_is_no_json_object_is_refused(data: str) -> None:
    violation = refused(data)
    assert (violation.stage, violation.rule) in (("wire", "json"), ("wire", "type"))


def test_the_last_of_duplicate_members_wins() -> None:
    event = decode_event(b'{"type":"CUSTOM","name":5,"name":"n","value":1,"value":2}')
    assert event == CustomEvent(name="n", value=2)


# Depth


def test_depth_is_counted_in_levels() -> None:
    deepest = custom(nested(MAX_DEPTH - 1))
    assert decode_event(deepest).type == "CUSTOM"
    assert refused(custom(nested(MAX_DEPTH))).rule == "depth"
    assert decode_event(custom(nested(2)), max_depth=3).type == "CUSTOM"
    assert refused(custom(nested(3)), max_depth=3).rule == "depth"


@pytest.mark.parametrize("levels", [5_000, 200_000])
def test_any_depth_is_a_clear_error(levels: int) -> None:
    assert refused(custom(nested(levels))).rule == "depth"
    assert refused("[" * levels).rule == "depth"


def test_a_limit_beyond_what_the_interpreter_can_do_is_no_crash() -> None:
    assert refused(custom(nested(200_000)), max_depth=1_000_000).rule == "depth"


def test_brackets_in_text_do_not_nest() -> None:
    assert value_of(decode_event(custom(json.dumps('["{' * 1_000)))) == '["{' * 1_000
    assert value_of(decode_event(custom(json.dumps('\\"[' * 1_000)))) == '\\"[' * 1_000
    assert len(value_of(decode_event(custom("[" + "[]," * 999 + "[]]")))) == 1_000


@pytest.mark.parametrize(
    "text",
    ["[]" * 300 + '"' + '\\"' * 2_000_000, '"[",' * 2_000_000, "[" + "[]," * 2_000_000 + "[]]"],
    ids=["an escaped string that never ends", "a bracket in each of many strings", "many lists"],
)
def test_depth_costs_the_length_of_the_text_whatever_it_is(text: str) -> None:
    check_depth(text, max_depth=MAX_DEPTH)  # by its square, this would not come back


TRICKY = st.recursive(
    st.text('"\\[]{}/a\n') | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('"\\[]{}'), inner, max_size=3),
)


@QUICK
@given(JSON_VALUES | TRICKY, st.integers(0, 4))
def test_depth_is_one_whether_text_or_values_are_counted(value: Any, limit: int) -> None:
    def rule(check: Any, subject: Any) -> str | None:
        try:
            check(subject, max_depth=limit)
        except ProtocolViolation as violation:
            return violation.rule
        return None

    text = json.dumps(value)
    verdict = rule(check_plain, value)
    assert verdict in (None, "depth")
    assert rule(check_depth, text) == rule(check_depth, text.encode()) == verdict


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), {1: 2}, {"a": [b"x"]}, (1,), {"a"}, object()])
def test_a_raw_value_that_no_text_could_have_made_is_refused(value: Any) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        check_plain({"a": [value]}, max_depth=MAX_DEPTH)
    assert caught.value.stage == "wire"


def test_a_raw_value_inside_itself_is_too_deep() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ProtocolViolation, match="max_depth"):
        check_plain(value, max_depth=MAX_DEPTH)


# Unknown material, which only the processing model may pass over


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ({"type": "NOVEL"}, "/type"),
        ({}, "/type"),
        ({"type": 5}, "/type"),
        ({"type": "CUSTOM", "name": "n", "value": 1, "novel": 1}, "/novel"),
        ({"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "1", "role": "critic"}]}, "/messages/0"),
        ({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "critic"}, "/role"),
    ],
)
def test_strict_decoding_names_what_is_unknown(raw: Raw, path: str) -> None:
    assert refused(json.dumps(raw)).path == path


def test_strict_decoding_of_an_input_names_the_place() -> None:
    with pytest.raises(ProtocolViolation) as caught:
        decode_input(b'{"threadId":"t","runId":"r","messages":[{"role":"user","id":"1"}]}')
    assert caught.value.path == "/messages/0/content"
    with pytest.raises(ProtocolViolation) as caught:
        decode_input(b'{"threadId":"t","runId":"r","messages":[],"novel":1}')
    assert caught.value.path == "/novel"


# Patch operations are open


OPEN_PATCH = {
    "type": "STATE_DELTA",
    "delta": [
        {"op": "add", "path": "/a", "value": 1, "comment": {"why": None}},
        {"op": "remove", "path": "", "value": "kept", "from": "/x", "extra": 1, "(extra)": 2},
        {"op": "move", "path": "/b", "from": "/a"},
    ],
}


def test_undescribed_members_of_an_operation_are_kept() -> None:
    event = decode_event(json.dumps(OPEN_PATCH))
    assert isinstance(event, StateDeltaEvent)
    add, remove, move = event.delta
    assert add.extra == {"comment": {"why": None}}
    assert remove.extra == {"value": "kept", "from": "/x", "extra": 1, "(extra)": 2}
    assert move.extra is UNSET
    assert [each.op for each in event.delta] == ["add", "remove", "move"]
    assert to_wire(event) == OPEN_PATCH
    assert to_wire(remove) == OPEN_PATCH["delta"][1]


def test_undescribed_members_of_an_operation_must_be_json() -> None:
    event = StateDeltaEvent(delta=[RemoveOperation(path="/a", extra={"why": float("nan")})])
    with pytest.raises(EncodingError) as caught:
        encode_event(event)
    assert caught.value.path == "/delta/0/why"


# What JSON cannot carry


UNENCODABLE = [float("nan"), float("inf"), "hi \ud83d", {1}, object(), b"x", (1,), {1: 2}, {"\udfff": 1}]


@pytest.mark.parametrize("value", UNENCODABLE, ids=repr)
@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda value: CustomEvent(name="n", value={"a/b": [0, value]}), "/value/a~1b/1"),
        (lambda value: StateSnapshotEvent(snapshot=value), "/snapshot"),
        (lambda value: StateSnapshotEvent(snapshot={}, metadata={"k": value}), "/metadata/k"),
        (lambda value: StateSnapshotEvent(snapshot={}, raw_event=[value]), "/rawEvent/0"),
        (lambda value: StateDeltaEvent(delta=[AddOperation(path="/a", value=value)]), "/delta/0/value"),
        (lambda value: ActivitySnapshotEvent(message_id="a", activity_type="t", content={"c": value}), "/content/c"),
        (
            lambda value: MessagesSnapshotEvent(messages=[UserMessage(id="u", content="", metadata={"m": value})]),
            "/messages/0/metadata/m",
        ),
        (lambda value: RunAgentInput(thread_id="t", run_id="r", messages=[], state=[value]), "/state/0"),
    ],
)
def test_the_place_of_what_json_cannot_carry_is_named(make: Any, path: str, value: Any) -> None:
    with pytest.raises(EncodingError) as caught:
        encode(make(value))
    named = path + "/\udfff" if isinstance(value, dict) and "\udfff" in value else path
    assert caught.value.path == named


@pytest.mark.parametrize(
    ("event", "path"),
    [
        (TextMessageContentEvent(message_id="m", delta="\ud83d"), "/delta"),
        (TextMessageContentEvent(message_id="\ud83d", delta=""), "/messageId"),
        (TextMessageContentEvent(message_id="m", delta="", subagent_run_id="\ud83d"), "/subagentRunId"),
        (RunFinishedEvent(thread_id="t", run_id="r", usage=[TokenUsage(model="\ude00")]), "/usage/0/model"),
    ],
)
def test_a_lone_surrogate_is_refused_when_writing(event: Event, path: str) -> None:
    with pytest.raises(EncodingError) as caught:
        encode_event(event)
    assert caught.value.path == path


def test_a_value_inside_itself_cannot_be_written() -> None:
    value: dict[str, Any] = {}
    value["self"] = value
    with pytest.raises(EncodingError, match="inside itself"):
        encode_event(CustomEvent(name="n", value=value))
    with pytest.raises(EncodingError):
        check_json(value)


@QUICK
@given(JSON_VALUES)
def test_json_values_come_back_with_their_kinds(value: Any) -> None:
    found = value_of(decode_event(encode_event(CustomEvent(name="n", value=value))))
    assert json.dumps(found) == json.dumps(value)


@QUICK
@given(st.binary(max_size=60) | JSON_VALUES.map(lambda value: json.dumps(value, ensure_ascii=False).encode()))
def test_any_bytes_are_json_or_refused(data: bytes) -> None:
    def number(literal: str) -> float:
        value = float(literal)
        if not math.isfinite(value):
            raise ValueError(literal)
        return value

    try:
        expected = json.loads(data.decode(), parse_constant=number, parse_float=number)
    except ValueError:
        with pytest.raises(ProtocolViolation):
            decode_json(data)
        return
    assert json.dumps(decode_json(data)) == json.dumps(expected)
    if not isinstance(expected, dict):
        with pytest.raises(ProtocolViolation):
            decode_object(data)
