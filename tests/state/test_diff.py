from __future__ import annotations

import copy
import itertools
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.errors import EncodingError
from accord.state import apply_patch, diff, identical
from state.values import calls_made, json_values, lines_run, nested, scalars

JSON = Any


def wire_size(operations: list[Any]) -> int:
    return len(msgspec.json.encode(operations))


def replace_all(new: JSON) -> dict[str, Any]:
    return {"op": "replace", "path": "", "value": new}


def check(old: JSON, new: JSON, **limits: int) -> list[dict[str, Any]]:
    """The diff of the two, after checking every law it keeps."""
    before = copy.deepcopy([old, new])
    operations = diff(old, new, **limits)
    assert identical([old, new], before)
    assert identical(apply_patch(old, operations), new)
    assert identical([old, new], before)
    assert bool(operations) != identical(old, new)
    assert wire_size(operations) <= wire_size([replace_all(new)])
    return operations


records = st.builds(
    lambda ids, texts: [{"id": each, "text": text} for each, text in zip(ids, texts, strict=False)],
    st.lists(st.integers(0, 12) | st.sampled_from(["1", "a"]), unique_by=lambda x: (type(x), x), max_size=9),
    st.lists(scalars, min_size=9, max_size=9),
)


def edited(value: JSON, chance: random.Random) -> JSON:
    """`value` with some of it changed, added, removed and moved; the rest the same objects."""
    if chance.random() < 0.15:
        return chance.choice([None, 0, True, 1.0, "a", [], {}, [1, [2]], {"a": {"b": 1}}])
    if isinstance(value, dict):
        changed = {key: edited(member, chance) for key, member in value.items() if chance.random() < 0.9}
        return changed | ({"new/": 1} if chance.random() < 0.2 else {})
    if isinstance(value, list):
        kept = [edited(each, chance) if chance.random() < 0.4 else each for each in value if chance.random() < 0.9]
        if kept and chance.random() < 0.4:
            kept.insert(chance.randrange(len(kept)), kept.pop(chance.randrange(len(kept))))
        if chance.random() < 0.3:
            kept.insert(chance.randint(0, len(kept)), {"id": chance.randint(0, 9)})
        return kept
    return value


class TestLaws:
    @given(json_values(), json_values())
    def test_any_two_values(self, old: JSON, new: JSON) -> None:
        check(old, new)

    @given(json_values(25), st.randoms(use_true_random=False), st.booleans())
    def test_a_value_and_an_edit_of_it(self, old: JSON, chance: random.Random, apart: bool) -> None:
        new = edited(old, chance)
        check(old, copy.deepcopy(new) if apart else new)

    @given(records, records, st.randoms(use_true_random=False))
    def test_lists_of_records(self, old: JSON, new: JSON, chance: random.Random) -> None:
        check(old, new)
        shuffled = [dict(element) for element in old]
        chance.shuffle(shuffled)
        check({"list": ["first", *old, "last"]}, {"list": ["first", *shuffled[1:], "last"]})

    @given(st.lists(st.integers(0, 3), max_size=12), st.lists(st.integers(0, 3), max_size=12))
    def test_lists_with_repetitions(self, old: JSON, new: JSON) -> None:
        check(old, new)
        check([[each] for each in old], [[each] for each in new])

    @given(json_values(), json_values(), st.integers(0, 3), st.integers(0, 5), st.integers(0, 6))
    def test_limits_bind_the_result_and_not_the_law(
        self, old: JSON, new: JSON, depth: int, count: int, length: int
    ) -> None:
        operations = check(old, new, max_depth=depth, max_operations=max(1, count), max_pointer_length=length)
        assert len(operations) <= max(1, count)
        assert all(len(operation["path"]) <= length for operation in operations)
        assert all(operation["path"].count("/") <= depth for operation in operations)


