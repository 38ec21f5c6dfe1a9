from __future__ import annotations

import copy
import itertools
import json
from typing import Any

import pytest

from accord.consumer import Deviation, Pipeline
from accord.consumer.boundary import Boundary, lacks
from consumer.feeding import FINISHED, STARTED, Consumed, Raw, consume, raw, text

IMAGE: Raw = {"type": "image", "source": {"type": "data", "value": "QQ==", "mimeType": "image/png"}}
BINARY = {"type": "binary", "mimeType": "image/png", "data": "QQ=="}


def user(*parts: Raw) -> Raw:
    return {"id": "u", "role": "user", "content": list(parts)}


def snapshot(*parts: Raw) -> Raw:
    return raw("MESSAGES_SNAPSHOT", messages=[user(*parts)])


def translated(event: Raw) -> tuple[Raw, list[Deviation]]:
    """What the boundary makes of one event; it must not change what it is given."""
    warnings: list[Deviation] = []
    before = copy.deepcopy(event)
    made = Boundary(warnings.append).translate(event, 0)
    assert event == before
    return made, warnings


def places(found: Consumed) -> list[str]:
    return [each.path for each in found.deviations if each.stage == "boundary"]


# THINKING_*


THINKING = [
    raw("THINKING_START", title="Planning"),
    raw("THINKING_TEXT_MESSAGE_START"),
    raw("THINKING_TEXT_MESSAGE_CONTENT", delta="hm", timestamp=5),
    raw("THINKING_TEXT_MESSAGE_END"),
    raw("THINKING_END"),
]


def test_thinking_becomes_reasoning() -> None:
    found = consume(THINKING, whole=True)
    assert found.types[1:-1] == [
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "REASONING_END",
    ]
    (message,) = found.messages
    assert (message["role"], message["content"]) == ("reasoning", "hm")
    assert found.violation is None


def test_each_thinking_event_warns_and_the_lost_title_is_named() -> None:
    found = consume(THINKING, whole=True)
    assert len(found.deviations) == 6
    assert all(each.stage == "boundary" for each in found.deviations)
    (title,) = [each for each in found.deviations if each.path == "/title"]
    assert "'Planning'" in title.detail
    assert "lost" in title.detail


def test_spans_and_messages_get_ids_of_their_own() -> None:
    found = consume([*THINKING, *THINKING], whole=True)
    assert found.violation is None
    ids = [getattr(event, "message_id", None) for event in found.events]
    assert ids[1] == ids[5]
    assert ids[2] == ids[3] == ids[4]
    assert len({*ids[1:-1]}) == 4
    assert len(found.messages) == 2


def test_ids_are_not_reset_by_a_new_run() -> None:
    boundary = Boundary(lambda _: None, new_id=map(str, itertools.count()).__next__)
    for event in (raw("THINKING_START"), FINISHED, STARTED):
        made = boundary.translate(event, 0)
    assert boundary.translate(raw("THINKING_END"), 0)["messageId"] == "0"
    assert made is STARTED


@pytest.mark.parametrize(
    "event", [raw("THINKING_END"), raw("THINKING_TEXT_MESSAGE_CONTENT", delta=""), raw("THINKING_TEXT_MESSAGE_END")]
)
def test_a_continuation_of_nothing_is_given_an_id_and_then_refused(event: Raw) -> None:
    found = consume([event], whole=True)
    assert found.rule == "not-open"
    assert "continues nothing" in found.warnings[-1]


def test_other_members_are_carried() -> None:
    made, _ = translated(raw("THINKING_TEXT_MESSAGE_START", "own", metadata={"a": 1}, tag="s", novel=1))
    assert made.pop("messageId") != "own"
    assert made == {
        "type": "REASONING_MESSAGE_START",
        "role": "reasoning",
        "metadata": {"a": 1},
        "subagentRunId": "s",
        "novel": 1,
    }


# Nulls


