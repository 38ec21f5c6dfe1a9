from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from accord.client import AGUIClient
from accord.errors import InputRejected, ProtocolViolation, TransportError, TruncatedRun
from client.raw_server import CHUNKED, STREAM, Peer, answer, chunk, endless, raw_server, reset, until_left, until_told
from client.streams import contents, finished, sse, started, text, until_error
from support.serving import serve

WHOLE = sse(started(), *text("Hello"), finished())


# A stream that is whole


async def test_a_run_over_http() -> None:
    async with raw_server(STREAM, WHOLE) as peer, AGUIClient(peer.url) as client:
        run = client.run("hi")
        assert [event.type async for event in run] == [
            "RUN_STARTED",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "RUN_FINISHED",
        ]
        assert run.outcome == "success"
        assert contents(client) == ["hi", "Hello"]


async def test_what_a_request_is() -> None:
    async with (
        raw_server(STREAM, WHOLE) as peer,
        AGUIClient(
            peer.url,
            headers={"x-tenant": "blue", "ACCEPT": "text/html", "content-type": "text/plain"},
            auth=("ann", "secret"),
            thread_id="t1",
            state={"n": None},
        ) as client,
    ):
        await client.run("hi", run_id="r1", forwarded_props={"a": 1})
    (request,) = peer.requests
    assert request.line == "POST /agent HTTP/1.1"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["accept"] == "text/event-stream"
    assert request.headers["x-tenant"] == "blue"
    assert request.headers["authorization"].startswith("Basic ")
    message = request.json["messages"][0]
    assert request.json == {
        "threadId": "t1",
        "runId": "r1",
        "protocolVersion": "1.0",
        "state": {"n": None},
        "messages": [{"id": message["id"], "role": "user", "content": "hi"}],
        "tools": [],
        "context": [],
        "forwardedProps": {"a": 1},
    }


@pytest.mark.parametrize("content_type", ["text/event-stream; charset=utf-8", "Text/Event-Stream"])
@pytest.mark.parametrize("status", ["200 OK", "201 Created"])
async def test_parameters_case_and_any_2xx_are_fine(content_type: str, status: str) -> None:
    async with raw_server(answer(status, content_type), WHOLE) as peer, AGUIClient(peer.url) as client:
        assert (await client.run()).outcome == "success"


async def test_an_event_is_handed_out_before_the_next_read() -> None:
    async with (
        raw_server(CHUNKED, chunk(sse(started(), *text("a"))), until_told, chunk(sse(finished())), chunk(b"")) as peer,
        AGUIClient(peer.url) as client,
    ):
        run = client.run()
        seen = [(await anext(run)).type for _ in range(4)]
        assert seen[-1] == "TEXT_MESSAGE_END"  # and the server has sent no more
        assert contents(client) == ["a"]
        peer.go_on.set()
        assert [event.type async for event in run] == ["RUN_FINISHED"]


async def test_a_stream_that_stays_open_after_its_run_does_not_hold_it_up() -> None:
    async with raw_server(STREAM, WHOLE, until_left) as peer, AGUIClient(peer.url, end_timeout=0.05) as client:
        assert (await client.run()).outcome == "success"
        await peer.left.wait()


@pytest.mark.parametrize("noise", [b": alive\n\n", sse({"type": "NEWS"})])
async def test_noise_after_the_run_does_not_hold_it_up_either(noise: bytes) -> None:
    async def alive(peer: Peer) -> None:
        assert peer.connection is not None
        while not peer.left.is_set():
            peer.connection.write(noise)
            await asyncio.sleep(0.005)

    async with raw_server(STREAM, WHOLE, alive) as peer, AGUIClient(peer.url, end_timeout=0.15) as client:
        assert (await client.run()).outcome == "success"


async def test_a_connection_that_breaks_after_the_run_changes_nothing() -> None:
    async with raw_server(CHUNKED, chunk(WHOLE)) as peer, AGUIClient(peer.url) as client:  # no last chunk
        assert (await client.run()).outcome == "success"


async def test_redirects_are_an_http_clients_business() -> None:
    async def moved(request: Request) -> JSONResponse:
        return JSONResponse({}, status_code=307, headers={"Location": "/agent"})

    async def agent(request: Request) -> StreamingResponse:
        return StreamingResponse(iter([WHOLE]), media_type="text/event-stream")

    routes = [Route("/moved", moved, methods=["POST"]), Route("/agent", agent, methods=["POST"])]
    async with serve(Starlette(routes=routes)) as base:
        async with AGUIClient(f"{base}/moved") as client:
            types, error = await until_error(client.run("hi"))
            assert (types, type(error)) == ([], TransportError)
            assert "307" in str(error)
            assert "'/agent'" in str(error)
        async with httpx.AsyncClient(follow_redirects=True) as http_client:
            async with AGUIClient(f"{base}/moved", http_client=http_client) as client:
                assert (await client.run()).outcome == "success"
            assert not http_client.is_closed


