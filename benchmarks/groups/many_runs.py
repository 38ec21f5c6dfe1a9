"""Many runs at once on one process, each saying pieces of text at its pace: how many are carried, what one holds.

A server carries as many runs as it has open while 99 of 100 pieces reach their client within `BOUND` of the time they
were due. Runs are added step by step until that no longer holds. Both servers are agents behind their own endpoint, on
the same uvicorn; the clients share one process on another core.
"""

from __future__ import annotations

import time
from contextlib import ExitStack

from benchmarks.comparison import Ratio, Row, Series, Worker, at_least, within
from benchmarks.environments import worker
from benchmarks.material import Material, run_input

BOUND = 0.05  # seconds, the time between two pieces of a run
RATE = 20  # events a second
RATE_AT_REST = 1
SIDES = {"ours": ("accord", "many"), "theirs": ("agent-framework", "agent_framework_many")}
FIRST = 100  # runs, where the search begins
COARSE, FINE = 1.4, 1.1  # the steps it takes, the first time and then
MIN_RUNS = 10
SETTLE, WINDOW = 0.4, 0.6  # seconds: runs that were just opened have to catch up first; then they are watched
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
        about = {name: side.carried(FIRST, COARSE) for name, side in sides.items()}
        for _ in range(ROUNDS):
            for name, side in sides.items():
                about[name] = side.carried(about[name], FINE)
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

    def carried(self, start: int, step: float) -> int:
        """How many runs are carried, looked for from `start` on."""
        runs, carried = start, 0
        while True:
            self.crowd.ask({"open": runs, "watch": SETTLE})
            if self._in_time():
                carried, runs = runs, int(runs * step) + 1
            elif carried or runs < MIN_RUNS:
                break
            else:
                self._leave()
                runs = int(runs / step)
        self._leave()
        return carried

    def open(self, runs: int) -> None:
        """Has so many runs open, all of which have begun to speak."""
        self.crowd.ask({"open": runs, "watch": WINDOW})

    def _in_time(self) -> bool:
        """Whether the runs that are open are carried; one pause of a collector is forgiven."""
        p99 = [self._p99()]
        if BOUND < p99[0] < 2 * BOUND:
            p99.append(self._p99())
        return min(p99) <= BOUND

    def _p99(self) -> float:
        found = self.crowd.ask({"watch": WINDOW})
        assert not found["lost"], "the server ended runs"
        return float(found["p99"])

    def _leave(self) -> None:
        self.crowd.ask({"close": True})
        time.sleep(SETTLE)
