"""Our client and our endpoint, over real HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from accord.client import AGUIClient, HTTPTransport
from accord.errors import InputRejected, RunFailed, TransportError
from accord.hosting import AGUIEndpoint
from accord.producer import Run
from accord.protocol import Interrupt, RunAgentInput, ToolMessage, UserMessage
from client.streams import contents, until_error
from support.serving import serve


async def test_a_conversation_with_state_tools_and_a_question() -> None:
    async def producer(run: Run) -> None:
        last = run.input.messages[-1]
        if run.input.resume:
            with run.text() as message:
                message.write(f"{run.state.value['city']}, then.")
            run.result = {"nulls": [None]}
        elif isinstance(last, ToolMessage):
            run.state.set({"city": last.content})
            run.interrupt(Interrupt(id="i1", reason="confirm"))
        else:
            with run.tool_call("locate") as call:
                call.write("{}")

    def locate() -> str:
        return "Zürich"

    async with serve(AGUIEndpoint(producer)) as url, AGUIClient(url, tools=[locate]) as client:
        first = await client.run("Where am I?")
        assert (first.outcome, client.state) == ("interrupt", {"city": "Zürich"})
        second = await client.resume({"i1": True})
        assert (second.outcome, second.result) == ("success", {"nulls": [None]})
        assert contents(client)[-1] == "Zürich, then."
        assert [record.status for record in client.runs] == ["success", "interrupt", "success"]


async def test_a_failed_run() -> None:
    async def producer(run: Run) -> None:
        raise RuntimeError("no model")

    async with serve(AGUIEndpoint(producer)) as url, AGUIClient(url) as client:
        types, error = await until_error(client.run("hi"))
        assert types == ["RUN_STARTED", "RUN_ERROR"]
        assert isinstance(error, RunFailed)


async def test_what_the_endpoint_refuses() -> None:
    async def producer(run: Run) -> None: ...

    async with serve(AGUIEndpoint(producer, max_body_bytes=2000)) as url:
        async with AGUIClient(url) as client:
            run = client.run("x" * 2000)
            with pytest.raises(InputRejected) as caught:
                await run
            assert (caught.value.status, run.outcome, client.messages) == (413, "rejected", [])
        transport = HTTPTransport(url)
        malformed = UserMessage(id="u1", content=[1])  # type: ignore[list-item]
        with pytest.raises(InputRejected) as caught:
            await transport.open(RunAgentInput(thread_id="t", run_id="r", messages=[malformed]))
        assert (caught.value.status, caught.value.path) == (422, "/messages/0/content/0")
        await transport.aclose()


async def test_an_endpoint_that_wants_another_content_type() -> None:
    async def producer(run: Run) -> None: ...

    async def picky(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [(b"content-type", b"text/plain")]}
            await AGUIEndpoint(producer)(scope, receive, send)

    async with serve(picky) as url, AGUIClient(url) as client:
        with pytest.raises(TransportError) as caught:
            await client.run("hi")
        assert caught.value.status == 415


@pytest.mark.parametrize("how", ["break", "aclose", "cancel"])
async def test_leaving_is_seen_by_the_producer(how: str) -> None:
    cancelled = asyncio.Event()

    async def producer(run: Run) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with serve(AGUIEndpoint(producer)) as url, AGUIClient(url) as client:

        async def leave() -> None:
            async for _ in client.run("hi"):
                if how == "cancel":
                    await asyncio.Event().wait()
                break

        if how == "aclose":
            async with client.run("hi") as run:
                await anext(run)
        elif how == "cancel":
            task = asyncio.create_task(leave())
            while not client.runs:  # noqa: ASYNC110  until the run has begun
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            del task
        else:
            await leave()
        await cancelled.wait()
        assert client.runs[-1].status == "truncated"


async def test_one_connection_serves_run_after_run() -> None:
    ports: set[Any] = set()

    async def producer(run: Run) -> None: ...

    endpoint = AGUIEndpoint(producer)

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            ports.add(scope["client"])
            await endpoint(scope, receive, send)

    async with serve(noting) as url, AGUIClient(url) as client:
        for _ in range(3):
            await client.run("hi")
    assert len(ports) == 1


async def test_fifty_threads_on_one_endpoint() -> None:
    async def producer(run: Run) -> None:
        with run.text() as message:
            message.write(str(run.input.messages[-1].content))
            await run.drain()
        run.state.set({"of": run.thread_id})

    async def talk(url: str, number: int) -> None:
        async with AGUIClient(url, thread_id=f"t{number}") as client:
            await client.run(f"number {number}")
            assert contents(client) == 2 * [f"number {number}"]
            assert client.state == {"of": f"t{number}"}

    async with serve(AGUIEndpoint(producer)) as url:
        await asyncio.gather(*(talk(url, number) for number in range(50)))
