"""Amounts of ingredients, computed: the number at the beginning changes, the words behind it stay.

Metric amounts become whole units, others the nearest half, third or quarter, as kitchens measure.
"""

from __future__ import annotations

import re
from fractions import Fraction

_SIGNS = {"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅛": "1/8"}
_NUMBER = r"\d+\s+\d+/\d+|\d+/\d+|\d+(?:[.,]\d+)?"
_AMOUNT = re.compile(rf"\s*({_NUMBER})(?:\s*([-–]|to)\s*({_NUMBER}))?(\s*)(.*)", re.DOTALL)
_METRIC = re.compile(r"(?:g|kg|ml|cl|dl|l)\b", re.IGNORECASE)
_SMALL = 10  # metric amounts below are given to a tenth


def scale_amount(amount: str, factor: Fraction) -> str:
    """`amount` times `factor`: `400g` and 1/2 make `200g`, `1 1/2 cups` and 2 make `3 cups`, `To taste` stays."""
    text = amount
    for sign, fraction in _SIGNS.items():
        text = text.replace(sign, f" {fraction}")
    match = _AMOUNT.fullmatch(text)
    if match is None:
        return amount
    first, dash, last, space, rest = match.groups()
    metric = _METRIC.match(rest) is not None
    scaled = _written(_value(first) * factor, metric=metric)
    if last is not None:
        dash = f" {dash} " if dash == "to" else dash
        scaled += f"{dash}{_written(_value(last) * factor, metric=metric)}"
    return f"{scaled}{space}{rest}"


def _value(number: str) -> Fraction:
    return sum((Fraction(part.replace(",", ".")) for part in number.split()), Fraction())


def _written(value: Fraction, *, metric: bool) -> str:
    if metric:
        tenths = value < _SMALL and value.denominator != 1
        return f"{float(value):.1f}" if tenths else str(round(value))
    choices = [Fraction(round(value * parts), parts) for parts in (1, 2, 3, 4)]
    nearest = min((choice for choice in choices if choice > 0), key=lambda choice: abs(choice - value), default=value)
    whole, rest = divmod(nearest, 1)
    return " ".join(str(part) for part in (whole, rest) if part) or "0"
