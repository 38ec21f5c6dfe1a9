"""A server that writes bytes, not HTTP: whatever a broken peer may send, on a free port of 127.0.0.1."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Step: TypeAlias = bytes | Callable[["Peer"], Awaitable[None]]


@dataclass
class Request:
    """What a client sent."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Peer:
    """A server that answers each request with the same steps: bytes to write, or what to do."""

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    #: Set when a request has come whole.
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    #: Set when a client has closed its connection.
    left: asyncio.Event = field(default_factory=asyncio.Event)
    #: Set by a test to let `until_told` go on.
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    #: How many bytes have been written.
    written: int = 0
    connection: asyncio.StreamWriter | None = None


@asynccontextmanager
async def raw_server(*steps: Step) -> AsyncIterator[Peer]:
    """Serves until the block is left; closes each connection after the last step."""
    peer = Peer()
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        peer.connection = writer
        watching: asyncio.Task[None] | None = None
        try:
            peer.requests.append(await _request(reader))
            peer.asked.set()
            watching = asyncio.create_task(_watch(reader, peer))
            for step in steps:
                if isinstance(step, bytes):
                    writer.write(step)
                    await writer.drain()
                    peer.written += len(step)
                else:
                    await step(peer)
        except (ConnectionError, asyncio.IncompleteReadError):
            peer.left.set()
        finally:
            if watching is not None:
                watching.cancel()
            writer.close()
            serving.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    peer.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/agent"
    try:
        yield peer
    finally:
        server.close()
        for task in tuple(serving):
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


async def _request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return Request(head[0], headers, await reader.readexactly(int(headers["content-length"])))


async def _watch(reader: asyncio.StreamReader, peer: Peer) -> None:
    try:
        while await reader.read(1024):
            pass
    except ConnectionError:
        pass
    peer.left.set()


# Steps


async def until_left(peer: Peer) -> None:
    """Says nothing more until the client has gone."""
    await peer.left.wait()


async def until_told(peer: Peer) -> None:
    """Says nothing more until the test sets `go_on`."""
    await peer.go_on.wait()


async def reset(peer: Peer) -> None:
    """Breaks the connection off with what is left of it unsent."""
    assert peer.connection is not None
    peer.connection.transport.abort()


async def endless(peer: Peer) -> None:
    """Writes for as long as somebody reads."""
    assert peer.connection is not None
    while not peer.left.is_set():
        peer.connection.write(b"x" * 10_000)
        await peer.connection.drain()
        peer.written += 10_000


def answer(status: str, content_type: str | None, body: bytes = b"", **headers: str) -> bytes:
    """The beginning of an answer whose body goes on until the connection closes."""
    lines = [f"HTTP/1.1 {status}", "Connection: close"]
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


#: The head of a stream of events.
STREAM = answer("200 OK", "text/event-stream")
#: The same with a body that must end in a chunk of its own, so that a cut is noticed by HTTP as well.
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)
