"""What a producer makes of a request's body (rules section 2, "A producer receiving an input").

Unknown material does not make an input invalid: it is stripped with a warning. A malformed known member does, and
nothing is streamed then. A newer or unreadable version is no reason to refuse (section 8), nor is a lone surrogate
(section 2, "Text"), which no event could carry back: U+FFFD stands for it, except in what identifies the run.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import msgspec
from msgspec import UNSET

from accord.consumer import Deviation, OnDeviation
from accord.consumer.deviation import MAX_DEVIATIONS, Reporter
from accord.consumer.outgoing import admit_raw
from accord.consumer.text import encodable
from accord.errors import EncodingError, InputRejected, ProtocolViolation
from accord.protocol import MAX_DEPTH, JSONObject, RunAgentInput, check_json, decode_json, unlike_ours
from accord.protocol.codec import check_depth, strict_input_decoder
from accord.protocol.conform import name_of

#: What identifies a run; the run's first event repeats it.
_IDENTIFIERS = ("threadId", "runId", "parentRunId")


class NotJSON(InputRejected):
    """A body that is not JSON at all (RFC 8259): there is no input in it whose place could be wrong."""


def receive_input(
    data: bytes,
    *,
    max_depth: int = MAX_DEPTH,
    on_deviation: OnDeviation | None = None,
    max_deviations: int = MAX_DEVIATIONS,
) -> RunAgentInput:
    """The run input in a request's body.

    Raises `NotJSON`, and `InputRejected` with the path of what is malformed, `""` for JSON that is no object. Of the
    warnings `max_deviations` are told one by one; how many more there were is one more.
    """
    with Reporter(on_deviation, max_deviations) as warn:
        run_input = _as_described(data, max_depth)
        if run_input is None:
            run_input = _judged(_raw(data, max_depth), data, warn)
        if run_input.protocol_version is not UNSET:
            detail = unlike_ours(run_input.protocol_version)
            if detail is not None:
                warn(Deviation("boundary", "RunAgentInput", "/protocolVersion", detail))
        return run_input


def _as_described(data: bytes, max_depth: int) -> RunAgentInput | None:
    """The short way for an input of which nothing is to be translated, stripped or refused: None for any other."""
    try:
        run_input = strict_input_decoder.decode(data)
        check_depth(data, max_depth=max_depth)
    except (msgspec.MsgspecError, ValueError, RecursionError, ProtocolViolation):
        return None
    return run_input


def _raw(data: bytes, max_depth: int) -> JSONObject:
    try:
        raw = decode_json(data, max_depth=max_depth)
    except ProtocolViolation as violation:
        refusal = NotJSON if violation.rule in ("json", "encoding") else InputRejected
        raise refusal(violation.args[0], path=violation.path) from None
    if not isinstance(raw, dict):
        raise InputRejected(f"a JSON object is due, not {name_of(raw)}")
    return raw


def _encodable(raw: JSONObject, warn: Reporter) -> JSONObject:
    def lost(path: str, detail: str) -> None:
        warn(Deviation("boundary", "RunAgentInput", path, detail))

    identifiers = {name: raw[name] for name in _IDENTIFIERS if name in raw}
    others = {name: value for name, value in raw.items() if name not in identifiers}
    return {**identifiers, **encodable(others, "", lost)}


def _judged(raw: JSONObject, data: bytes, warn: Reporter) -> RunAgentInput:
    if b"\\ud" in data or b"\\uD" in data:  # in bytes that are UTF-8 only an escape can make a surrogate
        raw = _encodable(raw, warn)
    run_input = admit_raw(raw, warn)
    identifiers = (run_input.thread_id, run_input.run_id, run_input.parent_run_id or "")
    for name, identifier in zip(_IDENTIFIERS, identifiers, strict=True):
        path = f"/{name}"
        try:
            check_json(identifier, path)
        except EncodingError as error:
            raise InputRejected(str(error), path=path) from None
    return run_input


@runtime_checkable
class ChoosyProducer(Protocol):
    """A producer that can tell before a run starts that an input is not for it."""

    async def check_input(self, run_input: RunAgentInput, *, scope: str = "") -> None:
        """Raises `InputRejected` naming the path of what is wrong."""
        ...


async def check_input(producer: object, run_input: RunAgentInput, *, scope: str = "") -> None:
    """Lets a producer that cares refuse `run_input`, by `InputRejected`, while nothing has been streamed."""
    if isinstance(producer, ChoosyProducer):
        await producer.check_input(run_input, scope=scope)
