"""An event loop in a thread of its own, so that the main thread may wait for what somebody types.

The terminal stays with the main thread, where line editing and Ctrl+C work as everywhere; connections and servers live
on the loop, which nobody's typing holds up.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final, Self, TypeVar

T = TypeVar("T")

_PATIENCE: Final = 5.0  # seconds for what was stopped to end


class BackgroundLoop:
    """A loop that runs while the block does; on leaving, what is still at work is cancelled."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._work, name="accord-loop", daemon=True)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs `work` on the loop and waits for what it returns or raises; Ctrl+C cancels it and is raised here."""
        ended = threading.Event()

        async def watched() -> T:
            try:
                return await work
            finally:
                ended.set()

        future = asyncio.run_coroutine_threadsafe(watched(), self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            ended.wait(_PATIENCE)
            raise

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(2 * _PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE)
        self._loop.close()

    def _work(self) -> None:
        if hasattr(signal, "pthread_sigmask"):
            # A signal that the system gives to this thread, or to one that it starts, would not wake the main thread.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        self._loop.run_forever()

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_PATIENCE)
        await self._loop.shutdown_asyncgens()
