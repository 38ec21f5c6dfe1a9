"""The benchmark's workloads, counted: patches, differences, and JSON that is read while it arrives."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from accord.state import PartialJSON, SharedValue, apply_patch, diff
from benchmarks.material import compact, prose, recipe, shopping_list, shopping_patches, to_do_list
from support.counting import calls, calls_each, peak_bytes

LONG_LIST = 20_000


def read_apart(value: Any) -> Any:
    """An equal value that shares nothing with it."""
    return json.loads(compact(value))


def sendings(text: str, piece: int = 4, seconds_a_piece: float | None = None) -> list[int]:
    """The bytes of each patch that a growing text makes."""
    parser = PartialJSON("/value")
    patches = []
    for number, start in enumerate(range(0, len(text), piece)):
        now = None if seconds_a_piece is None else number * seconds_a_piece
        patches.append(parser.feed(text[start : start + piece], now))
    patches.append(parser.close())
    return [len(compact(patch)) for patch in patches if patch]


def reading(text: str) -> Callable[[], None]:
    pieces = [text[start : start + 4] for start in range(0, len(text), 4)]

    def work() -> None:
        parser = PartialJSON("/value")
        for piece in pieces:
            parser.feed(piece)
        parser.close()

    return work


class TestPatches:
    @staticmethod
    def each(items: int, *, read: bool) -> float:
        def prepare(count: int) -> Callable[[], None]:
            held = SharedValue(shopping_list(items))
            patches = shopping_patches(count, items)

            def work() -> None:
                for patch in patches:
                    held.apply(patch)
                    if read:
                        assert held.value

            return work

        return calls_each(prepare)

    def test_one_is_a_few_calls(self) -> None:
        assert self.each(413, read=False) <= 50

    def test_one_at_places_that_came_before_is_hardly_any(self) -> None:
        assert self.each(40, read=False) <= 20

    def test_one_that_somebody_reads_is_a_few_more(self) -> None:
        assert self.each(413, read=True) <= 75

    def test_its_calls_do_not_depend_on_the_state(self) -> None:
        # Some pointers and indices are remembered from one patch to the next, and some are not.
        assert self.each(4_130, read=True) == pytest.approx(self.each(413, read=True), abs=9)


class TestDifferences:
    @pytest.mark.parametrize("made", [to_do_list, shopping_list])
    def test_a_field_of_a_long_list_is_one_operation(self, made: Callable[[int], Any]) -> None:
        old = made(LONG_LIST)
        new = read_apart(old)
        new["items"][LONG_LIST // 2]["quantity"] = -1
        expected = [{"op": "replace", "path": f"/items/{LONG_LIST // 2}/quantity", "value": -1}]
        assert diff(old, new) == expected

    def test_finding_it_takes_no_calls_for_each_item(self) -> None:
        old = to_do_list(LONG_LIST)
        new = read_apart(old)
        new["items"][LONG_LIST // 2]["quantity"] = -1
        assert calls(lambda: diff(old, new)) <= LONG_LIST / 10

    def test_what_is_shared_is_not_looked_into(self) -> None:
        old = to_do_list(LONG_LIST)
        new = apply_patch(old, [{"op": "replace", "path": f"/items/{LONG_LIST // 2}/quantity", "value": -1}])
        assert calls(lambda: diff(old, new)) <= 160
        assert peak_bytes(lambda: diff(old, new)) <= 300_000


class TestGrowingJSON:
    def test_calls_grow_with_the_text_and_no_faster(self) -> None:
        short, long = (compact(recipe(size)).decode() for size in (24_000, 150_000))
        assert calls(reading(short)) <= 11.5 * len(short) / 4
        assert calls(reading(long)) <= 1.2 * calls(reading(short)) * len(long) / len(short)

    def test_an_object_is_sent_less_than_three_times(self) -> None:
        text = compact(recipe(20_000)).decode()
        assert sum(sendings(text)) <= 3 * len(text)

    @pytest.mark.parametrize("size", [20_000, 200_000])
    def test_a_text_that_comes_at_once_is_sent_less_than_ten_times(self, size: int) -> None:
        text = compact(prose(size)).decode()
        assert sum(sendings(text)) <= 10 * len(text)

    def test_a_text_that_comes_slowly_is_sent_four_times_a_second(self) -> None:
        text = compact(prose(20_000)).decode()
        seconds = len(text) / 160
        sent = len(sendings(text, seconds_a_piece=4 / 160))
        assert seconds / 0.3 <= sent <= seconds / 0.25 + 60  # and as it grows by an eighth at first
