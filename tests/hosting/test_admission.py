from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from accord.consumer import Deviation
from accord.hosting import AGUIEndpoint
from accord.producer import Run
from accord.protocol import RunAgentInput
from hosting.exchange import Board, Recorder, connect, exchange, http_client, read_events, run_input, types_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMIT = 1000
JSON = {"content-type": "application/json"}


class Server:
    """A served endpoint and what reached its producer."""

    def __init__(self, **limits: Any) -> None:
        self.inputs: list[RunAgentInput] = []
        self.deviations: list[Deviation] = []
        self.app = Recorder(
            AGUIEndpoint(self._produce, max_body_bytes=LIMIT, on_deviation=self.deviations.append, **limits)
        )
        self.url = ""

    async def _produce(self, run: Run) -> None:
        self.inputs.append(run.input)

    async def post(self, content: bytes, headers: dict[str, str] = JSON, method: str = "POST") -> httpx.Response:
        async with http_client() as client:
            return await client.request(method, self.url, content=content, headers=headers)


@pytest_asyncio.fixture(loop_scope="module")
async def server(board: Board) -> AsyncIterator[Server]:
    served = Server()
    async with board.serve(served.app) as served.url:
        yield served


def body(**members: Any) -> bytes:
    return json.dumps(run_input(**members)).encode()


def refused(response: httpx.Response, status: int, code: str) -> dict[str, str]:
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    assert list(response.json()) == ["error"]
    error: dict[str, str] = response.json()["error"]
    assert error["code"] == code
    assert error["message"]
    assert "Traceback" not in response.text
    assert ".py" not in response.text
    return error


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "PATCH"])
async def test_only_post(server: Server, method: str) -> None:
    response = await server.post(body(), method=method)
    assert "path" not in refused(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "POST"
    assert not server.inputs


async def test_head_is_not_post(server: Server) -> None:
    response = await server.post(b"", method="HEAD")
    assert (response.status_code, response.headers["allow"], response.content) == (405, "POST", b"")


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "APPLICATION/JSON", 'application/json; charset="utf-8"', "application/json ;x=y"],
)
async def test_json_with_any_parameters(server: Server, content_type: str) -> None:
    response = await server.post(body(), {"content-type": content_type})
    assert response.status_code == 200
    assert types_of(read_events(response.content)) == ["RUN_STARTED", "RUN_FINISHED"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": ""},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/jsonl"},
        {"content-type": "text/plain, application/json"},
    ],
)
async def test_another_content_type(server: Server, headers: dict[str, str]) -> None:
    response = await server.post(body(), headers)
    refused(response, 415, "unsupported_media_type")
    assert response.headers["accept"] == "application/json"
    assert not server.inputs


async def test_two_content_types_are_none(server: Server) -> None:
    async with connect(server.url) as socket:
        socket.head("Content-Type: application/json", "Content-Type: text/plain", "Content-Length: 2")
        socket.send(b"{}")
        assert await socket.status() == 415


async def test_a_compressed_body(server: Server) -> None:
    response = await server.post(body(), {**JSON, "content-encoding": "gzip"})
    refused(response, 415, "unsupported_content_encoding")
    assert response.headers["accept-encoding"] == "identity"
    assert (await server.post(body(), {**JSON, "content-encoding": "identity"})).status_code == 200


async def test_a_body_of_just_the_limit(server: Server) -> None:
    filled = body() + b" " * (LIMIT - len(body()))
    assert (await server.post(filled)).status_code == 200
    error = refused(await server.post(filled + b" "), 413, "body_too_large")
    assert str(LIMIT) in error["message"]
    assert len(server.inputs) == 1


async def test_an_announced_size_over_the_limit_is_refused_before_any_of_it_is_read(server: Server) -> None:
    async with connect(server.url) as socket:
        socket.head("Content-Type: application/json", f"Content-Length: {LIMIT + 1}")
        assert await socket.status() == 413
    assert "http.request" not in [kind for kind, _ in server.app.log]


async def test_a_size_of_many_digits(server: Server) -> None:
    async with connect(server.url) as socket:
        socket.head("Content-Type: application/json", f"Content-Length: {'9' * 20}")
        assert await socket.status() == 413


