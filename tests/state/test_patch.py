from __future__ import annotations

import contextlib
import copy
import itertools
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.errors import PatchError
from accord.protocol import AddOperation, JsonPatch, ReplaceOperation
from accord.protocol.codec import decode_json
from accord.state import SharedValue, apply_patch, identical, json_equal
from state.values import json_values, lines_run, nested
from support.corpus import corpus_files

CASES = [
    pytest.param(case, id=f"{file.stem}-{number}-{case.get('comment', '')}")
    for file in corpus_files("json-patch/*.json")
    for number, case in enumerate(json.loads(file.read_text(encoding="utf-8")))
    if not case.get("disabled")
]


@pytest.mark.parametrize("case", CASES)
def test_the_public_suite(case: dict[str, Any]) -> None:
    before = copy.deepcopy(case["doc"])
    if "error" in case:
        with pytest.raises(PatchError):
            apply_patch(case["doc"], case["patch"])
    else:
        result = apply_patch(case["doc"], case["patch"])
        if "expected" in case:
            assert json_equal(result, case["expected"])
    assert identical(case["doc"], before)


def test_the_suite_is_there_when_the_corpus_is(corpus: Path) -> None:
    assert len(CASES) > 100


def refusal(document: Any, *operations: Any, **limits: int) -> PatchError:
    """The error of a patch that must not apply; checks that nothing of it did."""
    before = copy.deepcopy(document)
    with pytest.raises(PatchError) as caught:
        apply_patch(document, list(operations), **limits)
    assert identical(document, before)
    return caught.value


