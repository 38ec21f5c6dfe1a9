"""What work costs, in counts that are the same on every machine: calls made, and bytes held at most."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any


def calls(work: Callable[[], object]) -> int:
    """How many functions `work` calls, Python's and C's."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    before = sys.getprofile()
    collects = gc.isenabled()
    gc.disable()  # what a collection calls is not the work's
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return count - 1  # the `setprofile` that ends it


def calls_each(work: Callable[[int], Callable[[], object]], times: int = 200) -> float:
    """How many calls one more repetition costs: `work(n)` prepares what repeats something `n` times.

    What is called once, before or after, is in both of the two that are compared and drops out.
    """
    return (calls(work(2 * times)) - calls(work(times))) / times


def peak_bytes(work: Callable[[], object]) -> int:
    """How many bytes `work` holds at the worst moment, beyond what is held before."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
