from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import Struct, Value
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.consumer import Pipeline
from accord.errors import ProtocolViolation
from accord.wire import agui_pb2 as pb
from accord.wire import decode_protobuf, protobuf_fields, protobuf_messages
from accord.wire.protobuf_schema import ENUMS, MESSAGES
from wire.envelopes import GOLDEN, Raw, base, field

CONTENT = field(1, b"\x08\x01")  # the base event of TEXT_MESSAGE_CONTENT


def envelope(**arm: Any) -> bytes:
    return bytes(pb.Event(**arm).SerializeToString())


@contextmanager
def refused(rule: str) -> Iterator[pytest.ExceptionInfo[ProtocolViolation]]:
    with pytest.raises(ProtocolViolation) as caught:
        yield caught
    assert (caught.value.stage, caught.value.rule) == ("wire", rule)


@pytest.mark.parametrize(("raw", "hexed"), GOLDEN, ids=[f"{raw['type']}-{len(hexed)}" for raw, hexed in GOLDEN])
def test_golden(raw: Raw, hexed: str) -> None:
    assert decode_protobuf(bytes.fromhex(hexed)) == raw


# --- the envelope


def test_fields_beside_the_arm_are_passed_over() -> None:
    arm = field(2, CONTENT + field(2, b"m"))
    beside = [
        b"\xa0\x06\x01",  # field 100 as a number
        b"\xa1\x06" + b"x" * 8,
        b"\xa5\x06" + b"x" * 4,
        b"\xa2\x06\x03abc",
        b"\xa3\x06\x12\x00\xa4\x06",  # and as a group, whose fields are its own affair
        b"\xa3\x06\xab\x06\xac\x06\x0d\x00\x00\x00\x00\x08\x80\x01\x09" + b"x" * 8 + b"\xa4\x06",
    ]
    expected = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": ""}
    for unknown in beside:
        assert decode_protobuf(arm + unknown) == expected
        assert decode_protobuf(unknown + arm) == expected
        assert decode_protobuf(field(2, CONTENT + unknown + field(2, b"m"))) == expected


def test_an_arm_in_two_pieces_is_one() -> None:
    expected = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "d"}
    assert decode_protobuf(field(2, CONTENT + field(2, b"x") + field(3, b"d")) + field(2, field(2, b"m"))) == expected
    assert decode_protobuf(field(2, field(3, b"d")) + field(2, CONTENT + field(2, b"m"))) == expected
    assert decode_protobuf(field(2, CONTENT + field(2, b"m")) + b"\x10\x01" + field(2, field(3, b"d"))) == expected


def test_a_message_sent_twice_is_merged() -> None:
    twice = field(1, b"\x08\x01\x10\x05") + field(2, b"m") + field(1, b"\x10\x07")
    assert decode_protobuf(field(2, twice))["timestamp"] == 7
    twice = field(1, b"\x08\x06") + field(2, b"\x2a\x04\x0a\x02\x12\x00") + field(2, b"\x20\x01")
    assert decode_protobuf(field(7, twice)) == {"type": "STATE_SNAPSHOT", "snapshot": True}


@pytest.mark.parametrize(
    "arms",
    [
        field(2, CONTENT) + field(3, field(1, b"\x08\x02")),
        field(2, CONTENT) + b"\x18\x00",  # a known number in another wire type
        b"\x18\x00" + field(2, CONTENT),
        field(2, CONTENT) + b"\x1b\x1c",
        field(2, CONTENT) + b"\xf8\x01\x01",
    ],
)
def test_several_arms_contradict_one_another(arms: bytes) -> None:
    with refused("several-arms"):
        decode_protobuf(arms)


def test_an_envelope_without_event() -> None:
    for nothing in (b"", b"\xa0\x06\x01", b"\xa3\x06\xa4\x06", b"\xa5\x06" + b"x" * 4):
        with refused("no-event"):
            decode_protobuf(nothing)