class TestOperations:
    @pytest.mark.parametrize(
        ("document", "operation", "result"),
        [
            ({}, {"op": "add", "path": "/a", "value": 1}, {"a": 1}),
            ({"a": 1}, {"op": "add", "path": "/a", "value": 2}, {"a": 2}),
            ([1, 3], {"op": "add", "path": "/1", "value": 2}, [1, 2, 3]),
            ([1], {"op": "add", "path": "/-", "value": 2}, [1, 2]),
            ({"-": 1}, {"op": "replace", "path": "/-", "value": 2}, {"-": 2}),
            ({"01": 1}, {"op": "remove", "path": "/01"}, {}),
            ([1, 2], {"op": "remove", "path": "/0"}, [2]),
            ([1, 2], {"op": "replace", "path": "/1", "value": None}, [1, None]),
            ({"a": {"b": 1}}, {"op": "move", "from": "/a/b", "path": "/c"}, {"a": {}, "c": 1}),
            ({"a": {"b": 1}}, {"op": "move", "from": "/a/b", "path": "/a"}, {"a": 1}),
            ([1, 2, 3], {"op": "move", "from": "/0", "path": "/2"}, [2, 3, 1]),
            ([1, 2, 3], {"op": "move", "from": "/0", "path": "/-"}, [2, 3, 1]),
            ({"a": 1}, {"op": "move", "from": "/a", "path": "/a"}, {"a": 1}),
            ({"a": 1}, {"op": "move", "from": "", "path": ""}, {"a": 1}),
            ({"a": [1]}, {"op": "copy", "from": "/a", "path": "/a/0"}, {"a": [[1], 1]}),
            ({"a": 1}, {"op": "copy", "from": "", "path": "/b"}, {"a": 1, "b": {"a": 1}}),
            ({"a": 1}, {"op": "copy", "from": "/a", "path": ""}, 1),
            ({"ab": 1, "abc": 2}, {"op": "move", "from": "/ab", "path": "/abc"}, {"abc": 1}),
            (1, {"op": "replace", "path": "", "value": None}, None),
            (None, {"op": "test", "path": "", "value": None}, None),
            ({"x": 1}, {"op": "test", "path": "/x", "value": 1.0}, {"x": 1}),
            ({"x": {"a": 1, "b": [2]}}, {"op": "test", "path": "/x", "value": {"b": [2.0], "a": 1}}, None),
            ({}, {"op": "add", "path": "/a", "value": 1, "why": "kept by the protocol, ignored here"}, {"a": 1}),
        ],
    )
    def test_each_does_what_the_rfc_says(self, document: Any, operation: dict[str, Any], result: Any) -> None:
        before = copy.deepcopy(document)
        expected = document if operation["op"] == "test" else result
        assert identical(apply_patch(document, [operation]), expected)
        assert identical(document, before)

    @pytest.mark.parametrize(
        ("document", "operation", "reason"),
        [
            ({}, {"op": "replace", "path": "/steps", "value": ["a"]}, "no member 'steps'"),
            ({}, {"op": "remove", "path": "/a"}, "no member 'a'"),
            ({}, {"op": "add", "path": "/a/b", "value": 1}, "no member 'a'"),
            ({"a": "text"}, {"op": "add", "path": "/a/b", "value": 1}, "below a string"),
            ({"a": None}, {"op": "replace", "path": "/a/b", "value": 1}, "below a null"),
            ({"a": 1}, {"op": "remove", "path": "/a/0"}, "below a number"),
            (True, {"op": "add", "path": "/a", "value": 1}, "below a boolean"),
            ([], {"op": "remove", "path": "/-"}, "'-' is not an array index"),
            ([], {"op": "replace", "path": "/-", "value": 1}, "'-' is not an array index"),
            ([1], {"op": "test", "path": "/-", "value": 1}, "'-' is not an array index"),
            ([1], {"op": "move", "from": "/-", "path": "/0"}, "'-' is not an array index"),
            ([1], {"op": "move", "from": "/0", "path": "/1"}, "beyond the end"),
            ({"a": {"b": 1}}, {"op": "move", "from": "/a", "path": "/a/b"}, "into itself"),
            ({"a": {"b": 1}}, {"op": "move", "from": "", "path": "/a"}, "into itself"),
            ({"a": 1}, {"op": "move", "from": "/b", "path": "/b"}, "no member 'b'"),
            ({"a": 1}, {"op": "remove", "path": ""}, "whole document"),
            ({"a": 1}, {"op": "test", "path": "/b", "value": None}, "no member 'b'"),
        ],
    )
    def test_what_does_not_apply_says_why(self, document: Any, operation: dict[str, Any], reason: str) -> None:
        error = refusal(document, operation)
        assert reason in error.reason
        assert (error.index, error.path) == (0, operation["path"])

    @pytest.mark.parametrize(
        ("at", "tested"),
        [(1, True), (True, 1), (0, False), (False, 0), (True, 1.0), (None, False), ("1", 1), ([True], [1])],
    )
    def test_test_tells_true_from_one(self, at: Any, tested: Any) -> None:
        assert "tested" in refusal({"x": at}, {"op": "test", "path": "/x", "value": tested}).reason

    @pytest.mark.parametrize("index", ["01", "-1", "+1", "1e0", "1.0", "٣", ""])
    @pytest.mark.parametrize("op", ["add", "replace", "remove", "test"])
    def test_a_loose_index_is_none(self, op: str, index: str) -> None:
        refusal({"a": [1, 2, 3, 4]}, {"op": op, "path": f"/a/{index}", "value": 2})

    @pytest.mark.parametrize("value", [1, True, 1.0, -0.0, None, 10**40, "", [], {}])
    def test_values_keep_their_type(self, value: Any) -> None:
        patch = [{"op": "add", "path": "/a", "value": value}, {"op": "copy", "from": "/a", "path": "/b"}]
        assert identical(apply_patch({}, patch), {"a": value, "b": value})

    def test_the_structs_of_the_protocol_do_the_same(self) -> None:
        wire: list[dict[str, Any]] = [
            {"op": "test", "path": "/a", "value": [1]},
            {"op": "add", "path": "/b", "value": {"c": None}, "extra": 1},
            {"op": "replace", "path": "/a/0", "value": 2},
            {"op": "copy", "from": "/a", "path": "/d"},
            {"op": "move", "from": "/d/0", "path": "/e"},
            {"op": "remove", "path": "/d"},
        ]
        structs = msgspec.convert([op for op in wire if "extra" not in op], JsonPatch)
        structs.insert(1, AddOperation(path="/b", value={"c": None}, extra={"extra": 1}))
        expected = {"a": [2], "b": {"c": None}, "e": 2}
        assert apply_patch({"a": [1]}, wire) == apply_patch({"a": [1]}, structs) == expected


