"""The benchmark's workloads, counted: what an event costs from its bytes to the applied conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import pytest

from accord.consumer import Conversation, Pipeline
from accord.protocol import RunAgentInput, decode_input
from accord.wire import SSEReader
from benchmarks.material import compact, run_input, shopping_list, shopping_patches, text_deltas
from support.counting import calls_each, peak_bytes

RUN = {"threadId": "t1", "runId": "r1"}
EMPTY = decode_input(compact(run_input()))
LOADED = decode_input(compact(run_input(messages=500, message_size=5_000, state=shopping_list(7_000))))
ITEMS = 413  # a state of 58 KB


def stream(events: Iterable[dict[str, Any]]) -> bytes:
    whole = [{"type": "RUN_STARTED", **RUN}, *events, {"type": "RUN_FINISHED", **RUN}]
    return b"".join(b"data: " + compact(event) + b"\n\n" for event in whole)


def consuming(
    data: bytes, begun: RunAgentInput, subscribe: Callable[[Conversation], object] = lambda _: None
) -> Callable[[], None]:
    """What consumes a stream, once; all that is made beforehand is not counted."""
    conversation = Conversation(begun)
    subscribe(conversation)
    reader, pipeline = SSEReader(), Pipeline()

    def work() -> None:
        for payload in reader.feed(data):
            for event in pipeline.feed(payload):
                conversation.apply(event)
        reader.close()
        pipeline.finish()

    return work


def of_text(begun: RunAgentInput, subscribe: Callable[[Conversation], object] = lambda _: None) -> float:
    return calls_each(lambda count: consuming(stream(text_deltas(count)), begun, subscribe))


def of_patches(begun: RunAgentInput, items: int, subscribe: Callable[[Conversation], object] = lambda _: None) -> float:
    def deltas(count: int) -> Iterable[dict[str, Any]]:
        return ({"type": "STATE_DELTA", "delta": patch} for patch in islice(shopping_patches(10_000, items), count))

    return calls_each(lambda count: consuming(stream(deltas(count)), begun, subscribe))


def ten_subscribers(conversation: Conversation) -> None:
    for _ in range(10):
        conversation.subscribe(
            on_event=lambda event: None, on_state=lambda state: None, on_messages=lambda messages: None
        )


def test_a_piece_of_text_is_a_few_calls() -> None:
    assert of_text(EMPTY) <= 11


def test_a_piece_of_text_costs_the_same_whatever_is_there() -> None:
    assert of_text(LOADED) == of_text(EMPTY)
    assert of_text(LOADED, ten_subscribers) == of_text(EMPTY, ten_subscribers)


def test_each_subscriber_costs_its_callbacks() -> None:
    assert of_text(EMPTY, ten_subscribers) - of_text(EMPTY) <= 10 * 4.5


def test_a_piece_of_text_copies_nothing_of_what_is_there() -> None:
    data = stream(text_deltas(1_000))
    assert peak_bytes(consuming(data, LOADED, ten_subscribers)) <= 400_000  # of 3.5 MB of messages and state


@pytest.mark.parametrize("times", [1, 10])
def test_a_patch_is_a_few_calls_on_a_state_of_any_size(times: int) -> None:
    begun = decode_input(compact(run_input(state=shopping_list(ITEMS * times))))
    assert of_patches(begun, ITEMS * times) <= 80


def test_patches_copy_what_they_touch_once_while_nobody_looks() -> None:
    begun = decode_input(compact(run_input(state=shopping_list(20_000))))
    deltas = ({"type": "STATE_DELTA", "delta": patch} for patch in shopping_patches(200, 20_000))
    assert peak_bytes(consuming(stream(deltas), begun)) <= 500_000  # the list alone, and what has arrived
