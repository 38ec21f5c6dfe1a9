"""Functions that block, off the event loop: in a thread, with a copy of the caller's context variables."""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TypeVar

R = TypeVar("R")


async def run_in_thread(call: Callable[[], R], executor: Executor | None = None) -> R:
    """The value of `call()`, made in a thread of `executor`. Cancelling this does not end the thread."""
    context = contextvars.copy_context()
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(executor or _threads(), context.run, _without_stop, call)


@functools.cache
def _threads() -> Executor:
    # Not the event loop's own pool: that one also resolves host names, and a few slow tools would fill it.
    return ThreadPoolExecutor(max_workers=64, thread_name_prefix="accord-tool")


def _without_stop(call: Callable[[], R]) -> R:
    try:
        return call()
    except StopIteration as error:
        # No future can carry it: whoever awaits the call would wait for ever.
        raise RuntimeError("StopIteration left the function") from error
