"""The binary wire beside JSON, both ours: bytes, and the way out and in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.comparison import MICROSECONDS, Row, by_turns, price, series
from benchmarks.environments import worker
from benchmarks.material import Material, compact, recipe, shopping_list, text_deltas

EVENTS = 5_000
PEER = "ours, JSON over SSE"


def rows(material: Material) -> list[Row]:
    """Text, the arguments of a call, and one large state."""
    state = {"type": "STATE_SNAPSHOT", "snapshot": shopping_list(7_000)}
    return [
        *_between("a text delta", material.stream("wire-text.sse", text_deltas(EVENTS)), EVENTS),
        *_between("a piece of arguments", material.stream("wire-call.sse", _call_pieces(EVENTS)), EVENTS),
        *_between("a snapshot of 1 MB of state", material.stream("wire-state.sse", [state]), 1),
    ]


def _call_pieces(count: int) -> Iterable[dict[str, Any]]:
    arguments = compact(recipe(4 * count)).decode()
    yield {"type": "TOOL_CALL_START", "toolCallId": "call-1", "toolCallName": "update_recipe"}
    for number in range(count):
        piece = arguments[4 * number : 4 * number + 4]
        yield {"type": "TOOL_CALL_ARGS", "toolCallId": "call-1", "delta": piece}
    yield {"type": "TOOL_CALL_END", "toolCallId": "call-1"}


def _between(what: str, stream: str, operations: int) -> list[Row]:
    given = {"stream": stream, "operations": operations, "passes": 2}
    answers = by_turns(
        {
            f"{task} {wire}": worker("accord", "wires", task, wire=wire, **given)
            for task in ("encode", "decode")
            for wire in ("protobuf", "sse")
        },
        rounds=5,
    )

    def size(wire: str) -> Any:
        return series(answers[f"encode {wire}"], lambda found: found["bytes"] / operations, "B")

    def cost(task: str, wire: str) -> Any:
        return series(answers[f"{task} {wire}"], MICROSECONDS, "µs")

    return [
        price(f"protobuf, {what}: bytes", size("protobuf"), PEER, size("sse")),
        price(f"protobuf, {what}: encode", cost("encode", "protobuf"), PEER, cost("encode", "sse")),
        price(f"protobuf, {what}: bytes → event", cost("decode", "protobuf"), PEER, cost("decode", "sse")),
    ]
