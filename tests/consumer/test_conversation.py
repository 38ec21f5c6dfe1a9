"""Events applied to messages and runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.consumer import Conversation, Pipeline
from accord.consumer import conversation as conversation_module
from accord.errors import ProtocolViolation
from accord.protocol import AssistantMessage, SystemMessage, TokenUsage, ToolMessage, UserMessage
from consumer.feeding import FINISHED, INPUT, STARTED, Raw, call, consume, raw, reasoning, result, text, typed

USER = {"id": "u", "role": "user", "content": "hi"}
PARTS = {"id": "p", "role": "user", "content": [{"type": "text", "text": "look: "}]}
IMAGE = {"type": "image", "source": {"type": "url", "value": "u"}}
ACTIVITY = {"id": "a", "role": "activity", "activityType": "plan", "content": {"n": 1}}


def held(*events: Raw, **given: Any) -> list[Raw]:
    """The messages a run leaves."""
    found = consume(events, whole=True, given=given or None)
    assert found.violation is None, found.violation
    return found.messages


def snapshot(*messages: Raw, **members: Any) -> Raw:
    return raw("MESSAGES_SNAPSHOT", messages=list(messages), **members)


def ids(messages: list[Raw]) -> list[str]:
    return [message["id"] for message in messages]


def calls_of(message: Raw) -> list[tuple[str, str, str]]:
    return [(each["id"], each["function"]["name"], each["function"]["arguments"]) for each in message["toolCalls"]]


# Text


def test_text_is_appended_in_arrival_order() -> None:
    assert held(*text("m", "a", "", "b")) == [{"role": "assistant", "id": "m", "content": "ab"}]


@pytest.mark.parametrize("role", ["assistant", "user", "system", "developer"])
def test_text_has_the_role_name_and_owner_of_its_opener(role: str) -> None:
    (message,) = held(*text("m", "x", role=role, name="Ada", tag="s1"))
    assert message == {"role": role, "id": "m", "content": "x", "name": "Ada", "subagentRunId": "s1"}


def test_items_interleave() -> None:
    first, second = text("a", "1", "2"), text("b", "3", "4")
    woven = [event for pair in zip(first, second, strict=True) for event in pair]
    assert [message["content"] for message in held(*woven)] == ["12", "34"]


def test_a_reopened_message_is_appended_to_and_keeps_its_role_and_name() -> None:
    (message,) = held(*text("m", "a", role="user", name="Ada"), *text("m", "b", role="system", name="Bob"))
    assert message == {"role": "user", "id": "m", "content": "ab", "name": "Ada"}


def test_text_goes_on_with_a_message_of_the_input() -> None:
    assert held(*text("u", " there"), messages=[USER])[0]["content"] == "hi there"


def test_text_behind_parts_joins_them() -> None:
    with_image = {**PARTS, "content": [IMAGE]}
    assert held(*text("p", "this"), messages=[PARTS])[0]["content"] == [{"type": "text", "text": "look: this"}]
    assert held(*text("p", "this"), messages=[with_image])[0]["content"] == [IMAGE, {"type": "text", "text": "this"}]


@pytest.mark.parametrize("deltas", [("\ud83d", "\ude00"), ("a\ud83d", "\ude00b"), ("\ud83d", "", "\ude00")])
@pytest.mark.parametrize("item", [text, call, reasoning])
def test_a_pair_cut_between_two_deltas_joins(item: Any, deltas: tuple[str, ...]) -> None:
    (message,) = held(*item("x", *deltas))
    joined = message["toolCalls"][0]["function"]["arguments"] if item is call else message["content"]
    assert "😀" in joined
    assert len(joined) in (1, 3)


def test_a_pair_joins_though_somebody_looked_in_between() -> None:
    conversation = Conversation()
    start, first, second, end = text("m", "\ud83d", "\ude00")
    seen = []
    for event in (STARTED, start, first, second, end):
        conversation.apply(typed(event))
        seen.append(conversation.messages)
    assert [message[0].content for message in seen[2:4]] == ["\ud83d", "😀"]


def test_a_surrogate_without_its_other_half_stays() -> None:
    assert held(*text("m", "a\ud83d", "b\ude00"))[0]["content"] == "a\ud83db\ude00"


@pytest.mark.parametrize("item", [text, reasoning])
def test_streamed_text_does_not_touch_an_activity(item: Any) -> None:
    found = consume([*item("a", "x", metadata={"k": 1})], whole=True, given={"messages": [ACTIVITY]})
    assert found.messages == [ACTIVITY]
    assert len(found.warnings) == 3
    assert all("is an activity" in each for each in found.warnings)


def test_text_whose_message_was_taken_away_is_skipped_with_a_warning() -> None:
    events = [text("m", "a")[0], snapshot(USER), *text("m", "b")[1:]]
    found = consume(events, whole=True)
    assert found.messages == [USER]
    assert [each.stage for each in found.deviations] == ["application", "application"]
    assert "'m' is not held" in found.warnings[0]


# Metadata


def test_metadata_merges_key_by_key_and_the_last_write_wins() -> None:
    start, content, end = text("m", "x")
    events = [
        {**start, "metadata": {"a": 1, "deep": {"x": 1}}},
        {**content, "metadata": {"b": None, "deep": {"y": 2}}},
        {**end, "metadata": {"a": [2]}},
    ]
    assert held(*events)[0]["metadata"] == {"a": [2], "b": None, "deep": {"y": 2}}


@pytest.mark.parametrize("position", [0, 1, 2])
def test_metadata_of_each_event_reaches_its_item(position: int) -> None:
    for item in (text, call, reasoning):
        events = item("x", "d")
        events[position] = {**events[position], "metadata": {"k": 1}}
        (message,) = held(*events)
        if item is call:
            assert message["toolCalls"][0]["metadata"] == {"k": 1}
            assert "metadata" not in message
        else:
            assert message["metadata"] == {"k": 1}


def test_metadata_of_a_result_goes_to_the_tool_message() -> None:
    found = held(*call("c"), result("t", "c", metadata={"k": 1}))
    assert "metadata" not in found[0]["toolCalls"][0]
    assert found[1]["metadata"] == {"k": 1}


def test_empty_metadata_is_metadata() -> None:
    assert held(*text("m", metadata={}))[0]["metadata"] == {}


def test_metadata_of_other_events_goes_nowhere() -> None:
    members: Raw = {"metadata": {"k": 1}}
    sealed = raw("REASONING_ENCRYPTED_VALUE", subtype="message", entityId="m", encryptedValue="x", **members)
    events = [raw("STATE_SNAPSHOT", snapshot=1, **members), raw("CUSTOM", name="n", value=1, **members), sealed]
    spans = [raw("REASONING_START", "m", **members), raw("REASONING_END", "m", **members)]
    assert "metadata" not in held(*text("m"), *events, *spans)[0]


# Tool calls


def test_a_call_gets_an_assistant_message_of_its_own() -> None:
    assert held(*call("c", "{", "}", tag="s1")) == [
        {
            "role": "assistant",
            "id": "c",
            "subagentRunId": "s1",
            "toolCalls": [{"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}],
        }
    ]


def test_a_call_goes_on_the_message_it_names() -> None:
    (message,) = held(*text("m", "x"), *call("c1", "1", parentMessageId="m"), *call("c2", "2", parentMessageId="m"))
    assert message["content"] == "x"
    assert calls_of(message) == [("c1", "find", "1"), ("c2", "find", "2")]


def test_a_named_message_that_is_not_held_is_made() -> None:
    (message,) = held(*call("c", parentMessageId="m"))
    assert (message["id"], message["role"]) == ("m", "assistant")
    assert "content" not in message


def test_a_call_does_not_go_on_a_message_of_another_role() -> None:
    found = consume(call("c", parentMessageId="u"), whole=True, given={"messages": [USER]})
    assert ids(found.messages) == ["u", "c"]
    assert "not an assistant's" in found.warnings[0]


def test_an_empty_parent_names_none() -> None:
    assert ids(held(*call("c", parentMessageId=""))) == ["c"]


def test_a_reopened_call_is_appended_to_and_keeps_its_place_and_name() -> None:
    events = [*text("m"), *call("c", "1", parentMessageId="m"), *text("n")]
    found = consume([*events, *call("c", "2", name="make", parentMessageId="n")], whole=True)
    assert calls_of(found.messages[0]) == [("c", "find", "12")]
    assert "toolCalls" not in found.messages[1]
    assert "keeps its name 'find'" in found.warnings[0]


def test_arguments_are_text_that_nobody_judges() -> None:
    assert calls_of(held(*call("c", "{not json", "\n"))[0])[0][2] == "{not json\n"


def test_calls_of_the_input_go_on() -> None:
    message = {"id": "m", "role": "assistant", "toolCalls": [tool_call("c", "1")]}
    assert calls_of(held(*call("c", "2"), messages=[message])[0]) == [("c", "find", "12")]


def tool_call(identifier: str, arguments: str = "", **members: Any) -> Raw:
    function = {"name": "find", "arguments": arguments}
    return {"id": identifier, "type": "function", "function": function, **members}


def test_a_call_whose_message_was_taken_away_is_skipped_with_a_warning() -> None:
    start, arguments, end = call("c", "1")
    found = consume([start, snapshot(USER), arguments, end], whole=True)
    assert found.messages == [USER]
    assert [each.path for each in found.deviations] == ["/toolCallId", "/toolCallId"]


# Results


def test_a_result_is_a_tool_message_behind_its_call() -> None:
    events = [*call("c1", parentMessageId="m"), *call("c2", parentMessageId="m"), *text("n", "later")]
    found = held(*events, result("t2", "c2", "two", tag="s1"), result("t1", "c1", [{"type": "text", "text": "one"}]))
    assert ids(found) == ["m", "t2", "t1", "n"]
    assert found[1] == {"role": "tool", "id": "t2", "content": "two", "toolCallId": "c2", "subagentRunId": "s1"}
    assert found[2]["content"] == [{"type": "text", "text": "one"}]


def test_a_result_without_a_call_is_appended() -> None:
    assert ids(held(*text("m"), result("t", "unknown"))) == ["m", "t"]


def test_results_find_their_place_among_messages_that_were_given() -> None:
    given = [
        {"id": "t0", "role": "tool", "content": "", "toolCallId": "x"},
        {"id": "m1", "role": "assistant", "toolCalls": [tool_call("c1")]},
        {"id": "t1", "role": "tool", "content": "", "toolCallId": "c1"},
        {"id": "m2", "role": "assistant", "toolCalls": [tool_call("c2")]},
        USER,
        {"id": "t9", "role": "tool", "content": "", "toolCallId": "x"},
    ]
    found = held(result("r1", "c1"), result("r2", "c2"), result("r0", "x"), messages=given)
    assert ids(found) == ["t0", "m1", "t1", "r1", "m2", "r2", "u", "t9", "r0"]


def test_a_tool_message_that_becomes_an_activity_no_longer_counts_as_a_result() -> None:
    events = [*call("c"), result("t1", "c"), result("t2", "c"), activity("t1")]
    assert ids(held(*events, result("t3", "c"))) == ["c", "t3", "t1", "t2"]


def test_a_second_result_under_one_id_takes_the_place_of_the_first() -> None:
    found = consume([*call("c"), result("t", "c", "one"), *text("m"), result("t", "c", "two")], whole=True)
    assert ids(found.messages) == ["c", "t", "m"]
    assert found.messages[1]["content"] == "two"
    assert "replaced" in found.warnings[0]


def test_a_result_leaves_the_call_as_it_is() -> None:
    assert calls_of(held(*call("c", "1"), result("t", "c"))[0]) == [("c", "find", "1")]


def test_many_results_of_one_call_stay_in_order() -> None:
    found = held(*call("c"), *text("m"), *(result(f"t{number}", "c") for number in range(50)))
    assert ids(found) == ["c", *(f"t{number}" for number in range(50)), "m"]


# Reasoning and sealed values


def test_reasoning_messages() -> None:
    span = [raw("REASONING_START", "q"), *reasoning("q", "h", "m", tag="s1"), raw("REASONING_END", "q")]
    assert consume(span, whole=True).rule == "attribution"
    assert held(raw("REASONING_START", "s"), *reasoning("q", "h", "m", tag="s1"), raw("REASONING_END", "s")) == [
        {"role": "reasoning", "id": "q", "content": "hm", "subagentRunId": "s1"}
    ]


def sealed(subtype: str, entity: str, value: str = "sealed") -> Raw:
    return raw("REASONING_ENCRYPTED_VALUE", subtype=subtype, entityId=entity, encryptedValue=value)


def test_a_sealed_value_is_stored_on_what_it_names_and_returned_unmodified() -> None:
    found = consume([*text("m"), *call("c"), *reasoning("q"), sealed("message", "m", "1")], whole=True)
    assert found.messages[0]["encryptedValue"] == "1"
    found = consume([*text("m"), *call("c"), sealed("tool-call", "c", "2"), sealed("tool-call", "c", "3")], whole=True)
    assert found.messages[1]["toolCalls"][0]["encryptedValue"] == "3"
    again = held(*text("m", "more"), *call("c", "more"), messages=found.messages)
    assert again[1]["toolCalls"][0]["encryptedValue"] == "3"
    assert held(*reasoning("q"), sealed("message", "q", "x"), *reasoning("q", "more"))[0]["encryptedValue"] == "x"


@pytest.mark.parametrize(
    "event",
    [sealed("message", "unknown"), sealed("tool-call", "unknown"), sealed("message", "a"), sealed("message", "c1")],
)
def test_a_sealed_value_for_nothing_known_warns_and_goes(event: Raw) -> None:
    given = {"messages": [ACTIVITY, {"id": "m", "role": "assistant", "toolCalls": [tool_call("c1")]}]}
    found = consume([event], whole=True, given=given)
    assert found.messages == [*given["messages"]]
    assert [(each.stage, each.path) for each in found.deviations] == [("application", "/entityId")]


# Snapshots of the messages


def test_a_known_message_is_replaced_in_place_and_an_unknown_one_appended() -> None:
    given = [USER, {"id": "m", "role": "assistant", "content": "old", "metadata": {"k": 1}}, {**USER, "id": "v"}]
    new = {"id": "m", "role": "system", "content": "new"}
    assert held(snapshot({**USER, "id": "w"}, {**USER, "id": "v"}, new, USER), messages=given) == [
        USER,
        {"id": "m", "role": "system", "content": "new"},
        {**USER, "id": "v"},
        {**USER, "id": "w"},
    ]


def test_a_held_message_that_is_missing_is_dropped() -> None:
    assert held(*text("m"), snapshot(USER)) == [USER]
    assert held(*text("m"), snapshot()) == []


REASONED = {"id": "q", "role": "reasoning", "content": "hm"}


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ([], ["q", "a"]),
        ([USER], ["q", "a", "u"]),
        ([{**REASONED, "id": "q2"}], ["a", "q2"]),
        ([{**ACTIVITY, "id": "a2"}], ["q", "a2"]),
        ([REASONED, ACTIVITY], ["q", "a"]),
        ([{**REASONED, "id": "q2"}, {**ACTIVITY, "id": "a2"}], ["q2", "a2"]),
    ],
)
def test_reasoning_and_activities_stay_unless_the_snapshot_has_some(told: list[Raw], kept: list[str]) -> None:
    assert ids(held(snapshot(*told), messages=[REASONED, ACTIVITY, {**USER, "id": "gone"}])) == kept


def test_of_two_messages_under_one_id_the_last_stands() -> None:
    found = consume([snapshot(USER, {**USER, "content": "last"})], whole=True)
    assert found.messages == [{**USER, "content": "last"}]
    assert [each.path for each in found.deviations] == ["/messages/1"]
    assert held(snapshot(USER, {**USER, "content": "last"}), messages=[USER]) == [{**USER, "content": "last"}]


def test_a_snapshot_of_what_was_streamed_changes_nothing() -> None:
    events = [*text("m", "x"), *call("c", "{}", parentMessageId="m"), result("t", "c"), *reasoning("q", "hm")]
    streamed = held(*events)
    told = [message for message in streamed if message["role"] != "reasoning"]
    assert held(*events, snapshot(*told)) == streamed


def test_an_open_message_goes_on_behind_a_snapshot() -> None:
    start, first, second, end = text("m", "a", "b")
    told = {"id": "m", "role": "assistant", "content": "A", "toolCalls": [tool_call("c", "1")]}
    (message,) = held(start, first, *call("c")[:1], snapshot(told), second, end, *call("c", "2")[1:])
    assert message["content"] == "Ab"
    assert calls_of(message) == [("c", "find", "12")]


# Activities


def activity(identifier: str = "a", content: Raw | None = None, **members: Any) -> Raw:
    return raw("ACTIVITY_SNAPSHOT", identifier, activityType="search", content=content or {}, **members)


def patch(*operations: Raw, identifier: str = "a", **members: Any) -> Raw:
    return raw("ACTIVITY_DELTA", identifier, activityType="found", patch=list(operations), **members)


def add(path: str, value: Any) -> Raw:
    return {"op": "add", "path": path, "value": value}


def test_an_activity_is_made_and_replaced() -> None:
    assert held(activity(content={"a": 1}, tag="s1")) == [
        {"role": "activity", "id": "a", "activityType": "search", "content": {"a": 1}, "subagentRunId": "s1"}
    ]
    found = held(activity(content={"a": 1}, tag="s1", metadata={"k": 1}), activity(content={"b": 2}, metadata={"l": 2}))
    assert found == [
        {"role": "activity", "id": "a", "activityType": "search", "content": {"b": 2}, "metadata": {"k": 1, "l": 2}}
    ]


def test_replace_false_leaves_an_existing_activity() -> None:
    kept = activity(content={"b": 2}, tag="s1", replace=False, metadata={"k": 1})
    assert held(kept, messages=[ACTIVITY]) == [{**ACTIVITY, "metadata": {"k": 1}}]
    assert held(kept)[0]["content"] == {"b": 2}
    assert held(kept, messages=[{**USER, "id": "a"}]) == [{**USER, "id": "a"}]


def test_an_activity_takes_the_place_of_another_message() -> None:
    found = consume([activity("u", {"x": 1})], whole=True, given={"messages": [{**USER, "metadata": {"k": 1}}, PARTS]})
    assert found.messages[0] == {"role": "activity", "id": "u", "activityType": "search", "content": {"x": 1}}
    assert "becomes an activity" in found.warnings[0]


def test_a_patch_changes_content_and_type() -> None:
    assert held(activity(content={"n": [1]}), patch(add("/n/-", 2), add("/m", None))) == [
        {"role": "activity", "id": "a", "activityType": "found", "content": {"n": [1, 2], "m": None}}
    ]


def test_a_patch_that_does_not_apply_leaves_content_and_type() -> None:
    found = consume([activity(), patch(add("/n", 1), add("/no/where", 1), metadata={"k": 1})], whole=True)
    assert found.messages == [
        {"role": "activity", "id": "a", "activityType": "search", "content": {}, "metadata": {"k": 1}}
    ]
    assert [(each.stage, each.path) for each in found.deviations] == [("application", "/patch/1")]


@pytest.mark.parametrize("value", [5, None, [], "text"])
def test_the_content_of_an_activity_stays_an_object(value: Any) -> None:
    found = consume([activity(content={"n": 1}), patch(add("", value))], whole=True)
    assert found.messages[0]["content"] == {"n": 1}
    assert found.messages[0]["activityType"] == "search"
    assert "must stay an object" in found.warnings[0]
    assert held(activity(), patch(add("", {"whole": 1}), add("/b", 2)))[0]["content"] == {"whole": 1, "b": 2}


@pytest.mark.parametrize("identifier", ["unknown", "u"])
def test_a_patch_of_no_activity_is_skipped_with_a_warning(identifier: str) -> None:
    found = consume([patch(add("/n", 1), identifier=identifier)], whole=True, given={"messages": [USER]})
    assert found.messages == [USER]
    assert [(each.stage, each.path) for each in found.deviations] == [("application", "/messageId")]


# The input a run echoes


def test_messages_of_an_echoed_input_are_adopted_where_they_are_not_held() -> None:
    echo = {**INPUT, "messages": [{**USER, "content": "changed"}, {**USER, "id": "new"}, ACTIVITY], "state": {"no": 1}}
    found = consume([{**STARTED, "input": echo}, FINISHED], given={"messages": [USER], "state": {"mine": 1}})
    assert found.messages == [USER, {**USER, "id": "new"}, ACTIVITY]
    assert found.state == {"mine": 1}


def test_messages_carry_over_from_run_to_run() -> None:
    later = {**STARTED, "runId": "r2"}
    found = consume([STARTED, *text("m", "a"), FINISHED, later, *text("m", "b"), {**FINISHED, "runId": "r2"}])
    assert found.messages == [{"role": "assistant", "id": "m", "content": "ab"}]


# Runs


def finish(**members: Any) -> Raw:
    return {**FINISHED, **members}


def test_a_run_is_recorded() -> None:
    started = {**STARTED, "parentRunId": "r0", "protocolVersion": "1.0"}
    usage = [{"provider": "p", "inputTokens": 3}]
    found = consume([started, finish(result={"n": 1}, usage=usage)])
    (record,) = found.conversation.runs
    assert (record.thread_id, record.run_id, record.parent_run_id) == ("t", "r", "r0")
    assert (record.protocol_version, record.status, record.result) == ("1.0", "success", {"n": 1})
    assert record.usage == (TokenUsage(provider="p", input_tokens=3),)


@pytest.mark.parametrize(
    ("events", "status"),
    [
        ([FINISHED], "success"),
        ([finish(outcome={"type": "success"})], "success"),
        ([finish(outcome={"type": "cancelled"})], "cancelled"),
        ([finish(outcome={"type": "interrupt", "interrupts": [{"id": "i", "reason": "ask"}]})], "interrupt"),
        ([raw("RUN_ERROR", message="x")], "failed"),
        ([FINISHED, raw("RUN_ERROR", message="late")], "failed"),
        ([], "truncated"),
    ],
)
def test_how_a_run_ends(events: list[Raw], status: str) -> None:
    assert [run.status for run in consume([STARTED, *events]).conversation.runs] == [status]


def test_a_run_that_goes_on_is_running() -> None:
    conversation = Conversation()
    conversation.apply(typed(STARTED))
    assert conversation.runs[0].status == "running"


def test_a_failed_run_says_why_and_keeps_what_came() -> None:
    usage = [{"model": "m"}]
    events = [STARTED, *text("m", "half")[:2], raw("RUN_ERROR", message="no luck", code="E1", usage=usage)]
    found = consume(events)
    assert (found.violation, found.truncated) == (None, False)
    (record,) = found.conversation.runs
    assert (record.error, record.error_code, record.usage) == ("no luck", "E1", (TokenUsage(model="m"),))
    assert found.messages[0]["content"] == "half"


def test_a_run_that_fails_before_it_starts_has_a_record_of_its_own() -> None:
    error = raw("RUN_ERROR", message="x")
    assert consume([error]).conversation.runs[0].run_id is None
    conversation = Conversation()
    for event in (STARTED, FINISHED):
        conversation.apply(typed(event))
    conversation.end_of_stream()
    conversation.apply(typed(error))
    assert [(run.run_id, run.status) for run in conversation.runs] == [("r", "success"), (None, "failed")]


def test_pending_calls_are_those_named_or_else_those_unanswered() -> None:
    events = [STARTED, *call("c1"), *call("c2"), result("t", "c1")]
    named = finish(outcome={"type": "success", "pendingToolCallIds": ["c9"]})
    none = finish(outcome={"type": "success", "pendingToolCallIds": []})
    for last, pending in ((named, ("c9",)), (none, ("c2",)), (FINISHED, ("c2",))):
        assert consume([*events, last]).conversation.runs[0].pending_tool_call_ids == pending
    again = consume([*events, FINISHED, STARTED, FINISHED])
    assert again.conversation.runs[1].pending_tool_call_ids == ()


def test_interrupts_are_pending_until_a_run_ends_without() -> None:
    ask = finish(outcome={"type": "interrupt", "interrupts": [{"id": "i1", "reason": "ask"}]})
    pending = [each.id for each in consume([STARTED, ask]).conversation.pending_interrupts]
    assert pending == ["i1"]
    assert consume([STARTED, ask, STARTED]).conversation.pending_interrupts != ()
    assert consume([STARTED, ask, STARTED, raw("RUN_ERROR", message="x")]).conversation.pending_interrupts != ()
    for last in (FINISHED, finish(outcome={"type": "cancelled"})):
        found = consume([STARTED, ask, STARTED, last])
        assert found.conversation.pending_interrupts == ()
        assert [each.id for each in found.conversation.runs[0].interrupts] == ["i1"]


def test_old_run_records_are_forgotten_beyond_the_limit() -> None:
    found = consume([STARTED, FINISHED] * 5, limits={"max_runs": 2})
    assert len(found.conversation.runs) == 2


# Events that only pass through


def test_other_events_change_nothing() -> None:
    events = [
        raw("RAW", event={"a": 1}),
        raw("CUSTOM", name="n", value=1),
        raw("STEP_STARTED", "s"),
        raw("STEP_FINISHED", "s"),
        raw("SUBAGENT_STARTED", "a", name="n"),
        raw("SUBAGENT_FINISHED", "a", result=1),
    ]
    found = consume(events, whole=True)
    assert (found.messages, found.state, found.warnings) == ([], {}, [])
    assert len(found.events) == 8


# What the application changes


def test_messages_are_added_and_replaced_by_the_application() -> None:
    conversation = Conversation()
    conversation.add_message(UserMessage(id="u", content="hi"))
    conversation.add_message(UserMessage(id="u", content="hello"))
    conversation.add_message(AssistantMessage(id="m"))
    assert [message.id for message in conversation.messages] == ["u", "m"]
    assert conversation.messages[0].content == "hello"
    conversation.set_messages([SystemMessage(id="s", content="")])
    assert [message.id for message in conversation.messages] == ["s"]


def test_a_result_added_by_the_application_is_held_like_any_other() -> None:
    found = consume([*call("c")], whole=True)
    found.conversation.add_message(ToolMessage(id="t", content="", tool_call_id="c"))
    for event in (STARTED, result("t2", "c")):
        found.conversation.apply(typed(event))
    assert ids(found.messages) == ["c", "t", "t2"]


def test_a_replaced_message_forgets_its_calls() -> None:
    found = consume(call("c", "1"), whole=True)
    found.conversation.add_message(AssistantMessage(id="c", content="instead"))
    for event in (STARTED, *call("c", "2")[:2]):
        found.conversation.apply(typed(event))
    assert calls_of(found.messages[1]) == [("c", "find", "2")]


# Limits


def test_messages_are_limited() -> None:
    events = [STARTED, *text("a"), *text("b"), *text("c")]
    found = consume(events, limits={"max_messages": 3})
    assert found.violation is None
    found = consume(events, limits={"max_messages": 2})
    assert found.violation is not None
    assert (found.violation.stage, found.rule, found.violation.index) == ("application", "message-limit", 5)
    assert "max_messages" in str(found.violation)
    assert ids(found.messages) == ["a", "b"]


def test_a_snapshot_is_limited_too() -> None:
    told = snapshot(*({**USER, "id": str(number)} for number in range(4)))
    assert consume([told], whole=True, limits={"max_messages": 3}).rule == "message-limit"
    assert len(held(told, told)) == 4


def test_any_number_of_runs_may_be_applied_to_one_conversation() -> None:
    conversation = Conversation()
    for number in range(3):
        pipeline = Pipeline()
        for event in [STARTED, *text(f"m{number}"), FINISHED]:
            for each in pipeline.feed(msgspec.json.encode(event)):
                conversation.apply(each)
        conversation.end_of_stream()
    assert len(conversation.messages) == 3
    with pytest.raises(ProtocolViolation):
        Conversation(max_messages=0).add_message(UserMessage(id="u", content=""))


# A message that becomes one of another kind


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["result", "text", "activity", "add"]), st.integers(0, 7)), max_size=40))
def test_a_result_finds_its_place_whatever_its_neighbours_have_become(steps: list[tuple[str, int]]) -> None:
    conversation = Conversation()
    for event in (STARTED, *call("c0"), *call("c1"), *call("c2")):
        conversation.apply(typed(event))
    expected: list[list[Any]] = [
        ["c0", False],
        ["c1", False],
        ["c2", False],
    ]  # each message and whether it is a tool message
    for step, (kind, number) in enumerate(steps):
        places = [index for index, (name, _) in enumerate(expected) if name[0] != "c"]
        if kind == "result":
            conversation.apply(typed(result(f"m{step}", f"c{number % 4}")))
            place = len(expected)
            if number % 4 < 3:
                place = [name for name, _ in expected].index(f"c{number % 4}") + 1
                while place < len(expected) and expected[place][1]:
                    place += 1
            expected.insert(place, [f"m{step}", True])
        elif kind == "text":
            conversation.apply(typed(raw("TEXT_MESSAGE_START", f"m{step}")))
            expected.append([f"m{step}", False])
        elif places:
            changed = expected[places[number % len(places)]]
            if kind == "activity":
                conversation.apply(typed(raw("ACTIVITY_SNAPSHOT", changed[0], activityType="t", content={})))
            else:
                conversation.add_message(ToolMessage(id=changed[0], content="", tool_call_id="x"))
            changed[1] = kind == "add"
        assert [[each.id, isinstance(each, ToolMessage)] for each in conversation.messages] == expected


@pytest.mark.parametrize("backwards", [False, True])
def test_many_results_become_activities_at_a_cost_that_is_linear(backwards: bool) -> None:
    def work(count: int) -> int:
        conversation = Conversation()
        for number in range(count):
            conversation.apply(typed(result(f"m{number}", "c", "")))
        order = range(count)[::-1] if backwards else range(count)
        events = [typed(raw("ACTIVITY_SNAPSHOT", f"m{n}", activityType="a", content={})) for n in order]

        def apply_all() -> None:
            for event in events:
                conversation.apply(event)

        return lines_run(apply_all, conversation_module.__file__)

    assert work(800) < 9 * work(100)


def test_the_warnings_of_an_event_are_bounded() -> None:
    warnings: list[str] = []
    conversation = Conversation(on_deviation=lambda deviation: warnings.append(deviation.detail))
    conversation.apply(typed(snapshot(*[USER] * 300)))
    assert len(warnings) == 101
    assert "199 more" in warnings[-1]
    del warnings[:]
    conversation = Conversation(on_deviation=lambda deviation: warnings.append(deviation.detail), max_deviations=500)
    conversation.apply(typed(snapshot(*[USER] * 300)))
    assert len(warnings) == 299


def lines_run(work: Callable[[], object], file: str) -> int:
    count = 0

    def in_frame(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return in_frame

    before = sys.gettrace()
    sys.settrace(lambda frame, event, arg: in_frame if frame.f_code.co_filename == file else None)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
