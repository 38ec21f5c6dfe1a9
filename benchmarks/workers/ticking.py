"""Times at which the pieces of a run are due: from a start that differs from run to run.

The time a piece was due is the piece's text, by the machine's monotonic clock; so a client on the same machine knows
how late each one reached it, and a server that has fallen behind cannot hide it by being late with the next.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator

_starts = itertools.count()


async def ticks(rate: float) -> AsyncIterator[str]:
    """Pieces without end, `rate` a second, each when it is due, or at once when that has passed."""
    start = time.monotonic() + next(_starts) * 0.618_034 % 1 / rate
    for number in itertools.count():
        due = start + number / rate
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        yield f"{due:.6f} "