# Streams that are cut


CUTS = {
    "after half a message": (STREAM, sse(started(), *text("par", "tial")[:3])),
    "in the middle of an event": (STREAM, sse(started(), *text("par", "tial")[:3]), sse(finished())[:25]),
    "before a blank line": (STREAM, sse(started(), *text("par", "tial")[:3]), sse(finished())[:-1]),
    "within a chunked body": (CHUNKED, chunk(sse(started(), *text("par", "tial")[:3]))),
    "by a reset": (CHUNKED, chunk(sse(started(), *text("par", "tial")[:3])), until_told, reset),
}


@pytest.mark.parametrize("steps", CUTS.values(), ids=CUTS)
async def test_a_cut_stream_is_truncated_and_what_came_stays(steps: tuple[Any, ...]) -> None:
    async with raw_server(*steps) as peer, AGUIClient(peer.url) as client:
        run = client.run("hi")
        types = [(await anext(run)).type for _ in range(4)]
        peer.go_on.set()
        with pytest.raises(TruncatedRun) as caught:
            await anext(run)
        assert types[-1] == "TEXT_MESSAGE_CONTENT"
        assert (run.outcome, run.error) == ("truncated", caught.value)
        assert contents(client) == ["hi", "partial"]
        assert client.runs[-1].status == "truncated"


@pytest.mark.parametrize(
    ("head", "body", "said"),
    [
        (STREAM, b"", "0 bytes"),
        (STREAM, b": keep-alive\n\n: keep-alive\n\n", "28 bytes"),
        (STREAM, b'data: {"type":', "inside an event"),
        (answer("204 No Content", None), b"", "HTTP 204"),
        (answer("200 OK", "text/html"), b"", "empty body"),
    ],
)
async def test_a_stream_without_a_run_is_truncated(head: bytes, body: bytes, said: str) -> None:
    async with raw_server(head, body) as peer, AGUIClient(peer.url) as client:
        types, error = await until_error(client.run("hi"))
        assert (types, type(error)) == ([], TruncatedRun)
        assert said in str(error)


async def test_silence_within_a_run_truncates_it() -> None:
    async with (
        raw_server(STREAM, sse(started()), until_left) as peer,
        AGUIClient(peer.url, read_timeout=0.05) as client,
    ):
        types, error = await until_error(client.run("hi"))
        assert (types, type(error)) == (["RUN_STARTED"], TruncatedRun)
        assert "nothing came for 0.05 s (read_timeout)" in str(error)
        await peer.left.wait()


# Streams that are refused


async def test_every_event_before_a_violation_is_delivered() -> None:
    bad = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": 5}
    body = sse(started(), *text("a", "b")[:3], bad, finished())
    async with raw_server(STREAM, body, until_left) as peer, AGUIClient(peer.url) as client:
        run = client.run("hi")
        types, error = await until_error(run)
        assert types == ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CONTENT"]
        assert isinstance(error, ProtocolViolation)
        assert (error.path, error.index) == ("/delta", 4)
        assert (run.outcome, run.error) == ("rejected", error)
        assert contents(client) == ["hi", "ab"]
        await peer.left.wait()


async def test_events_that_a_failing_payload_had_made_are_delivered() -> None:
    # The last one ends the message that the chunk began before it is refused itself.
    events = [{"type": "TEXT_MESSAGE_CHUNK", "messageId": "m1", "delta": "a"}, finished("another")]
    async with raw_server(STREAM, sse(started(), *events)) as peer, AGUIClient(peer.url) as client:
        types, error = await until_error(client.run("hi"))
        assert isinstance(error, ProtocolViolation)
        assert types == ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]


async def test_events_before_an_endless_one_are_delivered() -> None:
    async with (
        raw_server(STREAM, sse(started()), b"data: ", endless) as peer,
        AGUIClient(peer.url, max_frame_bytes=1000) as client,
    ):
        types, error = await until_error(client.run("hi"))
        assert types == ["RUN_STARTED"]
        assert isinstance(error, ProtocolViolation)
        assert error.rule == "frame-limit"
        await peer.left.wait()


