"""Many clients of one server in one process, which know how late each piece of text reaches them.

Requests: `{"open": n}` brings the open runs to `n`, up or down; `{"watch": seconds}` tells what came meanwhile;
`{"close": true}` leaves all runs.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from pathlib import Path
from typing import Any, cast

import uvloop

_PIECE = re.compile(rb'"delta":"(\d+\.\d+) "')
_AT_ONCE = 100
_PATIENCE = 30.0  # seconds


class Crowd:
    """The clients."""

    def __init__(self, port: int, request: bytes) -> None:
        self.port = port
        self.request = request
        self.delays: list[float] = []
        self.clients: list[_Client] = []
        self.speaking = 0
        self.all_speak = asyncio.Event()
        self.lost = 0

    async def open(self, count: int) -> None:
        """Opens runs, a few at a time, until there are so many, and waits until each has said something; or leaves."""
        while len(self.clients) > count:
            self.clients.pop().leave()
        loop = asyncio.get_running_loop()
        while len(self.clients) < count:
            more = min(_AT_ONCE, count - len(self.clients))
            await asyncio.gather(
                *(loop.create_connection(lambda: _Client(self), "127.0.0.1", self.port) for _ in range(more))
            )
            await asyncio.sleep(0.02)
        if self.speaking < count:
            self.all_speak.clear()
            async with asyncio.timeout(_PATIENCE):
                await self.all_speak.wait()

    async def watch(self, seconds: float) -> dict[str, Any]:
        """What comes in so many seconds."""
        self.delays = []
        await asyncio.sleep(seconds)
        delays = sorted(self.delays)
        assert delays, "nothing came"
        found = {"events": len(delays) / seconds, "lost": self.lost, "runs": len(self.clients)}
        return {**found, "p50": delays[len(delays) // 2], "p99": delays[len(delays) * 99 // 100]}

    def speaks(self) -> None:
        """One more has said something."""
        self.speaking += 1
        if self.speaking == len(self.clients):
            self.all_speak.set()

    def close(self) -> None:
        """Leaves."""
        while self.clients:
            self.clients.pop().leave()


class _Client(asyncio.Protocol):
    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd
        self._speaking = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one by its methods only
        self._transport.write(self._crowd.request)
        self._crowd.clients.append(self)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        delays = [now - float(due) for due in _PIECE.findall(data)]
        self._crowd.delays += delays
        if delays and not self._speaking:
            self._speaking = True
            self._crowd.speaks()

    def eof_received(self) -> None:
        self._crowd.lost += 1

    def leave(self) -> None:
        """Closes the connection."""
        assert self._transport is not None
        self._transport.abort()
        self._crowd.speaking -= self._speaking


async def main(port: int, body: bytes) -> None:
    """Does what standard input asks."""
    head = (
        f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    crowd = Crowd(port, head.encode() + body)
    _say({"ready": True})
    while line := await asyncio.to_thread(sys.stdin.readline):
        asked = json.loads(line)
        found: dict[str, Any] = {}
        if "open" in asked:
            await crowd.open(asked["open"])
        if "watch" in asked:
            found = await crowd.watch(asked["watch"])
        if "close" in asked:
            crowd.close()
        _say(found)


def _say(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    parameters = json.loads(sys.argv[2])
    uvloop.run(main(parameters["port"], Path(parameters["request"]).read_bytes()))
