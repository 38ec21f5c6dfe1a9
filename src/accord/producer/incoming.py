"""What a producer makes of a request's body (rules section 2, "A producer receiving an input").

Unknown material does not make an input invalid: it is stripped with a warning. A malformed known member does, and
nothing is streamed then. A newer or unreadable version is no reason to refuse (section 8).
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from msgspec import UNSET

from accord.consumer import Deviation, OnDeviation, admit_input
from accord.consumer.deviation import report
from accord.errors import EncodingError, InputRejected, ProtocolViolation
from accord.protocol import MAX_DEPTH, RunAgentInput, check_json, unlike_ours
from accord.protocol.codec import decode_object


def receive_input(data: bytes, *, max_depth: int = MAX_DEPTH, on_deviation: OnDeviation | None = None) -> RunAgentInput:
    """The run input in a request's body; `InputRejected` names the path of what is malformed, `""` for no object."""
    try:
        raw = decode_object(data, max_depth=max_depth)
    except ProtocolViolation as violation:
        raise InputRejected(violation.args[0], path=violation.path) from None
    run_input = admit_input(raw, on_deviation)
    identifiers = {
        "/threadId": run_input.thread_id,
        "/runId": run_input.run_id,
        "/parentRunId": run_input.parent_run_id or "",
    }
    for path, identifier in identifiers.items():
        try:
            check_json(identifier, path)  # the run's first event repeats them
        except EncodingError as error:
            raise InputRejected(str(error), path=path) from None
    if run_input.protocol_version is not UNSET:
        detail = unlike_ours(run_input.protocol_version)
        if detail is not None:
            report(Deviation("boundary", "RunAgentInput", "/protocolVersion", detail), on_deviation)
    return run_input


@runtime_checkable
class ChoosyProducer(Protocol):
    """A producer that can tell before a run starts that an input is not for it."""

    async def check_input(self, run_input: RunAgentInput) -> None:
        """Raises `InputRejected` naming the path of what is wrong."""
        ...


async def check_input(producer: object, run_input: RunAgentInput) -> None:
    """Lets a producer that cares refuse `run_input`, by `InputRejected`, while nothing has been streamed."""
    if isinstance(producer, ChoosyProducer):
        await producer.check_input(run_input)
