"""The stages in their order, for one stream (rules section 2):

    payload → compatibility boundary → middleware → enforcement → chunk expansion → verification → events

Without middleware a payload is first tried by the strict decoder: when that succeeds there is nothing to translate,
strip or refuse, and the event goes straight to expansion. Otherwise it takes the long way. Both give one verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import msgspec
from msgspec import UNSET

from accord.consumer.boundary import NO_SUBAGENTS, Boundary, ignore_subagents, lacks
from accord.consumer.chunks import CHUNK_TYPES, ChunkExpander
from accord.consumer.deviation import MAX_DEVIATIONS, Deviation, OnDeviation, Reporter
from accord.consumer.enforcement import enforce_event
from accord.consumer.middleware import EventMiddleware, MiddlewareChain
from accord.consumer.verification import Verifier
from accord.errors import ProtocolViolation, TruncatedRun
from accord.protocol import (
    MAX_DEPTH,
    Event,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    unlike_ours,
)
from accord.protocol.codec import check_depth, check_plain, decode_object, strict_event_decoder
from accord.protocol.values import JSONObject

_decode = strict_event_decoder.decode
_RUN_EDGES = frozenset({RunStartedEvent, RunFinishedEvent, RunErrorEvent})


class Pipeline:
    """Turns the payloads of one stream into events that an application may see.

    `middleware` sees raw events; `peer_version` is a version the peer is known to be of, such as `0.0.57`;
    `on_deviation` is told of every warning. `max_depth` bounds nesting in levels, `max_events` the payloads of one
    run, `max_deviations` the warnings that one payload makes: how many more there were is one more. After a violation
    the pipeline refuses everything with it.
    """

    def __init__(
        self,
        middleware: Sequence[EventMiddleware] = (),
        *,
        peer_version: str | None = None,
        on_deviation: OnDeviation | None = None,
        max_depth: int = MAX_DEPTH,
        max_events: int = 10_000_000,
        max_deviations: int = MAX_DEVIATIONS,
    ) -> None:
        self._warn = Reporter(on_deviation, max_deviations)
        self._max_depth = max_depth
        self._max_events = max_events
        self._end = max_events  # the index that the run must not reach
        self._shallow = 2 * max_depth  # fewer bytes than this cannot nest too deeply
        self._index = -1
        self._fast = not middleware
        self._violation: ProtocolViolation | None = None
        self._knows_subagents = not lacks(peer_version, NO_SUBAGENTS)
        self._chain = MiddlewareChain(middleware)
        self._boundary = Boundary(self._warn)
        self._chunks = ChunkExpander()
        self._verifier = Verifier()
        self._lanes = self._chunks.lanes
        self._appending = self._verifier.appending if self._knows_subagents else {}

    @property
    def run_active(self) -> bool:
        """Whether a run has started and not ended."""
        return self._verifier.run_active

    def feed(self, payload: bytes | JSONObject) -> list[Event]:
        """The events that one payload makes: the JSON text of one event, or a raw event.

        Raises `ProtocolViolation`; events that the same payload made before it stand in its `delivered`. A raw event
        that is handed in is not changed. With asynchronous middleware, use `feed_async`.
        """
        self._index += 1
        if self._fast and type(payload) is bytes and self._index < self._end:
            try:
                event = _decode(payload)
            except (msgspec.MsgspecError, ValueError, RecursionError):
                pass
            else:
                if len(payload) > self._shallow:
                    self._guard(check_depth, payload)
                judge = self._appending.get(type(event))
                if judge is None or self._lanes:
                    return self._admit(event)
                try:
                    judge(event)
                except ProtocolViolation as violation:
                    self._fail(violation)
                return [event]
        self._check_alive()
        self._check_count()
        with self._warn:
            raw = self._raw(payload)
            if not self._chain:
                return self._judge([raw])
            try:
                return self._judge(self._chain.pass_event(raw, self._index))
            except ProtocolViolation as violation:
                self._fail(violation)

    async def feed_async(self, payload: bytes | JSONObject) -> list[Event]:
        """As `feed`, and waits for asynchronous middleware."""
        if not self._chain:
            return self.feed(payload)
        self._index += 1
        self._check_alive()
        self._check_count()
        with self._warn:
            raw = self._raw(payload)
            try:
                passed = await self._chain.pass_event_async(raw, self._index)
            except ProtocolViolation as violation:
                self._fail(violation)
            return self._judge(passed)

    def finish(self) -> None:
        """Says that the stream is over. Raises `TruncatedRun` when a run is open or nothing ever came."""
        self._check_alive()
        if self._verifier.run_active:
            raise TruncatedRun("the stream ended before the run did")
        if not self._verifier.started:
            raise TruncatedRun("the stream ended before any run started")

    # The long way

    def _raw(self, payload: bytes | JSONObject) -> JSONObject:
        """The raw event of a payload, behind the boundary."""
        if isinstance(payload, dict):
            self._guard(check_plain, payload)
            raw = payload
        else:
            raw = self._guard(decode_object, payload)
        return self._boundary.translate(raw, self._index)

    def _judge(self, raws: list[JSONObject]) -> list[Event]:
        """Enforcement, and what follows."""
        events: list[Event] = []
        for raw in raws:
            try:
                if self._chain:
                    self._check_made(raw)
                event = enforce_event(raw, self._warn, self._index)
                if event is not None:
                    events += self._admit(event)
            except ProtocolViolation as violation:
                violation.delivered = [*events, *violation.delivered]
                self._fail(violation)
        return events

    def _check_made(self, raw: JSONObject) -> None:
        """Middleware may make of an event whatever Python holds; only JSON goes on."""
        try:
            check_plain(raw, max_depth=self._max_depth)
        except ProtocolViolation as violation:
            raise ProtocolViolation(
                f"middleware made something else than JSON: {violation.args[0]}",
                stage="middleware",
                rule=violation.rule,
            ) from None

    # Both ways

    def _admit(self, event: Event) -> list[Event]:
        """Chunk expansion and verification."""
        verifier = self._verifier
        if self._lanes or type(event) in CHUNK_TYPES or not self._knows_subagents:
            return self._expand(event)
        try:
            verifier.check(event)
        except ProtocolViolation as violation:
            self._fail(violation)
        if type(event) in _RUN_EDGES:
            self._count_anew(event)
        return [event]

    def _expand(self, event: Event) -> list[Event]:
        admitted: list[Event] = []
        try:
            for expanded in self._chunks.expand(event):
                known = expanded if self._knows_subagents else ignore_subagents(expanded, self._warn, self._index)
                if known is not None:
                    self._verifier.check(known)
                    admitted.append(known)
        except ProtocolViolation as violation:
            violation.delivered = admitted
            self._fail(violation)
        finally:
            self._warn.close()
        if type(event) in _RUN_EDGES:
            self._count_anew(event)
        return admitted

    def _count_anew(self, event: Event) -> None:
        """A run has started or ended, from where the events are counted."""
        self._end = self._index + self._max_events
        if isinstance(event, RunStartedEvent):
            self._compare_versions(event)
        else:
            self._end += 1  # of the next run, this one is none

    def _compare_versions(self, event: RunStartedEvent) -> None:
        """A newer or unreadable version is no reason to stop (rules section 8)."""
        if event.protocol_version is not UNSET:
            detail = unlike_ours(event.protocol_version)
            if detail is not None:
                self._warn(Deviation("boundary", event.type, "/protocolVersion", detail, self._index))
                self._warn.close()

    def _check_alive(self) -> None:
        """Raises what ended the stream once more; what it delivered has been told already."""
        first = self._violation
        if first is not None:
            raise ProtocolViolation(
                first.args[0],
                stage=first.stage,
                rule=first.rule,
                path=first.path,
                index=first.index,
                event_type=first.event_type,
            ) from first

    def _check_count(self) -> None:
        if self._index >= self._end:
            message = f"more than {self._max_events} events in a run (max_events)"
            self._fail(ProtocolViolation(message, stage="wire", rule="event-limit"))

    def _guard(self, step: Any, payload: bytes | JSONObject) -> Any:
        try:
            return step(payload, max_depth=self._max_depth)
        except ProtocolViolation as violation:
            self._fail(violation)

    def _fail(self, violation: ProtocolViolation) -> NoReturn:
        if violation.index is None:
            violation.index = self._index
        self._violation = violation
        self._fast = False
        raise violation