@pytest.mark.parametrize("alone", [b"\x10\x01", b"\x13\x14", b"\x15xxxx", b"\x11xxxxxxxx", b"\xa2\x06\x00\x10\x01"])
def test_an_arm_without_message(alone: bytes) -> None:
    with refused("undecodable") as caught:
        decode_protobuf(alone)
    assert "TEXT_MESSAGE_CONTENT" in str(caught.value)


def test_the_base_event_is_required_and_names_the_same_event() -> None:
    with refused("no-base-event") as caught:
        decode_protobuf(field(2, field(2, b"m")))
    assert caught.value.event_type == "TEXT_MESSAGE_CONTENT"
    for number, name in ((b"", "TEXT_MESSAGE_START"), (b"\x08\x03", "TOOL_CALL_START"), (b"\x08\x63", "type 99")):
        with refused("type") as caught:
            decode_protobuf(field(2, field(1, number)))
        assert name in str(caught.value)
    assert decode_protobuf(field(2, field(1, b"\x08\x81\x80\x80\x80\x10")))["type"]  # an enum has 32 bits


# --- events of a later version


def warnings(raw: Raw) -> list[str]:
    found: list[Any] = []
    pipeline = Pipeline(on_deviation=found.append)
    assert pipeline.feed(raw) == []
    return [str(deviation) for deviation in found]


@pytest.mark.parametrize(
    "later",
    [
        b"\x82\x02\x00",  # arm 32
        b"\x82\x02\x02\x08\x01",
        b"\x82\x02\x00\xa0\x06\x01",
        b"\xa3\x06\xa4\x06\x82\x02\x00\x8a\x02\x00",
        b"\x82\x02\x04\x0a\x02\xff\xff",  # what its fields hold is not looked into
        b"\x82\x02\x02\x0b\x0c",
    ],
)
def test_a_later_event_is_dropped_by_enforcement(later: bytes) -> None:
    raw = decode_protobuf(later)
    assert raw == {"type": "(envelope arm 32)"}
    assert warnings(raw) == ["enforcement (envelope arm 32): unknown event type, dropped"]


@pytest.mark.parametrize(
    "broken",
    [
        b"\x82\x02\x01\xff",
        b"\x82\x02\x01\x08",
        b"\x82\x02\x02\x0a\x05",
        b"\x82\x02\x01\x0b",
        b"\x82\x02\x02\x00\x00",
        b"\x82\x02\x00\x8a\x02\x01\x0f",
    ],
)
def test_bytes_that_are_no_message_are_no_later_event(broken: bytes) -> None:
    with refused("undecodable"):
        decode_protobuf(broken)


# --- bytes


@pytest.mark.parametrize(
    "bad",
    [
        b"\x12",
        b"\x12\x80",
        b"\x92",
        b"\x12\x05\x0a\x02\x08\x01",
        field(2, CONTENT) + b"\x02\x00",  # field number 0
        field(2, CONTENT) + b"\x06",  # wire type 6
        field(2, CONTENT) + b"\xa7\x06",  # and 7
        field(2, CONTENT) + b"\xa3\x06",  # groups that do not close
        field(2, CONTENT) + b"\xa3\x06\xac\x06",
        field(2, CONTENT) + b"\xa3\x06\x02\x00\xa4\x06",
        field(2, CONTENT) + b"\xa3\x06\x12\x7f\xa4\x06",
        field(2, CONTENT) + b"\xa4\x06",
        field(2, CONTENT + b"\xa4\x06"),
        field(2, CONTENT + b"\x12\x7f"),
        field(2, CONTENT + b"\xa5\x06xxx") + b"\xa5\x06xxxx",  # runs into what follows its message
        field(2, CONTENT + b"\xa0\x06") + b"\xa0\x06\x01",
        field(2, CONTENT + b"\x12\x02m") + b"\xa0\x06\x01",
        field(2, CONTENT) + b"\x80\x80\x80\x80\x80\x01\x00",  # a tag of six bytes
        field(2, CONTENT) + b"\x80\x80\x80\x80\x10\x00",  # and one of 33 bits
        b"\x12\x84\x80\x80\x80\x80\x00" + CONTENT,  # a length of six bytes
        field(2, CONTENT) + b"\xa0\x06" + b"\x80" * 10 + b"\x00",  # a number of eleven
        field(2, CONTENT + b"\x12\x02m") + field(2, b"x"),  # two halves that only together are a message
    ],
)
def test_bytes_that_are_no_message(bad: bytes) -> None:
    with refused("undecodable"):
        decode_protobuf(bad)


