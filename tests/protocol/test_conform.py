from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.errors import ProtocolViolation
from accord.protocol import EVENT_TYPES, conform, definitions, to_wire
from accord.protocol.conform import escape_token, name_of
from support.corpus import corpus_files
from support.shapes import Raw, fullest, smallest, wire

QUICK = settings(deadline=None)
CASES = [case for file in corpus_files("schema-cases.json") for case in json.loads(file.read_text())]


def judge(name: str, value: Any) -> tuple[Any, list[str]]:
    """The wire form of what stands, and what was taken away."""
    shape, stripped = conform(value, definitions()[name].struct)
    return None if shape is None else to_wire(shape), stripped


def malformed(name: str, value: Any) -> str:
    with pytest.raises(ProtocolViolation) as caught:
        judge(name, value)
    assert (caught.value.stage, caught.value.rule) == ("enforcement", "malformed")
    return caught.value.path


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['definition']}-{case['case']}")
def test_corpus(case: Raw) -> None:
    name, value = case["definition"], case["value"]
    if case["verdict"] == "malformed":
        malformed(name, value)
        return
    standing, stripped = judge(name, value)
    if case["verdict"] == "dropped":
        assert standing is None
    else:
        assert stripped == case.get("stripped", [])
        assert (standing == value) is (case["verdict"] == "valid")


@pytest.mark.parametrize("name", sorted(definitions()))
def test_what_is_well_formed_stands_as_it_is(name: str) -> None:
    struct = definitions()[name].struct
    for raw in (smallest(struct), fullest(struct)):
        assert judge(name, raw) == (raw, [])


@pytest.mark.parametrize("name", sorted(definitions()))
def test_unknown_members_go_and_only_from_closed_objects(name: str) -> None:
    table = definitions()[name]
    raw = {"novel": {"id": 5}, **smallest(table.struct), "toString": None}
    standing, stripped = judge(name, raw)
    assert stripped == ([] if table.open else ["/novel", "/toString"])
    assert standing == (raw if table.open else smallest(table.struct))


@pytest.mark.parametrize("name", sorted(definitions()))
def test_a_missing_required_member_is_malformed(name: str) -> None:
    raw = smallest(definitions()[name].struct)
    for member in raw:
        assert malformed(name, {key: value for key, value in raw.items() if key != member}) == f"/{member}"


@pytest.mark.parametrize("name", sorted(definitions()))
def test_null_is_malformed_where_a_value_is_due(name: str) -> None:
    table = definitions()[name]
    raw = fullest(table.struct)
    nullable = ("StateSnapshotEvent", "CustomEvent", "RawEvent", "RunAgentInput")
    for member in raw:
        value = {**raw, member: None}
        if (name in nullable and member in ("snapshot", "value", "event", "state")) or (
            table.open and member == "value"
        ):
            assert judge(name, value) == (value, [])
        else:
            assert malformed(name, value) == f"/{member}"


@QUICK
@given(st.sampled_from(sorted(EVENT_TYPES)).flatmap(lambda name: wire(EVENT_TYPES[name])))
def test_any_well_formed_event_stands(raw: Raw) -> None:
    shape, stripped = conform(raw, EVENT_TYPES[raw["type"]])
    assert stripped == []
    assert shape is not None
    assert json.dumps(to_wire(shape), sort_keys=True) == json.dumps(raw, sort_keys=True)


USER = {"id": "u", "role": "user", "content": "hi"}
IMAGE = {"type": "image", "source": {"type": "url", "value": "u"}}
FINISHED = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}


@pytest.mark.parametrize(
    ("name", "value", "standing", "stripped"),
    [
        # optional position: the member goes
        ("RunFinishedEvent", {**FINISHED, "outcome": {"type": "paused", "until": 5}}, FINISHED, ["/outcome"]),
        (
            "TextMessageStartEvent",
            {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "critic"},
            {"type": "TEXT_MESSAGE_START", "messageId": "m"},
            ["/role"],
        ),
        # required position: the value around goes, up to what can go without it
        (
            "UserMessage",
            {**USER, "content": [{"type": "text", "text": "a"}, {**IMAGE, "source": {"type": "blob"}}]},
            {**USER, "content": [{"type": "text", "text": "a"}]},
            ["/content/1"],
        ),
        ("ImagePart", {**IMAGE, "source": {"type": "blob", "value": 5}}, None, [""]),
        (
            "RunAgentInput",
            {"threadId": "t", "runId": "r", "messages": [], "resume": [{"interruptId": "i", "status": "postponed"}]},
            {"threadId": "t", "runId": "r", "messages": [], "resume": []},
            ["/resume/0"],
        ),
        (
            "ReasoningEncryptedValueEvent",
            {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "image", "entityId": 5, "encryptedValue": "x"},
            None,
            [""],
        ),
        # list position: the element goes, indices are the producer's
        (
            "MessagesSnapshotEvent",
            {"type": "MESSAGES_SNAPSHOT", "messages": [{"role": "critic", "id": 5}, {**USER, "mood": 1}]},
            {"type": "MESSAGES_SNAPSHOT", "messages": [USER]},
            ["/messages/0", "/messages/1/mood"],
        ),
        (
            "StateDeltaEvent",
            {"type": "STATE_DELTA", "delta": [{"op": "swirl"}, {"op": "remove", "path": "/a"}, {"op": "ADD"}]},
            {"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/a"}]},
            ["/delta/0", "/delta/2"],
        ),
        # a success outcome does not have the interrupts of the other
        (
            "RunFinishedEvent",
            {**FINISHED, "outcome": {"type": "success", "interrupts": []}},
            {**FINISHED, "outcome": {"type": "success"}},
            ["/outcome/interrupts"],
        ),
        # names are escaped in paths
        ("Context", {"description": "d", "value": "v", "a/b~c": 1}, {"description": "d", "value": "v"}, ["/a~1b~0c"]),
    ],
)
def test_unknown_material_goes_up_to_what_can_go_without_it(
    name: str, value: Raw, standing: Raw | None, stripped: list[str]
) -> None:
    assert judge(name, value) == (standing, stripped)


