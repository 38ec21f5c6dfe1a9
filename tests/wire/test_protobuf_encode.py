from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.errors import EncodingError
from accord.protocol import (
    EVENT_TYPES,
    ActivitySnapshotEvent,
    AddOperation,
    Context,
    CustomEvent,
    Event,
    MessagesSnapshotEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedSuccessOutcome,
    StateDeltaEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TokenUsage,
    ToolCallResultEvent,
    UserMessage,
    definition,
)
from accord.wire import agui_pb2 as pb
from accord.wire import decode_protobuf, encode_protobuf, frame
from accord.wire.protobuf_schema import MESSAGES
from support.shapes import fullest, smallest, wire
from wire.envelopes import GOLDEN, Raw, carried, encoded, event, exact

EVENTS = list(EVENT_TYPES.values())


@pytest.mark.parametrize(("raw", "envelope"), GOLDEN, ids=[f"{raw['type']}-{len(hexed)}" for raw, hexed in GOLDEN])
def test_golden(raw: Raw, envelope: str) -> None:
    assert encoded(raw).hex() == envelope


@pytest.mark.parametrize("struct", EVENTS, ids=lambda struct: struct.__name__)
def test_every_member_is_carried(struct: type[Event]) -> None:
    for raw in (smallest(struct), fullest(struct)):
        assert decode_protobuf(encoded(raw)) == carried(raw)


@pytest.mark.parametrize("struct", EVENTS, ids=lambda struct: struct.__name__)
def test_every_optional_member_is_carried_alone(struct: type[Event]) -> None:
    whole = fullest(struct)
    optional = [name for name, member in definition(struct).members.items() if not member.required]
    assert len(optional) >= 3
    for name in optional:
        raw = {**smallest(struct), name: whole[name]}
        assert decode_protobuf(encoded(raw)) == carried(raw)


@settings(max_examples=300, deadline=None)
@given(st.one_of([wire(struct) for struct in EVENTS]).map(exact))
def test_events_come_back(raw: Raw) -> None:
    assert as_doubles(decode_protobuf(encoded(raw))) == as_doubles(carried(raw))


def as_doubles(value: Any) -> Any:
    return json.loads(json.dumps(value), parse_int=float)


@pytest.mark.parametrize("struct", EVENTS, ids=lambda struct: struct.__name__)
def test_the_generated_classes_would_write_the_same(struct: type[Event]) -> None:
    for raw in (smallest(struct), fullest(struct)):
        assert pb.Event.FromString(encoded(raw)).SerializeToString() == encoded(raw)


@settings(max_examples=200, deadline=None)
@given(st.one_of([wire(struct) for struct in EVENTS]).map(exact))
def test_the_generated_classes_read_all_of_it(raw: Raw) -> None:
    message = pb.Event.FromString(encoded(raw))
    size = message.ByteSize()
    message.DiscardUnknownFields()
    assert message.ByteSize() == size
    again = message.SerializeToString()  # with the members of open objects in an order of its own
    assert as_doubles(decode_protobuf(again)) == as_doubles(carried(raw))


def test_every_event_has_an_arm_and_every_arm_an_event() -> None:
    arms = MESSAGES["Event"].fields
    assert {arm.of for arm in arms} == {struct.__name__ for struct in EVENTS}
    assert [arm.number for arm in arms] == list(range(1, 32))


def test_a_frame_is_length_and_envelope() -> None:
    assert frame(b"") == b"\0\0\0\0"
    assert frame(b"x" * 259) == b"\0\0\1\3" + b"x" * 259


# --- what is lost


@pytest.mark.parametrize(
    ("full", "poor"),
    [
        (RunErrorEvent(message="x", usage=[]), RunErrorEvent(message="x")),
        (
            RunFinishedEvent(thread_id="t", run_id="r", outcome=RunFinishedSuccessOutcome(pending_tool_call_ids=[])),
            RunFinishedEvent(thread_id="t", run_id="r", outcome=RunFinishedSuccessOutcome()),
        ),
        (
            StateDeltaEvent(delta=[AddOperation(path="/a", value=1, extra={"comment": "x"})]),
            StateDeltaEvent(delta=[AddOperation(path="/a", value=1)]),
        ),
        (CustomEvent(name="n", value=[1.0]), CustomEvent(name="n", value=[1])),
    ],
)
def test_what_the_wire_does_not_tell_apart(full: Event, poor: Event) -> None:
    assert encode_protobuf(full) == encode_protobuf(poor)


