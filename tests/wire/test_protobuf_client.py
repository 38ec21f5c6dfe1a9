"""The reference client over HTTP: what it makes of our frames is what it makes of our event stream."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from accord.protocol import encode_event
from accord.wire import (
    PROTOBUF_MEDIA_TYPE,
    SSE_MEDIA_TYPE,
    admits_protobuf,
    encode_frame,
    encode_protobuf,
    frame,
)
from support.node import run_node
from support.serving import serve_in_thread
from wire.envelopes import T_R, Raw, event

STREAM: list[Raw] = [
    {"type": "RUN_STARTED", **T_R},
    {"type": "STATE_SNAPSHOT", "snapshot": {"list": [1, 2.5, None, True, "é"], "empty": {}}},
    {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/list/-", "value": {"a": "🙂"}}]},
    {"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant", "metadata": {"k": [0]}},
    *({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": delta} for delta in ("Hel", "", "lo 🙂")),
    {"type": "TEXT_MESSAGE_END", "messageId": "m1"},
    {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "find", "parentMessageId": "m1"},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '{"q": 1}'},
    {"type": "TOOL_CALL_END", "toolCallId": "c1"},
    {
        "type": "TOOL_CALL_RESULT",
        "messageId": "m2",
        "toolCallId": "c1",
        "content": [{"type": "text", "text": "t"}, {"type": "image", "source": {"type": "url", "value": "u"}}],
    },
    {"type": "ACTIVITY_SNAPSHOT", "messageId": "a1", "activityType": "x", "content": {"n": 0}, "replace": True},
    {"type": "RUN_FINISHED", **T_R, "result": {"done": True}, "outcome": {"type": "success"}},
]


async def produce(request: Request) -> StreamingResponse:
    binary = admits_protobuf(request.headers.get("accept"))

    async def body() -> AsyncIterator[bytes]:
        for made in map(event, STREAM):
            yield frame(encode_protobuf(made)) if binary else encode_frame(encode_event(made))

    return StreamingResponse(body(), media_type=PROTOBUF_MEDIA_TYPE if binary else SSE_MEDIA_TYPE)


@pytest.mark.usefixtures("node_modules")
def test_the_reference_client_reads_our_frames() -> None:
    with serve_in_thread(Starlette(routes=[Route("/", produce, methods=["POST"])])) as url:
        binary, text = json.loads(run_node("http-client.mjs", f"{url}/", PROTOBUF_MEDIA_TYPE, SSE_MEDIA_TYPE))
    assert binary.pop("contentType") == PROTOBUF_MEDIA_TYPE
    assert text.pop("contentType").startswith(SSE_MEDIA_TYPE)
    assert binary == text
    assert binary["error"] is None
    assert [message["role"] for message in binary["messages"]] == ["assistant", "tool", "activity"]
    assert binary["state"] == {"list": [1, 2.5, None, True, "é", {"a": "🙂"}], "empty": {}}