def test_tags_and_lengths_in_more_bytes_than_they_need() -> None:
    assert decode_protobuf(b"\x92\x80\x00" + b"\x87\x80\x80\x80\x00" + CONTENT + field(2, b"m"))["messageId"] == "m"


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0\xbd", b"\xf4\x90\x80\x80"])
def test_text_is_utf_8(bad: bytes) -> None:
    for message in (field(2, bad), field(4, bad), field(2, bad) + field(2, b"m")):
        with refused("encoding") as caught:
            decode_protobuf(field(2, CONTENT + message))
        assert caught.value.event_type == "TEXT_MESSAGE_CONTENT"


@pytest.mark.parametrize("number", [0, 1, -1, 2**53, -(2**63), 2**63 - 1])
def test_integers_have_64_bits_and_a_sign(number: int) -> None:
    sent = envelope(step_started=pb.StepStartedEvent(base_event=base("STEP_STARTED", timestamp=number)))
    assert decode_protobuf(sent)["timestamp"] == number


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (b"\x00", False),
        (b"\x02", True),
        (b"\x80\x01", True),
        (b"\x80" * 9 + b"\x01", True),
        (b"\x80" * 9 + b"\x02", False),
    ],
)
def test_a_boolean_is_a_number_of_64_bits(number: bytes, expected: bool) -> None:
    sent = b"\xba\x01" + bytes([5 + len(number)]) + field(1, b"\x08\x16") + b"\x30" + number
    assert decode_protobuf(sent)["replace"] is expected


seeds = st.sampled_from([bytes.fromhex(hexed) for _, hexed in GOLDEN])
edits = st.lists(
    st.tuples(
        st.integers(0, 120),
        st.sampled_from(("change", "insert", "delete", "repeat")),
        st.integers(0, 255) | st.sampled_from([0, 1, 8, 10, 18, 0x0B, 0x0C, 0x7F, 0x80, 0xFF]),
    ),
    min_size=1,
    max_size=3,
)
OURS = {"several-arms", "no-event", "no-base-event", "type", "content", "no-value", "number", "depth"}


