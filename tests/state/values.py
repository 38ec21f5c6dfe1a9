"""JSON values for the state tests, and ways to look at them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import strategies as st

import accord.state

NAMES = ["", "a", "b", "id", "name", "a/b", "~1", "a/b~c", "0", "-", "é😀"]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
    | st.sampled_from([0, 1, True, False, 1.0, 0.0, -0.0, "", "1"])
)


def json_values(max_leaves: int = 12) -> st.SearchStrategy[Any]:
    """Any JSON value, with names that need care in a pointer."""
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(NAMES) | texts, inner, max_size=5),
        max_leaves=max_leaves,
    )


def nested(depth: int, innermost: Any) -> Any:
    """`innermost` inside `depth` lists, built without recursion."""
    value = innermost
    for _ in range(depth):
        value = [value]
    return value


_STATE = str(Path(accord.state.__file__).parent)


def lines_run(call: Callable[[], object]) -> int:
    """How many lines of `accord.state` run during `call`: its work, told without a clock."""
    count = 0

    def in_frame(frame: FrameType, event: str, arg: object) -> Callable[..., Any] | None:
        nonlocal count
        if event == "line":
            count += 1
        return in_frame

    def on_call(frame: FrameType, event: str, arg: object) -> Callable[..., Any] | None:
        return in_frame if frame.f_code.co_filename.startswith(_STATE) else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def calls_made(call: Callable[[], object], name: str) -> int:
    """How many times built-in functions of that name are called during `call`."""
    count = 0

    def on_event(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        if event == "c_call" and arg.__name__ == name:
            count += 1

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        call()
    finally:
        sys.setprofile(before)
    return count
