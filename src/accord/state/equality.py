"""The two equalities of JSON values: as RFC 6902 compares them, and as a reader of types does.

Both walk with a stack of their own, so depth costs memory and never the interpreter's recursion limit.
"""

from __future__ import annotations

from math import copysign
from typing import Any

_ABSENT = object()


def json_equal(left: Any, right: Any) -> bool:
    """Equality of RFC 6902 section 4.6: numbers by value (`1` is `1.0`), `true` is not `1`, member order ignored."""
    pairs = [(left, right)]
    while pairs:
        left, right = pairs.pop()
        if left is right:
            continue
        if isinstance(left, dict):
            if not isinstance(right, dict) or len(left) != len(right):
                return False
            for key, value in left.items():
                other = right.get(key, _ABSENT)
                if other is _ABSENT:
                    return False
                pairs.append((value, other))
        elif isinstance(left, list):
            if not isinstance(right, list) or len(left) != len(right):
                return False
            pairs.extend(zip(left, right, strict=True))
        elif isinstance(right, dict | list) or isinstance(left, bool) or isinstance(right, bool) or left != right:
            return False
    return True


def identical(left: Any, right: Any) -> bool:
    """Equality that keeps types: `1`, `1.0` and `true` differ, and so do `0.0` and `-0.0`; member order ignored."""
    if left is right:
        return True
    pairs = [(left, right)]
    while pairs:
        left, right = pairs.pop()
        kind = type(left)
        if kind is not type(right):
            return False
        if kind is dict:
            if len(left) != len(right):
                return False
            for key, value in left.items():
                other = right.get(key, _ABSENT)
                if value is not other:
                    if type(value) is not type(other):
                        return False
                    pairs.append((value, other))
        elif kind is list:
            if len(left) != len(right):
                return False
            pairs.extend([pair for pair in zip(left, right, strict=True) if pair[0] is not pair[1]])
        elif left != right or (kind is float and not left and copysign(1, left) != copysign(1, right)):
            return False
    return True
