"""What a request must be to become a run (rules section 9: rejected before the start is an HTTP error, no stream).

The head of the request is judged before any of its body is read, and the body is never held beyond its limit.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

from accord.consumer import Deviation, OnDeviation
from accord.errors import InputRejected
from accord.hosting.asgi import Receive, Scope, Send, header
from accord.producer import NotJSON, Producer, check_input, receive_input
from accord.protocol import RunAgentInput
from accord.wire import JSON_MEDIA_TYPE, media_type

#: Bytes of an input that are judged where they came in; it takes a few milliseconds at the worst.
_AT_ONCE = 64 * 1024

#: Says on whose behalf a request comes, from its ASGI scope; raises `PermissionError` where it may not.
Authorize: TypeAlias = Callable[[Scope], str | Awaitable[str]]


class Refusal(Exception):
    """A request that does not become a run, and the answer to it."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        path: str | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        error = {"code": code, "message": message}
        if path is not None:
            error["path"] = path
        self.body = json.dumps({"error": error}).encode()

    async def answer(self, send: Send) -> None:
        """Sends `{"error": {"code", "message"}}`, with a `path` where a place in the input is wrong."""
        headers = [
            (b"content-type", JSON_MEDIA_TYPE.encode()),
            (b"content-length", str(len(self.body)).encode()),
            *self.headers,
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


class Disconnected(Exception):
    """The client left before its request was whole."""


def check_head(scope: Scope, *, max_body_bytes: int) -> None:
    """Refuses what the request line and headers already show to be wrong.

    A request that names no content type is refused as well: a browser sends such a one to any host unasked, while
    `application/json` makes it ask first whether this origin may.
    """
    if scope["method"] != "POST":
        raise Refusal(405, "method_not_allowed", "a run is started with POST", headers=((b"allow", b"POST"),))
    given = media_type(header(scope, b"content-type"))
    if given != JSON_MEDIA_TYPE:
        message = f"the body must be {JSON_MEDIA_TYPE}, not {given or 'of an unnamed type'}"
        raise Refusal(415, "unsupported_media_type", message, headers=((b"accept", JSON_MEDIA_TYPE.encode()),))
    coding = (header(scope, b"content-encoding") or "identity").strip().lower()
    if coding != "identity":
        message = f"the body must not be compressed, and is {coding}"
        raise Refusal(415, "unsupported_content_encoding", message, headers=((b"accept-encoding", b"identity"),))
    length = header(scope, b"content-length") or ""
    if length.isascii() and length.isdigit() and int(length[:20]) > max_body_bytes:
        raise _too_large(max_body_bytes)


async def authorized(scope: Scope, authorize: Authorize | None) -> str:
    """On whose behalf a request comes; 403 for one that may not."""
    if authorize is None:
        return ""
    try:
        made = authorize(scope)
        return await made if inspect.isawaitable(made) else made
    except PermissionError as refused:
        raise Refusal(403, "forbidden", str(refused) or "this request is not allowed") from None


async def read_body(receive: Receive, *, max_body_bytes: int, body_timeout: float | None) -> bytes:
    """The whole body; refused as soon as it outgrows its limit or its time (seconds)."""
    body = bytearray()
    try:
        async with asyncio.timeout(body_timeout):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Disconnected
                body += message.get("body", b"")
                if len(body) > max_body_bytes:
                    raise _too_large(max_body_bytes)
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        detail = f"the body did not come within {body_timeout:g} seconds (body_timeout)"
        raise Refusal(408, "body_timeout", detail) from None


async def read_input(
    body: bytes,
    producer: Producer,
    *,
    scope: str,
    max_depth: int,
    on_deviation: OnDeviation | None,
    max_deviations: int,
) -> RunAgentInput:
    """The run input that the body is: 400 for what is not JSON, 422 with the place for what is malformed, or what the
    producer does not take."""
    receive = partial(receive_input, body, max_depth=max_depth, max_deviations=max_deviations)
    try:
        if len(body) <= _AT_ONCE:
            run_input = receive(on_deviation=on_deviation)
        else:
            run_input = await _elsewhere(receive, on_deviation)
        await check_input(producer, run_input, scope=scope)
        return run_input
    except NotJSON as unread:
        raise Refusal(400, "invalid_json", str(unread)) from None
    except InputRejected as rejected:
        raise Refusal(422, "invalid_input", str(rejected), path=rejected.path) from None


async def _elsewhere(receive: Callable[..., RunAgentInput], on_deviation: OnDeviation | None) -> RunAgentInput:
    """Judges an input in a thread, so that the event loop goes on; what deviates is told here all the same."""
    found: list[Deviation] = []
    try:
        return await asyncio.to_thread(receive, on_deviation=found.append)
    finally:
        if on_deviation is not None:
            for deviation in found:
                on_deviation(deviation)


def _too_large(max_body_bytes: int) -> Refusal:
    return Refusal(413, "body_too_large", f"the body is larger than {max_body_bytes} bytes (max_body_bytes)")
