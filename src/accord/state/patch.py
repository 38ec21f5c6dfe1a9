"""JSON Patch (RFC 6902): a list of operations applied to a document, all of them or none.

The document given is never changed: containers on a touched path are copied, everything else is shared with the
result. What a hostile patch could make grow (operations, pointers, copies) has a limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from accord.errors import PatchError
from accord.protocol import (
    JSON,
    MAX_DEPTH,
    AddOperation,
    CopyOperation,
    JsonPatchOperation,
    MoveOperation,
    RemoveOperation,
    ReplaceOperation,
    TestOperation,
)
from accord.state.editing import PLACE_LENGTH, SCALARS, SET, Editor, Refused
from accord.state.measures import Measures
from accord.state.pointer import MAX_POINTER_LENGTH, PointerError, parse_pointer, shorten

Operation: TypeAlias = Mapping[str, JSON] | JsonPatchOperation
"""An operation in its wire form (`{"op", "path", ...}`) or as the protocol's struct."""

MAX_OPERATIONS = 10_000
"""Default limit of one patch: each operation may shift a whole array, so their number has to be bounded."""

MAX_COPIED_BYTES = 4_194_304
"""Default limit of what the `copy` operations of one patch may add, in bytes of compact JSON: doubling a document
forty times is forty short operations."""

MAX_NESTING = MAX_DEPTH - 1
"""Default limit of how deeply a patch may nest, in levels: what is deeper no event or input carries, since the document
lies inside of one."""

_STRUCTS: dict[type[Any], str] = {
    AddOperation: "add",
    RemoveOperation: "remove",
    ReplaceOperation: "replace",
    MoveOperation: "move",
    CopyOperation: "copy",
    TestOperation: "test",
}
_NO_PLACES: dict[str, tuple[Any, str | int]] = {}
_WITH_VALUE = frozenset({"add", "replace", "test"})
_WITH_SOURCE = frozenset({"move", "copy"})


def apply_patch(
    document: JSON,
    operations: Sequence[Operation],
    *,
    max_operations: int = MAX_OPERATIONS,
    max_pointer_length: int = MAX_POINTER_LENGTH,
    max_copied_bytes: int = MAX_COPIED_BYTES,
    max_depth: int = MAX_NESTING,
) -> JSON:
    """The document that `operations` make of `document`, which itself stays as it is.

    The values of the operations become part of the result as they are, without a copy. `test` compares as RFC 6902
    section 4.6 says: numbers by value (`1` is `1.0`, and is not `true`), objects without regard to member order.

    Raises `PatchError` with the index of the operation that is malformed, does not apply or passes a limit. `max_depth`
    bounds the levels around and in what the operations put into the document.
    """
    editor = Editor(document)
    apply_operations(editor, operations, max_operations, max_pointer_length, max_copied_bytes, max_depth)
    return editor.release()


