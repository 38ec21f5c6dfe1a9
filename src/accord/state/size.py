"""How many bytes a JSON value takes on the wire, counted only as far as the asker needs to know."""

from __future__ import annotations

from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def json_size(value: Any, stop_at: float = float("inf")) -> int:
    """Bytes of `value` as compact JSON in UTF-8, or some number of at least `stop_at` once that is reached.

    The work is bounded by `stop_at`, whatever the size of the value. What JSON cannot carry counts as one byte:
    refusing it is the encoder's task.
    """
    total = 0
    values = [value]
    while values and total < stop_at:
        value = values.pop()
        kind = type(value)
        if kind is dict:
            total += 1 + max(1, 2 * len(value))
            if total < stop_at:
                total += _scalars_size(list(value), stop_at)
                value = list(value.values())
        elif kind is list:
            total += 1 + max(1, len(value))
        else:
            total += _scalar_size(value)
            continue
        if total < stop_at:
            inner = [each for each in value if type(each) is dict or type(each) is list]
            if len(inner) < len(value):
                if inner:
                    value = [each for each in value if type(each) is not dict and type(each) is not list]
                total += _scalars_size(value, stop_at)
            values += inner
    return total


def _scalars_size(scalars: list[Any], stop_at: float) -> int:
    """Bytes of all of them, without what stands between; encoded together unless that would be too much."""
    text = sum([len(each) for each in scalars if type(each) is str])
    if text >= stop_at:
        return text
    try:
        return len(_encode(scalars)) - 1 - max(1, len(scalars))
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return sum([_scalar_size(each) for each in scalars])


def _scalar_size(value: Any) -> int:
    try:
        return len(_encode(value))
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return 1