def edited(sent: bytes, changes: list[tuple[int, str, int]]) -> bytes:
    for place, kind, byte in changes:
        at = place % (len(sent) + 1)
        if kind == "repeat":
            sent = sent[:at] + sent[at // 2 : at] + sent[at:]
        else:
            sent = sent[:at] + (b"" if kind == "delete" else bytes([byte])) + sent[at + (kind != "insert") :]
    return sent


@settings(max_examples=800, deadline=None)
@given(seeds, edits)
def test_bytes_are_judged_as_the_generated_classes_do(sent: bytes, changes: list[tuple[int, str, int]]) -> None:
    sent = edited(sent, changes)
    try:
        arm = pb.Event.FromString(sent).WhichOneof("event")
    except DecodeError:
        with pytest.raises(ProtocolViolation):
            decode_protobuf(sent)
        return
    try:
        decode_protobuf(sent)
    except ProtocolViolation as violation:
        message = str(violation)
        # What they take and we do not: an envelope without a known arm must hold a later one, and not even an unknown
        # group may have the field number 0.
        assert violation.rule in OURS or arm is None or "number 0" in message, message  # noqa: PT017


# --- members


@pytest.mark.parametrize("message", [arm.of for arm in MESSAGES["Event"].fields])
def test_an_event_of_nothing_but_its_type(message: str) -> None:
    """Text that is not optional is there, empty; nothing else is made up."""
    (arm,) = (arm for arm in MESSAGES["Event"].fields if arm.of == message)
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in arm.name)
    event_type = snake.upper()
    sent = envelope(**{snake: getattr(pb, message)(base_event=base(event_type))})
    expected: Raw = {"type": event_type}
    for member in MESSAGES[message].fields[1:]:
        if member.kind == "string" and not member.explicit and not member.repeated:
            expected[member.name] = ""
    expected.pop("outcome", None)
    for name in ("pendingToolCallIds", "interruptIds"):
        expected.pop(name, None)
    if message == "ToolCallResultEvent":
        expected["content"] = []
    lists = {"MessagesSnapshotEvent": "messages", "StateDeltaEvent": "delta", "ActivityDeltaEvent": "patch"}
    if message in lists:
        expected[lists[message]] = []
    assert decode_protobuf(sent) == expected
    assert set(ENUMS["EventType"]) >= {event_type}


def test_an_open_value_that_says_nothing_is_absent() -> None:
    assert decode_protobuf(field(7, field(1, b"\x08\x06") + field(2, b""))) == {"type": "STATE_SNAPSHOT"}
    raw = decode_protobuf(field(2, field(1, b"\x08\x01" + field(3, b"") + field(4, b""))))
    assert "rawEvent" not in raw
    assert raw["metadata"] == {}


def message(**members: Any) -> Raw:
    sent = envelope(
        messages_snapshot=pb.MessagesSnapshotEvent(
            base_event=base("MESSAGES_SNAPSHOT"), messages=[pb.Message(id="1", **members)]
        )
    )
    (found,) = decode_protobuf(sent)["messages"]
    return dict(found)


PART = pb.InputContent(text=pb.TextInputPart(text="t"))
READ_PART = {"type": "text", "text": "t"}
OBJECT = Struct(fields={"a": Value(bool_value=True)})


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"role": "user", "content": "c"}, {"content": "c"}),
        ({"role": "user", "content": ""}, {"content": ""}),
        ({"role": "user", "content_parts": [PART]}, {"content": [READ_PART]}),
        ({"role": "user"}, {"content": []}),
        ({"role": "tool", "tool_call_id": "t", "content_parts": [PART]}, {"toolCallId": "t", "content": [READ_PART]}),
        ({"role": "tool"}, {"content": []}),
        ({"role": "assistant"}, {}),
        ({"role": "assistant", "content": "c"}, {"content": "c"}),
        ({"role": "developer"}, {}),
        ({"role": "activity", "activity_content": OBJECT}, {"content": {"a": True}}),
        ({"role": "activity", "activity_content": Struct()}, {"content": {}}),
        ({"role": "activity"}, {}),
        ({"role": "critic"}, {}),
        ({"role": "critic", "content": "c"}, {"content": "c"}),
        ({"role": "critic", "content_parts": [PART]}, {"content": [READ_PART]}),
        ({"role": "critic", "activity_content": OBJECT}, {"content": {"a": True}}),
        ({}, {"role": ""}),
    ],
)
def test_the_role_tells_where_content_stands(members: Raw, expected: Raw) -> None:
    assert message(**members) == {"id": "1", "role": members.get("role", ""), **expected}


@pytest.mark.parametrize(
    "role", ["developer", "system", "assistant", "user", "tool", "activity", "reasoning", "critic", ""]
)
@pytest.mark.parametrize(
    "members",
    [
        {"content": "", "content_parts": [PART]},
        {"content": "c", "activity_content": OBJECT},
        {"content_parts": [PART], "activity_content": Struct()},
    ],
)
def test_content_comes_in_one_form(role: str, members: Raw) -> None:
    with refused("content"):
        message(role=role, **members)