@pytest.mark.parametrize(
    ("limits", "events"),
    [
        ({"max_events": 2}, [started(), *text("a"), finished()]),
        ({"max_depth": 3}, [started(), {"type": "STATE_SNAPSHOT", "snapshot": [[[[]]]]}, finished()]),
        ({"max_messages": 1}, [started(), *text("a"), *text("b", message_id="m2"), finished()]),
    ],
)
async def test_a_limit_that_is_passed_names_itself(limits: dict[str, Any], events: list[Any]) -> None:
    async with raw_server(STREAM, sse(*events)) as peer, AGUIClient(peer.url, **limits) as client:
        run = client.run()
        with pytest.raises(ProtocolViolation, match=next(iter(limits))):
            await run
        assert run.outcome == "rejected"


# What is no stream


@pytest.mark.parametrize(
    ("head", "body", "status", "said"),
    [
        (answer("200 OK", "text/html"), b"<!doctype html>\n<title>Hi</title>", 200, "'<!doctype html> <title>Hi"),
        (answer("200 OK", "application/json"), b'{"ok": true}', 200, "application/json"),
        (answer("200 OK", None), b"hello", 200, "no content type"),
        (answer("200 OK", "application/x-protobuf"), b"\x00\x00\x00\x04", 200, "x-protobuf"),
        (answer("404 Not Found", "text/plain"), b"no such page", 404, "'no such page'"),
        (answer("404 Not Found", "application/json"), b'{"detail":"Not Found"}', 404, "Not Found"),
        (answer("401 Unauthorized", "application/json"), b'{"error":"who are you"}', 401, "who are you"),
        (answer("422 Unprocessable Content", "text/plain"), b"no", 422, "'no'"),
        (answer("422 Unprocessable Content", "application/json"), b"[1]", 422, "[1]"),
        (answer("422 Unprocessable Content", "application/json"), b"{", 422, "{"),
        (answer("500 Internal Server Error", "text/plain"), b"oops\x1b[2J", 500, "oops\ufffd[2J"),
        (answer("503 Service Unavailable", None), b"", 503, "empty body"),
        (answer("302 Found", None, Location="http://elsewhere/"), b"", 302, "http://elsewhere/"),
        (answer("499 Odd", None), b"", 499, "HTTP 499 from http://127.0.0.1"),
    ],
)
async def test_an_answer_that_is_no_stream(head: bytes, body: bytes, status: int, said: str) -> None:
    async with raw_server(head, body) as peer, AGUIClient(peer.url) as client:
        run = client.run("hi")
        with pytest.raises(TransportError) as caught:
            await run
        assert caught.value.status == status
        assert said in str(caught.value)
        assert str(status) in str(caught.value)
        assert str(caught.value).isprintable()
        assert (run.outcome, run.error) == ("truncated", caught.value)
        assert client.messages == []


@pytest.mark.parametrize("head", [answer("500 Oops", "text/plain"), answer("200 OK", "text/html")])
async def test_a_body_that_is_no_stream_is_read_up_to_a_bound(head: bytes) -> None:
    async with raw_server(head, endless) as peer, AGUIClient(peer.url, max_error_bytes=1000) as client:
        types, error = await until_error(client.run("hi"))
        assert (types, type(error)) == ([], TransportError)
        assert len(str(error)) < 1000
        await peer.left.wait()
        assert peer.written < 30_000_000  # no more than the buffers on the way take


@pytest.mark.parametrize("head", [answer("500 Oops", "text/plain"), answer("200 OK", "text/html")])
async def test_a_body_that_is_no_stream_is_not_waited_for(head: bytes) -> None:
    async with raw_server(head, b"so far", until_left) as peer, AGUIClient(peer.url, end_timeout=0.05) as client:
        types, error = await until_error(client.run("hi"))
        assert (types, type(error)) == ([], TransportError)
        assert "'so far'" in str(error)
        await peer.left.wait()


@pytest.mark.parametrize(
    ("status", "body", "path", "said"),
    [
        (422, {"error": {"code": "invalid_input", "message": "a string is due", "path": "/messages/0/id"}},
         "/messages/0/id", "a string is due"),
        (422, {"error": "state is required", "path": "/state"}, "/state", "state is required"),
        (422, {"detail": [{"type": "missing", "loc": ["body", "a/b", 0], "msg": "Field required"}]},
         "/a~1b/0", "Field required"),
        (422, {"detail": [{"type": "missing", "loc": ["header", "x-key"], "msg": "Field required"}]},
         "", "Field required"),
        (400, {"message": "no thread"}, "", "no thread"),
        (409, {"error": {"code": "run_active", "message": "a run is active on this thread"}}, "", "a run is active"),
        (413, {"title": "Too large", "detail": "more than 10 MB", "path": 5}, "", "more than 10 MB"),
    ],
)  # fmt: skip
async def test_a_producer_that_refuses_the_input(status: int, body: Any, path: str, said: str) -> None:
    head = answer(f"{status} No", "application/problem+json; charset=utf-8")
    async with raw_server(head, json.dumps(body).encode()) as peer, AGUIClient(peer.url) as client:
        run = client.run("hi")
        with pytest.raises(InputRejected) as caught:
            await run
        assert (caught.value.status, caught.value.path) == (status, path)
        assert said in str(caught.value)
        assert (run.outcome, run.error) == ("rejected", caught.value)
        assert client.messages == []


