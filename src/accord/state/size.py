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
            for key, member in value.items():
                total += _scalar_size(key)
                values.append(member)
                if total >= stop_at:
                    break
        elif kind is list:
            total += 1 + max(1, len(value))
            if total < stop_at:
                values.extend(value)
        else:
            total += _scalar_size(value)
    return total


def _scalar_size(value: Any) -> int:
    try:
        return len(_encode(value))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return 1
