"""What is open in a run until it is ended: it opens when its handle is made, and closes once.

An item that grows says the same at every step but for the text that is new. What stands around the text is encoded
when the item opens, and each step only puts the text between.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from msgspec import UNSET, UnsetType

from accord.protocol import (
    Metadata,
    ReasoningMessageContentEvent,
    TextMessageContentEvent,
    ToolCallArgsEvent,
    encode_event,
)

if TYPE_CHECKING:
    from accord.producer.run import Run

#: An event that adds text to an open item.
Addition: TypeAlias = TextMessageContentEvent | ReasoningMessageContentEvent | ToolCallArgsEvent

_NO_TEXT: Final = b'"delta":""'  # stands nowhere else: within a string of JSON, its quotes would be escaped


class Item:
    """What every handle shares: it belongs to a run, may belong to a subagent, and is ended once."""

    def __init__(self, run: Run, subagent_run_id: str | UnsetType) -> None:
        self._run = run
        self.owner = subagent_run_id
        self._ended = False

    def end(self) -> None:
        """Closes the item; a second call, or one after the run closed it, does nothing."""
        with self._run.lock:
            if not self._ended:
                self._ended = True
                if self._is_open():
                    self._close()

    def _is_open(self) -> bool:
        raise NotImplementedError

    def _close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()


class GrowingItem(Item):
    """A handle that text is written to; `opener` is the event that opened it, with the same id and owner."""

    def __init__(self, run: Run, opener: type, identifier: str, subagent_run_id: str | UnsetType) -> None:
        super().__init__(run, subagent_run_id)
        self.id = identifier
        #: Of all items of the kind: the ids of those that are open now, and who owns them.
        self.open_ids, self.owners = run.open_ids(opener), run.owners(opener)
        before, after = encode_event(self.addition("")).split(_NO_TEXT)
        #: The JSON of an addition, up to its text and from there on.
        self.before, self.after = before + _NO_TEXT[:-2], after

    def write(self, delta: str, *, metadata: Metadata | UnsetType = UNSET) -> None:
        """Appends text; empty text without metadata is nothing to say and is not sent."""
        if metadata is UNSET and type(delta) is str:
            if delta:
                self._run.append(self, delta)
        elif delta or metadata is not UNSET:
            self._run.emit(self.addition(delta, metadata))

    def addition(self, delta: str, metadata: Metadata | UnsetType = UNSET) -> Addition:
        """The event that adds `delta`."""
        raise NotImplementedError

    def _is_open(self) -> bool:
        return self.id in self.open_ids