@pytest.mark.parametrize(
    ("event", "path"),
    [
        (raw("CUSTOM", name="n", value=None, rawEvent=None), "/rawEvent"),
        (raw("RAW", event=None, rawEvent=None), "/rawEvent"),
        ({**FINISHED, "result": None}, "/result"),
        ({**FINISHED, "outcome": None}, "/outcome"),
        (raw("SUBAGENT_FINISHED", "s", result=None), "/result"),
        (raw("TOOL_CALL_START", "c", toolCallName="n", parentMessageId=None), "/parentMessageId"),
        (raw("TOOL_CALL_CHUNK", "c", toolCallName="n", parentMessageId=None), "/parentMessageId"),
        ({**STARTED, "input": {"threadId": "t", "forwardedProps": None}}, "/input/forwardedProps"),
        ({**STARTED, "input": {"tools": [{"name": "n", "parameters": None}]}}, "/input/tools/0/parameters"),
        ({**STARTED, "input": {"resume": [{"interruptId": "i", "payload": None}]}}, "/input/resume/0/payload"),
        (
            {**STARTED, "input": {"messages": [user({**IMAGE, "metadata": None})]}},
            "/input/messages/0/content/0/metadata",
        ),
        (snapshot({"type": "text", "text": ""}, {**IMAGE, "metadata": None}), "/messages/0/content/1/metadata"),
    ],
)
def test_a_null_of_old_producers_is_read_as_absent(event: Raw, path: str) -> None:
    made, warnings = translated(event)
    assert [(each.stage, each.event_type, each.path) for each in warnings] == [("boundary", event["type"], path)]
    *way, last = path.split("/")[1:]
    value: Any = made
    for token in way:
        value = value[int(token)] if isinstance(value, list) else value[token]
    assert last not in value


def test_several_nulls_warn_one_by_one() -> None:
    made, warnings = translated({**FINISHED, "rawEvent": None, "result": None, "outcome": None})
    assert made == FINISHED
    assert len(warnings) == 3


@pytest.mark.parametrize(
    ("event", "path"),
    [
        (raw("CUSTOM", name="n", value=1, metadata=None), "/metadata"),
        (raw("CUSTOM", name="n", value=1, subagentRunId=None), "/subagentRunId"),
        (raw("TEXT_MESSAGE_START", "m", role=None), "/role"),
        ({**FINISHED, "usage": None}, "/usage"),
        (raw("SUBAGENT_FINISHED", "s", outcome=None), "/outcome"),
        (snapshot({"type": "text", "text": "", "metadata": None}), "/messages/0/content/0/metadata"),
        (snapshot({**IMAGE, "id": None}), "/messages/0/content/0/id"),
        (
            raw("TOOL_CALL_RESULT", "m", toolCallId="c", content=[{**IMAGE, "metadata": None}]),
            "/content/0/metadata",
        ),
    ],
)
def test_any_other_null_is_malformed(event: Raw, path: str) -> None:
    found = consume([STARTED, raw("SUBAGENT_STARTED", "s", name="n"), event])
    assert found.violation is not None
    assert (found.violation.stage, found.violation.path) == ("enforcement", path)


@pytest.mark.parametrize(
    "event",
    [
        {**STARTED, "input": None},
        {**STARTED, "parentRunId": None},
        {**STARTED, "input": {"threadId": "t", "tools": None}},
    ],
)
def test_other_nulls_of_a_run_start_are_malformed(event: Raw) -> None:
    assert consume([event]).rule == "malformed"


def test_null_as_the_state_of_an_echoed_input_is_data() -> None:
    found = consume([{**STARTED, "input": {**STARTED, "messages": [], "state": None}}, FINISHED])
    assert found.violation is None
    assert [each.path for each in found.deviations] == ["/input/type"]


def test_nulls_in_open_values_are_data() -> None:
    event = raw("CUSTOM", name="n", value={"rawEvent": None, "result": None, "parentMessageId": None})
    assert translated(event) == (event, [])


# Binary parts


