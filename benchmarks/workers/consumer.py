"""Bytes of an event stream to an applied conversation; and the floor, which only decodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from accord.consumer import Conversation, Pipeline
from accord.protocol import decode_input
from accord.protocol.codec import strict_event_decoder
from accord.wire import SSEReader
from benchmarks.workers.rounds import Round, serve, timed

#: What an HTTP client reads at most at a time.
READ_SIZE = 65_536


def apply(
    stream: str, operations: int, run_input: str | None = None, subscribers: int = 0, passes: int = 1
) -> Callable[[], Round]:
    """The whole way, `passes` times over; subscribers want to know of events, messages and state."""
    data = Path(stream).read_bytes()
    reads = [data[start : start + READ_SIZE] for start in range(0, len(data), READ_SIZE)]
    begun = None if run_input is None else decode_input(Path(run_input).read_bytes())
    seen = 0

    def told(_: Any) -> None:
        nonlocal seen
        seen += 1

    def begin() -> Conversation:
        conversation = Conversation(begun)
        for _ in range(subscribers):
            conversation.subscribe(on_event=told, on_state=told, on_messages=told)
        return conversation

    def consume(conversation: Conversation) -> None:
        reader, pipeline = SSEReader(), Pipeline()
        for read in reads:
            for payload in reader.feed(read):
                for event in pipeline.feed(payload):
                    conversation.apply(event)
        reader.close()
        pipeline.finish()
        conversation.end_of_stream()
        assert conversation.runs[-1].status == "success"
        assert conversation.messages is not None
        assert conversation.state is not None

    def take() -> Round:
        conversations = [begin() for _ in range(passes)]

        def work() -> None:
            for conversation in conversations:
                consume(conversation)

        return timed(work, operations * passes)

    return take


def decode(stream: str, operations: int, passes: int = 1) -> Callable[[], Round]:
    """The bare strict decoder on the payloads, already cut out of the stream."""
    payloads = SSEReader().feed(Path(stream).read_bytes())
    decode_one = strict_event_decoder.decode

    def work() -> None:
        for _ in range(passes):
            for payload in payloads:
                decode_one(payload)

    return lambda: timed(work, operations * passes)


def events(stream: str, operations: int, passes: int = 1) -> Callable[[], Round]:
    """Payloads to events that may be acted on: all stages but the application."""
    payloads = SSEReader().feed(Path(stream).read_bytes())

    def work() -> None:
        for _ in range(passes):
            pipeline = Pipeline()
            for payload in payloads:
                pipeline.feed(payload)

    return lambda: timed(work, operations * passes)


if __name__ == "__main__":
    serve({"apply": apply, "decode": decode, "events": events})
