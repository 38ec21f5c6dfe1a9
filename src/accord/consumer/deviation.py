"""The one warning record (rules section 2, "Warnings"): to a callback and to the `accord` logger, never printed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

_logger = logging.getLogger("accord")


@dataclass(frozen=True, slots=True)
class Deviation:
    """Something a peer sent that did not stop the run, and what became of it.

    `stage` is the stage of the processing model that met it, `path` a JSON Pointer into the event (`""` for the whole),
    `index` the zero-based position of the event in its stream, None outside a stream.
    """

    stage: str
    event_type: str
    path: str
    detail: str
    index: int | None = None

    def __str__(self) -> str:
        return f"{' '.join(part for part in (self.stage, self.event_type, self.path) if part)}: {self.detail}"


#: What a peer says must not begin a line of its own in a log.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), 127, 0x85, 0x2028, 0x2029)}

OnDeviation = Callable[[Deviation], None]


def report(deviation: Deviation, on_deviation: OnDeviation | None) -> None:
    """Tells the logger and the callback."""
    _logger.warning("%s", str(deviation).translate(_CONTROLS))
    if on_deviation is not None:
        on_deviation(deviation)


#: How many warnings of one event or input are told one by one.
MAX_DEVIATIONS = 100


class Reporter:
    """Tells the warnings of one event or input: the first `max_deviations`, then one that says how many more came.

    Used as a context manager, whose end is the end of the event or input.
    """

    __slots__ = ("_last", "_max_deviations", "_on_deviation", "_told", "_untold")

    def __init__(self, on_deviation: OnDeviation | None, max_deviations: int = MAX_DEVIATIONS) -> None:
        self._on_deviation = on_deviation
        self._max_deviations = max_deviations
        self._told = self._untold = 0
        self._last: Deviation | None = None

    def __call__(self, deviation: Deviation) -> None:
        if self._told < self._max_deviations:
            self._told += 1
            report(deviation, self._on_deviation)
        else:
            self._untold += 1
            self._last = deviation

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Says how many warnings were not told, and starts over."""
        last, untold = self._last, self._untold
        self._told, self._untold, self._last = 0, 0, None
        if last is not None:
            detail = f"{untold} more warnings (max_deviations={self._max_deviations})"
            report(Deviation(last.stage, last.event_type, "", detail, last.index), self._on_deviation)
