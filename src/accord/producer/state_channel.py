"""The one place a run's state changes, and the smallest event that says so (rules section 5).

The channel knows two values: what the producer holds, the committed state, and what the consumer holds, the state as
last sent. They differ only while a prediction is open. Law: each delta is applied to the sent value before it leaves,
and the result is what the channel then takes the consumer to hold. An event is encoded before anything is committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from accord.errors import PatchError
from accord.producer.draft import DraftArray, DraftObject, draft_of, finished
from accord.protocol import JSON, JSONObject, StateDeltaEvent, StateSnapshotEvent, read_operation
from accord.state import SharedValue, apply_patch, diff

if TYPE_CHECKING:
    from accord.producer.run import Run


class StateChannel:
    """The shared state of one run. Values that go in are copied, values that come out are the caller's own."""

    def __init__(self, run: Run, state: JSON) -> None:
        self._run = run
        self._held: JSON = state
        self._sent = SharedValue(state)
        self._predicting = False

    @property
    def value(self) -> JSON:
        """A copy of the committed state; changing it changes nothing until it is `set`."""
        return self._run.plain(self._held)

    @property
    def predicting(self) -> bool:
        """Whether the consumer has been shown something that is not committed."""
        return self._predicting

    def set(self, value: Any) -> None:
        """Commits a whole new state: JSON, or a Pydantic model, msgspec struct or dataclass made into JSON.

        Raises `EncodingError` naming the path of what is no JSON; the state stays as it was then. Closes an open
        prediction.
        """
        with self._run.lock:
            new = self._run.plain(value)
            self._send(diff(self._sent.value, new), new)
            self._held, self._predicting = new, False

    @contextmanager
    def edit(self) -> Iterator[Any]:
        """A draft of the committed state to change in place; what changed is committed when the block ends.

        Only what is touched is copied. Changes that others committed meanwhile are kept: the draft's changes are put
        on top of them, and `PatchError` is raised when they no longer fit. An exception commits nothing.
        """
        base = self._held
        draft = draft_of(base)
        if not isinstance(draft, DraftObject | DraftArray):
            raise TypeError(f"only an object or an array can be edited, not {base!r}; use set")
        yield draft
        self.patch(diff(base, finished(draft, self._run.plain)))

    def patch(self, operations: Sequence[Any]) -> None:
        """Commits RFC 6902 operations on the committed state, all or none; raises `PatchError`."""
        if not operations:
            return
        with self._run.lock:
            plain = [self._run.plain(operation) for operation in operations]
            new = apply_patch(self._held, plain)
            if self._predicting:
                try:
                    apply_patch(self._sent.value, plain)
                except PatchError:  # the prediction stands in the way: the commit is authoritative and closes it
                    self._predicting = False
                    plain = diff(self._sent.value, new)
            self._send(plain, new)
            self._held = new

    def predict(self, operations: Sequence[JSONObject]) -> None:
        """Shows the consumer what is not committed; raises `PatchError` when it does not fit what it holds."""
        if not operations:
            return
        with self._run.lock:
            self._emit_delta(operations)
            self._predicting = True

    def settle(self) -> None:
        """Ends an open prediction: the consumer is brought back to the committed state by the smallest event."""
        with self._run.lock:
            if self._predicting:
                self._send(diff(self._sent.value, self._held), self._held)
                self._predicting = False

    def keep_prediction(self) -> None:
        """Lets an open prediction outlive the run, which waits for the answer to it."""
        self._predicting = False

    def snapshot(self) -> None:
        """Sends the whole committed state, for a consumer whose own is not known. Closes an open prediction."""
        with self._run.lock:
            self._run.emit(StateSnapshotEvent(snapshot=self._held))
            self._sent.replace(self._held)
            self._predicting = False

    def _send(self, operations: Sequence[Any], new: JSON) -> None:
        """Sends operations on the sent value, or the whole of `new` where they replace all of it anyway."""
        if not operations:
            return
        if any(_path(operation) == "" for operation in operations):
            self._run.emit(StateSnapshotEvent(snapshot=new))
            self._sent.replace(new)
        else:
            self._emit_delta(operations)

    def _emit_delta(self, operations: Sequence[Any]) -> None:
        event = StateDeltaEvent(delta=[read_operation(each) for each in operations])
        payload = self._run.encoded(event)
        self._sent.apply(operations)
        self._run.commit(event, payload)


def _path(operation: Any) -> str:
    path: str = operation["path"] if isinstance(operation, dict) else operation.path
    return path


def initial_state(state: JSON) -> JSON:
    """What the consumer holds when a run begins: the input's state, or `{}` (rules section 5)."""
    return {} if state is UNSET else state