class TestReported:
    """Values that other implementations are known to get wrong."""

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ({"p": [{}, ["b"]]}, {"p": ["b", []]}),
            (["a", "b", ["d", "e"], "f"], ["a", "d", ["e", "g"]]),
            ({"a": 1}, {"a": True}),
            ({"a": 1}, {"a": 1.0}),
            ({"a": True}, {"a": 1.0}),
            ({"a": 0.0}, {"a": -0.0}),
            ({"a": [1, 0]}, {"a": [True, False]}),
            ([1, True, 1.0], [True, 1.0, 1]),
            ([{"id": 1}], [{"id": True}]),
            ([{"id": 1, "v": 1}, {"id": "1", "v": 2}], [{"id": "1", "v": 2}, {"id": 1, "v": 1}]),
            ({"fb": {"q": None}}, {}),
            ({}, {"fb": {"q": None, "rows": None}}),
            (None, {}),
            ([], None),
            ({"a": {"b": None}}, {"a": {}}),
        ],
    )
    def test_the_result_is_exact(self, old: JSON, new: JSON) -> None:
        check(old, new)
        check(new, old)

    def test_a_missing_parent_is_added_with_all_that_is_in_it(self) -> None:
        rows = [1]
        assert check({}, {"fb": {"q": None, "rows": rows}}) == [
            {"op": "add", "path": "/fb", "value": {"q": None, "rows": rows}}
        ]

    @pytest.mark.parametrize(
        ("name", "token"),
        [
            ("team/name", "team~1name"),
            ("", ""),
            ("~1", "~01"),
            ("a/b~c", "a~1b~0c"),
            ("0", "0"),
            ("-", "-"),
            ("Büro 😀", "Büro 😀"),
        ],
    )
    def test_names_that_need_care(self, name: str, token: str) -> None:
        keep = {"other": "x" * 200}
        assert check(keep, {**keep, name: "blue"}) == [{"op": "add", "path": f"/{token}", "value": "blue"}]
        assert check({**keep, name: "blue"}, {**keep, name: "red"}) == [
            {"op": "replace", "path": f"/{token}", "value": "red"}
        ]
        assert check({**keep, name: 1}, keep) == [{"op": "remove", "path": f"/{token}"}]
        inside = {name: {"deep": ["x" * 200, 1]}}
        assert check(inside, {name: {"deep": ["x" * 200, 2]}}) == [
            {"op": "replace", "path": f"/{token}/deep/1", "value": 2}
        ]


ITEMS: list[dict[str, Any]] = [{"id": number, "text": f"item {number}"} for number in range(30)]


