"""The gate before anything is sent (rules section 2, "Outgoing input"; section 7 for interrupts).

Unknown material is removed with a warning, a malformed known member stops the send, activity messages stay here, and
an old peer gets what it can read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET

from accord.consumer.boundary import downgrade_input, modern_input
from accord.consumer.deviation import MAX_DEVIATIONS, Deviation, OnDeviation, Reporter
from accord.consumer.text import encodable
from accord.errors import EncodingError, InputRejected, ProtocolViolation
from accord.protocol import (
    PROTOCOL_VERSION,
    ActivityMessage,
    Interrupt,
    JSONObject,
    ResumeEntry,
    RunAgentInput,
    conform,
    parse_peer,
    to_wire,
)


def admit_input(
    raw: JSONObject, on_deviation: OnDeviation | None = None, *, max_deviations: int = MAX_DEVIATIONS
) -> RunAgentInput:
    """A raw input through boundary and enforcement; `InputRejected` names the path of what is malformed.

    Of the warnings `max_deviations` are told one by one; how many more there were is one more.
    """
    with Reporter(on_deviation, max_deviations) as warn:
        return admit_raw(raw, warn)


def admit_raw(raw: JSONObject, warn: Callable[[Deviation], None]) -> RunAgentInput:
    """As `admit_input`, its warnings among others of the same input."""

    def lost(path: str, detail: str) -> None:
        warn(Deviation("boundary", "RunAgentInput", path, detail))

    try:
        run_input, stripped = conform(modern_input(raw, "", lost), RunAgentInput)
    except ProtocolViolation as violation:
        raise InputRejected(f"{violation.path or '(root)'}: {violation.args[0]}", path=violation.path) from None
    assert run_input is not None  # nothing in an input can make all of it unknown
    for path in stripped:
        detail = "not described by the protocol, stripped from the input"
        warn(Deviation("enforcement", "RunAgentInput", path, detail))
    return run_input


def prepare_input(
    run_input: RunAgentInput,
    *,
    peer_version: str | None = None,
    on_deviation: OnDeviation | None = None,
    max_deviations: int = MAX_DEVIATIONS,
) -> RunAgentInput:
    """What is sent of `run_input`: our version unless the peer is older, no activities, nothing the peer cannot read.

    A lone surrogate, which a peer may have sent us, becomes U+FFFD with a warning. Raises `InputRejected` naming the
    path of any other value that JSON cannot carry or that is malformed. Shares nothing with `run_input`.
    """
    older = peer_version is not None and parse_peer(peer_version) < parse_peer(PROTOCOL_VERSION)
    outgoing = msgspec.structs.replace(run_input, protocol_version=UNSET if older else PROTOCOL_VERSION)
    if isinstance(outgoing.messages, list):
        spoken = [message for message in outgoing.messages if not _is_activity(message)]
        outgoing = msgspec.structs.replace(outgoing, messages=spoken)
    with Reporter(on_deviation, max_deviations) as warn:
        return downgrade_input(admit_raw(_wire(outgoing, warn), warn), peer_version, warn)


def _wire(outgoing: RunAgentInput, warn: Callable[[Deviation], None]) -> JSONObject:
    def lost(path: str, detail: str) -> None:
        warn(Deviation("boundary", "RunAgentInput", path, detail))

    try:
        return to_wire(outgoing)
    except EncodingError:
        pass
    try:
        return to_wire(encodable(outgoing, "", lost))
    except EncodingError as error:
        raise InputRejected(str(error), path=error.path) from None
    except RecursionError:
        raise InputRejected("nested too deeply, or inside itself") from None


def _is_activity(message: Any) -> bool:
    return isinstance(message, ActivityMessage) or (isinstance(message, dict) and message.get("role") == "activity")


def check_resume(pending: Sequence[Interrupt], resume: Sequence[ResumeEntry], now: Callable[[], datetime]) -> None:
    """Refuses, with `InputRejected`, a resume that does not answer each pending interrupt exactly once.

    An interrupt that has expired by `now` can only be cancelled; an `expiresAt` that cannot be read never expires.
    """
    known = {interrupt.id: interrupt for interrupt in pending}
    answered: set[str] = set()
    for position, entry in enumerate(resume):
        path = f"/resume/{position}/interruptId"
        if entry.interrupt_id not in known:
            raise InputRejected(f"there is no open interrupt {entry.interrupt_id!r} to answer", path=path)
        if entry.interrupt_id in answered:
            raise InputRejected(f"interrupt {entry.interrupt_id!r} is answered twice", path=path)
        answered.add(entry.interrupt_id)
        if entry.status == "resolved" and _expired(known[entry.interrupt_id], now):
            message = f"interrupt {entry.interrupt_id!r} has expired and can only be cancelled"
            raise InputRejected(message, path=f"/resume/{position}/status")
    uncovered = [name for name in known if name not in answered]
    if uncovered:
        raise InputRejected(f"open interrupts without an answer: {', '.join(uncovered)}", path="/resume")


def _expired(interrupt: Interrupt, now: Callable[[], datetime]) -> bool:
    moment = _moment(interrupt.expires_at)
    if moment is None:
        return False
    current = now()
    if current.tzinfo is None:
        current = current.astimezone()
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=current.tzinfo)
    return moment <= current


def _moment(expires_at: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(expires_at)
    except (TypeError, ValueError):
        return None
