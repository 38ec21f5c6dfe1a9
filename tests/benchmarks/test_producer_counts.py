"""The benchmark's workloads, counted: events on their way out, and the sends they leave in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from accord.agents import Agent, AgentResponseUpdate, TextContent
from accord.agui import AGUIAgent
from accord.hosting import AGUIEndpoint
from accord.hosting.encoding import SSE
from accord.hosting.outlet import BufferedOutlet
from accord.producer import Producer, Run, drive
from accord.protocol import TextMessageContentEvent, encode_event
from accord.wire import encode_frame, encode_protobuf, frame
from benchmarks.material import MESSAGE_ID, compact, prose_deltas, run_input
from producer.recording import Recording, an_input
from support.counting import calls, calls_each

EVENTS = 20_000


def saying(count: int) -> Producer:
    async def producer(run: Run) -> None:
        with run.text(MESSAGE_ID) as message:
            for delta in prose_deltas(count):
                message.write(delta)
                await run.drain()

    return producer


def test_encoding_an_event_is_a_few_calls() -> None:
    event = TextMessageContentEvent(message_id=MESSAGE_ID, delta="word ")
    assert calls(lambda: encode_frame(encode_event(event))) <= 5


def test_an_event_on_the_binary_wire_is_half_as_large() -> None:
    event = TextMessageContentEvent(message_id=MESSAGE_ID, delta="word ")
    assert len(frame(encode_protobuf(event))) <= 0.55 * len(encode_frame(encode_event(event)))


async def test_an_event_that_is_emitted_is_a_few_calls() -> None:
    def prepare(count: int) -> Callable[[], None]:
        outlet = BufferedOutlet(SSE.framing, max_buffered_bytes=1 << 30, high_water=1 << 30)
        run = Run(an_input(), outlet)
        run.__enter__()
        message = run.text()
        deltas = prose_deltas(count)

        def work() -> None:
            for delta in deltas:
                message.write(delta)

        return work

    assert calls_each(prepare) <= 10


def test_an_agent_between_costs_an_event_a_bounded_number_of_calls() -> None:
    class Model:
        async def stream(self, messages: Any, options: Any) -> Any:
            for piece in self.pieces:
                yield AgentResponseUpdate((TextContent(piece),))

        def __init__(self, count: int) -> None:
            self.pieces = prose_deltas(count)

    def prepare(count: int) -> Callable[[], None]:
        served = AGUIAgent(Agent(client=Model(count)))
        return lambda: asyncio.run(drive(served, Run(an_input(), Recording())))

    assert calls_each(prepare) <= 36


class Server:
    """The server's side of one request, with a reader that takes everything at once."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self.sent: list[dict[str, Any]] = []
        self.body_sent = asyncio.Event()
        self._left = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        body, self._body = self._body, None
        if body is None:
            await self._left.wait()
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": body}

    async def send(self, message: Any) -> None:
        self.sent.append(message)
        if message["type"] == "http.response.body":
            self.body_sent.set()
        await asyncio.sleep(0)

    async def serve(self, producer: Producer) -> list[bytes]:
        """The bodies that were sent."""
        headers = [(b"content-type", b"application/json"), (b"accept", b"text/event-stream")]
        await AGUIEndpoint(producer, keep_alive=None)(
            {"type": "http", "method": "POST", "path": "/", "headers": headers}, self.receive, self.send
        )
        assert self.sent[0]["status"] == 200
        return [message["body"] for message in self.sent[1:]]


async def test_events_made_together_leave_together() -> None:
    bodies = await Server(compact(run_input())).serve(saying(EVENTS))
    size = sum(map(len, bodies))
    assert b"".join(bodies).count(b"data: ") == EVENTS + 4
    assert all(len(body) <= 65_536 for body in bodies)
    assert len(bodies) <= size / 65_536 + 4


async def test_the_first_event_waits_for_no_others() -> None:
    async def producer(run: Run) -> None:
        await server.body_sent.wait()
        with run.text() as message:
            message.write("the rest")

    server = Server(compact(run_input()))
    first, *_ = await asyncio.wait_for(server.serve(producer), 10)
    assert json.loads(first.removeprefix(b"data: "))["type"] == "RUN_STARTED"