@pytest.mark.parametrize(
    ("role", "members"),
    [
        ("developer", {"content_parts": [PART]}),
        ("system", {"content_parts": [PART]}),
        ("assistant", {"content_parts": [PART]}),
        ("reasoning", {"content_parts": [PART]}),
        ("activity", {"content_parts": [PART]}),
        ("activity", {"content": "c"}),
        ("user", {"activity_content": OBJECT}),
        ("tool", {"activity_content": OBJECT}),
        ("assistant", {"activity_content": OBJECT}),
    ],
)
def test_content_comes_in_a_form_of_its_role(role: str, members: Raw) -> None:
    with refused("content"):
        message(role=role, **members)


def result(**members: Any) -> Any:
    return decode_protobuf(
        envelope(tool_call_result=pb.ToolCallResultEvent(base_event=base("TOOL_CALL_RESULT"), **members))
    )["content"]


def test_a_result_is_text_or_parts() -> None:
    assert result(content="c") == "c"
    assert result(content="") == ""
    assert result(content_parts=[PART, PART]) == [READ_PART, READ_PART]
    assert result() == []
    with refused("content"):
        result(content="", content_parts=[PART])


# --- parts and sources


def parts(*bodies: bytes) -> list[Raw]:
    """The parts of a user's message, given as the bodies of `InputContent`."""
    sent = field(9, field(1, b"\x08\x08") + field(2, field(2, b"user") + b"".join(field(8, body) for body in bodies)))
    (found,) = decode_protobuf(sent)["messages"]
    return list(found["content"])


def test_a_part_holds_one_arm_and_a_source_too() -> None:
    text, url, data = field(1, field(1, b"t")), field(2, field(1, b"u")), field(1, field(1, b"d"))
    assert parts(text, field(2, field(1, url))) == [
        {"type": "text", "text": "t"},
        {"type": "image", "source": {"type": "url", "value": "u"}},
    ]
    for several in (text + field(2, b""), field(2, field(1, url + data)), field(2, field(1, url) + field(1, data))):
        with refused("several-arms"):
            parts(several)
    assert parts(text + field(1, field(1, b"v"))) == [{"type": "text", "text": "v"}]
    assert parts(text + b"\x10\x01") == [{"type": "text", "text": "t"}]


def test_parts_of_a_later_version_are_dropped_by_enforcement_with_their_paths() -> None:
    later = [b"", field(9, b""), field(2, field(1, field(9, b"x"))), field(2, field(1, b""))]
    found = parts(field(1, field(1, b"t")), *later)
    assert [part["type"] for part in found] == ["text", "(unknown arm)", "(unknown arm)", "image", "image"]
    raw = {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "1", "role": "user", "content": found}]}
    told: list[Any] = []
    pipeline = Pipeline(on_deviation=told.append)
    pipeline.feed({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})
    (event,) = pipeline.feed(raw)
    assert len(event.messages[0].content) == 1  # type: ignore[union-attr, arg-type]
    assert [deviation.path for deviation in told] == [f"/messages/0/content/{position}" for position in (1, 2, 3, 4)]


def test_a_media_part_without_source_is_malformed_as_over_json() -> None:
    (part,) = parts(field(2, b""))
    assert part == {"type": "image"}


# --- outcomes, operations, usage, inputs


def finished(**members: Any) -> Raw:
    raw = decode_protobuf(envelope(run_finished=pb.RunFinishedEvent(base_event=base("RUN_FINISHED"), **members)))
    return {name: value for name, value in raw.items() if name not in ("type", "threadId", "runId")}