# Nobody there


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@pytest.mark.parametrize(
    "url",
    [
        f"http://127.0.0.1:{closed_port()}/",
        "http://no-such-host.invalid/",
        "http://127.0.0.1:99999/",
        "127.0.0.1/agent",
        "ftp://127.0.0.1/",
        "http://[::1/",
        "http://127.0.0.1:80\x00/",
        "",
    ],
)
async def test_nobody_answers(url: str) -> None:
    async with AGUIClient(url) as client:
        run = client.run("hi")
        with pytest.raises(TransportError, match="no answer from") as caught:
            await run
        assert caught.value.status is None
        assert run.outcome == "truncated"
        assert client.messages == []


async def test_a_server_that_never_answers() -> None:
    async with raw_server(until_left) as peer, AGUIClient(peer.url, read_timeout=0.05) as client:
        types, error = await until_error(client.run("hi"))
        assert (types, type(error)) == ([], TransportError)
        assert "nothing came for 0.05 s" in str(error)


async def test_a_server_that_speaks_no_http() -> None:
    async with raw_server(b"220 mail.example SMTP\r\n") as peer, AGUIClient(peer.url) as client:
        types, error = await until_error(client.run("hi"))
        assert (types, type(error)) == ([], TransportError)


async def test_secrets_of_the_url_are_not_told() -> None:
    async with AGUIClient(f"http://ann:pa55@127.0.0.1:{closed_port()}/?token=s3cret") as client:
        _, error = await until_error(client.run("hi"))
        assert "pa55" not in str(error)
        assert "s3cret" not in str(error)


# Leaving


async def test_a_break_closes_the_connection() -> None:
    async with raw_server(STREAM, sse(started()), until_left) as peer, AGUIClient(peer.url) as client:
        async for _ in client.run("hi"):
            break
        await peer.left.wait()
        assert client.runs[-1].status == "truncated"


async def test_cancelling_the_task_closes_the_connection() -> None:
    async with raw_server(STREAM, sse(started()), until_left) as peer, AGUIClient(peer.url) as client:
        run = client.run("hi")
        begun = asyncio.Event()

        async def consume() -> None:
            async for _ in run:
                begun.set()

        task = asyncio.create_task(consume())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await peer.left.wait()
        assert run.outcome == "truncated"
        assert isinstance(run.error, TruncatedRun)


async def test_cancelling_before_there_is_an_answer() -> None:
    async with raw_server(until_left) as peer, AGUIClient(peer.url) as client:
        run = client.run("hi")
        task = asyncio.ensure_future(anext(run))
        await peer.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await peer.left.wait()
        assert run.outcome == "truncated"
        assert client.messages == []


async def test_closing_from_another_task_ends_the_iteration_and_closes_the_connection() -> None:
    async with raw_server(STREAM, sse(started()), until_left) as peer, AGUIClient(peer.url) as client:
        run = client.run("hi")
        begun = asyncio.Event()
        types: list[str] = []

        async def consume() -> str:
            async for event in run:
                types.append(event.type)
                begun.set()
            return "ended"

        task = asyncio.create_task(consume())
        await begun.wait()
        await asyncio.sleep(0)
        await run.aclose()
        assert run.outcome == "truncated"
        assert await task == "ended"
        assert task.cancelling() == 0
        assert types == ["RUN_STARTED"]
        await peer.left.wait()


async def test_closing_the_client_closes_the_run_and_says_so() -> None:
    async with raw_server(STREAM, sse(started()), until_left) as peer:
        async with AGUIClient(peer.url) as client:
            run = client.run("hi")
            await anext(run)
            waiting = asyncio.ensure_future(anext(run))
            await asyncio.sleep(0)
        with pytest.raises(TruncatedRun, match="the client was closed"):
            await waiting
        await peer.left.wait()
        with pytest.raises(InputRejected, match="closed"):
            await client.run("again")
