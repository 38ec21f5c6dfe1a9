"""Events on their way out: to the bytes of a frame."""

from __future__ import annotations

from benchmarks.comparison import MICROSECONDS, Row, at_least, by_turns, gain, price, series
from benchmarks.environments import worker
from benchmarks.material import Material, text_deltas

EVENTS = 20_000


def rows(material: Material) -> list[Row]:
    """Events that are there already, so that only their encoding counts."""
    given = {"stream": material.stream("text.sse", text_deltas(EVENTS)), "operations": EVENTS, "passes": 3}
    answers = by_turns(
        {
            "ours": worker("accord", "encoding", "encode", **given),
            "floor": worker("accord", "encoding", "floor", **given),
            "official": worker("official", "official", "encode", **{**given, "passes": 1}),
        }
    )
    cost = {name: series(found, MICROSECONDS, "µs") for name, found in answers.items()}
    what = "encode 20,000 events to SSE frames; an event"
    return [
        gain(what, cost["ours"], "ag-ui-protocol EventEncoder", cost["official"], at_least(10)),
        price(what, cost["ours"], "floor: bare encoder", cost["floor"]),
    ]
