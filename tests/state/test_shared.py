from __future__ import annotations

import contextlib
import copy
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from accord.errors import PatchError
from accord.state import SharedValue, apply_patch, identical, parse_pointer
from accord.state.editing import SCALARS
from state.values import json_values, lines_run
from support.counting import calls

PATHS = ["", "/a", "/b", "/a/b", "/a/0", "/0", "/-", "/a/-", "/1", "/b/a/0", "/a/b/a", "/0/a"]

paths = st.sampled_from(PATHS)
operations = st.one_of(
    st.builds(
        lambda op, path, value: {"op": op, "path": path, "value": value},
        st.sampled_from(["add", "add", "add", "replace", "test"]),
        paths,
        json_values(6),
    ),
    st.builds(lambda path: {"op": "remove", "path": path}, paths),
    st.builds(
        lambda op, source, path: {"op": op, "from": source, "path": path},
        st.sampled_from(["move", "copy", "copy"]),
        paths,
        paths,
    ),
)


def put(path: str, value: Any) -> dict[str, Any]:
    return {"op": "replace", "path": path, "value": value}


class SharedAndPlain(RuleBasedStateMachine):
    """`SharedValue` beside `apply_patch`; everything either of them was given or gave is watched for changes."""

    @initialize(value=st.dictionaries(st.sampled_from(["a", "b"]), json_values(6)) | json_values(6))
    def start(self, value: Any) -> None:
        self.seen: list[tuple[Any, Any]] = []
        self.watch(value)
        self.shared = SharedValue(value)
        self.plain = copy.deepcopy(value)

    def watch(self, value: Any) -> None:
        self.seen.append((value, copy.deepcopy(value)))

    @rule(patch=st.lists(operations, max_size=4))
    def apply(self, patch: list[dict[str, Any]]) -> None:
        """The same patch twice: what the first one remembered, the second one uses."""
        self.apply_once(patch)
        self.apply_once(patch)

    def apply_once(self, patch: list[dict[str, Any]]) -> None:
        self.watch(patch)
        refusal = ""
        try:
            self.plain = apply_patch(self.plain, copy.deepcopy(patch))
        except PatchError as error:
            refusal = str(error)
        if refusal:
            with pytest.raises(PatchError) as caught:
                self.shared.apply(patch)
            assert str(caught.value) == refusal
        else:
            self.shared.apply(patch)

    @rule(candidates=st.lists(operations, min_size=4, max_size=14), refused=st.booleans())
    def apply_what_applies(self, candidates: list[dict[str, Any]], refused: bool) -> None:
        """A long patch of operations that all apply; then, perhaps, one that does not."""
        result, patch = self.plain, []
        for operation in candidates:
            with contextlib.suppress(PatchError):
                result = apply_patch(result, [copy.deepcopy(operation)])
                patch.append(operation)
        self.watch(patch)
        if refused:
            with pytest.raises(PatchError, match=f"operation {len(patch)} "):
                self.shared.apply([*patch, {"op": "test", "path": "", "value": "never"}])
        else:
            self.shared.apply(patch)
            self.plain = result

    @rule()
    def read(self) -> None:
        value = self.shared.value
        assert identical(value, self.plain)
        self.watch(value)

    @rule(value=json_values(4))
    def replace(self, value: Any) -> None:
        self.watch(value)
        self.shared.replace(value)
        self.plain = copy.deepcopy(value)

    @invariant()
    def nothing_seen_has_changed(self) -> None:
        for value, before in self.seen:
            assert identical(value, before)

    @invariant()
    def what_is_owned_hangs_below_owned_containers_and_once(self) -> None:
        if not hasattr(self, "shared"):
            return
        editor = self.shared._editor
        found: list[int] = []
        nodes = [editor._root]
        while nodes:
            node = nodes.pop()
            if id(node) in editor._owned:
                found.append(id(node))
                nodes.extend(node.values() if isinstance(node, dict) else node)
        assert sorted(found) == sorted(editor._owned)

    @invariant()
    def what_is_remembered_of_places_is_where_their_pointers_lead(self) -> None:
        if not hasattr(self, "shared"):
            return
        editor = self.shared._editor
        for pointer, (container, key) in editor.places.items():
            tokens = parse_pointer(pointer)
            assert container is editor.look_up(tokens[:-1])
            assert container[key] is editor.look_up(tokens)
            assert type(container[key]) in SCALARS
            assert id(container) in editor._owned

    def teardown(self) -> None:
        if hasattr(self, "shared"):
            assert identical(self.shared.value, self.plain)


