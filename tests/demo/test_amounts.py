from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.demo.amounts import scale_amount


@pytest.mark.parametrize(
    ("amount", "factor", "scaled"),
    [
        ("400g", Fraction(2), "800g"),
        ("400 g", Fraction(1, 2), "200 g"),
        ("400g", Fraction(1, 3), "133g"),
        ("1.2l, hot", Fraction(2), "2.4l, hot"),
        ("1,5 kg", Fraction(2), "3 kg"),
        ("5 ml", Fraction(1, 2), "2.5 ml"),
        ("4", Fraction(3), "12"),
        ("1 1/2 tbsp", Fraction(2), "3 tbsp"),
        ("1/2 tsp", Fraction(3), "1 1/2 tsp"),
        ("½ tsp", Fraction(3), "1 1/2 tsp"),
        ("1½ cups", Fraction(2), "3 cups"),
        ("1 glass", Fraction(1, 2), "1/2 glass"),
        ("2-3 cloves", Fraction(2), "4-6 cloves"),
        ("2 to 3", Fraction(2), "4 to 6"),
        ("2 (400 g) tins", Fraction(2), "4 (400 g) tins"),
        ("5", Fraction(3, 4), "3 3/4"),
        ("1", Fraction(1, 50), "1/50"),
        ("To taste", Fraction(2), "To taste"),
        ("", Fraction(2), ""),
        ("a pinch", Fraction(5), "a pinch"),
    ],
)
def test_amounts(amount: str, factor: Fraction, scaled: str) -> None:
    assert scale_amount(amount, factor) == scaled


@given(st.text(max_size=20), st.integers(1, 100))
def test_anything_may_stand_for_an_amount(amount: str, times: int) -> None:
    scale_amount(amount, Fraction(times, 4))


@given(st.integers(1, 1000), st.sampled_from(["g", " ml", "", " tbsp, heaped"]), st.integers(1, 12))
def test_there_and_back(count: int, unit: str, times: int) -> None:
    amount = f"{count}{unit}"
    assert scale_amount(scale_amount(amount, Fraction(times)), Fraction(1, times)) == amount
