from __future__ import annotations

from typing import Any

import pytest

from accord.protocol import to_wire
from consumer.feeding import FINISHED, STARTED, Consumed, Raw, consume, raw, reasoning, text

KINDS: dict[str, tuple[str, str, str, str, Raw]] = {
    "text": ("TEXT_MESSAGE_CHUNK", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", {}),
    "call": ("TOOL_CALL_CHUNK", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", {"toolCallName": "find"}),
    "reasoning": (
        "REASONING_MESSAGE_CHUNK",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        {},
    ),
}


def chunk(kind: str, identifier: str | None = None, **members: Any) -> Raw:
    opener = KINDS[kind][4] if identifier is not None else {}
    return raw(KINDS[kind][0], identifier, **{**opener, **members})


def body(found: Consumed) -> list[Raw]:
    """The delivered events, without the start and the end of the run."""
    assert found.violation is None, found.violation
    return [to_wire(event) for event in found.events if not event.type.startswith("RUN_")]


def expand(*events: Raw) -> list[Raw]:
    return body(consume(events, whole=True))


def shape(*events: Raw) -> list[tuple[str, str | None]]:
    """Type and id of each event that comes out."""
    return [
        (event["type"], event.get("messageId", event.get("toolCallId", event.get("subagentRunId"))))
        for event in expand(*events)
    ]


# What chunks stand for


def test_text() -> None:
    assert expand(chunk("text", "m", role="user", name="Ada", delta="a"), chunk("text", delta="b")) == [
        raw("TEXT_MESSAGE_START", "m", role="user", name="Ada"),
        raw("TEXT_MESSAGE_CONTENT", "m", delta="a"),
        raw("TEXT_MESSAGE_CONTENT", "m", delta="b"),
        raw("TEXT_MESSAGE_END", "m"),
    ]


def test_an_absent_role_counts_as_assistant() -> None:
    assert expand(chunk("text", "m"))[0] == raw("TEXT_MESSAGE_START", "m", role="assistant")


def test_calls() -> None:
    assert expand(chunk("call", "c", parentMessageId="m", delta="{"), chunk("call", delta="}")) == [
        raw("TOOL_CALL_START", "c", toolCallName="find", parentMessageId="m"),
        raw("TOOL_CALL_ARGS", "c", delta="{"),
        raw("TOOL_CALL_ARGS", "c", delta="}"),
        raw("TOOL_CALL_END", "c"),
    ]


def test_reasoning() -> None:
    assert expand(chunk("reasoning", "q", delta="hm")) == [
        raw("REASONING_MESSAGE_START", "q", role="reasoning"),
        raw("REASONING_MESSAGE_CONTENT", "q", delta="hm"),
        raw("REASONING_MESSAGE_END", "q"),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_chunk_must_name_its_item(kind: str) -> None:
    found = consume([STARTED, chunk(kind, delta="x")])
    assert found.violation is not None
    assert (found.violation.stage, found.rule) == ("chunks", "first-chunk")
    assert found.violation.path in ("/messageId", "/toolCallId")


def test_the_first_chunk_of_a_call_must_name_the_tool() -> None:
    found = consume([STARTED, raw("TOOL_CALL_CHUNK", "c", delta="x")])
    assert found.violation is not None
    assert (found.rule, found.violation.path) == ("first-chunk", "/toolCallName")


@pytest.mark.parametrize("kind", KINDS)
def test_later_chunks_may_repeat_or_omit_the_id(kind: str) -> None:
    _, start, content, end, _ = KINDS[kind]
    found = shape(chunk(kind, "x", delta="a"), chunk(kind, "x", delta="b"), chunk(kind, delta="c"))
    assert found == [(start, "x"), (content, "x"), (content, "x"), (content, "x"), (end, "x")]


@pytest.mark.parametrize("kind", KINDS)
def test_another_id_closes_the_open_item(kind: str) -> None:
    _, start, _, end, _ = KINDS[kind]
    assert shape(chunk(kind, "x"), chunk(kind, "y")) == [(start, "x"), (end, "x"), (start, "y"), (end, "y")]


def test_the_empty_string_is_an_id() -> None:
    assert shape(chunk("text", ""), chunk("text", delta="x"))[1:] == [
        ("TEXT_MESSAGE_CONTENT", ""),
        ("TEXT_MESSAGE_END", ""),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_are_judged_as_events_first(kind: str) -> None:
    found = consume([STARTED, chunk(kind, "x", delta=5)])
    assert found.violation is not None
    assert (found.violation.stage, found.violation.path) == ("enforcement", "/delta")


# Conflicts


@pytest.mark.parametrize(
    ("first", "later", "path"),
    [
        (chunk("text", "m", role="user"), chunk("text", role="assistant"), "/role"),
        (chunk("text", "m"), chunk("text", role="user"), "/role"),
        (chunk("text", "m", name="Ada"), chunk("text", "m", name="Bob"), "/name"),
        (chunk("text", "m"), chunk("text", name="Ada"), "/name"),
        (chunk("call", "c"), raw("TOOL_CALL_CHUNK", toolCallName="make"), "/toolCallName"),
        (chunk("call", "c", parentMessageId="m"), chunk("call", parentMessageId="n"), "/parentMessageId"),
        (chunk("call", "c"), chunk("call", parentMessageId="m"), "/parentMessageId"),
    ],
)
def test_a_conflicting_opener_is_fatal(first: Raw, later: Raw, path: str) -> None:
    found = consume([STARTED, first, later])
    assert found.violation is not None
    violation = found.violation
    assert (violation.stage, violation.rule, violation.path) == ("chunks", "conflicting-chunk", path)


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (chunk("text", "m"), chunk("text", role="assistant")),
        (chunk("text", "m", role="user", name="Ada"), chunk("text", role="user", name="Ada")),
        (chunk("call", "c", parentMessageId="m"), chunk("call", "c", parentMessageId="m")),
        (chunk("text", "m", role="user"), chunk("text", delta="omitted")),
    ],
)
def test_repeating_the_same_opener_is_fine(first: Raw, later: Raw) -> None:
    assert len([event for event in expand(first, later) if event["type"].endswith("_START")]) == 1


# Lanes


def test_each_owner_has_a_lane() -> None:
    found = consume(
        [
            chunk("text", "p", delta="p1"),
            chunk("text", "a", delta="a1", tag="s1"),
            chunk("text", "b", delta="b1", tag="s2"),
            chunk("text", delta="a2", tag="s1"),
            chunk("text", delta="b2", tag="s2"),
            chunk("text", delta="p2"),
        ],
        whole=True,
    )
    assert {message["id"]: message["content"] for message in found.messages} == {"p": "p1p2", "a": "a1a2", "b": "b1b2"}
    assert [message.get("subagentRunId") for message in found.messages] == [None, "s1", "s2"]


def test_the_empty_string_owns_a_lane() -> None:
    found = consume([chunk("text", "p"), chunk("text", "e", tag=""), chunk("text", delta="x", tag="")], whole=True)
    assert {message["id"]: message["content"] for message in found.messages} == {"p": "", "e": "x"}


def test_an_untagged_continuation_goes_on_in_the_only_lane_of_its_kind() -> None:
    events = expand(chunk("reasoning", "q"), chunk("text", "a", tag="s1"), chunk("text", delta="x"))
    assert raw("TEXT_MESSAGE_CONTENT", "a", delta="x", tag="s1") in events


def test_an_untagged_continuation_prefers_the_parent() -> None:
    found = consume([chunk("text", "a", tag="s1"), chunk("text", "p"), chunk("text", delta="x")], whole=True)
    assert {message["id"]: message["content"] for message in found.messages} == {"a": "", "p": "x"}


def test_an_ambiguous_continuation_is_fatal() -> None:
    found = consume([STARTED, chunk("text", "a", tag="s1"), chunk("text", "b", tag="s2"), chunk("text", delta="x")])
    assert found.rule == "ambiguous-chunk"


def test_an_id_finds_its_lane_without_a_tag() -> None:
    events = expand(chunk("text", "a", tag="s1"), chunk("text", "b", tag="s2"), chunk("text", "a", delta="x"))
    assert raw("TEXT_MESSAGE_CONTENT", "a", delta="x", tag="s1") in events


def test_a_tag_that_disagrees_with_the_holder_is_fatal() -> None:
    found = consume([STARTED, chunk("text", "a", tag="s1"), chunk("text", "a", tag="s2", delta="x")])
    assert found.violation is not None
    assert (found.violation.stage, found.rule) == ("chunks", "attribution")
    assert consume([STARTED, chunk("text", "a"), chunk("text", "a", tag="s2")]).rule == "attribution"


def test_kinds_have_ids_of_their_own() -> None:
    events = shape(chunk("text", "x", tag="s1"), chunk("reasoning", "x"), chunk("text", "x", delta="1"))
    assert ("TEXT_MESSAGE_CONTENT", "x") in events


def test_a_lane_holds_one_item_of_any_kind() -> None:
    assert shape(chunk("text", "m"), chunk("call", "c"), chunk("reasoning", "q")) == [
        ("TEXT_MESSAGE_START", "m"),
        ("TEXT_MESSAGE_END", "m"),
        ("TOOL_CALL_START", "c"),
        ("TOOL_CALL_END", "c"),
        ("REASONING_MESSAGE_START", "q"),
        ("REASONING_MESSAGE_END", "q"),
    ]


# Ends


ENDING = [
    raw("STATE_SNAPSHOT", snapshot=1),
    raw("STATE_DELTA", delta=[]),
    raw("CUSTOM", name="n", value=1),
    raw("STEP_STARTED", "s"),
    raw("TOOL_CALL_RESULT", "t", toolCallId="c", content=""),
    raw("REASONING_START", "q"),
    raw("REASONING_MESSAGE_START", "q", role="reasoning"),
    raw("TEXT_MESSAGE_START", "n"),
    raw("TOOL_CALL_START", "c", toolCallName="find"),
]
ASIDE = [
    raw("RAW", event=1),
    raw("ACTIVITY_SNAPSHOT", "a", activityType="t", content={}),
    raw("ACTIVITY_DELTA", "a", activityType="t", patch=[]),
    raw("REASONING_ENCRYPTED_VALUE", subtype="message", entityId="m", encryptedValue="x"),
    raw("SUBAGENT_STARTED", "s1", name="n"),
]
RUN_LEVEL = [FINISHED, raw("RUN_ERROR", message="x"), raw("MESSAGES_SNAPSHOT", messages=[])]


def ends_before(event: Raw, *chunks: Raw) -> list[str]:
    """The ids of the ends that come right before `event`."""
    found = consume([STARTED, *chunks, event])
    assert found.violation is None, found.violation
    delivered = [to_wire(each) for each in found.events]
    position = delivered.index(event)
    return [each["messageId"] for each in delivered[:position] if each["type"] == "TEXT_MESSAGE_END"]


@pytest.mark.parametrize("event", ENDING, ids=lambda event: event["type"])
def test_what_ends_shorthand_in_its_lane(event: Raw) -> None:
    assert ends_before(event, chunk("text", "p"), chunk("text", "a", tag="s1")) == ["p"]
    tagged = {**event, "subagentRunId": "s1"}
    assert ends_before(tagged, chunk("text", "p"), chunk("text", "a", tag="s1")) == ["a"]


@pytest.mark.parametrize("event", ASIDE, ids=lambda event: event["type"])
def test_what_leaves_shorthand_open(event: Raw) -> None:
    assert ends_before(event, chunk("text", "p"), chunk("text", "a", tag="s1")) == []


@pytest.mark.parametrize("event", RUN_LEVEL, ids=lambda event: event["type"])
def test_a_run_level_event_ends_all_lanes_in_the_order_they_opened(event: Raw) -> None:
    reopened = [chunk("text", "p"), chunk("text", "a", tag="s1"), chunk("text", "q")]
    assert ends_before(event, *reopened) == ["p", "a", "q"]


def test_a_new_run_ends_what_the_old_one_left() -> None:
    found = consume([STARTED, chunk("text", "m"), STARTED])
    assert found.types == ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END"]
    assert found.rule == "nested-run"


@pytest.mark.parametrize("ending", [raw("SUBAGENT_FINISHED", "s1"), raw("SUBAGENT_ERROR", "s1", message="x")])
def test_a_subagent_that_ends_ends_its_own_lane(ending: Raw) -> None:
    announced = [raw("SUBAGENT_STARTED", name, name="n") for name in ("s1", "s2")]
    chunks = [chunk("text", "a", tag="s1"), chunk("text", "b", tag="s2"), chunk("text", "p")]
    assert ends_before(ending, *announced, *chunks) == ["a"]


def test_a_synthesised_end_carries_the_owner_and_nothing_else() -> None:
    events = expand(chunk("text", "m", tag="s1", metadata={"a": 1}, rawEvent=1, timestamp=5, delta="x"))
    assert events[-1] == raw("TEXT_MESSAGE_END", "m", tag="s1")


def test_a_stream_that_stops_invents_no_end() -> None:
    found = consume([STARTED, chunk("text", "m", delta="x")])
    assert found.truncated
    assert found.types == ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT"]


@pytest.mark.parametrize("tag", [{}, {"tag": "s1"}])
def test_an_explicit_event_for_the_id_ends_the_shorthand_and_is_judged_plainly(tag: Raw) -> None:
    for event in (raw("TEXT_MESSAGE_CONTENT", "m", delta="x"), raw("TEXT_MESSAGE_END", "m")):
        found = consume([STARTED, chunk("text", "m", **tag), event])
        assert found.types[1:] == ["TEXT_MESSAGE_START", "TEXT_MESSAGE_END"]
        assert found.rule == "not-open"
    reopened = body(consume([chunk("text", "m", delta="1", **tag), *text("m", "2")], whole=True))
    assert [event["type"] for event in reopened][2:4] == ["TEXT_MESSAGE_END", "TEXT_MESSAGE_START"]


def test_an_explicit_event_of_another_id_does_not_reach_other_lanes() -> None:
    events = shape(chunk("text", "a", tag="s1"), *text("m"), chunk("text", delta="x", tag="s1"))
    assert events[-2:] == [("TEXT_MESSAGE_CONTENT", "a"), ("TEXT_MESSAGE_END", "a")]


# What chunks carry


def test_metadata_and_raw_event_go_to_the_synthesised_events() -> None:
    members = {"metadata": {"a": 1}, "rawEvent": {"from": "x"}, "timestamp": 5}
    assert expand(chunk("text", "m", delta="x", **members)) == [
        raw("TEXT_MESSAGE_START", "m", role="assistant", metadata={"a": 1}),
        raw("TEXT_MESSAGE_CONTENT", "m", delta="x", metadata={"a": 1}, rawEvent={"from": "x"}),
        raw("TEXT_MESSAGE_END", "m"),
    ]


def test_a_raw_event_alone_makes_an_empty_delta() -> None:
    events = expand(chunk("call", "c", rawEvent=1), chunk("call", rawEvent=2))
    assert events[1:3] == [
        raw("TOOL_CALL_ARGS", "c", delta="", rawEvent=1),
        raw("TOOL_CALL_ARGS", "c", delta="", rawEvent=2),
    ]


def test_metadata_alone_goes_on() -> None:
    found = consume([chunk("text", "m", metadata={"a": 1}), chunk("text", metadata={"b": 2})], whole=True)
    assert body(found)[0]["metadata"] == {"a": 1}
    assert body(found)[1] == raw("TEXT_MESSAGE_CONTENT", "m", delta="", metadata={"b": 2})
    assert found.messages[0]["metadata"] == {"a": 1, "b": 2}


def test_an_empty_delta_is_a_delta_and_none_is_none() -> None:
    assert len(expand(chunk("text", "m", delta=""))) == 3
    assert len(expand(chunk("text", "m"), chunk("text"), chunk("text", "m"))) == 2


def test_chunks_and_explicit_events_make_the_same_conversation() -> None:
    plain = consume([*text("m", "a", "b"), *reasoning("q", "c")], whole=True)
    short = consume(
        [chunk("text", "m", delta="a"), chunk("text", delta="b"), chunk("reasoning", "q", delta="c")], whole=True
    )
    assert plain.messages == short.messages


def test_chunks_need_a_run() -> None:
    assert consume([chunk("text", "m")]).rule == "first-event"
    assert consume([STARTED, FINISHED, chunk("text", "m")]).rule == "after-run"