TestSharedAndPlain = SharedAndPlain.TestCase
TestSharedAndPlain.settings = settings(max_examples=150, stateful_step_count=12, deadline=None)


def test_a_value_that_was_read_stays() -> None:
    given_value = {"a": {"b": [1]}}
    shared = SharedValue(given_value)
    shared.apply([{"op": "add", "path": "/a/b/-", "value": 2}])
    first = shared.value
    shared.apply([{"op": "add", "path": "/a/b/-", "value": 3}])
    second = shared.value
    assert given_value == {"a": {"b": [1]}}
    assert first == {"a": {"b": [1, 2]}}
    assert second == {"a": {"b": [1, 2, 3]}}
    assert shared.value is second


def test_unread_containers_are_changed_in_place() -> None:
    shared = SharedValue({"wide": {str(number): number for number in range(20_000)}, "list": list(range(20_000))})

    def patch(number: int) -> list[dict[str, Any]]:
        return [
            {"op": "replace", "path": f"/wide/{number}", "value": "x"},
            {"op": "remove", "path": f"/wide/{number + 10_000}"},
            {"op": "add", "path": "/list/-", "value": "x"},
        ]

    def peak(numbers: range, *, reading: bool = False) -> int:
        tracemalloc.start()
        try:
            for number in numbers:
                shared.apply(patch(number))
                if reading:
                    shared.value  # noqa: B018
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    for number in range(53):  # pointers are remembered by all values together, which is not to be counted here
        for operation in patch(number):
            parse_pointer(operation["path"])
    copied_once = peak(range(1))
    assert copied_once > 400_000
    assert peak(range(1, 50)) < copied_once / 10
    assert peak(range(50, 53), reading=True) > 400_000


def test_two_thousand_deltas_cost_the_same_on_ten_times_the_state() -> None:
    def work(steps: int) -> int:
        shared = SharedValue({"steps": [{"id": n, "text": "x" * 40, "status": "new"} for n in range(steps)], "n": 0})
        patches: list[list[dict[str, Any]]] = [
            [
                {"op": "replace", "path": f"/steps/{number % 500}/status", "value": "done"},
                {"op": "replace", "path": "/n", "value": number},
            ]
            for number in range(2_000)
        ]

        def run() -> None:
            for patch in patches:
                shared.apply(patch)

        return lines_run(run)

    small = work(700)
    assert work(7_000) <= small


