"""A real HTTP server for an ASGI application, on a free port of 127.0.0.1, gone when the block is left."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import Any

import uvicorn

# As the ASGI specification has it; uvicorn's and starlette's own types for it do not agree with each other.
ASGIApplication = Callable[..., Any]


class _Server(uvicorn.Server):
    """Is up as soon as it listens and stops as soon as it is told, where uvicorn's own loop looks every 0.1 s."""

    def __init__(self, app: ASGIApplication) -> None:
        super().__init__(
            uvicorn.Config(app, log_level="warning", ws="none", lifespan="auto", timeout_graceful_shutdown=1)
        )
        self.listening = asyncio.Event()
        self.stop = asyncio.Event()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        self.listening.set()
        await self.stop.wait()

    async def run_on(self, listener: socket.socket) -> None:
        try:
            await self.serve(sockets=[listener])
        except SystemExit as error:  # uvicorn's answer to a lifespan that fails
            raise RuntimeError("the application did not start") from error

    def capture_signals(self) -> Any:  # they are pytest's
        return nullcontext()


@asynccontextmanager
async def serve(app: ASGIApplication) -> AsyncIterator[str]:
    """Serves `app` on the running event loop; yields its base URL, `http://127.0.0.1:PORT`.

    On leaving, open responses get one second to end and are then cancelled.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = _Server(app)
        serving = asyncio.create_task(server.run_on(listener))
        listening = asyncio.create_task(server.listening.wait())
        try:
            await asyncio.wait([serving, listening], return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                await serving
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listening.cancel()
            server.stop.set()
            await asyncio.wait([serving])


@contextmanager
def serve_in_thread(app: ASGIApplication) -> Iterator[str]:
    """The same on an event loop in a thread of its own, for a client that blocks (a subprocess, a synchronous test)."""
    up = threading.Event()
    url: list[str] = []
    stop: list[Callable[[], object]] = []
    failure: list[BaseException] = []

    async def run() -> None:
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        stop.append(lambda: loop.call_soon_threadsafe(stopped.set))
        async with serve(app) as base:
            url.append(base)
            up.set()
            await stopped.wait()

    def work() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:  # noqa: BLE001  it is raised in the thread that waits
            failure.append(error)
        finally:
            up.set()

    thread = threading.Thread(target=work, name="serve_in_thread", daemon=True)
    thread.start()
    up.wait()
    try:
        if url:
            yield url[0]
    finally:
        if url:
            stop[0]()
        thread.join(timeout=10)
        if failure:
            raise failure[0]
        assert not thread.is_alive(), "the server did not stop"
