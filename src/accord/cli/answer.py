"""What somebody types as the answer to an interrupt, as the payload that the producer asks for (rules section 7)."""

from __future__ import annotations

import json
from typing import Any, Final

from msgspec import UNSET

from accord.client import Cancelled
from accord.protocol import JSON, Interrupt

#: What is typed to answer that there will be no answer.
CANCEL: Final = ":cancel"

_YES_OR_NO: Final = {"y": True, "yes": True, "n": False, "no": False}
#: A yes or no among several booleans is the one of these names.
_CONSENT: Final = ("accepted", "approved", "confirmed", "accept", "approve", "confirm")


class NotAnAnswer(ValueError):
    """The text cannot be the answer; says what could."""


def read_answer(text: str, interrupt: Interrupt) -> JSON | type[Cancelled]:
    """The payload that `text` means: yes or no in the shape of the response schema, JSON, or plain text."""
    text = text.strip()
    if text == CANCEL:
        return Cancelled
    schema: dict[str, Any] = {} if interrupt.response_schema is UNSET else interrupt.response_schema
    wanted = schema.get("type")
    said = _YES_OR_NO.get(text.lower())
    if said is not None and wanted != "string":
        return _consent(schema, said)
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        if wanted in (None, "string"):
            return text
        raise NotAnAnswer(f"that is not JSON; answer y, n, {CANCEL} or JSON") from None
    if wanted == "string" and not isinstance(answer, str):
        return text
    if answer is None:
        raise NotAnAnswer(f"null is no answer; use {CANCEL} to give none")
    return answer


def _consent(schema: dict[str, Any], said: bool) -> JSON:
    """Yes or no: in the one member that is a boolean or is named for it, by itself where the schema has none."""
    members = schema.get("properties")
    if not isinstance(members, dict):
        return said
    booleans = [
        name for name, member in members.items() if isinstance(member, dict) and member.get("type") == "boolean"
    ]
    named = [name for name in _CONSENT if name in booleans] or booleans
    return {named[0]: said} if named else said
