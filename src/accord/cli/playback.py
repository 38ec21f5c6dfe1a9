"""A recording played through the whole consumer: what an application would have been given, and how it ended.

    payloads ─ Pipeline ─▶ events ─ Conversation ─▶ messages, state, runs

The input is judged first, as a client judges it before it sends; one that it would not send plays nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias

import msgspec

from accord.cli.failure import CommandFailed
from accord.cli.recording import Payload
from accord.consumer import Conversation, Deviation, Pipeline, admit_input, prepare_input
from accord.errors import AccordError, InputRejected, ProtocolViolation, TruncatedRun
from accord.protocol import (
    JSON,
    Event,
    JSONObject,
    Message,
    RunAgentInput,
    RunErrorEvent,
    RunStartedEvent,
    parse_peer,
)

Outcome: TypeAlias = Literal["success", "interrupt", "cancelled", "failed", "truncated", "rejected"]

#: The ids of an input that names none, of a recording that names none either.
_THREAD_ID: Final = "thread"
_RUN_ID: Final = "run"


class Delivered(msgspec.Struct, frozen=True):
    """An event that the application was given; `index` counts the payloads, as deviations and errors do."""

    index: int
    event: Event


class Playback:
    """Plays once: take what `play` yields to its end, then read the rest.

    `run_input` is the partial `RunAgentInput` that the client starts from; ids it does not name are those of the
    recording's first run. `peer_version` is what the peer is known to speak.
    """

    def __init__(self, run_input: JSON | None = None, *, peer_version: str | None = None) -> None:
        if peer_version is not None:
            try:
                parse_peer(peer_version)
            except ValueError as error:
                raise CommandFailed(f"peer version: {error}", exit_code=2) from None
        self._peer_version = peer_version
        self._moments: list[Delivered | Deviation] = []
        #: How the last run of the recording ended, or what became of the stream.
        self.outcome: Outcome = "truncated"
        #: Why it was rejected or truncated.
        self.error: str | None = None
        #: What the last `RUN_ERROR` said.
        self.run_error: str | None = None
        #: What a client would have sent; None when it would have refused to.
        self.request: RunAgentInput | None = None
        self._unnamed: tuple[str, ...] = ()
        start = self._admit({} if run_input is None else run_input)
        self._conversation = Conversation(start, on_deviation=self._moments.append)

    @property
    def messages(self) -> list[Message]:
        """The messages as they stand."""
        return self._conversation.messages

    @property
    def state(self) -> JSON:
        """The state as it stands."""
        return self._conversation.state

    def play(self, payloads: Iterable[Payload]) -> Iterator[Delivered | Deviation]:
        """What is delivered and what is warned of, in the order it happens."""
        yield from self._taken()
        if self.request is None:
            return
        pipeline = Pipeline(peer_version=self._peer_version, on_deviation=self._moments.append)
        place = ""
        try:
            for index, payload in enumerate(payloads):
                place = payload.place
                self._feed(pipeline, payload.data, index)
                place = ""
                yield from self._taken()
            pipeline.finish()
        except TruncatedRun as error:
            self._conversation.end_of_stream()
            self.outcome, self.error = "truncated", str(error)
        except CommandFailed:
            raise
        except AccordError as error:
            self.outcome, self.error = "rejected", f"{place}: {error}" if place else str(error)
        else:
            status = self._conversation.runs[-1].status
            assert status != "running"
            self.outcome = status
        yield from self._taken()

    def _feed(self, pipeline: Pipeline, data: bytes | JSONObject, index: int) -> None:
        try:
            events = pipeline.feed(data)
        except ProtocolViolation as violation:
            self._deliver(violation.delivered, index)
            raise
        self._deliver(events, index)

    def _deliver(self, events: Iterable[Event], index: int) -> None:
        for event in events:
            at = len(self._moments)
            self._conversation.apply(event)
            self._moments.insert(at, Delivered(index, event))
            if isinstance(event, RunStartedEvent):
                self._name_request(event)
            elif isinstance(event, RunErrorEvent):
                self.run_error = event.message

    def _admit(self, raw: JSON) -> RunAgentInput | None:
        try:
            if not isinstance(raw, dict):
                raise InputRejected("(root): the input is not an object")
            defaults = {"threadId": _THREAD_ID, "runId": _RUN_ID, "messages": []}
            self._unnamed = tuple(name for name in ("threadId", "runId") if name not in raw)
            admitted = admit_input({**defaults, **raw}, self._moments.append)
            self.request = prepare_input(admitted, peer_version=self._peer_version, on_deviation=self._moments.append)
        except InputRejected as error:
            self.outcome, self.error = "rejected", str(error)
            return None
        return admitted

    def _name_request(self, event: RunStartedEvent) -> None:
        assert self.request is not None
        ids = {"threadId": {"thread_id": event.thread_id}, "runId": {"run_id": event.run_id}}
        for name in self._unnamed:
            self.request = msgspec.structs.replace(self.request, **ids[name])
        self._unnamed = ()

    def _taken(self) -> list[Delivered | Deviation]:
        taken = self._moments[:]
        self._moments.clear()
        return taken
