from __future__ import annotations

import tracemalloc
from typing import Any

import msgspec
from hypothesis import given

from accord.state.size import json_size
from state.values import json_values, lines_run, nested


@given(json_values())
def test_the_size_is_that_of_compact_json(value: Any) -> None:
    assert json_size(value) == len(msgspec.json.encode(value))


def test_counting_stops_where_the_asker_stops_caring() -> None:
    few = lines_run(lambda: json_size([["x"] * 5 for _ in range(5)], 50))
    many = lines_run(lambda: json_size([["x"] * 5 for _ in range(5_000)], 50))
    assert json_size([["x"] * 5 for _ in range(5_000)], 50) >= 50
    assert many <= few


def test_a_long_text_in_many_places_is_not_written_out_to_be_counted() -> None:
    value = ["x" * 100_000] * 1_000
    tracemalloc.start()
    assert json_size(value, 4_000_000) >= 4_000_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


def test_what_json_cannot_carry_does_not_stop_the_count() -> None:
    assert json_size(["\ud800", {1, 2}, object()]) >= 3
    assert json_size(nested(100_000, 1)) == 200_001