def test_a_refused_patch_costs_no_second_copy() -> None:
    shared = SharedValue({str(number): number for number in range(20_000)})
    refused: list[dict[str, Any]] = [{"op": "add", "path": "/x", "value": 1}, {"op": "remove", "path": "/missing"}]
    with pytest.raises(PatchError):
        shared.apply(refused)
    tracemalloc.start()
    try:
        for _ in range(20):
            with pytest.raises(PatchError):
                shared.apply(refused)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_what_leaves_the_document_is_let_go() -> None:
    shared = SharedValue({"a": {}})
    tracemalloc.start()
    try:
        for number in range(400):
            big = {"x": {"y": ["z" * 100] * 200}}
            shared.apply([{"op": "add", "path": "/a", "value": big}])
            shared.apply([{"op": "add", "path": "/a/x/y/-", "value": number}])
            with pytest.raises(PatchError):
                shared.apply(
                    [
                        {"op": "add", "path": "/b", "value": big},
                        {"op": "add", "path": "/b/x/y/-", "value": number},
                        {"op": "remove", "path": "/c"},
                    ]
                )
            with pytest.raises(PatchError):
                shared.apply(
                    [
                        {"op": "replace", "path": "", "value": {"r": big}},
                        {"op": "add", "path": "/r/x/y/-", "value": number},
                        {"op": "remove", "path": "/c"},
                    ]
                )
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "refused",
    [
        [{"op": "remove", "path": "/a/b/c"}, {"op": "move", "from": "/a", "path": "/z"}],
        [{"op": "remove", "path": "/a/b/c"}, {"op": "copy", "from": "", "path": "/z"}],
        [{"op": "replace", "path": "/a/b/c", "value": 1}, {"op": "copy", "from": "/a", "path": "/z"}],
        [{"op": "copy", "from": "/a", "path": "/z"}, {"op": "add", "path": "/a/b/c/-", "value": 9}],
        [{"op": "replace", "path": "", "value": {"a": {}}}, {"op": "add", "path": "/a/b", "value": 9}],
    ],
)
def test_after_a_refusal_nothing_is_edited_in_two_places(refused: list[dict[str, Any]]) -> None:
    shared = SharedValue({"a": {"b": {"c": [1]}}, "z": 0})
    shared.apply([{"op": "add", "path": "/a/b/c/-", "value": 2}])
    with pytest.raises(PatchError):
        shared.apply([*refused, {"op": "remove", "path": "/nothing"}])
    shared.apply([{"op": "copy", "from": "/a", "path": "/y"}])
    shared.apply([{"op": "add", "path": "/a/b/c/-", "value": 3}])
    assert shared.value == {"a": {"b": {"c": [1, 2, 3]}}, "y": {"b": {"c": [1, 2]}}, "z": 0}


def test_edits_are_taken_back_last_first() -> None:
    before: dict[str, Any] = {"list": [1, 2, 3], "a": 1, "b": {"c": [4]}}
    shared = SharedValue(copy.deepcopy(before))
    # Every container is the holder's own by now, and is changed in place.
    touch = [("/list/0", 1), ("/b/c/0", 4)]
    shared.apply([{"op": "replace", "path": path, "value": value} for path, value in touch])
    with pytest.raises(PatchError):
        shared.apply(
            [
                {"op": "add", "path": "/list/0", "value": 9},
                {"op": "add", "path": "/list/-", "value": 8},
                {"op": "remove", "path": "/list/1"},
                {"op": "replace", "path": "/a", "value": 2},
                {"op": "replace", "path": "/a", "value": 3},
                {"op": "add", "path": "/n", "value": 1},
                {"op": "remove", "path": "/n"},
                {"op": "move", "from": "/b/c", "path": "/list/1"},
                {"op": "copy", "from": "/list", "path": "/b/d"},
                {"op": "replace", "path": "/list/1/0", "value": 5},
                {"op": "replace", "path": "", "value": {"other": []}},
                {"op": "add", "path": "/other/-", "value": 1},
                {"op": "remove", "path": "/nothing"},
            ]
        )
    assert shared.value == before


