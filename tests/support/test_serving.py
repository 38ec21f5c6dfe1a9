from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from support.serving import serve, serve_in_thread


async def hello(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"hello {request.url.path}")


async def endless(request: Request) -> StreamingResponse:
    async def body() -> AsyncIterator[bytes]:
        while True:
            yield b"x"
            await asyncio.sleep(0.01)

    return StreamingResponse(body())


routes = [Route("/hello", hello), Route("/endless", endless)]


async def test_serves_until_the_block_is_left() -> None:
    async with serve(Starlette(routes=routes)) as url, httpx.AsyncClient() as client:
        assert (await client.get(f"{url}/hello")).text == "hello /hello"
    async with httpx.AsyncClient() as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(f"{url}/hello")


async def test_two_at_once() -> None:
    async with serve(Starlette(routes=routes)) as one, serve(Starlette(routes=routes)) as other:
        assert one != other


def test_serves_a_blocking_client() -> None:
    with serve_in_thread(Starlette(routes=routes)) as url:
        assert httpx.get(f"{url}/hello").text == "hello /hello"
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/hello")


async def test_a_response_without_end_does_not_hold_it_up() -> None:
    async with httpx.AsyncClient() as client:
        async with serve(Starlette(routes=routes)) as url:
            response = await client.send(client.build_request("GET", f"{url}/endless"), stream=True)
            assert await anext(response.aiter_raw()) == b"x"
        await response.aclose()


@asynccontextmanager
async def broken(_: Starlette) -> AsyncIterator[None]:
    raise OSError("no such disk")
    yield


async def test_an_application_that_does_not_start_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="did not start"):
        async with serve(Starlette(lifespan=broken)):
            pass
    with pytest.raises(RuntimeError, match="did not start"), serve_in_thread(Starlette(lifespan=broken)):
        pass


async def test_an_error_in_the_block_comes_through() -> None:
    with pytest.raises(KeyError):
        async with serve(Starlette(routes=routes)):
            raise KeyError("mine")
    with pytest.raises(KeyError), serve_in_thread(Starlette(routes=routes)):
        raise KeyError("mine")