@pytest.mark.parametrize(
    ("name", "value", "path"),
    [
        ("RunFinishedEvent", {**FINISHED, "outcome": {}}, "/outcome/type"),
        ("RunFinishedEvent", {**FINISHED, "outcome": {"type": 5}}, "/outcome/type"),
        ("RunFinishedEvent", {**FINISHED, "outcome": []}, "/outcome"),
        ("StateDeltaEvent", {"type": "STATE_DELTA", "delta": [{"path": "/a", "value": 1}]}, "/delta/0/op"),
        ("StateDeltaEvent", {"type": "STATE_DELTA", "delta": {}}, "/delta"),
        ("StateDeltaEvent", {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/a"}]}, "/delta/0/value"),
        ("StateDeltaEvent", {"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "a"}]}, "/delta/0/path"),
        ("StateDeltaEvent", {"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/~2"}]}, "/delta/0/path"),
        ("MessagesSnapshotEvent", {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "m"}]}, "/messages/0/role"),
        ("MessagesSnapshotEvent", {"type": "MESSAGES_SNAPSHOT", "messages": [None]}, "/messages/0"),
        ("UserMessage", {**USER, "content": [{"text": "x"}]}, "/content/0/type"),
        ("UserMessage", {**USER, "content": 5}, "/content"),
        ("UserMessage", {**USER, "content": [IMAGE, "text"]}, "/content/1"),
        # constants of one legal value
        ("ToolCall", {"id": "c", "type": "tool", "function": {"name": "n", "arguments": ""}}, "/type"),
        ("ReasoningMessageStartEvent", {"type": "REASONING_MESSAGE_START", "messageId": "m", "role": "user"}, "/role"),
        (
            "ToolCallResultEvent",
            {"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": "", "role": "user"},
            "/role",
        ),
    ],
)
def test_a_malformed_known_value_is_refused_with_its_path(name: str, value: Raw, path: str) -> None:
    assert malformed(name, value) == path


def test_the_first_malformed_value_is_named() -> None:
    value = {"type": "CUSTOM", "timestamp": "now", "name": 5}
    assert malformed("CustomEvent", value) == "/timestamp"
    assert malformed("CustomEvent", {"name": 5, **value}) == "/name"


def test_a_malformed_value_in_what_goes_anyway_is_not_judged() -> None:
    value = {"type": "MESSAGES_SNAPSHOT", "messages": [{"role": "user", "id": 5, "content": [5]}, {"role": "critic"}]}
    assert malformed("MessagesSnapshotEvent", value) == "/messages/0/id"
    part = {"metadata": None, **IMAGE, "id": 5, "source": {"type": "blob"}}
    assert judge("UserMessage", {**USER, "content": [part]}) == ({**USER, "content": []}, ["/content/0"])


def test_open_values_are_not_looked_into() -> None:
    anything = {"type": "novel", "role": 5, "op": None, "toString": [None]}
    value = {"type": "CUSTOM", "name": "n", "value": anything, "metadata": anything, "rawEvent": anything}
    assert judge("CustomEvent", value) == (value, [])


def test_nothing_given_is_changed() -> None:
    value = {"type": "MESSAGES_SNAPSHOT", "messages": [{**USER, "mood": 1}, {"role": "critic"}], "novel": 1}
    before = json.dumps(value)
    judge("MessagesSnapshotEvent", value)
    assert json.dumps(value) == before


@pytest.mark.parametrize(
    ("value", "name"),
    [(None, "null"), (True, "a boolean"), (1, "a number"), ("", "a string"), ([], "an array"), ({}, "an object")],
)
def test_values_are_called_by_their_json_names(value: Any, name: str) -> None:
    assert name_of(value) == name


def test_escape() -> None:
    assert escape_token("a/b~c") == "a~1b~0c"
