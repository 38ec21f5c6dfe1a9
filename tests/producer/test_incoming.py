from __future__ import annotations

import json
from typing import Any

import pytest

from accord.consumer import Deviation
from accord.errors import InputRejected
from accord.producer import receive_input


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
