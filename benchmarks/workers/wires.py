"""Both wires: a run's events to the bytes of a body, and the body back to checked events."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from accord.consumer import Pipeline
from accord.protocol import Event, decode_event, encode_event
from accord.wire import ProtobufReader, SSEReader, encode_frame, encode_protobuf, frame
from benchmarks.workers.rounds import Round, serve, timed

ENCODERS: dict[str, Callable[[Event], bytes]] = {
    "sse": lambda event: encode_frame(encode_event(event)),
    "protobuf": lambda event: frame(encode_protobuf(event)),
}
READERS: dict[str, Callable[[], Any]] = {"sse": SSEReader, "protobuf": ProtobufReader}


def encode(stream: str, wire: str, operations: int, passes: int = 1) -> Callable[[], Round]:
    """Events to frames; `bytes` is what they come to."""
    events = [decode_event(payload) for payload in SSEReader().feed(Path(stream).read_bytes())]
    encode_one = ENCODERS[wire]
    size = sum(len(encode_one(event)) for event in events)

    def work() -> None:
        for _ in range(passes):
            for event in events:
                encode_one(event)

    return lambda: timed(work, operations * passes, bytes=size)


def decode(stream: str, wire: str, operations: int, passes: int = 1) -> Callable[[], Round]:
    """Frames to events that have passed every stage but the application."""
    events = [decode_event(payload) for payload in SSEReader().feed(Path(stream).read_bytes())]
    body = b"".join(map(ENCODERS[wire], events))

    def work() -> None:
        for _ in range(passes):
            reader, pipeline = READERS[wire](), Pipeline()
            for payload in reader.feed(body):
                pipeline.feed(payload)
            reader.close()
            pipeline.finish()

    return lambda: timed(work, operations * passes)


if __name__ == "__main__":
    serve({"encode": encode, "decode": decode})
