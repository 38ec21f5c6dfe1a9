from __future__ import annotations

import json
from typing import Any

import pytest

from accord.consumer import Deviation
from accord.errors import InputRejected
from accord.producer import NotJSON, receive_input
from accord.protocol import encode_input


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
