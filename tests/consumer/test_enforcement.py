from __future__ import annotations

from typing import Any

import pytest

from accord.consumer import Deviation, enforce
from accord.consumer.enforcement import enforce_event
from accord.errors import ProtocolViolation
from accord.protocol import UserMessage
from consumer.feeding import FINISHED, STARTED, Raw, consume, raw, text


def test_any_definition_by_class_or_by_name() -> None:
    value = {"id": "u", "role": "user", "content": "hi", "mood": 1}
    expected = UserMessage(id="u", content="hi"), ["/mood"]
    assert enforce(value, UserMessage) == enforce(value, "UserMessage") == expected
    assert enforce({"type": "image", "source": {"type": "blob"}}, "ImagePart") == (None, [""])
    with pytest.raises(ProtocolViolation) as caught:
        enforce({"id": 5}, "UserMessage")
    assert (caught.value.stage, caught.value.path) == ("enforcement", "/role")
    with pytest.raises(KeyError):
        enforce({}, "NoSuchThing")


def test_an_unknown_type_is_dropped_and_named() -> None:
    found = consume([raw("NOVEL_EVENT", x=1), raw("text_message_start", "m")], whole=True)
    assert found.types == ["RUN_STARTED", "RUN_FINISHED"]
    assert found.deviations == [
        Deviation("enforcement", "NOVEL_EVENT", "", "unknown event type, dropped", 1),
        Deviation("enforcement", "text_message_start", "", "unknown event type, dropped", 2),
    ]


@pytest.mark.parametrize("event", [{}, {"type": None}, {"type": 5}, {"type": ["RAW"]}])
def test_an_event_without_a_type_is_malformed(event: Raw) -> None:
    found = consume([STARTED, event])
    assert found.violation is not None
    violation = found.violation
    assert (violation.stage, violation.rule, violation.path, violation.index) == (
        "enforcement",
        "malformed",
        "/type",
        1,
    )


def test_each_stripped_path_warns_in_the_producer_s_order() -> None:
    event = {"novel": 1, "type": "MESSAGES_SNAPSHOT", "messages": [{"role": "critic"}, {**user(), "x": 1}], "y": 2}
    found = consume([event], whole=True)
    assert [(each.stage, each.event_type, each.path, each.index) for each in found.deviations] == [
        ("enforcement", "MESSAGES_SNAPSHOT", "/novel", 1),
        ("enforcement", "MESSAGES_SNAPSHOT", "/messages/0", 1),
        ("enforcement", "MESSAGES_SNAPSHOT", "/messages/1/x", 1),
        ("enforcement", "MESSAGES_SNAPSHOT", "/y", 1),
    ]


def user() -> Raw:
    return {"id": "u", "role": "user", "content": "hi"}


def test_an_event_that_is_unknown_where_it_must_be_known_is_dropped() -> None:
    event = raw("REASONING_ENCRYPTED_VALUE", subtype="image", entityId="m", encryptedValue="x")
    found = consume([event], whole=True)
    assert found.types == ["RUN_STARTED", "RUN_FINISHED"]
    assert [(each.event_type, each.path) for each in found.deviations] == [("REASONING_ENCRYPTED_VALUE", "")]


def test_an_unknown_role_of_a_text_is_stripped_and_means_assistant() -> None:
    found = consume(text("m", "hi", role="critic"), whole=True)
    assert found.messages == [{"role": "assistant", "id": "m", "content": "hi"}]


def test_an_unknown_outcome_means_success() -> None:
    found = consume([STARTED, {**FINISHED, "outcome": {"type": "paused", "interrupts": [5]}}])
    assert found.conversation.runs[0].status == "success"
    assert [each.path for each in found.deviations] == ["/outcome"]


def test_an_unknown_operation_goes_and_the_rest_applies() -> None:
    found = consume([raw("STATE_DELTA", delta=[{"op": "swirl"}, {"op": "add", "path": "/a", "value": 1}])], whole=True)
    assert found.state == {"a": 1}


@pytest.mark.parametrize(
    ("event", "path"),
    [
        (raw("TEXT_MESSAGE_CONTENT", "m", delta=None), "/delta"),
        (raw("TEXT_MESSAGE_CONTENT", "m"), "/delta"),
        (raw("CUSTOM", name="n", value=1, timestamp="now"), "/timestamp"),
        (raw("STATE_DELTA", delta=[{"op": "add", "path": "a", "value": 1}]), "/delta/0/path"),
        (raw("TEXT_MESSAGE_CHUNK", "m", role=5), "/role"),
    ],
)
def test_a_malformed_known_value_is_fatal_and_names_the_place(event: Raw, path: str) -> None:
    found = consume([STARTED, event])
    assert found.violation is not None
    violation = found.violation
    assert (violation.stage, violation.rule) == ("enforcement", "malformed")
    assert (violation.path, violation.index, violation.event_type) == (path, 1, event["type"])
    assert str(violation).startswith(f"enforcement: {event['type']} {path}: ")
    assert str(violation).endswith("(event 1)")


def test_open_objects_keep_everything() -> None:
    anything: Any = {"type": "novel", "deep": [{"role": None}]}
    members = {"metadata": anything, "rawEvent": anything}
    events = [
        raw("STATE_SNAPSHOT", snapshot=anything, **members),
        raw("CUSTOM", name="n", value=anything),
        raw("RAW", event=anything),
        raw("ACTIVITY_SNAPSHOT", "a", activityType="t", content=anything),
        {**FINISHED, "result": anything},
    ]
    found = consume([STARTED, *events])
    assert found.warnings == []
    assert found.state == anything
    assert found.messages[0]["content"] == anything
    assert found.conversation.runs[0].result == anything


def test_an_event_is_judged_alone() -> None:
    warnings: list[Deviation] = []
    event = enforce_event({"type": "CUSTOM", "name": "n", "value": None, "novel": 1}, warnings.append, 7)
    assert event is not None
    assert event.type == "CUSTOM"
    assert warnings == [Deviation("enforcement", "CUSTOM", "/novel", "not described by the protocol, stripped", 7)]
