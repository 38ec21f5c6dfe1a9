"""One value changed by two at once, put together: what each has changed stays changed, or it is an error.

Members are taken one by one. Of a list both may change different stretches, and what both append follows one another.
"""

from __future__ import annotations

from typing import Any

from accord.errors import PatchError
from accord.protocol import JSON, JSONObject
from accord.protocol.conform import escape_token
from accord.state import identical

_ABSENT: Any = object()


def merge(base: JSON, ours: JSON, theirs: JSON, path: str = "") -> JSON:
    """What `base` has become by the change to `ours` and, at the same time, the change to `theirs`.

    Raises `PatchError` naming the path of what both have changed. Nothing that is given is changed.
    """
    if theirs is base:
        return ours
    if ours is base:
        return theirs
    kinds = {type(ours), type(theirs), *([] if base is _ABSENT else [type(base)])}
    if kinds == {dict}:
        return _objects({} if base is _ABSENT else base, ours, theirs, path)
    if kinds == {list}:
        return _lists([] if base is _ABSENT else base, ours, theirs, path)
    if _same(theirs, base):
        return ours
    if _same(ours, base):
        return theirs
    if _same(ours, theirs) and type(ours) not in (int, float):  # two may both count up from one number
        return ours
    raise _conflict(path)


def _objects(base: JSONObject, ours: JSONObject, theirs: JSONObject, path: str) -> JSONObject:
    merged: JSONObject = {}
    for name in {**theirs, **ours}:
        was, own, their = (each.get(name, _ABSENT) for each in (base, ours, theirs))
        value = merge(was, own, their, f"{path}/{escape_token(name)}")
        if value is not _ABSENT:
            merged[name] = value
    return merged


def _lists(base: list[JSON], ours: list[JSON], theirs: list[JSON], path: str) -> list[JSON]:
    our_start, our_end = _changed(base, ours)
    their_start, their_end = _changed(base, theirs)
    if our_start >= their_end:  # behind it; where both insert at one place, theirs was first
        return [*theirs[: len(theirs) - (len(base) - their_end)], *base[their_end:our_start], *ours[our_start:]]
    if their_start >= our_end:
        return [*ours[: len(ours) - (len(base) - our_end)], *base[our_end:their_start], *theirs[their_start:]]
    length = len(base)
    if len(ours) < length or len(theirs) < length:
        raise _conflict(path)
    kept = [merge(base[place], ours[place], theirs[place], f"{path}/{place}") for place in range(length)]
    return [*kept, *theirs[length:], *ours[length:]]


def _changed(base: list[JSON], changed: list[JSON]) -> tuple[int, int]:
    """The stretch of `base` that is another one in `changed`."""
    shorter = min(len(base), len(changed))
    start = 0
    while start < shorter and _same(base[start], changed[start]):
        start += 1
    end = 0
    while end < shorter - start and _same(base[-1 - end], changed[-1 - end]):
        end += 1
    return start, len(base) - end


def _same(left: JSON, right: JSON) -> bool:
    if left is right or left is _ABSENT or right is _ABSENT:
        return left is right
    return identical(left, right)


def _conflict(path: str) -> PatchError:
    return PatchError("somebody else has changed it meanwhile", index=0, path=path)
