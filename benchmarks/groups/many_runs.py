"""Many runs at once on one process, each saying pieces of text at its pace: how many are carried, what one holds.

A server carries as many runs as it has open while 99 of 100 pieces reach their client within `BOUND` of the time they
were due. Runs are added step by step until that no longer holds. Both servers are agents behind their own endpoint, on
the same uvicorn; the clients share one process on another core.
"""

from __future__ import annotations

import math
import time
from contextlib import ExitStack

from benchmarks.comparison import Ratio, Row, Series, Worker, at_least, within
from benchmarks.environments import worker
from benchmarks.material import Material, run_input

BOUND = 0.05  # seconds, the time between two pieces of a run
RATE = 20  # events a second
RATE_AT_REST = 1
SIDES = {"ours": ("accord", "many"), "theirs": ("agent-framework", "agent_framework_many")}
FIRST = 200  # runs, where the search begins
COARSE, FINE = 1.25, 1.05  # the steps it takes, the first time and then
MIN_RUNS = 10
SETTLE, WINDOW = 0.2, 0.4  # seconds: runs that were just opened have to catch up first; then they are watched
ROUNDS = 5
HTTP = "httptools"  # what agent-framework-ag-ui brings
CROWD = 1_000
PEER = "agent-framework-ag-ui"


def rows(material: Material) -> list[Row]:
    """How many runs by turns; then a thousand, which one process of ours need not carry at that pace."""
    asked = material.json("request-say.json", run_input(messages=1, message_size=20))
    carried: dict[str, list[float]] = {name: [] for name in SIDES}
    with ExitStack() as stack:
        sides = {name: _Side(stack, _command(name, RATE), asked) for name in SIDES}
        about = {name: side.about() for name, side in sides.items()}
        for _ in range(ROUNDS):
            for name, side in sides.items():
                about[name] = side.carried(about[name])
                carried[name].append(about[name])
    memory = {name: Series((_memory(_command(name, RATE_AT_REST), asked),), "KB") for name in SIDES}

    runs = {name: Series(tuple(values), "runs") for name, values in carried.items()}
    return [
        Row(
            f"runs carried by one process, {RATE} events a second each, p99 delay within {BOUND * 1000:.0f} ms",
            runs["ours"],
            PEER,
            runs["theirs"],
            Ratio(tuple(a / b for a, b in zip(carried["ours"], carried["theirs"], strict=True))),
            at_least(3),
        ),
        Row(
            f"{CROWD:,} runs open at once, {RATE_AT_REST} event a second each: memory a run",
            memory["ours"],
            PEER,
            memory["theirs"],
            Ratio((memory["theirs"].median / memory["ours"].median,)),
            within(150, "KB"),
        ),
    ]


def _command(side: str, rate: int) -> list[str]:
    environment, module = SIDES[side]
    return worker(environment, module, "serve", rate=rate, http=HTTP)


def _memory(command: list[str], asked: str) -> float:
    """Of a fresh server with a thousand runs, after it has had a few: resident KB a run."""
    with ExitStack() as stack:
        side = _Side(stack, command, asked)
        side.open(20)
        before = side.server.ask("collect")["memory"]
        side.open(CROWD)
        after = side.server.ask("collect")["memory"]
        return float(after - before) / (CROWD - 20) / 1024


class _Side:
    """A server and the process of its clients."""

    def __init__(self, stack: ExitStack, command: list[str], asked: str) -> None:
        self.server = stack.enter_context(Worker(command)).wait_until_ready()
        crowd = worker("official", "crowd", "crowd", port=self.server.facts["port"], request=asked)
        self.crowd = stack.enter_context(Worker(crowd)).wait_until_ready()

    def about(self) -> int:
        """How many runs are carried, to one step; no more are opened, since a server takes long to recover."""
        runs = FIRST
        while self._carries(int(runs * COARSE)):
            runs = int(runs * COARSE)
        self._leave()
        return runs

    def carried(self, start: int) -> int:
        """How many runs are carried, looked for from `start` on, upwards or downwards."""
        runs = start
        if self._carries(runs):
            while self._carries(int(runs * FINE) + 1):
                runs = int(runs * FINE) + 1
        else:
            while runs > MIN_RUNS:
                runs = int(runs / FINE)
                if self._carries(runs):
                    break
        self._leave()
        return runs

    def open(self, runs: int) -> None:
        """Has so many runs open, all of which have begun to speak."""
        self.crowd.ask({"open": runs, "watch": WINDOW})

    def _carries(self, runs: int) -> bool:
        """Whether so many runs are carried.

        Opening them holds up those that are open; as long as they make up for it, they are waited for.
        """
        self.crowd.ask({"open": runs, "watch": SETTLE})
        before, p99 = math.inf, self._p99()
        while BOUND < p99 < 0.8 * before:
            before, p99 = p99, self._p99()
        return p99 <= BOUND

    def _p99(self) -> float:
        found = self.crowd.ask({"watch": WINDOW})
        assert not found["lost"], "the server ended runs"
        return float(found["p99"])

    def _leave(self) -> None:
        self.crowd.ask({"close": True})
        time.sleep(SETTLE)