async def test_chunks_over_the_limit_are_refused_while_they_come(server: Server) -> None:
    async with connect(server.url) as socket:
        socket.head("Content-Type: application/json", "Transfer-Encoding: chunked")
        piece = b"64\r\n" + b" " * 100 + b"\r\n"
        socket.send(piece * 10)  # the limit, and no end
        await server.app.until_received(LIMIT)
        socket.send(piece)
        assert await socket.status() == 413
    assert not server.inputs


async def test_chunks_within_the_limit(server: Server) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for byte in body():
            yield bytes([byte])

    async with http_client() as client:
        response = await client.post(server.url, content=pieces(), headers=JSON)
    assert types_of(read_events(response.content)) == ["RUN_STARTED", "RUN_FINISHED"]


@pytest.mark.parametrize("content", [b"", b"   ", b"{", b"hello", b'{"a":1} x', b"{'a':1}", b"NaN", b'{"a":"\xff"}'])
async def test_what_is_not_json(server: Server, content: bytes) -> None:
    error = refused(await server.post(content), 400, "invalid_json")
    assert "path" not in error
    assert not server.inputs


@pytest.mark.parametrize(
    ("content", "path"),
    [
        (b"[]", ""),
        (b"null", ""),
        (b'"text"', ""),
        (b"{}", "/threadId"),
        (body(threadId=7), "/threadId"),
        (body(runId=None), "/runId"),
        (body(messages={}), "/messages"),
        (body(messages=[{"id": "m", "role": "user", "content": 5}]), "/messages/0/content"),
        (body(messages=[{"id": "m", "content": "x"}]), "/messages/0/role"),
        (body(tools=[{"name": 3, "description": ""}]), "/tools/0/name"),
        (body(context={}), "/context"),
        (b'{"threadId":"t","runId":"r","messages":[],"state":' + b"[" * 300 + b"]" * 300 + b"}", ""),
        (b'{"threadId":"t","runId":"r","messages":[],"state":1e999}', ""),
        (body(threadId="\ud83d"), "/threadId"),
    ],
)
async def test_malformed_input_is_refused_with_its_place(server: Server, content: bytes, path: str) -> None:
    error = refused(await server.post(content), 422, "invalid_input")
    assert error["path"] == path
    assert not server.inputs


async def test_the_depth_is_a_limit(board: Board) -> None:
    server = Server(max_depth=4)
    async with board.serve(server.app) as server.url:
        assert (await server.post(body(state=[[[]]]))).status_code == 200
        assert "max_depth" in refused(await server.post(body(state=[[[[]]]])), 422, "invalid_input")["message"]


async def test_unknown_material_is_stripped_with_a_warning(server: Server) -> None:
    message = {"id": "m", "role": "user", "content": "hi", "shoeSize": 44}
    response = await server.post(body(colour="red", messages=[message]))
    assert types_of(read_events(response.content)) == ["RUN_STARTED", "RUN_FINISHED"]
    assert [each.path for each in server.deviations] == ["/messages/0/shoeSize", "/colour"]
    [received] = server.inputs
    assert received.messages[0].id == "m"


async def test_the_warnings_of_an_input_are_bounded(board: Board) -> None:
    server = Server(max_deviations=2)
    async with board.serve(server.app) as server.url:
        assert (await server.post(body(**dict.fromkeys("abcde", 1)))).status_code == 200
    assert [each.path for each in server.deviations] == ["/a", "/b", ""]
    assert "3 more" in server.deviations[2].detail


async def test_a_refused_body_is_read_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    loads = json.loads

    def counted(text: str, **how: Any) -> Any:
        read.append(text)
        return loads(text, **how)

    with monkeypatch.context() as patched:
        patched.setattr("json.loads", counted)
        for content in (b"{", b"[]", b"{}"):
            await server.post(content)
    assert read == ["{", "[]", "{}"]


async def test_a_client_that_leaves_before_its_body_is_whole(server: Server) -> None:
    async with connect(server.url) as socket:
        socket.head("Content-Type: application/json", "Content-Length: 500")
        socket.send(b'{"threadId":')
        await server.app.until_received(12)
    await server.app.until_over()
    assert [kind for kind, _ in server.app.log][-1] == "http.disconnect"
    assert server.app.errors == [None]
    assert not server.inputs


