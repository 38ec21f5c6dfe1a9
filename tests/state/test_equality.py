from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given

from accord.state import identical, json_equal
from state.values import json_values, nested

SAME_NUMBER = [(1, 1.0), (0, -0.0), (0.0, -0.0), (10**20, 1e20)]
DIFFERENT = [
    (1, True),
    (0, False),
    (1.0, True),
    (None, False),
    (None, 0),
    ("1", 1),
    ("", None),
    ([], {}),
    ([], None),
    ([1], 1),
    ([1], [1, 1]),
    ([1, 2], [2, 1]),
    ({"a": 1}, {"a": 1, "b": 1}),
    ({"a": 1}, {"b": 1}),
    ({"a": None}, {"b": None}),
    ({"a": [True]}, {"a": [1]}),
    (2**53 + 1, float(2**53)),
]


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_different_values_differ_in_both_ways(left: Any, right: Any) -> None:
    for equal in (json_equal, identical):
        assert not equal(left, right)
        assert not equal(right, left)
        assert not equal([{"x": left}], [{"x": right}])


@pytest.mark.parametrize(("left", "right"), SAME_NUMBER)
def test_a_number_of_another_type_is_equal_and_not_identical(left: Any, right: Any) -> None:
    assert json_equal(left, right)
    assert json_equal([{"x": left}], [{"x": right}])
    assert not identical(left, right)
    assert not identical([{"x": left}], [{"x": right}])


def test_the_order_of_members_means_nothing() -> None:
    left, right = {"a": 1, "b": [{"c": 2, "d": 3}]}, {"b": [{"d": 3, "c": 2}], "a": 1}
    assert json_equal(left, right)
    assert identical(left, right)


@given(json_values())
def test_a_copy_is_the_same(value: Any) -> None:
    assert json_equal(value, copy.deepcopy(value))
    assert identical(value, copy.deepcopy(value))


@pytest.mark.parametrize("equal", [json_equal, identical])
def test_depth_is_no_obstacle(equal: Any) -> None:
    assert equal(nested(100_000, 1), nested(100_000, 1))
    assert not equal(nested(100_000, 1), nested(100_000, 2))
