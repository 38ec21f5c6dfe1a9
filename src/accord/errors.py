"""Every error Accord raises on purpose, in one tree under `AccordError`.

Bad input never surfaces as a `ValueError` of some inner library: whoever feeds bytes or values gets one of these,
and each names the place that is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accord.protocol.events import Event


class AccordError(Exception):
    """Base of every error of this package."""


class ProtocolViolation(AccordError):
    """The stream (or value) breaks the protocol; the run is rejected.

    `stage` is the stage of the processing model that refused it (`wire`, `boundary`, `middleware`, `enforcement`,
    `chunks`, `verification`, `application`), `rule` a short name of the broken rule, `path` a JSON Pointer into the
    offending value (`""` when the value as a whole is wrong) and `index` the zero-based position of the event in
    the stream, when known. `delivered` holds events that the same payload had already produced, so that a caller
    loses nothing that came before the failure.
    """

    def __init__(
        self,
        message: str,
        *,
        stage: str,
        rule: str,
        path: str = "",
        index: int | None = None,
        event_type: str | None = None,
    ) -> None:
        super().__init__(message)
        self.stage = stage
        self.rule = rule
        self.path = path
        self.index = index
        self.event_type = event_type
        self.delivered: Sequence[Event] = ()

    def __str__(self) -> str:
        what = " ".join(part for part in (self.event_type, self.path) if part)
        where = "" if self.index is None else f" (event {self.index})"
        return f"{self.stage}: {what + ': ' if what else ''}{super().__str__()}{where}"


class TruncatedRun(AccordError):
    """The stream ended before the run did. There is no outcome; what was delivered stays valid."""


class RunFailed(AccordError):
    """The producer reported `RUN_ERROR`: a well-formed stream about a run that failed."""

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class InputRejected(AccordError):
    """A run input that cannot be used: refused before anything was sent, or by the producer (then `status` is set).

    `path` is a JSON Pointer into the input, `""` when the input as a whole is wrong or the place is not known.
    """

    def __init__(self, message: str, *, path: str = "", status: int | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.status = status


class EncodingError(AccordError):
    """A value that JSON cannot carry (a non-finite number, a lone surrogate, a foreign type), with its JSON Pointer."""

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(f"{path or '(root)'}: {message}")
        self.path = path


class PatchError(AccordError):
    """A JSON Patch that cannot be applied (RFC 6902 section 5): `index` is the failing operation, `reason` says why."""

    def __init__(self, reason: str, *, index: int, path: str = "") -> None:
        super().__init__(f"operation {index} at {path or '(root)'}: {reason}")
        self.reason = reason
        self.index = index
        self.path = path


class LimitExceeded(AccordError):
    """Something outgrew a named limit; `limit` is the argument's name and `value` its setting."""

    def __init__(self, message: str, *, limit: str, value: float) -> None:
        super().__init__(f"{message} (limit {limit}={value:g})")
        self.limit = limit
        self.value = value


class TransportError(AccordError):
    """The peer could not be reached, or what answered is not an AG-UI producer. `status` is the HTTP status, if any."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