class TestMalformed:
    @pytest.mark.parametrize(
        ("operation", "reason"),
        [
            ({"path": "/a", "value": 1}, "'op' is missing"),
            ({"op": "add", "value": 1}, "'path' is missing"),
            ({"op": "add", "path": "/a"}, "'value' is missing"),
            ({"op": "replace", "path": "/a"}, "'value' is missing"),
            ({"op": "test", "path": "/a"}, "'value' is missing"),
            ({"op": "move", "path": "/a"}, "'from' is missing"),
            ({"op": "copy", "path": "/a"}, "'from' is missing"),
            ({"op": "spam", "path": "/a"}, "no operation 'spam'"),
            ({"op": None, "path": "/a"}, "no operation"),
            ({"op": ["add"], "path": "/a", "value": 1}, "'op' is not a string"),
            ({"op": "add", "path": None, "value": 1}, "is a string, not NoneType"),
            ({"op": "add", "path": 1, "value": 1}, "is a string, not int"),
            ({"op": "move", "from": 0, "path": "/a"}, "is a string, not int"),
            ({"op": "add", "path": "a", "value": 1}, "does not begin with '/'"),
            ({"op": "add", "path": "/~2", "value": 1}, "begins no escape"),
            ("add", "an operation is an object, not str"),
            (None, "an operation is an object"),
            (["op", "add"], "an operation is an object"),
        ],
    )
    def test_an_operation_with_a_fault_is_named(self, operation: Any, reason: str) -> None:
        good = {"op": "add", "path": "/z", "value": 1}
        error = refusal({"a": 1}, good, operation)
        assert reason in str(error)
        assert error.index == 1

    @pytest.mark.parametrize("patch", [{"op": "add"}, "[]", b"[]", None, 5])
    def test_a_patch_is_a_list(self, patch: Any) -> None:
        with pytest.raises(PatchError, match="list of operations"):
            apply_patch({}, patch)


class TestAtomicAndShared:
    def test_a_failure_leaves_nothing_of_what_came_before(self) -> None:
        document = {"a": [1, {"b": 2}], "c": {"d": 3}}
        error = refusal(
            document,
            {"op": "add", "path": "/a/-", "value": 9},
            {"op": "replace", "path": "/a/1/b", "value": 9},
            {"op": "remove", "path": "/c/d"},
            {"op": "test", "path": "/c", "value": "no"},
        )
        assert error.index == 3

    def test_only_the_touched_path_is_copied(self) -> None:
        document: dict[str, Any] = {"a": {"b": [{"c": 1}, {"d": 2}]}, "e": {"f": 3}}
        result = apply_patch(document, [{"op": "replace", "path": "/a/b/0/c", "value": 9}])
        assert result["e"] is document["e"]
        assert result["a"]["b"][1] is document["a"]["b"][1]
        for changed, original in ((result, document), (result["a"], document["a"]), (result["a"]["b"][0], None)):
            assert changed is not original

    def test_a_patch_that_changes_nothing_gives_the_document_itself(self) -> None:
        document = {"a": [1]}
        assert apply_patch(document, []) is document
        assert apply_patch(document, [{"op": "test", "path": "/a/0", "value": 1}]) is document

    def test_a_copied_value_and_its_origin_go_their_own_ways(self) -> None:
        patch: list[dict[str, Any]] = [
            {"op": "replace", "path": "/a/b/0", "value": 1},
            {"op": "copy", "from": "/a", "path": "/x"},
            {"op": "replace", "path": "/x/b/0", "value": 2},
            {"op": "replace", "path": "/a/b/0", "value": 3},
            {"op": "copy", "from": "/x", "path": "/x/b/-"},
            {"op": "replace", "path": "/x/b/1/b/0", "value": 4},
        ]
        assert apply_patch({"a": {"b": [0]}}, patch) == {"a": {"b": [3]}, "x": {"b": [2, {"b": [4]}]}}

    def test_the_values_of_operations_are_not_changed(self) -> None:
        value = {"list": [1]}
        patch: list[dict[str, Any]] = [
            {"op": "add", "path": "/a", "value": value},
            {"op": "add", "path": "/b", "value": value},
            {"op": "add", "path": "/a/list/-", "value": 2},
            {"op": "add", "path": "/c", "value": 0},
        ]
        result = apply_patch({}, patch)
        assert result == {"a": {"list": [1, 2]}, "b": {"list": [1]}, "c": 0}
        assert value == {"list": [1]}
        assert result["b"] is value

    @given(json_values(), st.lists(json_values(4), min_size=1, max_size=3))
    def test_whatever_happens_the_input_stays(self, document: Any, values: list[Any]) -> None:
        before = copy.deepcopy([document, values])
        places = ["", "/a", "/0", "/-", "/a/b", "/id/0"]
        patch = [{"op": "add", "path": place, "value": value} for place, value in zip(places, values, strict=False)]
        for last in (
            {"op": "remove", "path": "/a"},
            {"op": "move", "from": "/0", "path": "/b"},
            {"op": "copy", "from": "/a", "path": "/0"},
        ):
            with contextlib.suppress(PatchError):
                apply_patch(document, [*patch, last])
            assert identical([document, values], before)


