"""An HTTP answer that is no stream, as the error it means (rules section 9, "Rejected before start").

A producer that refuses an input says so with a JSON body naming the error: that is `InputRejected`. Everything else,
a wrong path or a server in trouble, is `TransportError`. What the peer wrote is shown, never relied on.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from accord.client.excerpt import excerpt
from accord.errors import AccordError, InputRejected, ProtocolViolation, TransportError
from accord.protocol import decode_json
from accord.protocol.conform import escape_token
from accord.wire import media_type

#: Where the input may be at fault: what it holds, when it comes, how large it is.
_ABOUT_THE_INPUT = frozenset({400, 409, 413, 422})
_MESSAGE_CHARACTERS = 500


def refusal(url: str, status: int, content_type: str | None, body: bytes, *, location: str | None) -> AccordError:
    """The error for an answer with a status other than 2xx; `body` is the beginning of its body."""
    if status in _ABOUT_THE_INPUT and media_type(content_type).endswith("json"):
        named = _named_error(body)
        if named is not None:
            message, path = named
            said = excerpt(message, max_characters=_MESSAGE_CHARACTERS)
            text = f"the producer refused the input (HTTP {status}): {said}"
            return InputRejected(f"{path}: {text}" if path else text, path=path, status=status)
    what = f"HTTP {status}{_phrase(status)} from {url}"
    if location is not None and 300 <= status < 400:
        return TransportError(
            f"{what}: it redirects to {excerpt(location)!r}, which is not followed; use that address if it is right",
            status=status,
        )
    return TransportError(f"{what}: {excerpt(body)!r}" if body else f"{what}, with an empty body", status=status)


def _phrase(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""


def _named_error(body: bytes) -> tuple[str, str] | None:
    """The message and the path of the error that a JSON body names, None when it names none.

    Understood are `{"error": {"message", "path"}}`, which our own endpoint sends, the same without the envelope or
    with text in its place, the `detail` of RFC 9457, and FastAPI's `{"detail": [{"loc", "msg"}]}`.
    """
    try:
        answer = decode_json(body)
    except ProtocolViolation:
        return None
    if not isinstance(answer, dict):
        return None
    error = answer.get("error", answer)
    if isinstance(error, str):
        return error, _pointer(answer.get("path"))
    if not isinstance(error, dict):
        return None
    for name in ("message", "detail", "title"):
        if isinstance(error.get(name), str):
            return error[name], _pointer(error.get("path"))
    return _validation_error(error.get("detail"))


def _validation_error(detail: Any) -> tuple[str, str] | None:
    first = detail[0] if isinstance(detail, list) and detail else None
    if not isinstance(first, dict) or not isinstance(first.get("msg"), str):
        return None
    location = first.get("loc")
    steps = location[1:] if isinstance(location, list) and location[:1] == ["body"] else []
    return first["msg"], "".join(f"/{escape_token(str(step))}" for step in steps)


def _pointer(path: Any) -> str:
    return path if isinstance(path, str) and path.startswith("/") else ""