# --- what is not written


def lists(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


def objects(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def circle() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


def text(**members: Any) -> Event:
    return TextMessageContentEvent(**{"message_id": "m", "delta": "d", **members})


def user(**members: Any) -> Event:
    return MessagesSnapshotEvent(messages=[UserMessage(**{"id": "1", "content": "c", **members})])


@pytest.mark.parametrize(
    ("made", "path"),
    [
        (StateSnapshotEvent(snapshot={"a": [0, math.nan]}), "/snapshot/a/1"),
        (CustomEvent(name="n", value=-math.inf), "/value"),
        (text(raw_event={"a": math.inf}), "/rawEvent/a"),
        (text(metadata={"a": "\ud800"}), "/metadata/a"),
        (text(delta="\ud83d"), "/delta"),
        (StateDeltaEvent(delta=[AddOperation(path="/a", value=(1,))]), "/delta/0/value"),
        (StateDeltaEvent(delta=(AddOperation(path="/a", value=1),)), "/delta"),  # type: ignore[arg-type]
        (CustomEvent(name="n", value={"a~/b": [10**400]}), "/value/a~0~1b/0"),
        (StateSnapshotEvent(snapshot={"order": 2**60 + 1}), "/snapshot/order"),
        (StateDeltaEvent(delta=[AddOperation(path="/a", value=[-(2**53) - 1])]), "/delta/0/value/0"),
        (user(metadata={"a": {1}}), "/messages/0/metadata/a"),
        (text(delta=5), "/delta"),
        (text(delta=None), "/delta"),
        (text(message_id=0), "/messageId"),
        (text(subagent_run_id=False), "/subagentRunId"),
        (text(timestamp=2**63), "/timestamp"),
        (text(timestamp="1"), "/timestamp"),
        (text(timestamp=1.5), "/timestamp"),
        (text(metadata=[]), "/metadata"),
        (user(content=None), "/messages/0/content"),
        (user(content={}), "/messages/0/content"),
        (user(content=[5]), "/messages/0/content/0"),
        (ToolCallResultEvent(message_id="m", tool_call_id="t", content=0), "/content"),  # type: ignore[arg-type]
        (ActivitySnapshotEvent(message_id="m", activity_type="x", content="c"), "/content"),  # type: ignore[arg-type]
        (ActivitySnapshotEvent(message_id="m", activity_type="x", content={}, replace=1), "/replace"),  # type: ignore[arg-type]
        (RunErrorEvent(message="x", usage=[TokenUsage(input_tokens=True)]), "/usage/0/inputTokens"),
        (
            RunFinishedEvent(
                thread_id="t",
                run_id="r",
                outcome=RunFinishedSuccessOutcome(pending_tool_call_ids="abc"),  # type: ignore[arg-type]
            ),
            "/outcome/pendingToolCallIds",
        ),
        (CustomEvent(name="n", value=circle()), ""),
        (CustomEvent(name="n", value=lists(2_000)), ""),
        (CustomEvent(name="n", value=objects(600)), ""),
        (Context(description="d", value="v"), ""),
        (object(), ""),
    ],
)
def test_refused_with_the_place(made: Any, path: str) -> None:
    with pytest.raises(EncodingError) as caught:
        encode_protobuf(made)
    assert caught.value.path == path


def test_what_is_due_under_another_python_type_is_written() -> None:
    assert encode_protobuf(text(timestamp=7.0)) == encode_protobuf(text(timestamp=7))
    plain: Any = {"id": "1", "role": "user", "content": "c"}
    assert encode_protobuf(MessagesSnapshotEvent(messages=[plain])) == encode_protobuf(user())


def test_an_integer_that_a_double_holds_is_carried() -> None:
    numbers = [2**53, -(2**53) - 2, 2**60, 10**22]
    assert decode_protobuf(encode_protobuf(CustomEvent(name="n", value=numbers)))["value"] == numbers


def test_nesting_is_the_readers_to_judge() -> None:
    assert decode_protobuf(encode_protobuf(StateSnapshotEvent(snapshot=lists(300))), max_depth=301) == {
        "type": "STATE_SNAPSHOT",
        "snapshot": lists(300),
    }


def test_an_event_is_not_changed() -> None:
    made = event(fullest(EVENT_TYPES["RUN_STARTED"]))
    before = msgspec.json.encode(made)
    encode_protobuf(made)
    assert msgspec.json.encode(made) == before