@pytest.mark.parametrize(
    ("part", "modern"),
    [
        (BINARY, IMAGE),
        (
            {**BINARY, "mimeType": "audio/wav"},
            {"type": "audio", "source": {**IMAGE["source"], "mimeType": "audio/wav"}},
        ),
        (
            {**BINARY, "mimeType": "video/mp4"},
            {"type": "video", "source": {**IMAGE["source"], "mimeType": "video/mp4"}},
        ),
        (
            {**BINARY, "mimeType": "text/csv"},
            {"type": "document", "source": {**IMAGE["source"], "mimeType": "text/csv"}},
        ),
        ({**BINARY, "mimeType": "image"}, {"type": "document", "source": {**IMAGE["source"], "mimeType": "image"}}),
        (
            {"type": "binary", "mimeType": "image/png", "data": "", "url": "http://x", "filename": "a.png"},
            {
                "type": "image",
                "source": {"type": "url", "value": "http://x", "mimeType": "image/png"},
                "metadata": {"filename": "a.png"},
            },
        ),
    ],
)
@pytest.mark.parametrize("where", ["snapshot", "echo"])
def test_a_binary_part_becomes_a_media_part(part: Raw, modern: Raw, where: str) -> None:
    messages = [user(part)]
    event = raw("MESSAGES_SNAPSHOT", messages=messages)
    if where == "echo":
        event = {**STARTED, "runId": "r2", "input": {"threadId": "t", "runId": "r2", "messages": messages}}
        found = consume([STARTED, FINISHED, event, {**FINISHED, "runId": "r2"}])
    else:
        found = consume([event], whole=True)
    assert found.violation is None
    assert found.messages == [{"role": "user", "id": "u", "content": [modern]}]
    assert len(places(found)) == 1
    assert places(found)[0].endswith("/messages/0/content/0")


def test_a_lost_id_of_a_binary_part_is_named() -> None:
    found = consume([snapshot({**BINARY, "id": "file-7"})], whole=True)
    assert any("'file-7'" in each and "lost" in each for each in found.warnings)


def test_a_binary_part_with_only_an_id_goes() -> None:
    found = consume([snapshot({"type": "binary", "mimeType": "image/png", "id": "f"}, IMAGE)], whole=True)
    assert [part["type"] for part in found.messages[0]["content"]] == ["image"]
    assert [each.stage for each in found.deviations] == ["boundary", "enforcement"]


def test_a_binary_part_without_a_media_type_is_unknown() -> None:
    found = consume([snapshot({"type": "binary", "data": "QQ=="})], whole=True)
    assert found.messages[0]["content"] == []
    assert [str(each) for each in found.deviations] == [
        "enforcement MESSAGES_SNAPSHOT /messages/0/content/0: not described by the protocol, stripped"
    ]


@pytest.mark.parametrize(
    ("modern", "kept"),
    [
        (IMAGE, 1),
        ({**IMAGE, "metadata": {"filename": "b.png"}}, 2),
        ({**IMAGE, "metadata": {"filename": "a.png", "x": 1}}, 1),
        ({**IMAGE, "source": {**IMAGE["source"], "value": "Qg=="}}, 2),
    ],
)
def test_a_binary_part_that_repeats_a_media_part_is_left_out(modern: Raw, kept: int) -> None:
    named = {**BINARY, "filename": "a.png"} if "metadata" in modern else BINARY
    found = consume([snapshot(named, modern)], whole=True)
    assert len(found.messages[0]["content"]) == kept


def test_two_binary_parts_do_not_repeat_each_other() -> None:
    assert len(consume([snapshot(BINARY, BINARY)], whole=True).messages[0]["content"]) == 2


def test_a_binary_part_in_a_tool_result_is_unknown() -> None:
    found = consume([raw("TOOL_CALL_RESULT", "m", toolCallId="c", content=[BINARY])], whole=True)
    assert found.messages[0]["content"] == []
    assert found.deviations[0].stage == "enforcement"


@pytest.mark.parametrize(
    "event",
    [
        {"type": 5, "rawEvent": None},
        {"type": "MESSAGES_SNAPSHOT"},
        raw("MESSAGES_SNAPSHOT", messages=None),
        raw("MESSAGES_SNAPSHOT", messages=[None, {"content": [None, 5, {"type": None}]}]),
        {**STARTED, "input": []},
        {**STARTED, "input": {"tools": [None, 5], "resume": 7, "messages": [{"content": "text"}]}},
    ],
)
def test_what_is_malformed_is_left_for_enforcement(event: Raw) -> None:
    made, warnings = translated(event)
    assert made is event or made == event
    assert warnings == []


