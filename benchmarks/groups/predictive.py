"""Predictive state: what an agent sends, and what it costs, while a tool's argument is being written."""

from __future__ import annotations

from typing import Any

from benchmarks.comparison import Row, Target, at_least, at_most, by_turns, gain, price, series
from benchmarks.environments import worker
from benchmarks.material import Material, compact, prose, recipe

SIZE = 20_000
PIECE = 4
PEER = "agent-framework-ag-ui"


def rows(material: Material) -> list[Row]:
    """An object and a string of 20 KB, in pieces of four characters, in a whole run of an agent."""
    return [
        *_of("recipe", "predictive 20 KB object", recipe(SIZE), at_most_of_document=3),
        *_of("document", "predictive 20 KB string", prose(SIZE), at_most_of_document=10, fewer_bytes=at_least(100)),
    ]


def _of(
    kind: str, what: str, value: Any, *, at_most_of_document: float, fewer_bytes: Target | None = None
) -> list[Row]:
    given = {"kind": kind, "size": SIZE, "piece": PIECE}
    answers = by_turns(
        {
            "ours": worker("accord", "predictive", "predict", **given),
            "theirs": worker("agent-framework", "agent_framework_predictive", "predict", **given, warm_up=1),
        },
        rounds=5,
    )
    sent = {name: series(found, lambda each: each["deltas"] / 1000, "kB") for name, found in answers.items()}
    used = {name: series(found, lambda each: each["cpu"] * 1000, "ms") for name, found in answers.items()}
    document = series(answers["ours"], lambda _: len(compact(value)) / 1000, "kB")
    deltas = f"{what}: bytes of all its deltas"
    return [
        gain(deltas, sent["ours"], PEER, sent["theirs"], fewer_bytes),
        price(deltas, sent["ours"], "the value itself", document, at_most(at_most_of_document)),
        gain(f"{what}: processor time of the run", used["ours"], PEER, used["theirs"]),
    ]
