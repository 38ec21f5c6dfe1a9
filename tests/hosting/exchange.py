"""A request to a served endpoint and what comes back: through httpx, or by hand on a socket where HTTP is misused."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from accord.consumer import Pipeline
from accord.protocol import CustomEvent, Event, TextMessageContentEvent
from accord.wire import PROTOBUF_MEDIA_TYPE, SSE_MEDIA_TYPE, ProtobufReader, SSEReader

T = TypeVar("T")

#: Seconds after which a test that hangs is a test that fails.
PATIENCE = 30


async def soon(awaitable: Awaitable[T]) -> T:
    """Waits for what must happen."""
    async with asyncio.timeout(PATIENCE):
        return await awaitable


def run_input(thread_id: str = "t1", run_id: str = "r1", **members: Any) -> dict[str, Any]:
    return {"threadId": thread_id, "runId": run_id, "messages": [], **members}


def read_events(body: bytes, content_type: str = SSE_MEDIA_TYPE) -> list[Event]:
    """The events of a whole response, as a consumer that believes nothing reads them."""
    reader: Any = {SSE_MEDIA_TYPE: SSEReader, PROTOBUF_MEDIA_TYPE: ProtobufReader}[content_type]()
    pipeline = Pipeline()
    events = [event for payload in reader.feed(body) for event in pipeline.feed(payload)]
    reader.close()
    pipeline.finish()
    return events


def types_of(events: list[Event]) -> list[str]:
    return [event.type for event in events]


def deltas_of(events: list[Event]) -> list[str]:
    """The pieces of text."""
    return [event.delta for event in events if isinstance(event, TextMessageContentEvent)]


def values_of(events: list[Event]) -> list[Any]:
    """The values of custom events."""
    return [event.value for event in events if isinstance(event, CustomEvent)]


def http_client(accept: str = SSE_MEDIA_TYPE) -> httpx.AsyncClient:
    """Gives up only where nothing will come, and loads no certificates, which takes longer than many a run."""
    return httpx.AsyncClient(timeout=PATIENCE, verify=False, headers={"Accept": accept})


async def post(url: str, *, accept: str = SSE_MEDIA_TYPE, **members: Any) -> list[Event]:
    """One whole run."""
    async with http_client(accept) as client:
        response = await client.post(url, json=run_input(**members))
        assert response.status_code == 200
        return read_events(response.content, response.headers["content-type"])


class Exchange:
    """A run's response while it comes."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.body = bytearray()
        self._chunks = response.aiter_raw()

    async def until(self, text: bytes) -> None:
        """Reads until `text` has come; fails when the response ends without it."""
        while text not in self.body:
            self.body += await anext(self._chunks)

    async def rest(self) -> list[Event]:
        """Reads to the end; all events of the run."""
        async for chunk in self._chunks:
            self.body += chunk
        return read_events(bytes(self.body), self.response.headers["content-type"])


@asynccontextmanager
async def exchange(url: str, *, accept: str = SSE_MEDIA_TYPE, **members: Any) -> AsyncIterator[Exchange]:
    """Leaving the block leaves the run: the connection is closed."""
    async with (
        http_client(accept) as client,
        client.stream("POST", url, json=run_input(**members)) as response,
    ):
        yield Exchange(response)


class Socket:
    """A connection on which every byte is written by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> None:
        self.reader = reader
        self.writer = writer
        self.path = path

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def head(self, *headers: str, method: str = "POST") -> None:
        lines = [f"{method} {self.path} HTTP/1.1", "Host: localhost", *headers]
        self.send("\r\n".join([*lines, "", ""]).encode())

    def request(self, *headers: str, **members: Any) -> None:
        body = json.dumps(run_input(**members)).encode()
        self.head("Content-Type: application/json", f"Content-Length: {len(body)}", *headers)
        self.send(body)

    async def until(self, text: bytes) -> bytes:
        return await soon(self.reader.readuntil(text))

    async def status(self) -> int:
        return int((await self.until(b"\r\n")).split()[1])

    def close(self) -> None:
        self.writer.transport.abort()


@asynccontextmanager
async def connect(url: str, *, limit: int = 2**16) -> AsyncIterator[Socket]:
    """A connection to the server at `url`, of which at most `2 * limit` bytes are read ahead."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=limit)
    try:
        yield Socket(reader, writer, parts.path or "/")
    finally:
        writer.transport.abort()


Message = MutableMapping[str, Any]


class Board:
    """An application that serves others, each at a path of its own, as long as it is wanted."""

    def __init__(self) -> None:
        self.url = ""
        self._apps: dict[str, Callable[..., Awaitable[None]]] = {}
        self._names = itertools.count()

    @asynccontextmanager
    async def serve(self, app: Callable[..., Awaitable[None]]) -> AsyncIterator[str]:
        path = f"/{next(self._names)}"
        self._apps[path] = app
        yield self.url + path
        del self._apps[path]

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await self._apps[scope["path"]](scope, receive, send)


class Recorder:
    """Passes an endpoint's messages on and keeps what went by, and tells when a request is over."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self._app = app
        self.log: list[tuple[str, bytes]] = []
        self.errors: list[BaseException | None] = []
        self._over = asyncio.Event()
        self._changed = asyncio.Condition()
        self.task: asyncio.Task[Any] | None = None

    async def __call__(self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Any) -> None:
        async def recorded_receive() -> Message:
            message = await receive()
            self.log.append((message["type"], message.get("body", b"")))
            async with self._changed:
                self._changed.notify_all()
            return message

        async def recorded_send(message: Message) -> None:
            self.log.append((message["type"], message.get("body", b"")))
            await send(message)

        self.task = asyncio.current_task()
        try:
            await self._app(scope, recorded_receive, recorded_send)
        except BaseException as error:
            self.errors.append(error)
            raise
        else:
            self.errors.append(None)
        finally:
            self._over.set()

    async def until_over(self) -> None:
        """Waits until the endpoint is done with a request."""
        await soon(self._over.wait())

    async def until_received(self, size: int) -> None:
        """Waits until so many bytes of the request's body have been asked for and given."""
        await self._until(lambda: sum(len(body) for kind, body in self.log if kind == "http.request") >= size)

    async def until_left(self) -> None:
        """Waits until the endpoint has been told that the client has left."""
        await self._until(lambda: self.log[-1][0] == "http.disconnect")

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with self._changed:
            await soon(self._changed.wait_for(condition))

    @property
    def bodies(self) -> list[bytes]:
        return [body for kind, body in self.log if kind == "http.response.body"]

    @property
    def after_disconnect(self) -> list[tuple[str, bytes]]:
        kinds = [kind for kind, _ in self.log]
        return self.log[kinds.index("http.disconnect") + 1 :]