class TestLimits:
    def test_the_number_of_operations(self) -> None:
        patch = [{"op": "test", "path": "", "value": 1}] * 4
        assert apply_patch(1, patch, max_operations=4) == 1
        error = refusal(1, *patch, max_operations=3)
        assert "max_operations=3" in error.reason
        assert error.index == 3

    def test_the_length_of_a_pointer(self) -> None:
        operation = {"op": "add", "path": "/" + "a" * 20, "value": 1}
        apply_patch({}, [operation], max_pointer_length=21)
        assert "max_pointer_length=20" in refusal({}, operation, max_pointer_length=20).reason
        move = {"op": "move", "from": operation["path"], "path": "/b"}
        assert "max_pointer_length=20" in refusal({"a" * 20: 1}, move, max_pointer_length=20).reason

    def test_doubling_forty_times_is_refused_without_doing_it(self) -> None:
        doubling = [{"op": "copy", "from": "", "path": f"/{number}"} for number in range(40)]
        assert "max_copied_bytes" in refusal({"a": "x" * 100}, *doubling).reason
        work = lines_run(lambda: refusal({"a": 1}, *doubling, max_copied_bytes=20_000))
        assert work < 100_000

    def test_a_copy_that_is_too_large_is_refused_without_measuring_it(self) -> None:
        document = [[number] for number in range(20_000)]

        def copy_it() -> None:
            with pytest.raises(PatchError, match="max_copied_bytes"):
                apply_patch(document, [{"op": "copy", "from": "", "path": "/0"}], max_copied_bytes=1_000)

        assert lines_run(copy_it) < 5_000

    def test_copies_count_together(self) -> None:
        document = {"a": "x" * 98}
        copies = [{"op": "copy", "from": "/a", "path": f"/{number}"} for number in range(5)]
        apply_patch(document, copies, max_copied_bytes=500)
        error = refusal(document, *copies, max_copied_bytes=499)
        assert (error.index, error.path) == (4, "/4")

    def test_depth_raises_nothing_but_patch_errors(self) -> None:
        deep = nested(50_000, 1)
        assert apply_patch({"a": deep}, [{"op": "test", "path": "/a", "value": nested(50_000, 1)}])["a"] is deep
        refusal_of = [{"op": "test", "path": "/a", "value": nested(50_000, 2)}]
        with pytest.raises(PatchError):
            apply_patch({"a": deep}, refusal_of)
        path = "/a" + "/0" * 30_000
        result = apply_patch({"a": deep}, [{"op": "replace", "path": path, "value": 5}], max_depth=100_000)
        assert identical(result["a"], nested(30_000, 5))
        with pytest.raises(PatchError, match="below a number"):
            apply_patch({"a": nested(30_000, 1)}, [{"op": "add", "path": path + "/0/0", "value": 5}], max_depth=100_000)
        copied = apply_patch(deep, [{"op": "copy", "from": "/0", "path": "/-"}])
        assert copied[1] is deep[0]

    def test_the_cost_does_not_depend_on_the_size_of_the_rest(self) -> None:
        def work(items: int) -> int:
            document = {"items": [{"n": number} for number in range(items)], "x": 0}
            patch = [ReplaceOperation(path="/items/7/n", value=1), ReplaceOperation(path="/x", value=1)]
            return lines_run(lambda: apply_patch(document, patch))

        small = work(10)
        assert work(10_000) <= small

    @pytest.mark.parametrize(
        "operation",
        [
            {"op": "add", "path": "/0/0/-", "value": []},
            {"op": "add", "path": "/0/0/0/-", "value": 1},
            {"op": "replace", "path": "/0/0", "value": [{}]},
            {"op": "copy", "from": "/1", "path": "/0/0/-"},
            {"op": "move", "from": "/1", "path": "/0/0/-"},
        ],
        ids=lambda operation: operation["op"],
    )
    def test_what_a_patch_makes_nests_only_so_deep(self, operation: dict[str, Any]) -> None:
        document: Any = [[[]], []] if operation["path"] != "/0/0/0/-" else [[[[]]], []]
        made = apply_patch(document, [operation], max_depth=4)
        assert json_depth(made) == 4
        assert "max_depth=3" in refusal(document, operation, max_depth=3).reason

    def test_what_was_added_since_depth_was_looked_at_counts(self) -> None:
        shared = SharedValue({"x": 1, "y": {}})
        shared.apply([{"op": "move", "from": "/x", "path": "/y/x"}], max_depth=5)
        shared.apply([{"op": "add", "path": "/z", "value": [[[[]]]]}], max_depth=5)
        with pytest.raises(PatchError, match="max_depth"):
            shared.apply([{"op": "move", "from": "/z", "path": "/y/z"}], max_depth=5)

    def test_depth_that_patches_add_up_is_refused_and_what_the_codec_carries_is_not(self) -> None:
        shared = SharedValue({"x": {}})
        wrap: list[dict[str, Any]] = [
            {"op": "move", "from": "/x", "path": "/y"},
            {"op": "add", "path": "/x", "value": {}},
        ]
        with contextlib.suppress(PatchError):
            for _ in range(1_000):
                shared.apply([*wrap, {"op": "move", "from": "/y", "path": "/x/x"}])
        assert json_depth(shared.value) == 255
        decode_json(msgspec.json.encode({"state": shared.value}))
        with pytest.raises(PatchError, match="max_depth"):
            shared.apply([*wrap, {"op": "move", "from": "/y", "path": "/x/x"}])
        shared.apply([{"op": "remove", "path": "/x/x/x"}, *wrap, {"op": "move", "from": "/y", "path": "/x/x"}])

    @given(
        json_values(10), st.lists(st.sampled_from(["", "/a", "/0", "/-", "/a/b", "/0/0", "/a/0", "/0/a"]), max_size=8)
    )
    def test_the_limit_of_depth_is_exact(self, document: Any, places: list[str]) -> None:
        shared = SharedValue(document)
        for source, path in itertools.pairwise(places):
            for op in ("copy", "move"):
                patch = [{"op": op, "from": source, "path": path}]
                try:
                    made = apply_patch(shared.value, patch)
                except PatchError:
                    continue
                limit = max(3, json_depth(shared.value))  # a document that is deeper already is not judged
                if json_depth(made) <= limit:
                    shared.apply(patch, max_depth=limit)
                    continue
                with pytest.raises(PatchError, match="max_depth"):
                    shared.apply(patch, max_depth=limit)


def json_depth(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    return 1 + max((json_depth(each) for each in (value.values() if isinstance(value, dict) else value)), default=0)
