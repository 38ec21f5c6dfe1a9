"""The shared state, or a part of it, as a value of a model: Pydantic, msgspec or a dataclass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from accord.producer.plain import plain
from accord.protocol import JSON, JSONObject
from accord.state import PointerError, array_index, diff, identical, parse_pointer

if TYPE_CHECKING:
    from accord.producer.state_channel import StateChannel

ModelT = TypeVar("ModelT")


class TypedState(Generic[ModelT]):
    """What stands at `path` (a JSON Pointer) of the shared state, as a `model`. Members that are None stay null."""

    def __init__(self, channel: StateChannel, model: type[ModelT], path: str) -> None:
        self._channel = channel
        self._model = model
        self._path = path

    def get(self) -> ModelT:
        """A value of the caller's own. Raises `LookupError` where the state has nothing there, member or element, and
        what the model raises for a value that does not fit it."""
        return _read(self._raw(), self._model)

    def set(self, value: ModelT) -> None:
        """Commits `value` there; what it changes is sent.

        A member, or an element at the end of its array, may be new; another place that there is not is a `PatchError`.
        """
        new = plain(value)
        try:
            operations = [_below(self._path, operation) for operation in diff(self._raw(), new)]
        except LookupError:
            operations = [{"op": "add", "path": self._path, "value": new}]
        self._channel.patch(operations)

    @contextmanager
    def edit(self) -> Iterator[ModelT]:
        """A value to change in place; what changed is committed when the block ends, beside what others did.

        Where it was changed, the model's defaults are committed with it. What both have changed raises `PatchError`.
        """
        base = self._channel.committed
        value = self.get()
        before = plain(value)
        yield value
        after = plain(value)
        if not identical(before, after):
            self._channel.merge(base, self._channel.patched(base, [{"op": "add", "path": self._path, "value": after}]))

    def _raw(self) -> JSON:
        value = self._channel.value
        for token in parse_pointer(self._path):
            try:
                value = value[array_index(token, len(value)) if isinstance(value, list) else token]
            except (PointerError, KeyError, TypeError):
                raise LookupError(f"the state has nothing at {self._path!r}") from None
        return value


def _below(path: str, operation: JSONObject) -> JSONObject:
    """An operation on a part of the state as one on the state."""
    return {**operation, **{name: path + operation[name] for name in ("path", "from") if name in operation}}


def _read(value: Any, model: type[ModelT]) -> ModelT:
    validate = getattr(model, "model_validate", None)
    if validate is not None:  # a Pydantic model, without importing Pydantic for it
        validated: ModelT = validate(value)
        return validated
    return msgspec.convert(value, model)
