"""One run over loopback HTTP, as fast as its events are made, between three servers on the same uvicorn."""

from __future__ import annotations

from contextlib import ExitStack

from benchmarks.comparison import MILLISECONDS, Row, Worker, at_least, by_turns, gain, series
from benchmarks.environments import worker
from benchmarks.material import Material, run_input, text_deltas

EVENTS = 20_000
BATCH = 65_536
#: How uvicorn is run: with what it needs at least, and with what it is faster with.
STACKS = ("h11", "httptools")


def rows(material: Material) -> list[Row]:
    """Twenty thousand events a run."""
    return [row for http in STACKS for row in _on(http, material)]


def _on(http: str, material: Material) -> list[Row]:
    stream = material.stream("text.sse", text_deltas(EVENTS))
    request = material.json("request.json", run_input())
    servers = {
        "ours": worker("accord", "server", "serve", deltas=EVENTS, http=http),
        "official": worker("official", "official_server", "serve", deltas=EVENTS, http=http),
        "ready": worker("official", "ready_server", "serve", stream=stream, batch=BATCH, http=http),
    }
    with ExitStack() as stack:
        sides = {}
        for name, command in servers.items():
            server = stack.enter_context(Worker(command)).wait_until_ready()
            given = {"port": server.facts["port"], "request": request, "events": EVENTS + 4, "operations": 1}
            sides[name] = worker("official", "reader", "read", **given)
        answers = by_turns(sides)
    cost = {name: series(found, MILLISECONDS, "ms") for name, found in answers.items()}
    what = f"server over loopback HTTP ({http}), one run of 20,000 events"
    return [
        gain(what, cost["ours"], "Starlette, official encoder", cost["official"], at_least(8)),
        gain(what, cost["ours"], "the same bytes, ready in batches", cost["ready"], at_least(0.5)),
    ]
