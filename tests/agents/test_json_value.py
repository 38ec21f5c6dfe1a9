from __future__ import annotations

import dataclasses
import datetime
import enum
import math
import uuid
from decimal import Decimal
from typing import Any

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.agents.json_value import check_json_value, to_json_value
from accord.errors import EncodingError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


class Colour(enum.Enum):
    RED = "red"


class Point(msgspec.Struct):
    x: float


class Model(pydantic.BaseModel):
    x: Any = None


@dataclasses.dataclass(slots=True)
class Data:
    items: list[Any]


@given(JSON)
def test_json_values_stay_what_they_are(value: Any) -> None:
    assert to_json_value(value) == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Model(x=Colour.RED), {"x": "red"}),
        (Model(), {"x": None}),
        (Data([Model(x=1), Point(2)]), {"items": [{"x": 1}, {"x": 2}]}),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Decimal("1.50"), "1.50"),
        ({3}, [3]),
        ((1, 2), [1, 2]),
        ({1: "a"}, {"1": "a"}),
        ((number for number in [1, 2]), [1, 2]),
    ],
)
def test_python_values_become_json_values(value: Any, expected: Any) -> None:
    assert to_json_value(value) == expected


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ({"a": [0, math.nan]}, "/a/1", "nan is no JSON number"),
        ([-math.inf], "/0", "-inf is no JSON number"),
        (Model(x=math.inf), "/x", "inf is no JSON number"),
        ([Point(math.inf)], "/0/x", "inf is no JSON number"),
        ("hi \ud83d", "", "lone surrogate at character 3"),
        ({"a/b": {"~": "\udc00"}}, "/a~1b/~0", "lone surrogate at character 0"),
        ({"a": [1, {"b": object()}]}, "/a/1/b", "object is no JSON value"),
        (Data([Model(x=object())]), "/items/0/x", "object is no JSON value"),
        (object(), "", "object is no JSON value"),
        (b"\xff", "", "utf-8"),
    ],
)
def test_what_json_cannot_carry_is_refused_with_its_path(value: Any, path: str, reason: str) -> None:
    with pytest.raises(EncodingError, match=reason) as caught:
        to_json_value(value)
    assert caught.value.path == path


def test_a_lone_surrogate_in_a_key_is_refused() -> None:
    with pytest.raises(EncodingError, match="a key holds a lone surrogate") as caught:
        check_json_value({"a": {"\ud800": 1}})
    assert caught.value.path == "/a"


def test_a_value_within_itself_is_refused() -> None:
    circle: list[Any] = []
    circle.append({"a": circle})
    with pytest.raises(EncodingError, match="Circular"):
        to_json_value(circle)


@pytest.mark.parametrize("depth", [500, 100_000])
def test_nesting_without_end_is_refused(depth: int) -> None:
    deep: Any = 1
    for _ in range(depth):
        deep = [deep]
    with pytest.raises(EncodingError):
        to_json_value(deep)
