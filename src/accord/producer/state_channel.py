"""The one place a run's state changes, and the smallest event that says so (rules section 5).

The channel knows two values: what the producer holds, the committed state, and what the consumer holds, the state as
last sent. They differ in what a prediction shows and in private members, which never leave. Law: each delta is applied
to the sent value before it leaves, and the result is what the channel then takes the consumer to hold. An event is
encoded before anything is committed.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from accord.errors import PatchError, ProtocolViolation
from accord.producer.draft import DraftArray, DraftObject, draft_of, finished
from accord.producer.merge import merge
from accord.producer.plain import plain
from accord.producer.typed import TypedState
from accord.protocol import JSON, JSONObject, StateDeltaEvent, StateSnapshotEvent, read_operation
from accord.protocol.conform import escape_token
from accord.state import SharedValue, apply_patch, diff, identical

if TYPE_CHECKING:
    from accord.producer.run import Run

ModelT = TypeVar("ModelT")

#: Up to this many bytes a committed prediction is confirmed by the whole state, beyond it by its members.
MAX_CONFIRMING_SNAPSHOT = 65_536


class StateGuard(Protocol):
    """What a state must satisfy before it is committed."""

    @property
    def private(self) -> Collection[str]:
        """Top-level members that never leave the producer."""
        ...

    def check(self, state: JSON) -> None:
        """Raises an error that names the path of what is wrong."""
        ...


class StateChannel:
    """The shared state of one run. Values that go in are copied, values that come out are the caller's own."""

    def __init__(self, run: Run, state: JSON) -> None:
        self._run = run
        self._held: JSON = state
        self._sent = SharedValue(state)
        self._guard: StateGuard | None = None
        self._private: frozenset[str] = frozenset()
        self._predictions: list[Prediction] = []
        self._differs = False
        self._editing = threading.RLock()
        self._thread = threading.get_ident()

    @property
    def value(self) -> JSON:
        """A copy of the committed state; changing it changes nothing until it is `set`."""
        return plain(self._held)

    @property
    def predicting(self) -> bool:
        """Whether the consumer is shown something that is not committed."""
        return self._differs

    def begin(self, committed: JSON, guard: StateGuard | None = None) -> None:
        """Says what the committed state is where it is not what the consumer sent, and what changes must satisfy.

        Nothing is sent; the difference is taken back by the next `set` or `settle`. `committed` is JSON and is not
        copied: what it shares with the consumer's state is known to be the same.
        """
        with self._run.lock:
            if guard is not None:
                self._guard, self._private = guard, frozenset(guard.private)
            self._held = committed
            self._differs = bool(diff(self._sent.value, self._public(self._held)))

    def typed(self, model: type[ModelT], path: str = "") -> TypedState[ModelT]:
        """The committed state, or what stands at `path` of it, as a Pydantic, msgspec or dataclass model."""
        return TypedState(self, model, path)

    # Committing

    def set(self, value: Any) -> None:
        """Commits a whole new state: JSON, or a Pydantic model, msgspec struct or dataclass made into JSON.

        Raises `EncodingError` naming the path of what is no JSON; the state stays as it was then. What predictions
        have shown is taken back with it.
        """
        with self._run.lock:
            new = plain(value)
            self._check(new)
            public = self._public(new)
            self._send(diff(self._sent.value, public), public)
            self._held, self._differs = new, False

    @contextmanager
    def edit(self) -> Iterator[Any]:
        """A draft of the committed state to change in place; what changed is committed when the block ends.

        Only what is touched is copied. Changes that others committed meanwhile are kept beside the draft's, as `merge`
        does it; what both have changed raises `PatchError`. An exception commits nothing. Blocks in threads of their
        own come one after the other.
        """
        elsewhere = threading.get_ident() != self._thread  # where it waits for nobody, since all would wait with it
        with self._editing if elsewhere else nullcontext():
            base = self._held
            draft = draft_of(base)
            if not isinstance(draft, DraftObject | DraftArray):
                raise TypeError(f"only an object or an array can be edited, not {base!r}; use set")
            yield draft
            self.merge(base, finished(draft, plain))

    @property
    def committed(self) -> JSON:
        """The committed state itself, not to be changed: what `merge` takes as the base of a change."""
        return self._held

    def merge(self, base: JSON, ours: JSON) -> None:
        """Commits what `base`, a committed state of this run, has become in `ours`, beside what others did since.

        What both have changed raises `PatchError`.
        """
        with self._run.lock:
            self.patch(diff(self._held, merge(base, ours, self._held)))

    def patch(self, operations: Sequence[Any]) -> None:
        """Commits RFC 6902 operations on the committed state, all or none; raises `PatchError`."""
        with self._run.lock:
            sent: list[Any] = [plain(operation) for operation in operations]
            if not sent:
                return
            new = self.patched(self._held, sent)
            self._check(new)
            public = self._public(new)
            if self._private and any(_touches(operation, self._private) for operation in sent):
                sent = diff(self._public(self._held), public)
            if self._differs:
                if any(_path(operation) == "" for operation in sent):
                    sent = _by_member(self._public(self._held), public)
                try:
                    self.patched(self._sent.value, sent)
                except PatchError:  # a prediction stands in the way: what is committed has the last word
                    sent, self._differs = diff(self._sent.value, public), False
            self._send(sent, public)
            self._held = new

    def patched(self, state: JSON, operations: Sequence[Any]) -> JSON:
        """What RFC 6902 operations make of a state, within the run's limit of depth; raises `PatchError`."""
        return apply_patch(state, operations, max_depth=self._run.max_nesting)

    def snapshot(self) -> None:
        """Sends the whole committed state, for a consumer whose own is not known; ends what predictions show."""
        with self._run.lock:
            self._send_whole(self._public(self._held))
            self._differs = False

    # Predicting

    def predict(self, members: Collection[str]) -> Prediction:
        """Begins to show values of these top-level members that are not committed yet."""
        return Prediction(self, frozenset(members))

    def settle(self) -> None:
        """Takes back what predictions have shown: the consumer returns to the committed state by the smallest event."""
        with self._run.lock:
            if self._differs:
                public = self._public(self._held)
                self._send(diff(self._sent.value, public), public)
                self._differs = False
            self._predictions.clear()

    def keep_prediction(self) -> None:
        """Lets what is shown outlive the run, which waits for the answer to it."""
        self._differs = False

    def adopt(self, prediction: Prediction) -> None:
        """Takes note of a prediction that an earlier run has shown and that is still on the consumer's screen."""
        self._predictions.append(prediction)

    def shown(self, members: Collection[str]) -> JSONObject:
        """What the consumer holds of these members."""
        with self._run.lock:
            sent = self._sent.value
        return {name: sent[name] for name in members if name in sent} if isinstance(sent, dict) else {}

    def show(self, prediction: Prediction, operations: Sequence[JSONObject]) -> None:
        """Sends a prediction's operations; raises `PatchError` when they do not fit what the consumer holds."""
        if not operations:
            return
        with self._run.lock:
            self._send_delta(operations)
            self._differs = True
            if prediction not in self._predictions:
                self._predictions.append(prediction)

    def confirm(self, prediction: Prediction, values: Mapping[str, JSON]) -> None:
        """Commits members that were predicted, and says so with authority: what is sent does not rely on the shown."""
        with self._run.lock:
            new = {**(self._held if isinstance(self._held, dict) else {}), **plain(dict(values))}
            self._check(new)
            self._forget(prediction)
            public = self._public(new)
            others = bool(self._predictions)
            if not isinstance(self._held, dict) or (not others and self._is_small(public)):
                self._send_whole(public)
            else:
                shown = [name for name in values if name in public]
                self._send(
                    [{"op": "add", "path": f"/{escape_token(name)}", "value": public[name]} for name in shown], public
                )
                if self._differs and not others:
                    self._send(diff(self._sent.value, public), public)
            self._held, self._differs = new, others

    def take_back(self, prediction: Prediction) -> None:
        """Returns the members of a prediction to what is committed, except where another prediction shows them."""
        with self._run.lock:
            if prediction not in self._predictions:
                return
            self._forget(prediction)
            if not self._predictions:
                self.settle()
                return
            shown_by_others = frozenset().union(*(other.members for other in self._predictions))
            sent, committed = self._sent.value, self._public(self._held)
            if isinstance(sent, dict) and isinstance(committed, dict):
                target = dict(sent)
                for name in prediction.members - shown_by_others:
                    if name in committed:
                        target[name] = committed[name]
                    else:
                        target.pop(name, None)
                self._send(diff(sent, target), target)

    # Sending

    def _send(self, operations: Sequence[Any], public: JSON) -> None:
        """Sends operations on the sent value, or the whole of `public` where they replace all of it anyway."""
        if not operations:
            return
        if any(_path(operation) == "" for operation in operations):
            self._send_whole(public)
            return
        try:
            self._send_delta(operations)
        except ProtocolViolation as violation:
            if violation.rule != "depth":
                raise
            self._send_whole(public)  # which nests two levels less than an operation that carries it

    def _send_whole(self, public: JSON) -> None:
        self._run.emit(StateSnapshotEvent(snapshot=public))
        self._sent.replace(public)

    def _send_delta(self, operations: Sequence[Any]) -> None:
        event = StateDeltaEvent(delta=[read_operation(operation) for operation in operations])
        payload = self._run.encoded(event)
        self._sent.apply(operations, max_depth=self._run.max_nesting)
        self._run.commit(event, payload)

    def _check(self, state: JSON) -> None:
        if self._guard is not None:
            self._guard.check(state)

    def _public(self, state: JSON) -> JSON:
        if not self._private or not isinstance(state, dict) or self._private.isdisjoint(state):
            return state
        return {name: member for name, member in state.items() if name not in self._private}

    def _forget(self, prediction: Prediction) -> None:
        if prediction in self._predictions:
            self._predictions.remove(prediction)

    @staticmethod
    def _is_small(public: JSON) -> bool:
        return len(msgspec.json.encode(public)) <= MAX_CONFIRMING_SNAPSHOT


