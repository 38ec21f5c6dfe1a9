"""Two or more sides taken by turns, and the ratio between them.

Every round asks each worker once, in the same order: A B A B. A ratio is made of two figures of one round, so what the
machine does meanwhile falls on both; what is reported is the median of the rounds' ratios, with the least and greatest.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from benchmarks.environments import ROOT, process_environment

ROUNDS = 7


class WorkerFailed(Exception):
    """A worker ended, or said something that is no answer."""


class Worker:
    """A process that answers JSON lines; started at once, ready when `wait_until_ready` returns."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=process_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.facts: dict[str, Any] = {}

    def wait_until_ready(self) -> Self:
        """Returns when the worker has prepared and warmed up; `facts` is what it said then."""
        self.facts = self._answer()
        return self

    def ask(self, request: Any = None) -> dict[str, Any]:
        """One round, or whatever `request` means to the worker."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        try:
            answer: dict[str, Any] = json.loads(line)
        except json.JSONDecodeError as error:
            raise WorkerFailed(f"{' '.join(self._command[:4])} said {line!r}") from error
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


@dataclass(frozen=True)
class Series:
    """What one side took in each round, in `unit`."""

    values: tuple[float, ...]
    unit: str

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def __str__(self) -> str:
        return f"{figures(self.median)} {self.unit}"


@dataclass(frozen=True)
class Ratio:
    """One side's figure over another's in each round."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def __str__(self) -> str:
        if len(set(self.values)) == 1:
            return f"{figures(self.median)} ×"
        return f"{figures(self.median)} × ({figures(min(self.values))} – {figures(max(self.values))})"


@dataclass(frozen=True)
class Target:
    """What a row has to be: a bound of its ratio, or of our own figure where it has another unit than `×`."""

    bound: float
    at_most: bool
    unit: str = "×"

    def reached(self, row: Row) -> bool:
        """Judged by the median."""
        figure = row.ratio.median if self.unit == "×" else row.ours.median
        return figure <= self.bound if self.at_most else figure >= self.bound

    def __str__(self) -> str:
        return f"{'≤' if self.at_most else '≥'} {self.bound:g} {self.unit}"


def at_least(bound: float) -> Target:
    """The ratio, at least."""
    return Target(bound, at_most=False)


def at_most(bound: float) -> Target:
    """The ratio, at most."""
    return Target(bound, at_most=True)


def within(bound: float, unit: str) -> Target:
    """Our own figure, at most."""
    return Target(bound, at_most=True, unit=unit)


@dataclass(frozen=True)
class Row:
    """One line of the table. `peer` names whom `theirs` belongs to; without a target it is there to be seen."""

    what: str
    ours: Series
    peer: str
    theirs: Series
    ratio: Ratio
    target: Target | None = None
    note: str = ""

    @property
    def missed(self) -> bool:
        return self.target is not None and not self.target.reached(self)


def gain(what: str, ours: Series, peer: str, theirs: Series, target: Target | None = None, note: str = "") -> Row:
    """How many times as much the peer needs, round by round."""
    return Row(what, ours, peer, theirs, _times(theirs, ours), target, note)


def price(what: str, ours: Series, peer: str, theirs: Series, target: Target | None = None, note: str = "") -> Row:
    """How many times as much we need, round by round."""
    return Row(what, ours, peer, theirs, _times(ours, theirs), target, note)


def _times(over: Series, under: Series) -> Ratio:
    return Ratio(tuple(a / b for a, b in zip(over.values, under.values, strict=True)))


#: From a worker's answer to its figure.
Reading = Callable[[dict[str, Any]], float]


def per_operation(scale: float) -> Reading:
    """Time an operation, in seconds divided by `scale`."""
    return lambda found: found["seconds"] / found["operations"] / scale


MICROSECONDS = per_operation(1e-6)
MILLISECONDS = per_operation(1e-3)


def by_turns(sides: Mapping[str, Sequence[str]], rounds: int = ROUNDS) -> dict[str, list[dict[str, Any]]]:
    """The answers of each side, by its name: so many rounds, in each of which every side has its turn."""
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
    with ExitStack() as stack:
        workers = {name: stack.enter_context(Worker(command)).wait_until_ready() for name, command in sides.items()}
        for _ in range(rounds):
            for name, worker in workers.items():
                answers[name].append(worker.ask())
    return answers


def series(answers: Sequence[dict[str, Any]], reading: Reading, unit: str) -> Series:
    """The figure of each round."""
    return Series(tuple(reading(answer) for answer in answers), unit)


def figures(value: float) -> str:
    """A number with three figures that matter."""
    if value >= 1000:
        return f"{round(value, -len(str(int(value))) + 3):,.0f}"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"
