"""The corpus of streams, each as the bytes of an event stream and as raw events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from accord.consumer import prepare_input
from accord.consumer.outgoing import admit_input
from accord.protocol import to_wire
from accord.wire import SSEReader, encode_frame
from consumer.feeding import INPUT, Consumed, Raw, consume
from support.corpus import corpus_files

_ABSENT = object()


def matches(expected: Any, found: Any) -> bool:
    """Whether `found` has all of `expected`; lists are of one length."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(
            name in found and matches(each, found[name]) for name, each in expected.items()
        )
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(matches, expected, found))
    return type(expected) is type(found) and expected == found


def at(value: Any, path: str) -> Any:
    """What stands at `2.message.id`, or `_ABSENT`."""
    for token in path.split("."):
        if isinstance(value, list) and int(token) < len(value):
            value = value[int(token)]
        elif isinstance(value, dict) and token in value:
            value = value[token]
        else:
            return _ABSENT
    return value


def as_bytes(events: list[Raw]) -> list[bytes]:
    reader = SSEReader()
    payloads = reader.feed(b"".join(encode_frame(json.dumps(event).encode()) for event in events))
    reader.close()
    return payloads


@pytest.mark.parametrize("form", [as_bytes, list])
@pytest.mark.parametrize("file", corpus_files("streams/*.json"), ids=lambda file: file.stem)
def test_corpus(file: Path, form: Any) -> None:
    case = json.loads(file.read_text())
    expected = case["expect"]
    peer = case.get("client", {}).get("maxProtocolVersion")
    given = case.get("input", {})
    found = consume(form(case["stream"]), given=given, peer_version=peer)
    sent = prepare_input(admit_input({**INPUT, **given}), peer_version=peer, on_deviation=found.deviations.append)
    check(expected, found, to_wire(sent))


def check(expected: Raw, found: Consumed, request: Raw) -> None:
    outcome = "failed" if found.violation else "truncated" if found.truncated else "completed"
    assert outcome == expected["outcome"], found.violation
    delivered = [to_wire(event) for event in found.events]
    if "runError" in expected:
        assert expected["runError"] in [run.error for run in found.conversation.runs]
    if "eventTypes" in expected:
        assert found.types == expected["eventTypes"]
    assert not set(expected.get("eventTypesAbsent", [])) & set(found.types)
    for path, value in expected.get("eventPaths", {}).items():
        assert matches(value, at(delivered, path)), path
    for path in expected.get("eventAbsentPaths", []):
        assert at(delivered, path) is _ABSENT, path
    for warning in expected.get("warnings", []):
        assert any(warning in each for each in found.warnings), (warning, found.warnings)
    if expected.get("noWarnings"):
        assert found.warnings == []
    if "messages" in expected:
        assert matches(expected["messages"], found.messages), found.messages
    if "messageCount" in expected:
        assert len(found.messages) == expected["messageCount"]
    if "state" in expected:
        assert matches(expected["state"], found.state), found.state
    if "request" in expected:
        assert matches(expected["request"], request), request
    for path in expected.get("requestAbsentPaths", []):
        assert at(request, path) is _ABSENT, path


def test_every_expectation_of_the_corpus_is_checked(corpus: Path) -> None:
    known = {
        *("outcome", "errorContains", "runError", "eventTypes", "eventPaths", "eventAbsentPaths", "eventTypesAbsent"),
        *("warnings", "noWarnings", "messages", "messageCount", "state", "request", "requestAbsentPaths"),
    }  # errorContains is a hint at the reason; the wording is ours
    for file in corpus_files("streams/*.json"):
        assert set(json.loads(file.read_text())["expect"]) <= known


def test_subset_matching_can_fail() -> None:
    assert matches({"a": [1]}, {"a": [1], "b": 2})
    assert not matches({"a": [1]}, {"a": [1, 2]})
    assert not matches({"a": 1}, {"a": True})
    assert not matches({"a": None}, {})
