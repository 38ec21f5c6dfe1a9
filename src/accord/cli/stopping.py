"""An ASGI application that can be told to end what is open, which servers of ASGI have no word for: they wait until
responses end by themselves, and runs may go on for as long as a model thinks.

Each request runs in a task of its own. That one is cancelled, not the server's, which would report a failure and drop
the connection: so a run still says that it was cancelled, and its producer cleans up within its `cancel_grace`.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeAlias

#: As the ASGI specification has it; the servers' and frameworks' own types for it do not agree with each other.
ASGIApplication: TypeAlias = Any


class Stoppable:
    """Serves `app` until it is stopped; from then on requests are refused with 503."""

    def __init__(self, app: ASGIApplication) -> None:
        self._app = app
        self._open: set[asyncio.Task[None]] = set()
        self._stopping = False

    def stop(self) -> None:
        """Cancels the open requests, each once: a second cancellation would cut into the cleaning up."""
        self._stopping = True
        for request in self._open:
            request.cancel()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._stopping:
            await _refuse(send)
            return
        started = False

        async def watched(message: Any) -> None:
            nonlocal started
            started = True
            await send(message)

        request = asyncio.ensure_future(self._app(scope, receive, watched))
        self._open.add(request)
        request.add_done_callback(self._open.discard)
        try:
            await asyncio.wait([request])
        except asyncio.CancelledError:  # the server waits no longer
            request.cancel()
            if not self._stopping:
                raise
            return
        if not (self._stopping and request.cancelled()):
            request.result()
        elif not started:
            await _refuse(send)


async def _refuse(send: Any) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": b"The server is stopping."})
