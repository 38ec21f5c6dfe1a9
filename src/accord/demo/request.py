"""What the scripted cook understands of a sentence: a dish it knows, and changes, by the words that name them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

MAX_SERVINGS: Final = 100

_DISHES: Final = {
    "carbonara": r"carbonara",
    "risotto": r"risotto",
    "curry": r"curry",
    "pancakes": r"pancakes?",
}
_WORDS: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBERS: Final = {word: number for number, word in enumerate(_WORDS, 1)}
_COUNT = rf"(\d{{1,6}}|{'|'.join(_NUMBERS)})"
_NOT_A_UNIT = r"(?!\s*(?:min|hour|second|day|°|degrees|g\b|kg\b|ml\b|l\b|%))"
_VEGETARIAN = re.compile(
    r"\b(?:vegetarian|veggie|meatless|meat[- ]free|without (?:any )?meat|no meat)\b", re.IGNORECASE
)
_IMPROVE = re.compile(r"\b(?:improve|better|upgrade|enhance|refine|fancier)\b", re.IGNORECASE)
_SERVINGS = re.compile(
    rf"\b(?:for|to|serves?|serving|feeds?)\s+{_COUNT}\b{_NOT_A_UNIT}"
    rf"|\b{_COUNT}\s+(?:people|persons?|servings?|portions?|guests?)\b",
    re.IGNORECASE,
)
_FACTORS: Final = {r"double|twice": Fraction(2), r"triple": Fraction(3), r"halve|half": Fraction(1, 2)}
_NEW = re.compile(r"\b(?:new|again|another|start over|from scratch)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Request:
    """A dish to begin with, None for the recipe that is there, and what to change. `servings` is a number, `factor`
    one to multiply the present servings by."""

    dish: str | None = None
    new: bool = False
    vegetarian: bool = False
    improve: bool = False
    servings: int | None = None
    factor: Fraction | None = None

    @property
    def changes(self) -> bool:
        """Whether something is to be changed."""
        return self.vegetarian or self.improve or self.servings is not None or self.factor is not None

    def __bool__(self) -> bool:
        return self.dish is not None or self.changes


def read_request(text: str) -> Request:
    """What `text` asks for; falsy when it holds nothing that is understood."""
    dish = next((name for name, word in _DISHES.items() if re.search(rf"\b{word}\b", text, re.IGNORECASE)), None)
    servings = _SERVINGS.search(text)
    count = next((group for group in servings.groups() if group), None) if servings else None
    factor = next((by for words, by in _FACTORS.items() if re.search(rf"\b(?:{words})\b", text, re.IGNORECASE)), None)
    return Request(
        dish=dish,
        new=_NEW.search(text) is not None,
        vegetarian=_VEGETARIAN.search(text) is not None,
        improve=_IMPROVE.search(text) is not None,
        servings=None if count is None else _NUMBERS.get(count.lower()) or int(count),
        factor=factor,
    )
