"""One server for all tests of a module, since it takes a tenth of a second to stop; each test has its own endpoint."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from hosting.exchange import Board
from support.serving import serve


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def board() -> AsyncIterator[Board]:
    served = Board()
    async with serve(served) as served.url:
        yield served
