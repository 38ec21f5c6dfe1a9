"""What the server itself knows of a thread between its runs: never taken from the client, so never to be forged.

A record holds the turn that waits for answers, the answers that were carried out, standing approvals, the members of
the state that are the server's own, what a cut-off run had shown, and the saved session. Stores compare and set: who
saves a record must have seen the last one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from accord.agents import FunctionCallContent, FunctionResultContent, Message
from accord.protocol import JSON, JSONObject


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that waits for the answer to an interrupt, with the arguments the person was asked about.

    `request_id` is what the answer is given under to whoever asked, which may be the model's own service.
    """

    interrupt_id: str
    call: FunctionCallContent
    request_id: str


@dataclass(frozen=True, slots=True)
class InterruptedTurn:
    """A run that ended with questions: the conversation up to them, the calls, and the committed state."""

    conversation: tuple[Message, ...]
    pending: tuple[PendingCall, ...]
    state: JSON


@dataclass(frozen=True, slots=True)
class CarriedOut:
    """The result of a call whose interrupt was answered, as it was sent, and of the state what the call predicted, as
    it was then."""

    message_id: str
    result: FunctionResultContent
    state: JSONObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shown:
    """A member of the state that a run showed and could not take back; `committed` is empty where there is none."""

    value: JSON
    committed: tuple[JSON, ...]


@dataclass(frozen=True, slots=True)
class ThreadRecord:
    """What is known of one thread. `version` counts its changes; a record never saved has version 0."""

    version: int = 0
    turn: InterruptedTurn | None = None
    carried_out: Mapping[str, CarriedOut] = field(default_factory=dict)
    always: frozenset[str] = frozenset()
    owned: JSONObject = field(default_factory=dict)
    shown: Mapping[str, Shown] = field(default_factory=dict)
    session: JSONObject = field(default_factory=dict)
    #: Whether the run that carried out the last answers has not come to its end.
    unfinished: bool = False


class ThreadStore(Protocol):
    """Where records are kept. A thread is named by the scope it was used in and its id, which is no credential."""

    async def load(self, scope: str, thread_id: str) -> ThreadRecord:
        """The record, one of version 0 for a thread that is not known."""
        ...

    async def save(self, scope: str, thread_id: str, record: ThreadRecord) -> bool:
        """Stores `record` if its version is one more than the stored one's; tells whether it did."""
        ...


class InMemoryThreadStore:
    """Records in this process; beyond `max_threads` the least recently used are forgotten."""

    def __init__(self, *, max_threads: int = 10_000) -> None:
        self._max_threads = max_threads
        self._records: OrderedDict[tuple[str, str], ThreadRecord] = OrderedDict()

    async def load(self, scope: str, thread_id: str) -> ThreadRecord:
        record = self._records.get((scope, thread_id))
        if record is None:
            return ThreadRecord()
        self._records.move_to_end((scope, thread_id))
        return record

    async def save(self, scope: str, thread_id: str, record: ThreadRecord) -> bool:
        key = (scope, thread_id)
        stored = self._records.get(key)
        if record.version != (0 if stored is None else stored.version) + 1:
            return False
        self._records[key] = record
        self._records.move_to_end(key)
        while len(self._records) > self._max_threads:
            self._records.popitem(last=False)
        return True
