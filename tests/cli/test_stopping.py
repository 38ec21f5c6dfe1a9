"""`Stoppable`: what is open is cancelled once and answered; what comes later, or has no answer yet, is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from accord.cli.stopping import Stoppable

HTTP = {"type": "http"}


async def receive() -> Any:
    return await asyncio.Event().wait()


class Sent(list[Any]):
    async def __call__(self, message: Any) -> None:
        self.append(message)

    @property
    def status(self) -> int:
        status: int = self[0]["status"]
        return status


async def test_open_requests_are_cancelled_once_and_end_what_they_say() -> None:
    cancellations = 0
    begun = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal cancellations
        await send({"type": "http.response.start", "status": 200})
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancellations += 1
            await asyncio.sleep(0)
            await send({"type": "http.response.body", "body": b"cancelled"})
            raise

    stoppable, sent = Stoppable(app), Sent()
    request = asyncio.create_task(stoppable(HTTP, receive, sent))
    await begun.wait()
    stoppable.stop()
    await request
    assert cancellations == 1
    assert [message.get("body") for message in sent] == [None, b"cancelled"]


async def test_requests_without_an_answer_and_later_ones_are_refused() -> None:
    begun = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        begun.set()
        await receive()

    stoppable, waiting, late = Stoppable(app), Sent(), Sent()
    request = asyncio.create_task(stoppable(HTTP, receive, waiting))
    await begun.wait()
    stoppable.stop()
    await request
    await stoppable(HTTP, receive, late)
    assert waiting.status == late.status == 503


async def test_what_goes_wrong_is_the_servers_to_know() -> None:
    async def failing(scope: Any, receive: Any, send: Any) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await Stoppable(failing)(HTTP, receive, Sent())


async def test_a_server_that_gives_up_a_request_ends_it() -> None:
    ended, begun = asyncio.Event(), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        begun.set()
        try:
            await receive()
        finally:
            ended.set()

    request = asyncio.create_task(Stoppable(app)(HTTP, receive, Sent()))
    await begun.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    await ended.wait()
