"""Envelopes beside those of `@ag-ui/proto` 1.0.0: the same bytes, and each side reads the other's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from accord.errors import ProtocolViolation
from accord.protocol import EVENT_TYPES, definition
from accord.wire import decode_protobuf
from support.node import run_node
from support.shapes import fullest, smallest, wire
from wire.envelopes import GOLDEN, Raw, carried, encoded, exact, field

pytestmark = pytest.mark.usefixtures("node_modules")

GENERATED = 1_000


def reference(encode: list[Raw], decode: list[bytes]) -> tuple[list[bytes], list[Raw]]:
    """What the reference makes of events and of envelopes."""
    asked = {"encode": encode, "decode": [envelope.hex() for envelope in decode]}
    answer = json.loads(run_node("proto.mjs", stdin=json.dumps(asked)))
    return [bytes.fromhex(envelope) for envelope in answer["encoded"]], answer["decoded"]


def events() -> list[Raw]:
    """Every event with every optional member, with none, and with each alone; and many generated ones."""
    found: list[Raw] = []
    for struct in EVENT_TYPES.values():
        whole, bare = fullest(struct), smallest(struct)
        optional = [name for name, member in definition(struct).members.items() if not member.required]
        found += [whole, bare, *({**bare, name: whole[name]} for name in optional)]

    @settings(
        max_examples=GENERATED,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of([wire(struct) for struct in EVENT_TYPES.values()]).map(exact))
    def collect(raw: Raw) -> None:
        found.append(raw)

    collect()
    return [as_javascript_holds_it(raw) for raw in found]


def as_javascript_holds_it(value: Any) -> Any:
    """Members whose names are indices come first there, in their order. And its encoder takes `state: null` for absent,
    where ours keeps what is data (rules section 1)."""
    if isinstance(value, list):
        return [as_javascript_holds_it(element) for element in value]
    if not isinstance(value, dict):
        return value
    if "threadId" in value and "messages" in value and value.get("state", ...) is None:
        del value["state"]
    indices = sorted((name for name in value if is_index(name)), key=int)
    return {name: as_javascript_holds_it(value[name]) for name in [*indices, *(n for n in value if not is_index(n))]}


def is_index(name: str) -> bool:
    return name.isascii() and name.isdigit() and str(int(name)) == name and int(name) < 2**32 - 1


def as_doubles(value: Any) -> Any:
    return json.loads(json.dumps(value), parse_int=float)


def test_the_same_bytes_and_the_same_events() -> None:
    sent = events()
    assert len(sent) >= GENERATED + 2 * len(EVENT_TYPES)
    ours = [encoded(raw) for raw in sent]
    theirs, theirs_of_ours = reference(sent, ours)
    for raw, our_bytes, their_bytes, their_event in zip(sent, ours, theirs, theirs_of_ours, strict=True):
        assert our_bytes.hex() == their_bytes.hex(), raw
        ours_of_theirs = as_doubles(decode_protobuf(their_bytes))
        assert ours_of_theirs == as_doubles(their_event.get("event")), raw
        assert ours_of_theirs == as_doubles(carried(raw))


def test_golden() -> None:
    theirs, _ = reference([raw for raw, _ in GOLDEN], [])
    assert [envelope.hex() for envelope in theirs] == [hexed for _, hexed in GOLDEN]


BASE = field(1, b"\x08\x08")  # of MESSAGES_SNAPSHOT
TEXT_PART = field(1, field(1, b"t"))


def test_unusual_envelopes_are_read_alike() -> None:
    envelopes = [
        field(2, field(1, b"\x08\x01")),
        field(2, field(1, b"\x08\x01") + field(2, b"m")) + field(2, field(3, b"d")),
        field(8, field(1, b"\x08\x07") + field(2, b"\x08\x09")),
        field(13, field(1, b"\x08\x0c") + field(5, b"paused") + field(8, b"x")),
        field(13, field(1, b"\x08\x0c") + field(8, b"x")),
        field(13, field(1, b"\x08\x0c") + field(5, b"interrupt")),
        field(9, BASE + field(2, field(2, b"critic") + field(3, b"c"))),
        field(9, BASE + field(2, field(2, b"critic") + field(8, TEXT_PART))),
        field(9, BASE + field(2, field(2, b"user"))),
        field(9, BASE + field(2, field(2, b"user") + field(8, field(2, b"")))),
        field(7, field(1, b"\x08\x06") + field(2, b"")),
        field(7, field(1, b"\x08\x06") + field(2, b"\x20\x01\x1a\x01x")),
        field(7, field(1, b"\x08\x06") + field(2, b"\x2a\x06\x0a\x04\x12\x02\x08\x00")),
        field(12, field(1, b"\x08\x0b") + field(5, b"")),
    ]
    _, theirs = reference([], envelopes)
    assert [{"event": decode_protobuf(envelope)} for envelope in envelopes] == theirs


def test_what_the_reference_refuses_is_refused() -> None:
    envelopes = [
        b"",
        field(2, b""),
        field(2, field(1, b"")),
        field(2, field(1, b"\x08\x01")) + field(3, field(1, b"\x08\x02")),
        field(2, field(1, b"\x08\x01")) + b"\x02\x00",
        field(2, field(1, b"\x08\x01")) + b"\xa3\x06",
        b"\x12\x05\x0a\x02\x08\x01",
        b"\x82\x02\x01\xff",
        b"\x10\x01",
        field(9, BASE + field(2, field(2, b"user") + field(3, b"c") + field(8, TEXT_PART))),
        field(9, BASE + field(2, field(2, b"system") + field(8, TEXT_PART))),
        field(9, BASE + field(2, field(2, b"critic") + field(3, b"c") + field(8, TEXT_PART))),
        field(9, BASE + field(2, field(2, b"user") + field(8, TEXT_PART + field(2, b"")))),
    ]
    _, theirs = reference([], envelopes)
    for envelope, answer in zip(envelopes, theirs, strict=True):
        assert answer["error"].startswith("Error: ")
        with pytest.raises(ProtocolViolation):
            decode_protobuf(envelope)


def test_a_later_event_is_one_for_both() -> None:
    later = b"\x82\x02\x02\x08\x01"
    _, (theirs,) = reference([], [later])
    assert theirs["error"].startswith("AGUIUnknownEventTypeError")
    assert decode_protobuf(later) == {"type": "(envelope arm 32)"}


def test_where_bytes_cannot_be_decoded_ours_is_stricter() -> None:
    """As the module's text says: U+FFFD for what is not UTF-8, and lengths cut down to 32 bits."""
    not_utf_8 = field(2, field(1, b"\x08\x01") + field(2, b"\xff"))
    long_length = b"\x12\x84\x80\x80\x80\x80\x00" + field(1, b"\x08\x01")
    _, theirs = reference([], [not_utf_8, long_length])
    assert [each["event"]["messageId"] for each in theirs] == ["\ufffd", ""]
    for envelope in (not_utf_8, long_length):
        with pytest.raises(ProtocolViolation):
            decode_protobuf(envelope)
