"""A stream of text: what an event costs from its bytes to the applied conversation, whatever is there already."""

from __future__ import annotations

from benchmarks.comparison import MICROSECONDS, Row, at_least, at_most, by_turns, gain, price, series
from benchmarks.environments import reference, worker
from benchmarks.material import Material, run_input, shopping_list, text_deltas

DELTAS = 20_000
FEW = 1_000
SUBSCRIBERS = 10


def rows(material: Material) -> list[Row]:
    """Twenty thousand deltas; the reference client gets fewer where each one costs it much, and counts per delta."""
    stream = material.stream("text.sse", text_deltas(DELTAS))
    few = material.stream("text-few.sse", text_deltas(FEW))
    history = run_input(messages=500, message_size=5_000, state=shopping_list(7_000))
    loaded = material.json("loaded.json", history)

    bare = {"stream": stream, "operations": DELTAS, "passes": 3}
    watched = {**bare, "subscribers": SUBSCRIBERS}
    answers = by_turns(
        {
            "ours": worker("accord", "consumer", "apply", **bare),
            "floor": worker("accord", "consumer", "decode", **bare),
            "loaded": worker("accord", "consumer", "apply", **bare, run_input=loaded),
            "watched": worker("accord", "consumer", "apply", **watched),
            "watched, loaded": worker("accord", "consumer", "apply", **watched, run_input=loaded),
            "reference": reference("apply", stream=stream, operations=DELTAS),
            "reference, loaded": reference(
                "apply", stream=few, operations=FEW, run_input=loaded, subscribers=SUBSCRIBERS, warm_up=1
            ),
            "events": worker("accord", "consumer", "events", **bare),
            "official": worker("official", "official", "decode", **bare),
        },
        rounds=5,
    )
    cost = {name: series(found, MICROSECONDS, "µs") for name, found in answers.items()}
    what = "20,000 text deltas, SSE bytes → applied conversation; an event"
    into = "the same into 500 messages of 5 kB and 1 MB of state"
    heard = f"{into}, {SUBSCRIBERS} subscribers"
    return [
        gain(what, cost["ours"], "@ag-ui/client", cost["reference"], at_least(30)),
        price(what, cost["ours"], "floor: bare strict decode", cost["floor"], at_most(6)),
        price(into, cost["loaded"], "ours, empty", cost["ours"], at_most(1.2)),
        price(heard, cost["watched, loaded"], "ours, empty, as many", cost["watched"], at_most(1.2)),
        gain(heard, cost["watched, loaded"], "@ag-ui/client", cost["reference, loaded"], at_least(300)),
        gain(
            "20,000 text deltas, payload → checked event; an event", cost["events"], "ag-ui-protocol", cost["official"]
        ),
    ]