INTERRUPT = pb.Interrupt(id="i", reason="r")
READ_INTERRUPT = {"id": "i", "reason": "r"}


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, {}),
        ({"outcome": "success"}, {"outcome": {"type": "success"}}),
        (
            {"outcome": "success", "pending_tool_call_ids": ["a", ""]},
            {"outcome": {"type": "success", "pendingToolCallIds": ["a", ""]}},
        ),
        ({"outcome": "interrupt"}, {"outcome": {"type": "interrupt", "interrupts": []}}),
        (
            {"outcome": "interrupt", "interrupts": [INTERRUPT]},
            {"outcome": {"type": "interrupt", "interrupts": [READ_INTERRUPT]}},
        ),
        ({"outcome": "cancelled"}, {"outcome": {"type": "cancelled"}}),
        (
            {"outcome": "paused", "interrupts": [INTERRUPT], "pending_tool_call_ids": ["a"]},
            {"outcome": {"type": "paused", "interrupts": [READ_INTERRUPT], "pendingToolCallIds": ["a"]}},
        ),
        (
            {"interrupts": [INTERRUPT], "pending_tool_call_ids": ["a"]},
            {"interrupts": [READ_INTERRUPT], "pendingToolCallIds": ["a"]},
        ),
        ({"usage": [pb.Usage(model="m")]}, {"usage": [{"model": "m"}]}),
    ],
)
def test_an_outcome_is_put_together(members: Raw, expected: Raw) -> None:
    assert finished(**members) == expected


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, {}),
        ({"outcome": "success"}, {"outcome": {"type": "success"}}),
        ({"outcome": "suspended"}, {"outcome": {"type": "suspended"}}),
        (
            {"outcome": "suspended", "interrupt_ids": ["i"]},
            {"outcome": {"type": "suspended", "interruptIds": ["i"]}},
        ),
        ({"outcome": "novel", "interrupt_ids": ["i"]}, {"outcome": {"type": "novel", "interruptIds": ["i"]}}),
        ({"interrupt_ids": ["i"]}, {"interruptIds": ["i"]}),
    ],
)
def test_a_subagents_outcome_is_put_together(members: Raw, expected: Raw) -> None:
    sent = envelope(subagent_finished=pb.SubagentFinishedEvent(base_event=base("SUBAGENT_FINISHED"), **members))
    assert decode_protobuf(sent) == {"type": "SUBAGENT_FINISHED", "subagentRunId": "", **expected}


def test_operations_have_names_and_unknown_ones_their_numbers() -> None:
    sent = field(8, field(1, b"\x08\x07") + b"".join(field(2, b"\x08" + bytes([op])) for op in (*range(6), 9)))
    names = [operation["op"] for operation in decode_protobuf(sent)["delta"]]
    assert names == ["add", "remove", "replace", "move", "copy", "test", "9"]
    negative = field(8, field(1, b"\x08\x07") + field(2, b"\x08" + b"\xff" * 9 + b"\x01"))
    assert decode_protobuf(negative)["delta"] == [{"op": "-1", "path": ""}]


def test_an_inputs_lists_are_always_there() -> None:
    sent = envelope(run_started=pb.RunStartedEvent(base_event=base("RUN_STARTED"), input=pb.RunAgentInput()))
    lists: Raw = {"messages": [], "tools": [], "context": [], "resume": []}
    assert decode_protobuf(sent)["input"] == {"threadId": "", "runId": "", **lists}


# --- work


@pytest.mark.parametrize("count", [1_000, 4_000])
def test_what_is_sent_in_many_pieces_costs_its_length(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    read: list[int] = []
    walk = protobuf_fields.walk

    def noting(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        read.append(end - start)
        return walk(data, start, end)

    monkeypatch.setattr(protobuf_fields, "walk", noting)
    monkeypatch.setattr(protobuf_messages, "walk", noting)
    pieces = field(1, b"\x08\x01") * count + field(1, b"\x10\x05") * count
    sent = b"\x12" + protobuf_fields.varint(len(pieces)) + pieces
    assert decode_protobuf(sent)["timestamp"] == 5
    assert len(sent) / 2 < sum(read) < 4 * len(sent)
