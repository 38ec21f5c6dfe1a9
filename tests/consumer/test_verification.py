"""The state machine, asked directly: which events may come where."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from accord.consumer import Verifier
from accord.errors import ProtocolViolation
from accord.protocol import TextMessageStartEvent, ToolCallStartEvent, to_wire
from consumer.feeding import FINISHED, STARTED, Raw, call, raw, reasoning, result, text, typed

ERROR = raw("RUN_ERROR", message="x")
ITEMS = {
    "text": ("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", {}),
    "call": ("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", {"toolCallName": "find"}),
    "reasoning": (
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        {"role": "reasoning"},
    ),
    "span": ("REASONING_START", None, "REASONING_END", {}),
}


def start(kind: str, identifier: str = "x", **members: Any) -> Raw:
    return raw(ITEMS[kind][0], identifier, **ITEMS[kind][3], **members)


def goes_on(kind: str, identifier: str = "x", **members: Any) -> Raw:
    event_type = ITEMS[kind][1]
    assert event_type is not None
    return raw(event_type, identifier, delta="d", **members)


def end(kind: str, identifier: str = "x", **members: Any) -> Raw:
    return raw(ITEMS[kind][2], identifier, **members)


def verify(events: Iterable[Raw], verifier: Verifier | None = None) -> str:
    """The rule that refuses the last of the events, or "" when all may come. An earlier one must not be refused."""
    verifier = verifier or Verifier()
    *before, last = events
    for event in before:
        verifier.check(typed(event))
    try:
        verifier.check(typed(last))
    except ProtocolViolation as violation:
        assert violation.stage == "verification"  # noqa: PT017
        assert violation.event_type == last["type"]  # noqa: PT017
        return violation.rule
    return ""


def in_run(*events: Raw) -> str:
    return verify([STARTED, *events])


def finishing(*events: Raw) -> str:
    return in_run(*events, FINISHED)


# Runs


BEFORE: list[Raw] = []
ACTIVE = [STARTED]
OVER = [STARTED, FINISHED]
FAILED = [STARTED, ERROR]
TEXT = raw("TEXT_MESSAGE_START", "m")


@pytest.mark.parametrize(
    ("before", "event", "rule"),
    [
        (BEFORE, STARTED, ""),
        (BEFORE, ERROR, ""),
        (BEFORE, FINISHED, "first-event"),
        (BEFORE, TEXT, "first-event"),
        (BEFORE, raw("RAW", event=1), "first-event"),
        (ACTIVE, STARTED, "nested-run"),
        (ACTIVE, {**STARTED, "runId": "r2"}, "nested-run"),
        (ACTIVE, ERROR, ""),
        (ACTIVE, FINISHED, ""),
        (OVER, {**STARTED, "runId": "r2"}, ""),
        (OVER, STARTED, ""),
        (OVER, ERROR, ""),
        (OVER, FINISHED, "after-run"),
        (OVER, TEXT, "after-run"),
        (OVER, raw("CUSTOM", name="n", value=1), "after-run"),
        ([*OVER, ERROR], STARTED, ""),
        ([*OVER, ERROR], ERROR, "after-run"),
        ([*OVER, ERROR], TEXT, "after-run"),
        (FAILED, STARTED, ""),
        (FAILED, ERROR, "after-run"),
        (FAILED, FINISHED, "after-run"),
        (FAILED, raw("STATE_SNAPSHOT", snapshot=1), "after-run"),
        ([ERROR], STARTED, ""),
        ([ERROR], ERROR, "after-run"),
        ([ERROR], TEXT, "after-run"),
        ([ERROR, STARTED], FINISHED, ""),
    ],
)
def test_what_may_come_where_in_the_stream(before: list[Raw], event: Raw, rule: str) -> None:
    assert verify([*before, event]) == rule


@pytest.mark.parametrize(
    ("event", "path"),
    [({**FINISHED, "threadId": "other"}, "/threadId"), ({**FINISHED, "runId": "other"}, "/runId")],
)
def test_a_run_ends_under_the_ids_it_started_with(event: Raw, path: str) -> None:
    verifier = Verifier()
    verifier.check(typed(STARTED))
    with pytest.raises(ProtocolViolation) as caught:
        verifier.check(typed(event))
    assert (caught.value.rule, caught.value.path) == ("run-ids", path)


def test_later_runs_keep_the_thread() -> None:
    assert verify([*OVER, {**STARTED, "threadId": "other"}]) == "thread"
    assert verify([ERROR, {**STARTED, "threadId": "other"}]) == ""
    later = {**STARTED, "runId": "r2"}
    assert verify([*OVER, later, {**FINISHED, "runId": "r2"}]) == ""
    assert verify([*OVER, later, FINISHED]) == "run-ids"


@pytest.mark.parametrize("kind", ITEMS)
def test_nothing_streamed_may_be_open_when_a_run_finishes(kind: str) -> None:
    assert finishing(start(kind)) == "still-open"
    assert finishing(start(kind), end(kind)) == ""


@pytest.mark.parametrize("outcome", [{"type": "success"}, {"type": "cancelled"}])
def test_no_outcome_excuses_what_is_open(outcome: Raw) -> None:
    assert in_run(TEXT, {**FINISHED, "outcome": outcome}) == "still-open"


def test_steps_and_subagents_must_be_closed_too() -> None:
    assert finishing(raw("STEP_STARTED", "s")) == "still-open"
    assert finishing(raw("STEP_STARTED", "s", tag="a")) == "still-open"
    assert finishing(raw("SUBAGENT_STARTED", "a", name="n")) == "still-open"


def test_what_is_open_is_named() -> None:
    verifier = Verifier()
    assert verify([STARTED, start("text", "m2"), start("text", "m1"), raw("RAW", event=1)], verifier) == ""
    with pytest.raises(ProtocolViolation, match="text messages are still open: m1, m2"):
        verifier.check(typed(FINISHED))


def test_an_error_excuses_what_is_open() -> None:
    everything = [start(kind) for kind in ITEMS] + [raw("STEP_STARTED", "s"), raw("SUBAGENT_STARTED", "a", name="n")]
    assert in_run(*everything, ERROR) == ""
    assert in_run(*everything, ERROR, STARTED, *everything) == ""  # and a new run begins with nothing open


def test_interrupts_are_told_apart() -> None:
    def asks(*identifiers: str) -> Raw:
        interrupts = [{"id": identifier, "reason": "ask"} for identifier in identifiers]
        return {**FINISHED, "outcome": {"type": "interrupt", "interrupts": interrupts}}

    assert in_run(asks("i1", "i2")) == ""
    assert in_run(asks("i1", "i2", "i1")) == "duplicate-interrupt"


# Streamed items


@pytest.mark.parametrize("kind", ITEMS)
def test_an_item_opens_once_until_it_closes(kind: str) -> None:
    assert in_run(start(kind), start(kind)) == "already-open"
    assert in_run(start(kind), end(kind), start(kind)) == ""
    assert in_run(start(kind), start(kind, "y"), end(kind), end(kind, "y")) == ""


@pytest.mark.parametrize("kind", ITEMS)
def test_what_is_not_open_cannot_end(kind: str) -> None:
    assert in_run(end(kind)) == "not-open"
    assert in_run(start(kind), end(kind), end(kind)) == "not-open"
    assert in_run(start(kind), end(kind, "y")) == "not-open"


@pytest.mark.parametrize("kind", [kind for kind in ITEMS if ITEMS[kind][1]])
def test_what_is_not_open_cannot_go_on(kind: str) -> None:
    assert in_run(goes_on(kind)) == "not-open"
    assert in_run(start(kind), goes_on(kind, "y")) == "not-open"
    assert in_run(start(kind), end(kind), goes_on(kind)) == "not-open"
    assert in_run(start(kind), goes_on(kind), goes_on(kind), end(kind)) == ""
    assert in_run(start(kind), end(kind), start(kind), goes_on(kind)) == ""


def test_items_of_different_kinds_are_different_items() -> None:
    kinds = list(ITEMS)
    assert in_run(*(start(kind) for kind in kinds), *(end(kind) for kind in kinds)) == ""
    for kind in kinds:
        for other in kinds:
            if other != kind:
                assert in_run(start(kind), end(other)) == "not-open"


def test_nothing_carries_over_to_the_next_run() -> None:
    assert verify([STARTED, start("text", tag="s1"), end("text"), FINISHED, STARTED, goes_on("text")]) == "not-open"
    assert verify([STARTED, start("text", tag="s1"), end("text"), FINISHED, STARTED, start("text", tag="s2")]) == ""
    again = [raw("SUBAGENT_STARTED", "a", name="n"), raw("SUBAGENT_FINISHED", "a")]
    assert verify([STARTED, *again, FINISHED, STARTED, *again]) == ""


def test_a_result_needs_no_call_and_closes_none() -> None:
    assert in_run(result("t", "never called")) == ""
    assert finishing(start("call", "c"), result("t", "c")) == "still-open"
    assert in_run(*call("c"), result("t", "c"), result("t", "c")) == ""


# Attribution


@pytest.mark.parametrize("kind", ITEMS)
def test_a_continuation_follows_its_opener(kind: str) -> None:
    for event in [end, *([goes_on] if ITEMS[kind][1] else [])]:
        assert in_run(start(kind, tag="s1"), event(kind)) == ""
        assert in_run(start(kind, tag="s1"), event(kind, tag="s1")) == ""
        assert in_run(start(kind, tag="s1"), event(kind, tag="s2")) == "attribution"
        assert in_run(start(kind, tag="s1"), event(kind, tag="")) == "attribution"
        assert in_run(start(kind), event(kind, tag="s1")) == "attribution"


@pytest.mark.parametrize("kind", ITEMS)
def test_an_owner_is_remembered_when_the_item_is_closed(kind: str) -> None:
    closed = [start(kind, tag="s1"), end(kind)]
    assert in_run(*closed, start(kind, tag="s2")) == "attribution"
    assert in_run(*closed, start(kind, tag="s1")) == ""
    assert in_run(*closed, start(kind)) == ""
    assert in_run(*closed, start(kind), end(kind), start(kind, tag="s1")) == ""


def test_spans_and_reasoning_messages_share_owners_but_not_openness() -> None:
    assert in_run(start("span", tag="s1"), start("reasoning", tag="s2")) == "attribution"
    assert in_run(start("span", tag="s1"), start("reasoning", tag="s1"), end("span"), end("reasoning")) == ""


def test_attribution_needs_no_announcement() -> None:
    assert in_run(*text("m", "x", tag="never announced"), FINISHED) == ""


def call_on(parent: str, **members: Any) -> Raw:
    return start("call", "c", parentMessageId=parent, **members)


def test_a_call_agrees_with_the_message_that_holds_it() -> None:
    parent = [start("text", "m", tag="s1"), end("text", "m")]
    assert in_run(*parent, call_on("m", tag="s1")) == ""
    assert in_run(*parent, call_on("m", tag="s2")) == "attribution"
    assert in_run(*parent, call_on("m")) == ""
    assert in_run(*parent, call_on("unknown", tag="s2")) == ""
    assert in_run(*text("m"), call_on("m", tag="s1")) == "attribution"


def test_an_untagged_call_inherits_the_owner_of_its_message() -> None:
    parent = [start("text", "m", tag="s1"), end("text", "m")]
    assert in_run(*parent, call_on("m"), goes_on("call", "c", tag="s1")) == ""
    assert in_run(*parent, call_on("m"), goes_on("call", "c", tag="s2")) == "attribution"
    other = [start("text", "n", tag="s2"), end("text", "n")]
    assert in_run(*parent, *other, call_on("m"), end("call", "c"), call_on("n")) == "attribution"


def test_a_result_owns_its_message_anew() -> None:
    assert in_run(result("m", "c", tag="s1"), start("text", "m", tag="s2")) == "attribution"
    assert in_run(result("m", "c", tag="s1"), result("m", "c", tag="s2"), start("text", "m", tag="s2")) == ""


def test_encrypted_values_agree_with_what_they_name() -> None:
    def sealed(subtype: str, entity: str, **members: Any) -> Raw:
        event = raw("REASONING_ENCRYPTED_VALUE", subtype=subtype, entityId=entity, encryptedValue="x")
        return {**event, **({"subagentRunId": members["tag"]} if members else {})}

    for kind, subtype in (("text", "message"), ("reasoning", "message"), ("call", "tool-call")):
        owned = [start(kind, tag="s1")]
        assert in_run(*owned, sealed(subtype, "x", tag="s2")) == "attribution"
        assert in_run(*owned, sealed(subtype, "x", tag="s1")) == ""
        assert in_run(*owned, sealed(subtype, "x")) == ""
        assert in_run(*owned, sealed(subtype, "unknown", tag="s2")) == ""
    assert in_run(start("call", tag="s1"), sealed("message", "x", tag="s2")) == ""
    assert in_run(start("text", tag="s1"), sealed("tool-call", "x", tag="s2")) == ""


def activity(event_type: str = "ACTIVITY_SNAPSHOT", **members: Any) -> Raw:
    content: Raw = {"patch": []} if event_type == "ACTIVITY_DELTA" else {"content": {}}
    return raw(event_type, "a", activityType="t", **content, **members)


def test_activities_agree_with_their_last_owner() -> None:
    assert in_run(activity(tag="s1"), activity("ACTIVITY_DELTA", tag="s2")) == "attribution"
    assert in_run(activity(tag="s1"), activity("ACTIVITY_DELTA", tag="s1")) == ""
    assert in_run(activity(tag="s1"), activity("ACTIVITY_DELTA")) == ""
    assert in_run(activity("ACTIVITY_DELTA", tag="s1")) == ""
    assert in_run(activity(tag="s1"), activity(tag="s2"), activity("ACTIVITY_DELTA", tag="s2")) == ""
    kept = activity(tag="s2", replace=False)
    assert in_run(activity(tag="s1"), kept, activity("ACTIVITY_DELTA", tag="s1")) == ""
    assert in_run(kept, activity("ACTIVITY_DELTA", tag="s1")) == "attribution"


MESSAGES: list[Raw] = [
    {"id": "m", "role": "assistant", "content": "", "subagentRunId": "s1", "toolCalls": []},
    {"id": "q", "role": "reasoning", "content": "", "subagentRunId": "s1"},
    {"id": "a", "role": "activity", "activityType": "t", "content": {}, "subagentRunId": "s1"},
]
MESSAGES[0]["toolCalls"] = [{"id": "c", "type": "function", "function": {"name": "n", "arguments": ""}}]


@pytest.mark.parametrize(
    "event",
    [
        start("text", "m", tag="s2"),
        start("call", "c", tag="s2"),
        start("reasoning", "q", tag="s2"),
        activity("ACTIVITY_DELTA", tag="s2"),
    ],
    ids=lambda event: event["type"],
)
def test_messages_that_are_told_have_owners(event: Raw) -> None:
    snapshot = raw("MESSAGES_SNAPSHOT", messages=MESSAGES)
    echo = {**STARTED, "input": {"threadId": "t", "runId": "r", "messages": MESSAGES}}
    assert in_run(snapshot, event) == "attribution"
    assert verify([echo, event]) == "attribution"
    assert in_run(snapshot, {**event, "subagentRunId": "s1"}) == ""


def test_a_snapshot_overwrites_owners() -> None:
    snapshot = raw("MESSAGES_SNAPSHOT", messages=MESSAGES[:1])
    assert in_run(*text("m", tag="s2"), snapshot, start("text", "m", tag="s1")) == ""
    assert in_run(*text("m", tag="s2"), snapshot, start("text", "m", tag="s2")) == "attribution"
    assert in_run(start("text", "m"), snapshot, start("text", "m")) == "already-open"


# Steps


def test_steps_are_matched_by_name_and_owner() -> None:
    begun = [raw("STEP_STARTED", "s"), raw("STEP_STARTED", "s", tag="a"), raw("STEP_STARTED", "other")]
    assert in_run(*begun) == ""
    assert in_run(*begun, raw("STEP_STARTED", "s")) == "already-open"
    assert in_run(*begun, raw("STEP_STARTED", "s", tag="a")) == "already-open"
    assert in_run(*begun, raw("STEP_FINISHED", "s"), raw("STEP_FINISHED", "s", tag="a")) == ""
    assert in_run(raw("STEP_STARTED", "s"), raw("STEP_FINISHED", "s"), raw("STEP_FINISHED", "s")) == "not-open"
    assert in_run(raw("STEP_FINISHED", "s")) == "not-open"
    assert in_run(raw("STEP_STARTED", "s", tag="a"), raw("STEP_FINISHED", "s")) == "not-open"
    assert in_run(raw("STEP_STARTED", "s"), raw("STEP_FINISHED", "s", tag="a")) == "not-open"
    assert in_run(raw("STEP_STARTED", "s"), raw("STEP_FINISHED", "s"), raw("STEP_STARTED", "s")) == ""


# Subagents


def announced(name: str, **members: Any) -> Raw:
    return raw("SUBAGENT_STARTED", name, name="helper", **members)


ENDS = [raw("SUBAGENT_FINISHED", "a"), raw("SUBAGENT_ERROR", "a", message="x")]


@pytest.mark.parametrize("ends", ENDS, ids=lambda event: event["type"])
def test_an_invocation_happens_once(ends: Raw) -> None:
    assert in_run(announced("a"), announced("a")) == "already-open"
    assert in_run(announced("a"), ends, announced("a")) == "subagent-reused"
    assert in_run(announced("a"), announced("b"), ends, raw("SUBAGENT_FINISHED", "b")) == ""


@pytest.mark.parametrize("ends", ENDS, ids=lambda event: event["type"])
def test_only_an_active_invocation_ends(ends: Raw) -> None:
    assert in_run(ends) == "not-open"
    assert in_run(announced("a"), ends, ends) == "not-open"
    assert in_run(*text("m", tag="a"), ends) == "not-open"


def test_a_parent_must_have_been_announced() -> None:
    assert in_run(announced("b", parentSubagentRunId="a")) == "unknown-parent"
    assert in_run(announced("b", parentSubagentRunId="b")) == "unknown-parent"
    assert in_run(announced("a"), announced("b", parentSubagentRunId="a")) == ""
    assert in_run(announced("a"), raw("SUBAGENT_FINISHED", "a"), announced("b", parentSubagentRunId="a")) == ""


def test_ending_an_invocation_leaves_its_items_open() -> None:
    started = [announced("a"), start("text", tag="a"), raw("SUBAGENT_FINISHED", "a")]
    assert in_run(*started, goes_on("text", tag="a")) == ""
    assert finishing(*started) == "still-open"


def test_an_invocation_that_fails_does_not_fail_the_run() -> None:
    assert in_run(announced("a"), ENDS[1], FINISHED) == ""


# What callers ask


def test_a_refused_event_changes_nothing() -> None:
    verifier = Verifier()
    setup = [STARTED, start("text", "m", tag="s1"), raw("STEP_STARTED", "s"), announced("a")]
    verify(setup, verifier)
    for refused in (
        STARTED,
        FINISHED,
        start("text", "m"),
        end("text", "m", tag="s2"),
        end("call"),
        raw("STEP_STARTED", "s"),
        raw("STEP_FINISHED", "other"),
        announced("a"),
        raw("SUBAGENT_FINISHED", "b"),
        announced("c", parentSubagentRunId="unknown"),
        call_on("m", tag="s2"),
    ):
        with pytest.raises(ProtocolViolation):
            verifier.check(typed(refused))
    assert (
        verify([end("text", "m"), raw("STEP_FINISHED", "s"), raw("SUBAGENT_FINISHED", "a"), FINISHED], verifier) == ""
    )


def test_what_is_open_can_be_asked_and_closed() -> None:
    verifier = Verifier()
    events = [
        STARTED,
        start("text", "m", tag="s1"),
        start("call", "c"),
        start("span", "q"),
        start("reasoning", "q"),
        raw("STEP_STARTED", "s", tag="s1"),
        announced("a"),
    ]
    verify(events, verifier)
    assert verifier.open_ids(TextMessageStartEvent) == {"m"}
    assert verifier.open_ids(ToolCallStartEvent) == {"c"}
    assert verifier.step_is_open("s", "s1")
    assert not verifier.step_is_open("s")
    assert verifier.subagent_is_active("a")
    closing = verifier.closing_events()
    assert [to_wire(event) for event in closing] == [
        end("text", "m", tag="s1"),
        end("reasoning", "q"),
        end("span", "q"),
        end("call", "c"),
        raw("STEP_FINISHED", "s", tag="s1"),
        raw("SUBAGENT_FINISHED", "a"),
    ]
    assert verify([*map(to_wire, closing), FINISHED], verifier) == ""
    assert verifier.closing_events() == []


def test_where_in_the_stream_it_stands() -> None:
    verifier = Verifier()
    assert (verifier.started, verifier.run_active, dict(verifier.appending)) == (False, False, {})
    verifier.check(typed(STARTED))
    assert (verifier.started, verifier.run_active, len(verifier.appending)) == (True, True, 3)
    verifier.check(typed(FINISHED))
    assert (verifier.started, verifier.run_active, dict(verifier.appending)) == (True, False, {})
    verifier.check(typed(ERROR))
    assert (verifier.started, verifier.run_active) == (True, False)


def test_asides_need_nothing_but_a_run() -> None:
    for event in (raw("RAW", event=None), raw("CUSTOM", name="n", value=None), *reasoning("q")):
        assert in_run(event) in ("", "not-open")
    assert in_run(raw("STATE_DELTA", delta=[])) == ""


def test_nothing_is_open_after_an_error() -> None:
    verifier = Verifier()
    verify([STARTED, start("text", "m")], verifier)
    open_texts = verifier.open_ids(TextMessageStartEvent)
    assert open_texts == {"m"}
    verify([raw("RUN_ERROR", message="over")], verifier)
    assert not open_texts
    assert verifier.closing_events() == []
