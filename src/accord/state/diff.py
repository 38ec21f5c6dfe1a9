"""The operations that make one JSON value of another (RFC 6902), few and small.

`apply_patch(old, diff(old, new))` is `new` with its types kept. Parts that are the same object cost nothing. The
result is never larger on the wire than a `replace` of the whole document.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from accord.errors import EncodingError
from accord.protocol import JSON, JSONObject
from accord.protocol.conform import escape_token
from accord.state.equality import identical
from accord.state.patch import MAX_OPERATIONS
from accord.state.pointer import MAX_POINTER_LENGTH, is_refused_below
from accord.state.sequence import Alignment, content_keys, id_keys
from accord.state.size import json_size

MAX_DEPTH = 64
"""How deep the comparison goes by default; what differs further down is replaced as a whole from there."""

_MAX_STEP = 256
_ABSENT: Any = object()
_encode = msgspec.msgpack.Encoder().encode


def diff(
    old: JSON,
    new: JSON,
    *,
    max_depth: int = MAX_DEPTH,
    max_operations: int = MAX_OPERATIONS,
    max_pointer_length: int = MAX_POINTER_LENGTH,
) -> list[JSONObject]:
    """Operations (`{"op", "path", "value" or "from"}`) that turn `old` into `new`; none when they are the same.

    Types count: `1`, `1.0` and `true` are three values; the order of an object's members does not. Lists are compared
    from both ends; in between, elements are known by an id-like member (`sequence.ID_MEMBERS`) or by content, so that
    one that moved is moved. Values in the result are the objects in `new`, not copies.

    Never more than `max_operations`, no pointer longer than `max_pointer_length` and none that peers refuse, as they do
    for a member `__proto__`: a container that would take such is replaced. Raises `EncodingError` for a member name
    that is not a string.
    """
    comparison = _Comparison(max_depth, max_operations, max_pointer_length)
    cost = comparison.compare(old, new, "", 0)
    operations = comparison.operations
    if operations and (len(operations) > max_operations or comparison.dearer_than_whole(cost, "", new)):
        return [{"op": "replace", "path": "", "value": new}]
    return operations


class _Comparison:
    """Collects operations; each method returns what its operations cost, in bytes of compact JSON."""

    def __init__(self, max_depth: int, max_operations: int, max_pointer_length: int) -> None:
        self.operations: list[JSONObject] = []
        self._max_depth = max_depth
        self._max_operations = max_operations
        self._max_pointer_length = max_pointer_length

    def compare(self, old: JSON, new: JSON, path: str, depth: int) -> int:
        if old is new:
            return 0
        kind = type(old)
        if kind is not type(new) or (kind is not dict and kind is not list) or depth >= self._max_depth:
            return 0 if identical(old, new) else self._put("replace", path, new)
        mark = len(self.operations)
        try:
            cost = (self._objects if kind is dict else self._lists)(old, new, path, depth + 1)
        except _Unsuitable:
            cost = -1
        if cost < 0 or (len(self.operations) - mark > 1 and self.dearer_than_whole(cost, path, new)):
            del self.operations[mark:]
            return self._put("replace", path, new)
        return cost

    def dearer_than_whole(self, cost: int, path: str, new: JSON) -> bool:
        """Whether operations of `cost` bytes are more than a `replace` of the whole value at `path`."""
        around = _size("replace", path) + len(',"value":')
        return cost > around + json_size(new, cost - around)

    def _objects(self, old: JSONObject, new: JSONObject, path: str, depth: int) -> int:
        cost = 0
        mark = len(self.operations)
        for key in old:
            if key not in new:
                cost += self._put("remove", self._member(path, key))
        for key, value in new.items():
            other = old.get(key, _ABSENT)
            if other is value:
                continue
            if other is _ABSENT:
                cost += self._put("add", self._member(path, key), value)
            elif not is_refused_below(path, key):
                cost += self.compare(other, value, self._member(path, key), depth)
            elif not identical(other, value):
                raise _Unsuitable
            self._check_count(len(self.operations) - mark)
        return cost

    def _lists(self, old: list[JSON], new: list[JSON], path: str, depth: int) -> int:
        shorter = min(len(old), len(new))
        start = 0 if len(old) == len(new) == 1 else _common(old, new, shorter)
        old_end, new_end = len(old), len(new)
        if old_end - start != 1 or new_end - start != 1:
            tail = _common(old, new, shorter - start, backwards=True)
            old_end, new_end = old_end - tail, new_end - tail
        olds, news = old[start:old_end], new[start:new_end]
        if len(olds) == 1 and len(news) == 1:
            return self.compare(olds[0], news[0], f"{path}/{start}", depth)
        if olds and news:
            return self._realign(olds, news, path, start, depth)
        self._check_count(len(olds) + len(news))
        cost = 0
        for index in range(old_end - 1, new_end - 1, -1):
            cost += self._put("remove", f"{path}/{index}")
        for index, value in enumerate(news, start):
            cost += self._put("add", f"{path}/{index}", value)
        return cost

    def _realign(self, olds: list[JSON], news: list[JSON], path: str, start: int, depth: int) -> int:
        ids = id_keys(olds, news)
        alignment = Alignment(*(ids or (content_keys(olds), content_keys(news))))
        removed, added, moves = alignment.removed(), alignment.added(), alignment.moves()
        self._check_count(len(removed) + len(added) + len(moves))
        mark = len(self.operations)
        cost = 0
        for index in removed:
            cost += self._put("remove", f"{path}/{start + index}")
        for source, target in moves:
            origin = f"{path}/{start + source}"
            cost += self._put("move", f"{path}/{start + target}", source=origin)
        for index in added:
            cost += self._put("add", f"{path}/{start + index}", news[index])
        for index in alignment.paired if ids is None else range(len(news)):
            old_index = alignment.kept[index]
            if old_index >= 0:
                cost += self.compare(olds[old_index], news[index], f"{path}/{start + index}", depth)
                self._check_count(len(self.operations) - mark)
        return cost

    def _member(self, path: str, name: Any) -> str:
        if not isinstance(name, str):
            raise EncodingError(f"a member name must be a string, not {type(name).__name__}", path=path)
        if is_refused_below(path, name):
            raise _Unsuitable
        return f"{path}/{escape_token(name)}"

    def _put(self, op: str, path: str, value: JSON = _ABSENT, *, source: str | None = None) -> int:
        if max(len(path), len(source or "")) > self._max_pointer_length:
            raise _Unsuitable
        operation: JSONObject = {"op": op, "path": path}
        cost = _size(op, path)
        if source is not None:
            operation["from"] = source
            cost += len(',"from":') + json_size(source)
        elif value is not _ABSENT:
            operation["value"] = value
            cost += len(',"value":') + json_size(value)
        self.operations.append(operation)
        return cost

    def _check_count(self, count: int) -> None:
        if count > self._max_operations:
            raise _Unsuitable


class _Unsuitable(Exception):
    """A container cannot be changed in steps that may be sent; it has to be replaced."""


def _size(op: str, path: str) -> int:
    """Bytes of an operation without its value or source, and of the comma that follows it in the list."""
    return len('{"op":"","path":},') + len(op) + json_size(path)


def _common(old: list[JSON], new: list[JSON], most: int, *, backwards: bool = False) -> int:
    """How many elements, of `most`, are the same from the start of both lists on, or from the end.

    Equal copies are compared as bytes, more and more of them at a time while that succeeds.
    """
    old_last, new_last = len(old) - 1, len(new) - 1
    index, step = 0, 1
    while index < most:
        if backwards:
            while index < most and old[old_last - index] is new[new_last - index]:
                index += 1
        else:
            while index < most and old[index] is new[index]:
                index += 1
        step = min(step, most - index)
        olds, news = _part(old, index, step, backwards), _part(new, index, step, backwards)
        if step > 1:
            if _same_bytes(olds, news):
                index += step
                step = min(2 * step, _MAX_STEP)
            else:
                index += _common_by_halves(olds, news, backwards)
                step = 1
        elif identical(olds, news):
            index += step
            step = 2
        else:
            break
    return index


def _common_by_halves(old: list[JSON], new: list[JSON], backwards: bool) -> int:
    """The same of two lists that are not the same as bytes: each element is encoded once more."""
    same, different = 0, len(old)
    while different - same > 1:
        step = (different - same) // 2
        if _same_bytes(_part(old, same, step, backwards), _part(new, same, step, backwards)):
            same += step
        else:
            different = same + step
    return same


def _part(values: list[JSON], index: int, step: int, backwards: bool) -> list[JSON]:
    """`step` elements from `index` on, counted from the end if `backwards`; in their order."""
    start = len(values) - index - step if backwards else index
    return values[start : start + step]


def _same_bytes(old: Sequence[JSON], new: Sequence[JSON]) -> bool:
    """Whether both are certainly the same: MessagePack keeps types, signs and the order of members apart."""
    try:
        return _encode(old) == _encode(new)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return False
