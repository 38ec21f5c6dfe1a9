"""Serving an ASGI application on a socket that is already listening, so that a port in use is known before anything
else happens, and a client may connect before the server has come up."""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final

from accord.cli.failure import CommandFailed
from accord.cli.stopping import ASGIApplication, Stoppable

if TYPE_CHECKING:
    import uvicorn

# Runs end within their endpoint's `cancel_grace`; this is for responses of other kinds that do not end.
_ENDING: Final = 30  # seconds that open responses are given when the server stops


def require_server() -> None:
    """Raises `CommandFailed` naming the extra when what serves is not installed."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise CommandFailed(f"serving needs {error.name}: pip install 'accord[server]'") from None


def listen(host: str, port: int) -> socket.socket:
    """A socket listening on `host` and `port`, 0 for any free one; raises `CommandFailed` when that cannot be had."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError, UnicodeError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise PortInUse(f"port {port} of {host} is in use; choose another with --port") from None
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CommandFailed(f"cannot listen on {host}, port {port}: {reason}") from None


def listen_near(host: str, port: int, *, tries: int = 50) -> socket.socket:
    """A socket listening on `port`, or on the next one that is free."""
    for candidate in range(port, min(port + tries, 65536)):
        try:
            return listen(host, candidate)
        except PortInUse:
            continue
    raise CommandFailed(f"no port from {port} on is free; choose another with --port")


class PortInUse(CommandFailed):
    """Somebody else listens there."""


def url_of(listener: socket.socket, path: str = "/") -> str:
    """The URL that the socket is reached at."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{path}"


def make_server(app: ASGIApplication, *, log_level: str) -> uvicorn.Server:
    """A server for the application; `log_level` is uvicorn's. It ends open runs when it stops, and does not pass on
    the signal that stopped it, which would end the process before they have ended."""
    import uvicorn

    stoppable = Stoppable(app)

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            stoppable.stop()
            await super().shutdown(sockets)

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if self.should_exit and sig == signal.SIGINT:  # the second Ctrl+C waits for nobody
                self.force_exit = True
            self.should_exit = True

    return Server(
        uvicorn.Config(
            stoppable, log_level=log_level, ws="none", timeout_graceful_shutdown=_ENDING, server_header=False
        )
    )


def serve(app: ASGIApplication, listener: socket.socket) -> None:
    """Serves until Ctrl+C or SIGTERM; the runs that are open then end as cancelled."""
    make_server(app, log_level="info").run(sockets=[listener])


@asynccontextmanager
async def served(app: ASGIApplication, listener: socket.socket) -> AsyncIterator[None]:
    """Serves beside what the block does, on its event loop."""
    server = make_server(app, log_level="error")
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield  # what connects before the server is up waits in the socket's queue
    finally:
        server.should_exit = True
        await asyncio.wait([serving])
