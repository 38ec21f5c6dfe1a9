from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.errors import PatchError
from accord.producer.merge import merge
from accord.protocol import JSON
from accord.state import identical


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        ({}, {"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"x": 9, "y": 2}}, {"a": {"x": 1}}, {"a": {"x": 9}}),
        ({"a": 1, "b": 1}, {"b": 1}, {"a": 1}, {}),
        ({"a": None}, {"a": 1}, {"a": None}, {"a": 1}),
        # Both make the same container, or the same value.
        ({}, {"r": [1]}, {"r": [2]}, {"r": [2, 1]}),
        ({}, {"r": {"a": 1}}, {"r": {"b": 2}}, {"r": {"a": 1, "b": 2}}),
        ({"s": "new"}, {"s": "done"}, {"s": "done"}, {"s": "done"}),
        # Lists: what is appended follows what was appended first; different stretches change apart.
        ([], [1, 2], [3], [3, 1, 2]),
        ([1], [1, 2], [1, 3], [1, 3, 2]),
        ([1, 2, 3], [9, 2, 3], [1, 2, 8], [9, 2, 8]),
        ([1, 2, 3], [2, 3], [1, 2, 3, 4], [2, 3, 4]),
        ([1, 2, 3], [1, 2], [0, 1, 2, 3], [0, 1, 2]),
        ([1, 2, 3], [1, 2, 3, 4], [1], [1, 4]),
        ([{"n": 1}, {"n": 2}], [{"n": 1, "x": 1}, {"n": 2}, 5], [{"n": 1, "y": 1}, {"n": 2}, 6],
         [{"n": 1, "x": 1, "y": 1}, {"n": 2}, 6, 5]),
        # Types count.
        ({"a": 1}, {"a": True}, {"a": 1}, {"a": True}),
        ({"a": 1}, {"a": 1}, {"a": 1.0}, {"a": 1.0}),
    ],
)  # fmt: skip
def test_both_changes_are_in_it(base: JSON, ours: JSON, theirs: JSON, merged: JSON) -> None:
    given = copy.deepcopy((base, ours, theirs))
    assert identical(merge(base, ours, theirs), merged)
    assert (base, ours, theirs) == given


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "path"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 2}}, {"a": {"b": 3}}, "/a/b"),
        ({"n": 0}, {"n": 1}, {"n": 1}, "/n"),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, {"a": 5}, "/a"),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, {}, "/a"),
        ({"a": 1}, {}, {"a": 2}, "/a"),
        ({"x/y": [1, 2]}, {"x/y": [1]}, {"x/y": [1, 3]}, "/x~1y"),
        ([1, 2], [3, 2], [4, 2], "/0"),
    ],
)
def test_what_both_have_changed_is_an_error(base: JSON, ours: JSON, theirs: JSON, path: str) -> None:
    with pytest.raises(PatchError) as refused:
        merge(base, ours, theirs)
    assert refused.value.path == path


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["x", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


@given(VALUES, VALUES)
def test_one_change_alone_is_the_change(base: JSON, changed: JSON) -> None:
    assert identical(merge(base, changed, copy.deepcopy(base)), changed)
    assert identical(merge(base, copy.deepcopy(base), changed), changed)


@given(st.lists(VALUES, max_size=3), st.lists(st.lists(VALUES, max_size=2), min_size=3, max_size=3))
@settings(max_examples=60)
def test_three_that_append(base: list[JSON], appended: list[list[JSON]]) -> None:
    for order in itertools.permutations(range(3)):
        held: Any = base
        for number in order:
            held = merge(base, [*base, *appended[number]], held)
        assert held == [*base, *(value for number in order for value in appended[number])]