class Prediction:
    """Top-level members of the state whose values the consumer is shown before they are committed."""

    def __init__(self, channel: StateChannel, members: frozenset[str]) -> None:
        self._channel = channel
        self.members = members

    def adopt(self) -> None:
        """Says that an earlier run has shown it and that it is still on the consumer's screen."""
        self._channel.adopt(self)

    def show(self, operations: Sequence[JSONObject]) -> None:
        """Sends RFC 6902 operations within the members; raises `PatchError` when they do not fit."""
        self._channel.show(self, operations)

    def confirm(self, values: Mapping[str, Any]) -> None:
        """Commits the members' values, and sends them or the whole state."""
        self._channel.confirm(self, values)

    def take_back(self) -> None:
        """Returns the members to what is committed."""
        self._channel.take_back(self)


def _by_member(old: JSON, new: JSON) -> list[Any]:
    """Operations that touch only the members that differ, so that what is predicted of the others stays."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return [{"op": "replace", "path": "", "value": new}]
    removed = [{"op": "remove", "path": f"/{escape_token(name)}"} for name in old if name not in new]
    changed = [name for name, value in new.items() if name not in old or not identical(old[name], value)]
    return [*removed, *({"op": "add", "path": f"/{escape_token(name)}", "value": new[name]} for name in changed)]


def _path(operation: Any) -> str:
    path: str = operation["path"] if isinstance(operation, dict) else operation.path
    return path


def _touches(operation: Any, members: Collection[str]) -> bool:
    """Whether an operation, as a JSON object, reads or writes one of these top-level members, or all of them."""
    for pointer in (operation["path"], operation.get("from")):
        if pointer is not None:
            first = pointer[1:].split("/", 1)[0].replace("~1", "/").replace("~0", "~")
            if pointer == "" or first in members:
                return True
    return False
