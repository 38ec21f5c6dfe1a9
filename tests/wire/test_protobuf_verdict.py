"""One verdict on both wires: a stream as JSON and as frames gives the same run, but for what frames cannot say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from accord.errors import ProtocolViolation
from accord.protocol import EVENT_TYPES, conform, to_wire
from accord.wire import ProtobufReader, SSEReader, encode_frame, encode_protobuf, frame
from consumer.feeding import Consumed, consume
from support.corpus import corpus_files
from support.streams import make_stream
from wire.envelopes import Raw, carried

#: A value of another type than is due has no place in a message, and retired events have no arm.
NOT_SAID = {"malformed-known-field-fatal", "era-0-0-45-thinking-translated"}
#: What is not described does not travel, so nobody warns of it.
NOT_WARNED = {"unknown-property-stripped", "unknown-outcome-stripped"}
#: An event of a later version has a number here and no name.
RENAMED = {"unknown-event-dropped"}

LATER = b"\x9a\x06\x00"


def framed(raw: Raw) -> bytes:
    """The frame of a raw event, as far as the wire can say it."""
    if raw["type"].startswith("THINKING_"):
        raise ValueError("a retired event has no arm")
    struct = EVENT_TYPES.get(raw["type"])
    if struct is None:
        return frame(LATER)
    made, _ = conform(raw, struct)
    if made is None:
        raise ValueError("dropped as a whole")
    return frame(encode_protobuf(made))


def over_json(events: list[Raw], **options: Any) -> Consumed:
    return consume(SSEReader().feed(b"".join(encode_frame(json.dumps(raw).encode()) for raw in events)), **options)


def over_protobuf(events: list[Raw], **options: Any) -> Consumed:
    return consume(ProtobufReader().feed(b"".join(map(framed, events))), **options)


def verdict(found: Consumed) -> Raw:
    return {
        "rule": None if found.violation is None else (found.violation.rule, found.violation.path),
        "index": None if found.violation is None else found.violation.index,
        "truncated": found.truncated,
        "events": [carried(to_wire(event)) for event in found.events],
        "messages": [carried({"messages": [message]}) for message in found.messages],
        "state": found.state,
        "runs": [(run.thread_id, run.run_id, run.error) for run in found.conversation.runs],
    }


@pytest.mark.parametrize("file", corpus_files("streams/*.json"), ids=lambda file: file.stem)
def test_corpus(file: Path) -> None:
    case = json.loads(file.read_text())
    events, options = case["stream"], {"given": case.get("input", {})}
    options["peer_version"] = case.get("client", {}).get("maxProtocolVersion")
    assert (sayable(events) == events) is (file.stem not in NOT_SAID)
    if file.stem in NOT_SAID:
        return
    json_, protobuf = over_json(events, **options), over_protobuf(events, **options)
    assert verdict(protobuf) == verdict(json_)
    if file.stem in RENAMED:
        assert [each.event_type for each in protobuf.deviations] == ["(envelope arm 99)"]
    elif file.stem in NOT_WARNED:
        assert (protobuf.warnings, len(json_.warnings)) == ([], 1)
    else:
        assert protobuf.warnings == json_.warnings


def sayable(events: list[Raw]) -> list[Raw]:
    """The beginning of a stream that frames can carry: no lone surrogates, no values of other types than are due."""
    kept = []
    for raw in events:
        try:
            json.dumps(raw, ensure_ascii=False).encode()
            framed(raw)
        except (ValueError, ProtocolViolation):
            break
        kept.append(raw)
    return kept


def test_generated_streams() -> None:
    outcomes = set()
    for seed in range(400):
        stream = make_stream(seed, wild=0.01)
        events = sayable(stream.events)
        json_, protobuf = over_json(events, given=stream.run_input), over_protobuf(events, given=stream.run_input)
        assert verdict(protobuf) == verdict(json_), seed
        outcomes.add((json_.violation is None, json_.truncated))
    assert len(outcomes) == 3
