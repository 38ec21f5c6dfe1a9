"""A JSON value that many patches change in turn and that is read now and then.

What was handed out is never changed afterwards; what nobody has seen is changed in place. So a patch costs what it
touches, however large the value is, and a wide container is copied once per reading at most.
"""

from __future__ import annotations

from collections.abc import Sequence

from accord.protocol import JSON
from accord.state.editing import Editor
from accord.state.patch import MAX_COPIED_BYTES, MAX_NESTING, MAX_OPERATIONS, Operation, apply_operations
from accord.state.pointer import MAX_POINTER_LENGTH


class SharedValue:
    """Holds one JSON value; the value given and the values inside operations count as seen from the start."""

    __slots__ = ("_editor",)

    def __init__(self, value: JSON) -> None:
        self._editor = Editor(value)

    @property
    def value(self) -> JSON:
        """The value as it is now. It stays as it is: later patches copy what they have to change."""
        return self._editor.release()

    def replace(self, value: JSON) -> None:
        """Hold `value` instead."""
        self._editor = Editor(value)

    def apply(
        self,
        operations: Sequence[Operation],
        *,
        max_operations: int = MAX_OPERATIONS,
        max_pointer_length: int = MAX_POINTER_LENGTH,
        max_copied_bytes: int = MAX_COPIED_BYTES,
        max_depth: int = MAX_NESTING,
        must_be_object: bool = False,
    ) -> None:
        """Apply a JSON Patch, as `apply_patch` does; on `PatchError` the value is what it was.

        With `must_be_object`, a patch that would make the value anything but an object does not apply.
        """
        apply_operations(
            self._editor, operations, max_operations, max_pointer_length, max_copied_bytes, max_depth, must_be_object
        )
