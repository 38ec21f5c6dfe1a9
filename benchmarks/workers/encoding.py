"""Events to frames; and the floor, the bare encoder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from accord.protocol import decode_event, encode_event
from accord.wire import SSEReader, encode_frame
from benchmarks.workers.rounds import Round, serve, timed


def encode(stream: str, operations: int, passes: int = 1) -> Callable[[], Round]:
    """Each event to the bytes of its frame."""
    events = [decode_event(payload) for payload in SSEReader().feed(Path(stream).read_bytes())]

    def work() -> None:
        for _ in range(passes):
            for event in events:
                encode_frame(encode_event(event))

    return lambda: timed(work, operations * passes)


def floor(stream: str, operations: int, passes: int = 1) -> Callable[[], Round]:
    """Each event to JSON, and nothing looked at."""
    events = [decode_event(payload) for payload in SSEReader().feed(Path(stream).read_bytes())]
    encode_one = msgspec.json.Encoder().encode

    def work() -> None:
        for _ in range(passes):
            for event in events:
                encode_one(event)

    return lambda: timed(work, operations * passes)


if __name__ == "__main__":
    serve({"encode": encode, "floor": floor})
