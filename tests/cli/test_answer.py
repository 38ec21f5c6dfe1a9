from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from accord.cli.answer import NotAnAnswer, read_answer
from accord.client import Cancelled
from accord.protocol import Interrupt


def answer(text: str, schema: dict[str, Any] | None = None) -> Any:
    interrupt = Interrupt(id="i", reason="r", response_schema=UNSET if schema is None else schema)
    return read_answer(text, interrupt)


CONSENT = {"type": "object", "properties": {"note": {"type": "string"}, "approved": {"type": "boolean"}}}


@pytest.mark.parametrize(
    ("text", "schema", "payload"),
    [
        ("y", None, True),
        (" No ", None, False),
        ("YES", {"type": "boolean"}, True),
        ("y", CONSENT, {"approved": True}),
        ("n", CONSENT, {"approved": False}),
        ("y", {"properties": {"sure": {"type": "boolean"}}}, {"sure": True}),
        ("y", {"properties": {"urgent": {"type": "boolean"}, "accepted": {"type": "boolean"}}}, {"accepted": True}),
        ("y", {"properties": {"name": {"type": "string"}}}, True),
        ("y", {"type": "string"}, "y"),
        ('{"approved": true, "note": "ok"}', CONSENT, {"approved": True, "note": "ok"}),
        ("42", None, 42),
        ("42", {"type": "string"}, "42"),
        ('"quoted"', {"type": "string"}, "quoted"),
        ("plain words", None, "plain words"),
        (":cancel", CONSENT, Cancelled),
    ],
)
def test_what_is_meant(text: str, schema: dict[str, Any] | None, payload: Any) -> None:
    meant = answer(text, schema)
    assert meant == payload
    assert type(meant) is type(payload)


def test_what_cannot_be_an_answer() -> None:
    with pytest.raises(NotAnAnswer, match="not JSON"):
        answer("perhaps", CONSENT)
    with pytest.raises(NotAnAnswer, match="null"):
        answer("null")
