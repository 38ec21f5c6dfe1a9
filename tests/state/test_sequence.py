from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from accord.state.sequence import Alignment, content_keys, id_keys


@given(st.lists(st.integers(0, 9), unique=True), st.lists(st.integers(0, 9), unique=True))
def test_the_steps_lead_from_the_old_order_to_the_new(old: list[int], new: list[int]) -> None:
    alignment = Alignment(old, new)
    now = list(range(len(old)))
    for index in alignment.removed():
        del now[index]
    for source, target in alignment.moves():
        now.insert(target, now.pop(source))
    for index in alignment.added():
        now.insert(index, -1)
    assert now == alignment.kept
    for index, old_index in enumerate(alignment.kept):
        assert old_index < 0 or index in alignment.paired or old[old_index] == new[index]
    assert all(alignment.kept[index] >= 0 and old[alignment.kept[index]] != new[index] for index in alignment.paired)


def test_as_few_move_as_can() -> None:
    assert len(Alignment("abcdefg", "bcdefga").moves()) == 1
    assert len(Alignment("abcdefg", "gabcdef").moves()) == 1
    assert len(Alignment("abcdefg", "acbdfeg").moves()) == 2
    assert len(Alignment("abcdefg", "gfedcba").moves()) == 6
    assert Alignment("abc", "abc").moves() == []


def test_what_has_no_match_continues_what_has_none_in_the_same_gap() -> None:
    alignment = Alignment("aXbYZ", "aPQbR")
    assert alignment.kept == [0, 1, -1, 2, 3]
    assert alignment.paired == [1, 4]
    assert (alignment.removed(), alignment.added(), alignment.moves()) == ([4], [2], [])


def test_content_is_told_apart_by_type_and_occurrence() -> None:
    keys = content_keys([1, True, 1.0, 1, {"a": 1, "b": 2}, {"b": 2, "a": 1}, "\ud800", "\ud800", 0.0, -0.0])
    assert len(set(keys)) == len(keys)
    assert content_keys([{"a": 1, "b": 2}]) == content_keys([{"b": 2, "a": 1}])


def test_ids_are_strings_or_integers_unique_on_both_sides() -> None:
    one, two = {"id": 1}, {"id": "1"}
    assert id_keys([one, two], [two]) == ([1, "1"], ["1"])
    assert id_keys([one, one], [two]) is None
    assert id_keys([one], [two, 5]) is None
    assert id_keys([{"id": True}], [one]) is None
    assert id_keys([{"id": 1.5}], [one]) is None
    assert id_keys([{"id": 1, "name": "a"}, {"id": 1, "name": "b"}], [{"name": "b"}]) == (["a", "b"], ["b"])
