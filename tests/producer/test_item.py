from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.errors import EncodingError, LimitExceeded, ProtocolViolation
from accord.producer import Reasoning, Run, TextMessage, ToolCallItem
from accord.protocol import (
    Event,
    ReasoningMessageContentEvent,
    RunErrorEvent,
    TextMessageContentEvent,
    ToolCallArgsEvent,
    encode_event,
)
from producer.recording import Recording, a_run, an_input, consumed

Growing: TypeAlias = TextMessage | Reasoning | ToolCallItem

#: Of each kind: what opens it, and the event that adds to it.
KINDS: dict[str, tuple[Callable[..., Growing], Callable[..., Event]]] = {
    "text": (
        lambda run, name, **members: run.text(name, **members),
        lambda name, delta, **members: TextMessageContentEvent(message_id=name, delta=delta, **members),
    ),
    "reasoning": (
        lambda run, name, **members: run.reasoning(name, span_id="span", **members),
        lambda name, delta, **members: ReasoningMessageContentEvent(message_id=name, delta=delta, **members),
    ),
    "call": (
        lambda run, name, **members: run.tool_call("search", name, **members),
        lambda name, delta, **members: ToolCallArgsEvent(tool_call_id=name, delta=delta, **members),
    ),
}
kinds = pytest.mark.parametrize("kind", KINDS)
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
names = texts | st.sampled_from(['"delta":""', '","delta":"', 'a\\"delta":""', "\n\u2028"])


@kinds
@given(name=names, deltas=st.lists(texts, min_size=1, max_size=3), owner=st.none() | names)
def test_an_addition_is_the_event_it_stands_for(kind: str, name: str, deltas: list[str], owner: str | None) -> None:
    opens, adds = KINDS[kind]
    members: dict[str, Any] = {} if owner is None else {"subagent_run_id": owner}
    run, outlet = a_run()
    with run:
        if owner is not None:
            run.subagent("helper", owner)
        item = opens(run, name, **members)
        before = len(outlet.payloads)
        for delta in deltas:
            item.write(delta)
        assert outlet.payloads[before:] == [encode_event(adds(name, delta, **members)) for delta in deltas]
    consumed(outlet)


@kinds
def test_text_that_is_none_is_named_and_nothing_leaves(kind: str) -> None:
    run, outlet = a_run()
    with run:
        item = KINDS[kind][0](run, "i1")
        before = len(outlet.payloads)
        with pytest.raises(EncodingError) as refused:
            item.write("a\ud800")
        assert refused.value.path == "/delta"
        item.write("")
        assert len(outlet.payloads) == before


@kinds
def test_an_addition_that_no_reader_takes_is_refused(kind: str) -> None:
    outlet = Recording()
    with Run(an_input(), outlet, max_event_bytes=200) as run:
        item = KINDS[kind][0](run, "i1")
        item.write("x" * 100)
        before = len(outlet.payloads)
        with pytest.raises(LimitExceeded, match="max_event_bytes"):
            item.write("x" * 200)
        assert len(outlet.payloads) == before


@kinds
def test_nothing_is_added_to_an_item_that_has_ended(kind: str) -> None:
    run, outlet = a_run()
    with run:
        item = KINDS[kind][0](run, "i1")
        item.end()
        before = len(outlet.payloads)
        with pytest.raises(ProtocolViolation) as refused:
            item.write("late")
        assert refused.value.rule == "not-open"
        item.end()
        assert len(outlet.payloads) == before


@kinds
def test_an_error_ends_an_item_that_is_open(kind: str) -> None:
    run, outlet = a_run()
    with run:
        item = KINDS[kind][0](run, "i1")
        run.emit(RunErrorEvent(message="over"))
        with pytest.raises(ProtocolViolation) as refused:
            item.write("late")
        assert refused.value.rule == "after-run"
        item.end()
    consumed(outlet, failed=True)