@given(json_values(), st.lists(operations, max_size=5))
def test_an_interruption_takes_the_patch_back(value: Any, patch: list[dict[str, Any]]) -> None:
    class Stop(BaseException):
        pass

    class Interrupting(dict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            raise Stop

    shared = SharedValue(copy.deepcopy(value))
    with pytest.raises((Stop, PatchError)):
        shared.apply([*patch, Interrupting()])
    assert identical(shared.value, value)


def test_a_copy_shared_by_two_places_is_edited_in_one() -> None:
    shared = SharedValue({"a": {"b": {"c": [1]}}})
    shared.apply([{"op": "add", "path": "/a/b/c/-", "value": 2}])
    shared.apply([{"op": "copy", "from": "/a", "path": "/d"}])
    shared.apply([{"op": "add", "path": "/d/b/c/-", "value": 3}])
    shared.apply([{"op": "move", "from": "/d/b", "path": "/e"}, {"op": "add", "path": "/e/c/-", "value": 4}])
    shared.apply([{"op": "add", "path": "/a/b/c/-", "value": 5}])
    assert shared.value == {"a": {"b": {"c": [1, 2, 5]}}, "d": {}, "e": {"c": [1, 2, 3, 4]}}


class TestPlacesThatAreRemembered:
    """A scalar put where one was put before is not looked for again, and obeys every rule all the same."""

    @staticmethod
    def shared() -> SharedValue:
        shared = SharedValue({"a": {"b": 1, "c": 2}, "list": [{"n": 1}, {"n": 2}, 3]})
        shared.apply([put("/a/b", 5), put("/list/0/n", 5), put("/list/2", 5)])
        return shared

    def test_it_takes_no_search(self) -> None:
        shared = self.shared()
        assert calls(lambda: shared.apply([put("/a/b", 6)])) + 5 < calls(lambda: shared.apply([put("/a/c", 6)]))
        assert shared.value == {"a": {"b": 6, "c": 6}, "list": [{"n": 5}, {"n": 2}, 5]}

    @pytest.mark.parametrize(
        "change",
        [
            {"op": "add", "path": "/list/0", "value": 0},
            {"op": "add", "path": "/list/-", "value": 0},
            {"op": "remove", "path": "/list/1"},
            {"op": "replace", "path": "/a", "value": {"b": 0}},
            {"op": "replace", "path": "/a/b", "value": {}},
            {"op": "add", "path": "/a", "value": {"b": 0}},
            {"op": "replace", "path": "", "value": {"a": {"b": 0}}},
            {"op": "move", "from": "/list/1", "path": "/list/0"},
            {"op": "copy", "from": "/a", "path": "/list/1"},
            {"op": "copy", "from": "/a", "path": "/d"},
        ],
    )
    def test_it_is_found_anew_when_things_have_moved(self, change: dict[str, Any]) -> None:
        shared = self.shared()
        plain = apply_patch(copy.deepcopy(self.shared().value), [change])
        shared.apply([change])
        for path in ("/a/b", "/list/0/n", "/list/2"):
            with contextlib.suppress(PatchError):
                plain = apply_patch(plain, [put(path, 6)])
            with contextlib.suppress(PatchError):
                shared.apply([put(path, 6)])
        assert shared.value == plain

    def test_what_was_handed_out_stays(self) -> None:
        shared = self.shared()
        seen = shared.value
        shared.apply([put("/a/b", 6)])
        assert seen == {"a": {"b": 5, "c": 2}, "list": [{"n": 5}, {"n": 2}, 5]}

    def test_what_is_gone_is_not_replaced(self) -> None:
        shared = self.shared()
        shared.apply([{"op": "remove", "path": "/a/b"}])
        with pytest.raises(PatchError, match="no member 'b' to replace"):
            shared.apply([put("/a/b", 6)])

    def test_a_refused_patch_takes_it_back(self) -> None:
        shared = self.shared()
        with pytest.raises(PatchError, match="operation 3 "):
            shared.apply([put("/a/b", 6), put("/a/b", 7), put("/list/2", 6), put("/list/3", 6)])
        assert shared.value == {"a": {"b": 5, "c": 2}, "list": [{"n": 5}, {"n": 2}, 5]}

    def test_nor_is_a_place_in_it_remembered(self) -> None:
        shared = self.shared()
        with pytest.raises(PatchError, match="operation 2 "):
            shared.apply([put("/a", {"b": 6}), put("/a/b", 7), put("/list/3", 6)])
        shared.apply([put("/a/b", 8)])
        assert shared.value == {"a": {"b": 8, "c": 2}, "list": [{"n": 5}, {"n": 2}, 5]}

    @pytest.mark.parametrize("limit", ["max_depth", "max_pointer_length"])
    def test_limits_hold(self, limit: str) -> None:
        limits: Any = {limit: 2}
        with pytest.raises(PatchError, match=limit):
            self.shared().apply([put("/list/0/n", 6)], **limits)

    def test_no_more_than_so_many_are(self) -> None:
        shared = SharedValue({str(number): 0 for number in range(5_000)})
        for number in range(5_000):
            shared.apply([put(f"/{number}", 1)])
            assert len(shared._editor.places) <= 1_024
        long = "x" * 1_000
        shared = SharedValue({long: 0})
        shared.apply([put(f"/{long}", 1)])
        assert not shared._editor.places


class TestMeasuresOfParts:
    """A short operation that names a large part does not cost what the part does, time and again."""

    @staticmethod
    def work(patches: list[list[dict[str, Any]]], large: Any, **limits: Any) -> int:
        shared = SharedValue({"a": large, "x": {"deep": {}}})

        def run() -> None:
            for patch in patches:
                with contextlib.suppress(PatchError):
                    shared.apply(patch, **limits)

        return lines_run(run)

    @pytest.mark.parametrize("large", [[[number] for number in range(2_000)], {str(n): {} for n in range(2_000)}])
    @pytest.mark.parametrize("max_copied_bytes", [1_000_000, 5_000])
    def test_copied_again_it_is_not_counted_again(self, large: Any, max_copied_bytes: int) -> None:
        copies = [[{"op": "copy", "from": "/a", "path": f"/x/{number}"}] for number in range(20)]
        once = self.work(copies[:1], large, max_copied_bytes=max_copied_bytes)
        assert self.work(copies, large, max_copied_bytes=max_copied_bytes) < 2 * once

    def test_moved_up_and_down_at_the_limit_of_depth_it_is_not_walked_through_again(self) -> None:
        there, back = {"op": "move", "from": "/a", "path": "/x/a"}, {"op": "move", "from": "/x/a", "path": "/a"}
        large = [[number] for number in range(2_000)]
        once = self.work([[there], [back]], large, max_depth=4)
        assert self.work([[there], [back]] * 20, large, max_depth=4) < 2 * once

    def test_what_has_changed_is_counted_anew(self) -> None:
        shared = SharedValue({"a": ["x" * 400], "b": 1})
        copy_it = {"op": "copy", "from": "/a", "path": "/b"}
        shared.apply([copy_it], max_copied_bytes=500)
        shared.apply([copy_it], max_copied_bytes=500)
        shared.apply([{"op": "add", "path": "/a/-", "value": "x" * 400}])
        with pytest.raises(PatchError, match="max_copied_bytes"):
            shared.apply([copy_it], max_copied_bytes=500)

    def test_what_was_found_too_large_is_counted_further_for_a_higher_limit(self) -> None:
        shared = SharedValue({"a": [["x" * 100] for _ in range(100)], "b": 1})
        for limit in (300, 5_000):
            with pytest.raises(PatchError, match="max_copied_bytes"):
                shared.apply([{"op": "copy", "from": "/a", "path": "/b"}], max_copied_bytes=limit)
        shared.apply([{"op": "copy", "from": "/a", "path": "/b"}], max_copied_bytes=20_000)

    def test_what_is_taken_back_is_counted_as_it_was(self) -> None:
        shared = SharedValue({"a": ["x" * 400, []], "b": 1})
        copy_it = {"op": "copy", "from": "/a", "path": "/b"}
        shared.apply([{"op": "add", "path": "/a/1/-", "value": 1}])
        with pytest.raises(PatchError, match="no member"):
            shared.apply(
                [
                    {"op": "replace", "path": "/a/0", "value": "x" * 300},
                    copy_it,
                    copy_it,
                    {"op": "remove", "path": "/no"},
                ]
            )
        with pytest.raises(PatchError, match="max_copied_bytes"):
            shared.apply([copy_it], max_copied_bytes=350)

    def test_what_is_remembered_is_bounded(self) -> None:
        shared = SharedValue({"x": {}})
        tracemalloc.start()
        for _ in range(40):
            shared.apply([{"op": "add", "path": "/a", "value": ["x" * 1_000_000]}])
            shared.apply([{"op": "copy", "from": "/a", "path": "/x/a"}])
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert held < 20_000_000

    def test_a_patch_may_have_to_leave_an_object(self) -> None:
        shared = SharedValue({"a": 1})
        with pytest.raises(PatchError, match="object"):
            shared.apply(
                [{"op": "replace", "path": "/a", "value": 2}, {"op": "move", "from": "/a", "path": ""}],
                must_be_object=True,
            )
        assert shared.value == {"a": 1}
        shared.apply(
            [{"op": "add", "path": "", "value": []}, {"op": "add", "path": "", "value": {}}], must_be_object=True
        )
        assert shared.value == {}
