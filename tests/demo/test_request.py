from __future__ import annotations

from fractions import Fraction

import pytest

from accord.demo.request import Request, read_request


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("I want to make a classic Italian pasta carbonara", Request(dish="carbonara")),
        ("CARBONARA!", Request(dish="carbonara")),
        ("a pancake, please", Request(dish="pancakes")),
        ("make it vegetarian", Request(vegetarian=True)),
        ("the same without meat", Request(vegetarian=True)),
        ("Improve it", Request(improve=True)),
        ("can you make it better?", Request(improve=True)),
        ("for 8", Request(servings=8)),
        ("make it for eight people", Request(servings=8)),
        ("scale it to 6 servings", Request(servings=6)),
        ("we are 5 guests", Request(servings=5)),
        ("double it", Request(factor=Fraction(2))),
        ("halve the recipe", Request(factor=Fraction(1, 2))),
        ("a vegetarian risotto for two, but fancier", Request("risotto", vegetarian=True, improve=True, servings=2)),
        ("a new curry", Request(dish="curry", new=True)),
        ("cook it for 30 minutes", Request()),
        ("heat to 180 degrees", Request()),
        ("Tell me a joke", Request()),
        ("", Request()),
    ],
)
def test_what_is_understood(text: str, request_: Request) -> None:
    assert read_request(text) == request_
    assert bool(read_request(text)) == (request_ != Request())