def apply_operations(
    editor: Editor,
    operations: Sequence[Operation],
    max_operations: int,
    max_pointer_length: int,
    max_copied_bytes: int,
    max_depth: int,
    must_be_object: bool = False,
) -> None:
    """Apply `operations` to the document under edit, or raise `PatchError` and leave it as it was.

    With `must_be_object`, a patch that would leave it anything else does not apply.
    """
    if type(operations) is not list and (isinstance(operations, str | bytes) or not isinstance(operations, Sequence)):
        raise PatchError("a patch is a list of operations", index=0)
    if len(operations) > max_operations:
        raise PatchError(
            f"the patch has {len(operations)} operations (limit max_operations={max_operations})",
            index=max_operations,
        )
    index = -1
    path: Any = ""
    left_to_copy = max_copied_bytes
    bound = editor.depth_bound
    edits = editor.edits
    # Within these limits a remembered place is within all others.
    places = editor.places if max_depth >= PLACE_LENGTH <= max_pointer_length else _NO_PLACES
    deepening = 0  # by how much `move` and `copy` may have put things deeper than they were, at most
    try:
        for operation in operations:
            index += 1
            if type(operation) is ReplaceOperation:  # by far the most frequent: no call to read it
                name, path, value = "replace", operation.path, operation.value
            else:
                path = ""
                name, path, source, value = _read(operation)
            if name == "replace" and type(value) in SCALARS and type(path) is str:
                place = places.get(path)
                if place is not None:
                    # Here, and not in the editor: a call would be half of what this costs.
                    container, key = place
                    edits.append((SET, container, key, container[key]))
                    container[key] = value
                    continue
            tokens = parse_pointer(path, max_pointer_length=max_pointer_length)
            if name == "replace":
                bound = _deepened(bound, tokens, value, max_depth)
                editor.replace(tokens, value, path)
            elif name == "add":
                bound = _deepened(bound, tokens, value, max_depth)
                editor.add(tokens, value)
            elif name == "remove":
                editor.remove(tokens)
            elif name == "test":
                editor.test(tokens, value)
            else:
                source_tokens = parse_pointer(source, max_pointer_length=max_pointer_length)
                deepening += max(0, len(tokens) - len(source_tokens))
                if name == "move":
                    editor.move(source_tokens, tokens)
                    continue
                left_to_copy -= editor.size(source_tokens, left_to_copy)
                if left_to_copy < 0:
                    raise Refused(f"copies add too much (limit max_copied_bytes={max_copied_bytes})")
                editor.copy(source_tokens, tokens)
        if deepening and (bound is None or bound + deepening > max_depth):
            bound = editor.depth(max_depth)
            if bound > max_depth:
                raise _too_deep(max_depth)
        elif deepening:
            bound = (bound or 0) + deepening
        if must_be_object and not isinstance(editor.root, dict):
            path = ""
            raise Refused("the document must stay an object")
    except (Refused, PointerError) as refusal:
        editor.roll_back()
        raise PatchError(str(refusal), index=index, path=path if isinstance(path, str) else "") from None
    except BaseException:
        editor.roll_back()
        raise
    editor.depth_bound = bound
    editor.commit()


def _deepened(bound: int | None, tokens: tuple[str, ...], value: JSON, max_depth: int) -> int | None:
    """The bound of the document's depth once `value` stands at `tokens`."""
    depth = len(tokens)
    if type(value) is dict or type(value) is list:
        depth += Measures().depth(value, max_depth, lasting=False)
    if depth > max_depth:
        raise _too_deep(max_depth)
    return None if bound is None else max(bound, depth)


def _too_deep(max_depth: int) -> Refused:
    return Refused(f"the document would nest too deeply (limit max_depth={max_depth})")


def _read(operation: Operation) -> tuple[str, Any, Any, JSON]:
    """Name, path, source path and value of an operation, in whichever form it comes."""
    name = _STRUCTS.get(type(operation))
    if name is None:
        return _read_mapping(operation)
    return (
        name,
        operation.path,  # type: ignore[union-attr]
        operation.from_ if name in _WITH_SOURCE else None,  # type: ignore[union-attr]
        operation.value if name in _WITH_VALUE else None,  # type: ignore[union-attr]
    )


def _read_mapping(operation: Any) -> tuple[str, Any, Any, JSON]:
    if type(operation) is not dict and not isinstance(operation, Mapping):
        raise Refused(f"an operation is an object, not {type(operation).__name__}")
    try:
        name = operation["op"]
        if name in _WITH_VALUE:
            return name, operation["path"], None, operation["value"]
        if name in _WITH_SOURCE:
            return name, operation["path"], operation["from"], None
        if name == "remove":
            return name, operation["path"], None, None
    except KeyError as error:
        raise Refused(f"the member {error} is missing") from None
    except TypeError:
        raise Refused("the member 'op' is not a string") from None
    raise Refused(f"there is no operation {shorten(str(name))}")
