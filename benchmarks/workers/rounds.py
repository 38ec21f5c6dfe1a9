"""A worker's side of the conversation with the driver: JSON lines, one request a line, one answer a line.

A worker is a process of its own that does one task: it prepares, warms up, says that it is ready, and then times one
round whenever it is asked, with its own monotonic clock. So rounds of several workers can be taken by turns.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

#: What one round found: `seconds` for so many `operations`, and whatever else there is to know.
Round: TypeAlias = dict[str, Any]
#: Prepares from the parameters the driver gives, and returns what does one round.
Task: TypeAlias = Callable[..., Callable[[], Round]]


def serve(tasks: Mapping[str, Task]) -> None:
    """Does the task that the command line names, as often as standard input asks."""
    name, parameters = sys.argv[1], json.loads(sys.argv[2])
    warm_up = parameters.pop("warm_up", 2)
    take = tasks[name](**parameters)
    for _ in range(warm_up):
        take()
    _say({"ready": True})
    for _ in sys.stdin:
        gc.collect()
        _say(take())


def timed(work: Callable[[], object], operations: int, **found: Any) -> Round:
    """One round of `work`, which is so many operations."""
    start = time.perf_counter()
    work()
    return {"seconds": time.perf_counter() - start, "operations": operations, **found}


def _say(value: Round) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()