def test_an_event_without_retired_shapes_passes_as_it_is() -> None:
    event = snapshot(IMAGE, {"type": "text", "text": "x"})
    made, _ = translated(event)
    assert made is event


# Toward and from a peer known to be old


TAGGED = [
    raw("SUBAGENT_STARTED", "s", name="helper"),
    *text("m", "hi", tag="s"),
    raw("SUBAGENT_FINISHED", "s"),
    raw("SUBAGENT_STARTED", "s", name="helper"),
    raw("SUBAGENT_ERROR", "s", message="x"),
    raw("MESSAGES_SNAPSHOT", messages=[{"id": "m", "role": "assistant", "content": "hi", "subagentRunId": "s"}]),
]


@pytest.mark.parametrize("version", ["0.0.57", "0.0.45", "0.0.39"])
def test_an_old_peer_knows_no_subagents(version: str) -> None:
    interrupt = {"id": "i", "reason": "ask", "subagentRunId": "s"}
    echo = {"threadId": "t", "runId": "r", "messages": [{**user(IMAGE), "subagentRunId": "s"}]}
    events = [
        {**STARTED, "input": echo},
        *TAGGED,
        {**FINISHED, "outcome": {"type": "interrupt", "interrupts": [interrupt]}},
    ]
    found = consume(events, peer_version=version)
    assert found.violation is None
    assert not any(each.startswith("SUBAGENT") for each in found.types)
    assert "subagentRunId" not in json.dumps(found.messages)
    assert found.conversation.pending_interrupts[0].subagent_run_id.__class__.__name__ == "UnsetType"
    lost = [(each.event_type, each.path) for each in found.deviations]
    assert lost == [
        ("RUN_STARTED", "/input/messages/0/subagentRunId"),
        ("SUBAGENT_STARTED", ""),
        ("TEXT_MESSAGE_START", "/subagentRunId"),
        ("SUBAGENT_FINISHED", ""),
        ("SUBAGENT_STARTED", ""),
        ("SUBAGENT_ERROR", ""),
        ("MESSAGES_SNAPSHOT", "/messages/0/subagentRunId"),
        ("RUN_FINISHED", "/outcome/interrupts/0/subagentRunId"),
    ]


@pytest.mark.parametrize("version", ["0.0.58", "1.0", None])
def test_another_peer_does(version: str | None) -> None:
    found = consume([*TAGGED[:5], TAGGED[-1]], whole=True, peer_version=version)
    assert "SUBAGENT_STARTED" in found.types
    assert found.messages[0]["subagentRunId"] == "s"
    assert found.warnings == []


def test_lanes_are_told_apart_before_tags_go() -> None:
    chunks = [
        raw("TEXT_MESSAGE_CHUNK", "a", delta="a1", tag="s1"),
        raw("TEXT_MESSAGE_CHUNK", "b", delta="b1", tag="s2"),
        raw("TEXT_MESSAGE_CHUNK", delta="a2", tag="s1"),
    ]
    found = consume(chunks, whole=True, peer_version="0.0.57")
    assert {each["id"]: each["content"] for each in found.messages} == {"a": "a1a2", "b": "b1"}


@pytest.mark.parametrize(("version", "old"), [("0.0.39", True), ("0.0.40", False), ("0.0", True), (None, False)])
def test_lacks(version: str | None, old: bool) -> None:
    assert lacks(version, (0, 0, 39)) is old


def test_a_peer_version_that_is_none_is_an_error_at_once() -> None:
    with pytest.raises(ValueError, match="not a version"):
        Pipeline(peer_version="old")


def test_retired_shapes_are_read_by_every_pipeline() -> None:
    for version in (None, "1.0", "0.0.45"):
        assert consume(THINKING, whole=True, peer_version=version).violation is None
