"""A client of a server on this machine that costs as little as can be: it reads bytes and looks for the end."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

from benchmarks.workers.rounds import Round, serve, timed

_LAST_CHUNK = b"\r\n0\r\n\r\n"


def read(port: int, request: str, events: int, operations: int) -> Callable[[], Round]:
    """Posts an input, from connecting to the last byte of the answer."""
    body = Path(request).read_bytes()
    head = (
        f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()

    def take() -> Round:
        received = bytearray()

        def work() -> None:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(head + body)
                while not received.endswith(_LAST_CHUNK):
                    data = connection.recv(262_144)
                    assert data, "the server closed the connection"
                    received.extend(data)

        found = timed(work, operations)
        assert received.startswith(b"HTTP/1.1 200"), bytes(received[:200])
        assert _body(bytes(received)).count(b"data: ") == events
        return found

    return take


def _body(response: bytes) -> bytes:
    """The body of a response in chunks (RFC 9112, 7.1)."""
    body: list[bytes] = []
    position = response.index(b"\r\n\r\n") + 4
    while True:
        line = response.index(b"\r\n", position)
        size = int(response[position:line], 16)
        if not size:
            return b"".join(body)
        body.append(response[line + 2 : line + 2 + size])
        position = line + 2 + size + 2


if __name__ == "__main__":
    serve({"read": read})
