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
