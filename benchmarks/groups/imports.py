"""What a program waits for before it can begin."""

from __future__ import annotations

from benchmarks.comparison import MILLISECONDS, Row, at_most, by_turns, price, series
from benchmarks.environments import worker
from benchmarks.material import Material


def rows(material: Material) -> list[Row]:
    """Each in an environment that has what the package needs and no more, compiled, in a new interpreter."""
    answers = by_turns(
        {
            "ours": worker("accord", "importing", "imports", statement="from accord.client import AGUIClient"),
            "theirs": worker("official", "importing", "imports", statement="import ag_ui.core, httpx"),
            "httpx": worker("official", "importing", "imports", statement="import httpx"),
        },
        rounds=11,
    )
    cost = {name: series(found, MILLISECONDS, "ms") for name, found in answers.items()}
    what = "import of accord.client, with its client"
    return [
        price(what, cost["ours"], "ag_ui.core + httpx", cost["theirs"], at_most(0.5)),
        price(what, cost["ours"], "httpx alone", cost["httpx"]),
    ]
