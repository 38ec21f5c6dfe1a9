"""How figures are compared and shown."""

from __future__ import annotations

import pytest

from benchmarks.comparison import Row, Series, at_least, at_most, figures, gain, price, within
from benchmarks.report import as_markdown, as_text

OURS = Series((1.0, 2.0, 4.0), "µs")
THEIRS = Series((10.0, 30.0, 80.0), "µs")


def test_a_ratio_is_made_round_by_round() -> None:
    assert gain("x", OURS, "them", THEIRS).ratio.values == (10.0, 15.0, 20.0)
    assert price("x", OURS, "them", THEIRS).ratio.values == (0.1, 2 / 30, 0.05)


@pytest.mark.parametrize(
    ("row", "missed"),
    [
        (gain("x", OURS, "them", THEIRS, at_least(15)), False),
        (gain("x", OURS, "them", THEIRS, at_least(15.1)), True),
        (price("x", OURS, "them", THEIRS, at_most(0.07)), False),
        (price("x", OURS, "them", THEIRS, at_most(0.06)), True),
        (gain("x", OURS, "them", THEIRS, within(2, "µs")), False),
        (gain("x", OURS, "them", THEIRS, within(1.9, "µs")), True),
        (gain("x", OURS, "them", THEIRS), False),
    ],
)
def test_a_target_is_judged_by_the_median(row: Row, missed: bool) -> None:
    assert row.missed is missed
    answer = ("" if row.target is None else "yes") if not missed else "no"
    assert as_text([row]).splitlines()[-1].rstrip().endswith(answer)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.06543, "0.0654"),
        (1.0, "1"),
        (5.312, "5.31"),
        (99.96, "100"),
        (123.4, "123"),
        (51_621, "51,600"),
        (1000, "1,000"),
    ],
)
def test_three_figures_are_shown(value: float, shown: str) -> None:
    assert figures(value) == shown


def test_the_table_shows_the_spread_and_what_is_missed() -> None:
    missed = gain("deltas", OURS, "them", THEIRS, at_least(20))
    *_, line = as_markdown([missed]).splitlines()
    assert line == "| deltas | 2 µs | them | 30 µs | 15 × (10 – 20) | ≥ 20 × | **no** |"