class TestSmall:
    def test_the_same_object_costs_nothing(self) -> None:
        assert diff(ITEMS, ITEMS) == []
        huge = nested(100_000, ITEMS)
        assert lines_run(lambda: diff(huge, huge)) < 20
        assert lines_run(lambda: diff({"a": huge, "b": 1}, {"a": huge, "b": 2})) < 200

    def test_one_changed_field(self) -> None:
        new = copy.deepcopy(ITEMS)
        new[17]["text"] = "changed"
        expected = [{"op": "replace", "path": "/17/text", "value": "changed"}]
        assert check(ITEMS, new) == expected
        assert check({"a": ITEMS}, {"a": new}) == [{**expected[0], "path": "/a/17/text"}]

    @pytest.mark.parametrize("at", [0, 1, 2, 3, 7, 254, 255, 256, 300, 509, 510, 511, 598, 599])
    def test_one_changed_element_wherever_it_is(self, at: int) -> None:
        old: JSON = [{"n": number} for number in range(600)]
        new: JSON = copy.deepcopy(old)
        new[at]["n"] = True
        assert diff(old, new) == [{"op": "replace", "path": f"/{at}/n", "value": True}]

    def test_one_element_more_or_less(self) -> None:
        new = [*ITEMS[:9], {"id": 99, "text": "new"}, *ITEMS[9:]]
        assert check(ITEMS, new) == [{"op": "add", "path": "/9", "value": {"id": 99, "text": "new"}}]
        assert check(new, ITEMS) == [{"op": "remove", "path": "/9"}]
        assert check(ITEMS[:-1], ITEMS) == [{"op": "add", "path": "/29", "value": ITEMS[-1]}]

    def test_several_elements_more_or_less(self) -> None:
        new = ITEMS[:5] + ITEMS[8:]
        assert check(ITEMS, new) == [{"op": "remove", "path": f"/{index}"} for index in (7, 6, 5)]
        assert check(new, ITEMS) == [{"op": "add", "path": f"/{index}", "value": ITEMS[index]} for index in (5, 6, 7)]

    def test_an_element_that_moved_is_moved(self) -> None:
        new = [*ITEMS[:3], ITEMS[20], *ITEMS[3:20], *ITEMS[21:]]
        assert check(ITEMS, new) == [{"op": "move", "path": "/3", "from": "/20"}]
        assert check(new, ITEMS) == [{"op": "move", "path": "/20", "from": "/3"}]
        texts = [f"a long enough text, number {number}" for number in range(9)]
        assert check(texts, [*texts[1:], texts[0]]) == [{"op": "move", "path": "/8", "from": "/0"}]

    @pytest.mark.parametrize("member", ["id", "_id", "uuid", "key", "name"])
    def test_records_are_known_by_their_id(self, member: str) -> None:
        old = [{member: f"r{number}", "done": False, "text": "t" * 20} for number in range(20)]
        new = copy.deepcopy(old)
        new[2]["done"] = new[3]["done"] = True
        new[15]["text"] = "u" * 20
        del new[9]
        fresh = {member: "fresh", "done": False, "text": ""}
        new.insert(3, fresh)
        assert check(old, new) == [
            {"op": "remove", "path": "/9"},
            {"op": "add", "path": "/3", "value": fresh},
            {"op": "replace", "path": "/2/done", "value": True},
            {"op": "replace", "path": "/4/done", "value": True},
            {"op": "replace", "path": "/15/text", "value": "u" * 20},
        ]

    def test_ids_that_repeat_are_no_ids(self) -> None:
        old = [{"id": 1, "v": number} for number in range(9)]
        new = [*old[:2], {"id": 1, "v": 99}, *old[2:7], *old[8:]]
        assert [operation["op"] for operation in check(old, new)] == ["remove", "add"]

    def test_many_changes_in_a_small_container_replace_it(self) -> None:
        keep = "x" * 200
        old = {"keep": keep, "small": {"a": 1, "b": 2, "c": 3}}
        new = {"keep": keep, "small": {"a": 4, "b": 5, "c": 6}}
        assert check(old, new) == [{"op": "replace", "path": "/small", "value": new["small"]}]

    def test_a_path_may_cost_more_than_the_document(self) -> None:
        name = "/" * 40
        assert check({name: {"a": 1}}, {name: {"a": 2}}) == [replace_all({name: {"a": 2}})]

    def test_values_are_those_of_the_new_document(self) -> None:
        value = {"deep": [1]}
        (operation,) = diff({}, {"a": value})
        assert operation["value"] is value


