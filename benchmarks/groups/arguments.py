"""Tool arguments that arrive in pieces and are read as they come."""

from __future__ import annotations

from benchmarks.comparison import MILLISECONDS, Row, at_least, at_most, by_turns, gain, price, series
from benchmarks.environments import worker
from benchmarks.material import Material, compact, recipe

PIECE = 4


def rows(material: Material) -> list[Row]:
    """The whole of the arguments; jiter reads all there is with each piece, since it keeps nothing between calls."""
    short = material.file("arguments.json", compact(recipe(24_000)))
    long = material.file("arguments-long.json", compact(recipe(150_000)))
    answers = by_turns(
        {
            "ours": worker("accord", "state", "parse", text=short, piece=PIECE, passes=2),
            "long": worker("accord", "state", "parse", text=long, piece=PIECE),
            "read": worker("accord", "state", "parse", text=short, piece=PIECE, read=True),
            "jiter": worker("official", "official", "parse", text=short, piece=PIECE, warm_up=1),
        }
    )
    cost = {name: series(found, _whole, "ms") for name, found in answers.items()}
    what = "24 KB of tool arguments in 4-character pieces, parsed as they come"
    return [
        gain(what, cost["ours"], "jiter, re-parsing", cost["jiter"], at_least(15)),
        price("the same with 150 KB", cost["long"], "ours, 24 KB", cost["ours"], at_most(8)),
        gain(f"{what}, and the value taken at each piece", cost["read"], "jiter, re-parsing", cost["jiter"]),
    ]


def _whole(found: dict[str, float]) -> float:
    return MILLISECONDS(found) * found["operations"] / found.get("passes", 1)
