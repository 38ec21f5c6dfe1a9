from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Mount, Route

from accord.consumer import Conversation
from accord.hosting import AGUIEndpoint
from accord.producer import Run
from hosting.exchange import deltas_of, exchange, http_client, post, types_of, values_of
from support.serving import serve


async def say_hi(run: Run) -> None:
    with run.text("m1") as message:
        message.write(f"hi {run.thread_id}")


def alone(endpoint: AGUIEndpoint) -> Any:
    return endpoint


def in_a_route(endpoint: AGUIEndpoint) -> Any:
    return Starlette(routes=[Route("/agent", endpoint=endpoint)])


def mounted(endpoint: AGUIEndpoint) -> Any:
    return Starlette(routes=[Mount("/agent", app=endpoint)])


def in_fastapi(endpoint: AGUIEndpoint) -> Any:
    app = FastAPI()
    app.router.routes.append(Route("/agent", endpoint=endpoint))
    return app


def in_middleware(endpoint: AGUIEndpoint) -> Any:
    async def pass_on(request: Any, call_next: Any) -> Any:
        return await call_next(request)

    app = Starlette(routes=[Route("/agent", endpoint=endpoint)])
    app.add_middleware(BaseHTTPMiddleware, dispatch=pass_on)
    app.add_middleware(GZipMiddleware, minimum_size=1)
    return app


@pytest.mark.parametrize(
    ("around", "path"),
    [(alone, "/"), (in_a_route, "/agent"), (mounted, "/agent/"), (in_fastapi, "/agent"), (in_middleware, "/agent")],
)
async def test_it_streams_wherever_it_is_put(around: Callable[[AGUIEndpoint], Any], path: str) -> None:
    gate = asyncio.Event()

    async def produce(run: Run) -> None:
        with run.text("m1") as message:
            message.write("first")
            await gate.wait()

    async with serve(around(AGUIEndpoint(produce))) as url, exchange(url + path) as run:
        await run.until(b'"first"')
        gate.set()
        assert types_of(await run.rest())[-1] == "RUN_FINISHED"


@pytest.mark.parametrize("around", [in_a_route, in_fastapi])
async def test_a_route_leaves_the_methods_to_it(around: Callable[[AGUIEndpoint], Any]) -> None:
    async with serve(around(AGUIEndpoint(say_hi))) as url, http_client() as client:
        response = await client.get(f"{url}/agent")
    assert (response.status_code, response.json()["error"]["code"]) == (405, "method_not_allowed")


async def test_fifty_runs_at_once_keep_to_themselves() -> None:
    count = 50
    together = asyncio.Barrier(count)

    async def produce(run: Run) -> None:
        name = run.thread_id
        for number in range(3):
            await together.wait()
            with run.text(f"m-{name}-{number}") as message:
                message.write(name)
                await together.wait()
                message.write(run.run_id)
            run.state.patch([{"op": "add", "path": f"/{name}", "value": run.state.value["mine"]}])
            await run.drain()

    async def one(url: str, number: int) -> None:
        name = f"t{number}"
        conversation = Conversation()
        for event in await post(url, threadId=name, runId=f"r{number}", state={"mine": number}):
            conversation.apply(event)
        assert [message.content for message in conversation.messages] == [f"{name}r{number}"] * 3
        assert [message.id for message in conversation.messages] == [f"m-{name}-{each}" for each in range(3)]
        assert conversation.state == {name: number}

    async with serve(AGUIEndpoint(produce)) as url:
        await asyncio.gather(*(one(url, number) for number in range(count)))


async def test_a_run_that_waits_is_not_touched_by_one_that_passes_it() -> None:
    passed = asyncio.Event()

    async def produce(run: Run) -> None:
        if run.run_id == "slow":
            await passed.wait()
        names = [run.run_id]
        value = {"v": run.run_id, "list": names}
        run.custom("value", value)
        value["v"] = "changed"
        names.append("changed")

    async with serve(AGUIEndpoint(produce)) as url:
        slow = asyncio.create_task(post(url, runId="slow"))
        assert values_of(await post(url, runId="fast")) == [{"v": "fast", "list": ["fast"]}]
        passed.set()
        assert values_of(await slow) == [{"v": "slow", "list": ["slow"]}]


async def test_two_endpoints_on_one_application() -> None:
    async def other(run: Run) -> None:
        with run.text("m1") as message:
            message.write("the other")

    routes = [Route("/one", endpoint=AGUIEndpoint(say_hi)), Route("/other", endpoint=AGUIEndpoint(other))]
    async with serve(Starlette(routes=routes)) as url:
        one, two = await asyncio.gather(post(f"{url}/one", threadId="ann"), post(f"{url}/other"))
    assert (deltas_of(one), deltas_of(two)) == (["hi ann"], ["the other"])


@pytest.mark.parametrize("kind", ["lifespan", "websocket"])
async def test_what_is_not_http_is_not_served(kind: str) -> None:
    async def never(*_: Any) -> Any:
        raise AssertionError

    with pytest.raises(ValueError, match=kind):
        await AGUIEndpoint(say_hi)({"type": kind}, never, never)


@pytest.mark.parametrize(
    "limits", [{"high_water": -1}, {"high_water": 11, "max_buffered_bytes": 10}, {"batch_bytes": 0}]
)
def test_limits_that_contradict_one_another(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(limits))):
        AGUIEndpoint(say_hi, **limits)


def test_no_framework_inside() -> None:
    program = (
        "import sys, accord.hosting; print(sorted({'starlette', 'fastapi', 'uvicorn', 'anyio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