class TestBounded:
    def test_one_field_in_twenty_thousand_items(self) -> None:
        def change(count: int, *, shared: bool) -> tuple[JSON, JSON]:
            old = [{"id": number, "done": False, "tags": ["a"]} for number in range(count)]
            new = list(old) if shared else copy.deepcopy(old)
            new[count // 2] = {**new[count // 2], "done": True}
            return old, new

        for shared in (True, False):
            old, new = change(20_000, shared=shared)
            assert check(old, new) == [{"op": "replace", "path": "/10000/done", "value": True}]
        # Equal copies are compared many at a time, and shared elements not at all.
        assert lines_run(lambda: diff(*change(20_000, shared=False))) < 20_000
        assert calls_made(lambda: diff(*change(20_000, shared=True)), "encode") < 50

    @pytest.mark.parametrize(
        "lists",
        [
            lambda n, chance: ([chance.randint(0, 9) for _ in range(n)], [chance.randint(0, 9) for _ in range(n)]),
            lambda n, chance: (list(range(n)), chance.sample(range(n), n)),
            lambda n, chance: (
                [{"id": each} for each in range(n)],
                [{"id": each} for each in chance.sample(range(2 * n), n)],
            ),
            lambda n, chance: (["x"] * n, ["y"] * n),
            lambda n, chance: ([[each] for each in range(n)], [[n - each] for each in range(n)]),
            lambda n, chance: (
                [{"b": each, "a": each} for each in range(n)],
                [{"a": each, "b": each + (each % 50 == 9)} for each in range(n)],
            ),
        ],
    )
    def test_no_two_lists_cost_more_than_linear(self, lists: Any) -> None:
        def work(count: int) -> int:
            old, new = lists(count, random.Random(1))
            check(old, new)
            return lines_run(lambda: diff(old, new))

        assert work(3_000) < 13 * work(300)

    def test_depth_is_no_obstacle(self) -> None:
        assert diff(nested(100_000, 1), nested(100_000, 1)) == []
        (operation,) = diff(nested(50_000, 1), nested(50_000, 2))
        assert operation["path"].count("/") == 64
        old, new = nested(50_000, 1), nested(50_000, 2)
        assert identical(apply_patch(old, diff(old, new), max_depth=100_000), new)
        assert diff([nested(50_000, 1), "a", "b"], ["b", nested(50_000, 1), "a"])
        assert lines_run(lambda: diff(nested(20_000, 1), nested(20_000, 2))) < 2_000_000

    def test_a_pointer_that_would_be_too_long_replaces_from_further_up(self) -> None:
        keep = "x" * 99
        old = {"a": {"bb": {"cc": {"d": 1, "keep": keep}}}, "keep": keep}
        new = {"a": {"bb": {"cc": {"d": 2, "keep": keep}}}, "keep": keep}
        for limit, path in ((10, "/a/bb/cc/d"), (9, "/a/bb/cc"), (7, "/a/bb"), (4, "/a"), (1, "")):
            (operation,) = check(old, new, max_pointer_length=limit)
            assert operation["path"] == path
        moved = [ITEMS[0], ITEMS[20], *ITEMS[1:20], *ITEMS[21:]]
        assert check(ITEMS, moved, max_pointer_length=3) == [{"op": "move", "path": "/1", "from": "/20"}]
        assert check(ITEMS, moved, max_pointer_length=2) == [replace_all(moved)]

    def test_names_are_strings(self) -> None:
        with pytest.raises(EncodingError, match="/a"):
            diff({"a": {1: 2}}, {"a": {1: 3}})

    def test_a_difference_json_cannot_carry_is_still_a_difference(self) -> None:
        for old, new in [(None, float("inf")), ("\ud800", "\ud801"), (2**70, 2**70 + 1)]:
            # Among many equal copies, which are compared as bytes.
            copies = [[{"x": number} for number in range(600)] for _ in range(2)]
            assert diff([*copies[0], {"x": old}], [*copies[1], {"x": new}])


REFUSED = ["__proto__", "constructor", "prototype", "a"]


def refusing(pointer: str) -> bool:
    """As the patches of the reference client refuse a pointer."""
    tokens = pointer.split("/")
    return "__proto__" in tokens or ("constructor", "prototype") in itertools.pairwise(tokens)


class TestPointersThatPeersRefuse:
    values = st.recursive(
        st.integers(0, 2),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(REFUSED), inner, max_size=4),
        max_leaves=16,
    )

    @given(values, values)
    def test_are_not_sent(self, old: JSON, new: JSON) -> None:
        for operation in check({"keep": "x" * 500, "v": old}, {"keep": "x" * 500, "v": new}):
            assert not refusing(operation["path"])
            assert not refusing(operation.get("from", ""))

    def test_the_nearest_that_can_be_named_is_replaced(self) -> None:
        keep = "x" * 200
        for name in ("__proto__", "constructor"):
            old, new = {"k": keep, "a": {"b": 1}}, {"k": keep, "a": {"b": 1, name: {"prototype": 2}}}
            (operation,) = check(old, new)
            assert operation["path"] == ("/a" if name == "__proto__" else "/a/constructor")
            (operation,) = check(new, old)
            assert operation["path"] == ("/a" if name == "__proto__" else "/a/constructor")
        old, new = ({"k": keep, "constructor": {"prototype": n, "x": 1}} for n in (1, 2))
        assert [operation["path"] for operation in check(old, new)] == ["/constructor"]
        assert check({"k": keep}, {"k": keep, "__proto__": 1}) == [replace_all({"k": keep, "__proto__": 1})]

    def test_what_is_the_same_below_them_costs_nothing(self) -> None:
        old, new = ({"__proto__": {"a": [1]}, "b": n, "c": "x" * 200} for n in (1, 2))
        assert check(old, new) == [{"op": "replace", "path": "/b", "value": 2}]