async def test_a_body_that_does_not_come_is_not_waited_for(board: Board) -> None:
    server = Server(body_timeout=0.01)
    async with board.serve(server.app) as server.url, connect(server.url) as socket:
        socket.head("Content-Type: application/json", "Content-Length: 500")
        socket.send(b"{")
        assert await socket.status() == 408
        await socket.until(b'"body_timeout"')
    assert not server.inputs


async def test_the_body_is_asked_for_only_when_it_is_wanted(server: Server) -> None:
    async with connect(server.url) as socket:
        socket.head("Content-Type: text/plain", "Content-Length: 5", "Expect: 100-continue")
        assert await socket.status() == 415
    async with connect(server.url) as socket:
        socket.head("Content-Type: application/json", f"Content-Length: {len(body())}", "Expect: 100-continue")
        assert await socket.status() == 100


async def test_a_refusal_to_a_client_that_has_left_is_no_error() -> None:
    async def gone(message: Any) -> None:
        raise OSError("the client has left")

    async def receive() -> Any:
        raise AssertionError("nothing is read")

    async def produce(run: Run) -> None:
        raise AssertionError("nothing is run")

    await AGUIEndpoint(produce)({"type": "http", "method": "GET", "headers": []}, receive, gone)


async def test_a_refused_request_leaves_the_connection_usable(server: Server) -> None:
    async with http_client() as client:
        for content, status in ((b"{", 400), (b"{}", 422), (body(), 200)):
            assert (await client.post(server.url, content=content, headers=JSON)).status_code == status
    async with exchange(server.url) as run:
        assert types_of(await run.rest()) == ["RUN_STARTED", "RUN_FINISHED"]


# On whose behalf


async def _authorize(scope: Any) -> str:
    user: str = dict(scope["headers"]).get(b"authorization", b"").decode()
    if not user:
        raise PermissionError("say who you are")
    return user


@pytest.mark.parametrize("authorize", [_authorize, lambda scope: "everybody"])
async def test_a_run_knows_on_whose_behalf_it_is(board: Board, authorize: Any) -> None:
    scopes: list[str] = []

    async def producer(run: Run) -> None:
        scopes.append(run.scope)

    async with board.serve(AGUIEndpoint(producer, authorize=authorize)) as url, http_client() as client:
        await client.post(url, content=body(), headers={**JSON, "authorization": "alice"})
        response = await client.post(url, content=body(), headers=JSON)
    if authorize is _authorize:
        assert scopes == ["alice"]
        assert refused(response, 403, "forbidden")["message"] == "say who you are"
    else:
        assert scopes == ["everybody", "everybody"]


@pytest.mark.parametrize("well_formed", [True, False])
async def test_the_event_loop_goes_on_while_a_large_input_is_judged(board: Board, well_formed: bool) -> None:
    seen: list[tuple[str, bool]] = []
    turns = 0

    def note(deviation: Deviation) -> None:
        seen.append((deviation.path, threading.current_thread() is here))

    async def produce(run: Run) -> None:
        assert isinstance(run.input.state, list)

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    here = threading.current_thread()
    large = run_input(messages=[{"id": "m", "role": "user", "content": "hi", "mood": 1}], state=[{"a": 1}] * 100_000)
    if not well_formed:
        large["messages"].append({"id": 5})
    endpoint = AGUIEndpoint(produce, max_body_bytes=10_000_000, on_deviation=note)
    turning = asyncio.create_task(turn())
    sent: list[dict[str, Any]] = []
    judged = asyncio.Event()

    async def receive() -> dict[str, Any]:
        nonlocal turns
        if turns and not judged.is_set():
            turns = 0
            judged.set()
            return {"type": "http.request", "body": json.dumps(large).encode()}
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Any) -> None:
        if not sent:
            turning.cancel()
        sent.append(message)

    await asyncio.sleep(0)
    scope = {"type": "http", "method": "POST", "headers": [(b"content-type", b"application/json")]}
    await endpoint(scope, receive, send)
    assert sent[0]["status"] == (200 if well_formed else 422)
    assert turns > 1
    assert seen == [("/messages/0/mood", True)][:well_formed]
