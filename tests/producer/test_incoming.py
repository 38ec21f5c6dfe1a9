from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accord.consumer import Deviation
from accord.errors import InputRejected
from accord.producer import NotJSON, incoming, receive_input
from accord.protocol import RunAgentInput, encode_input
from support.shapes import wire


def body(**members: Any) -> bytes:
    return json.dumps({"threadId": "t", "runId": "r", "messages": [], **members}).encode()


def test_unknown_material_is_stripped_with_a_warning() -> None:
    warnings: list[Deviation] = []
    messages = [{"id": "1", "role": "user", "content": "hi", "mood": 1}, {"id": "2", "role": "narrator"}]
    run_input = receive_input(body(future=1, messages=messages), on_deviation=warnings.append)
    assert [message.id for message in run_input.messages] == ["1"]
    assert sorted(warning.path for warning in warnings) == ["/future", "/messages/0/mood", "/messages/1"]


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (b"", ""),
        (b"[]", ""),
        (b"{", ""),
        (b"\xff", ""),
        (b'{"threadId": "t", "runId": "r"}', "/messages"),
        (body(messages=[{"id": 5, "role": "user", "content": ""}]), "/messages/0/id"),
        (body(threadId="\ud800"), "/threadId"),
        (body(runId="\udc00"), "/runId"),
        (body(parentRunId="\udc00"), "/parentRunId"),
        (body(state=[[]] * 1).replace(b"[[]]", b"[" * 300 + b"]" * 300), ""),
    ],
)
def test_what_is_malformed_is_refused_with_its_place(data: bytes, path: str) -> None:
    with pytest.raises(InputRejected) as refused:
        receive_input(data)
    assert refused.value.path == path


@pytest.mark.parametrize(
    ("data", "is_json"),
    [
        (b"", False),
        (b"{", False),
        (b"NaN", False),
        (b"[" * 254 + b"{}," * 300, False),
        (b'{"a":"\xff"}', False),
        (b"[]", True),
        (b"null", True),
        (b"{}", True),
        (b'{"a":1e999}', True),
        (b"[" * 300 + b"]" * 300, True),
    ],
)
def test_what_is_not_json_is_told_from_what_is_malformed(data: bytes, is_json: bool) -> None:
    with pytest.raises(InputRejected) as refused:
        receive_input(data)
    assert isinstance(refused.value, NotJSON) is not is_json


#: What may be done to an input at a place, given as a JSON Pointer's tokens.
SPOILT: st.SearchStrategy[Any] = st.one_of(
    st.just("as it is"),
    st.tuples(st.just("unknown"), st.integers(0, 40), st.sampled_from(["novel", "mood", "role", "type", "a/b"])),
    st.tuples(st.just("value"), st.integers(0, 40), st.sampled_from([None, 1, 1.0, "", [], {}, True, "\ud800", 1e300])),
)


def spoil(value: Any, how: Any) -> Any:
    """`value` with one thing done to the container that is reached after so many others."""
    if how == "as it is":
        return value
    kind, place, what = how
    found = [value]
    for each in found:
        found += [
            inner for inner in (each.values() if isinstance(each, dict) else each) if isinstance(inner, dict | list)
        ]
    target = found[place % len(found)]
    if isinstance(target, list):
        target.append(what)
    elif kind == "unknown":
        target[what] = 1
    elif target:
        target[list(target)[place % len(target)]] = what
    return value


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(raw=wire(RunAgentInput), how=SPOILT)
def test_the_short_way_and_the_long_one_give_one_verdict(raw: dict[str, Any], how: Any) -> None:
    raw = spoil(json.loads(json.dumps(raw)), how)

    def verdict(receive: Callable[..., RunAgentInput]) -> Any:
        warnings: list[Deviation] = []
        try:
            run_input = receive(json.dumps(raw).encode(), on_deviation=warnings.append)
        except InputRejected as refused:
            return refused.args, refused.path
        return run_input, warnings

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(incoming, "_as_described", lambda *_: None)
        long_way = verdict(receive_input)
    assert verdict(receive_input) == long_way


def test_an_input_that_is_described_goes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "_raw", lambda *_: pytest.fail("the long way"))
    assert receive_input(body(protocolVersion="1.0", state={"a": [1, 1.5, None]})).state == {"a": [1, 1.5, None]}


def test_a_lone_surrogate_is_replaced_wherever_it_is() -> None:
    warnings: list[Deviation] = []
    message = {"id": "1", "role": "user", "content": "cut \ud83d"}
    run_input = receive_input(
        body(
            messages=[message],
            state={"draft": ["\udc00", "😀"], "k\ud800": 1},
            context=[{"description": "\ud800", "value": ""}],
            forwardedProps={"p": "\udfff"},
        ),
        on_deviation=warnings.append,
    )
    assert [message.content for message in run_input.messages] == ["cut \ufffd"]
    assert run_input.state == {"draft": ["\ufffd", "😀"], "k\ufffd": 1}
    assert sorted(each.path for each in warnings) == [
        "/context/0/description",
        "/forwardedProps/p",
        "/messages/0/content",
        "/state",
        "/state/draft/0",
    ]
    assert {each.stage for each in warnings} == {"boundary"}
    encode_input(run_input)


@pytest.mark.parametrize("escape", [rb"\ud83d", rb"\uD83D"])
def test_however_it_is_escaped(escape: bytes) -> None:
    assert receive_input(body(state="?").replace(b"?", escape)).state == "\ufffd"
    assert receive_input(body(state="?").replace(b"?", escape + rb"\ude00")).state == "😀"


def test_the_warnings_of_an_input_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    warnings: list[Deviation] = []
    messages = [{"id": "1", "role": "user", "content": "\ud800", "z": 1}] * 300
    receive_input(body(messages=messages, protocolVersion="2.0"), on_deviation=warnings.append)
    assert len(warnings) == len(caplog.records) == 101
    assert "501 more" in warnings[-1].detail
    warnings.clear()
    receive_input(body(messages=messages), on_deviation=warnings.append, max_deviations=1_000)
    assert len(warnings) == 600


def test_retired_shapes_are_translated() -> None:
    parts = [{"type": "binary", "mimeType": "image/png", "url": "https://example.com/a.png"}]
    run_input = receive_input(body(forwardedProps=None, messages=[{"id": "1", "role": "user", "content": parts}]))
    (message,) = run_input.messages
    assert [part.__struct_config__.tag for part in message.content] == ["image"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("declared", "warns"), [("1.0", False), ("0.9", False), ("1.1", True), ("2.0", True), ("x", True)]
)
def test_a_version_that_is_newer_or_unreadable_is_a_warning(declared: str, warns: bool) -> None:
    seen: list[Deviation] = []
    assert receive_input(body(protocolVersion=declared), on_deviation=seen.append).protocol_version == declared
    assert [each.path for each in seen] == (["/protocolVersion"] if warns else [])
