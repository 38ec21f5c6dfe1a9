from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from datetime import date
from enum import StrEnum
from typing import Any, TypeAlias

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.errors import EncodingError, LimitExceeded, ProtocolViolation
from accord.producer import Reasoning, Run, TextMessage, ToolCallItem
from accord.protocol import (
    AssistantMessage,
    Event,
    FunctionCall,
    ReasoningMessage,
    ReasoningMessageContentEvent,
    RunErrorEvent,
    TextMessageContentEvent,
    ToolCall,
    ToolCallArgsEvent,
    encode_event,
    to_wire,
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


@kinds
def test_an_addition_under_another_owner_than_the_items_is_refused(kind: str) -> None:
    """What an id belongs to changes with a snapshot of the messages: a consumer would refuse what goes on."""
    run, outlet = a_run()
    with run:
        run.subagent("helper", "s1")
        item = KINDS[kind][0](run, "i1", subagent_run_id="s1")
        item.write("a")
        message = {"text": AssistantMessage, "reasoning": ReasoningMessage, "call": AssistantMessage}[kind]
        members: dict[str, Any] = {"id": "i1", "content": "a"}
        if kind == "call":
            members = {
                "id": "m1",
                "tool_calls": [ToolCall(id="i1", type="function", function=FunctionCall(name="search", arguments="a"))],
            }
        run.messages_snapshot([message(**members)])
        before = len(outlet.payloads)
        with pytest.raises(ProtocolViolation) as refused:
            item.write("b")
        assert refused.value.path == "/subagentRunId"
        assert len(outlet.payloads) == before


SAYINGS: dict[str, Callable[[Run, TextMessage, Any], object]] = {
    "write": lambda run, message, value: message.write(value),
    "write with metadata": lambda run, message, value: message.write(value, metadata={}),
    "text": lambda run, message, value: run.text(value),
    "step": lambda run, message, value: run.step(value),
    "custom": lambda run, message, value: run.custom(value, 1),
    "tool_call": lambda run, message, value: run.tool_call("search", value),
}


@pytest.mark.parametrize("saying", SAYINGS)
@pytest.mark.parametrize("value", [b"hello", date(2020, 1, 1), {"a"}, msgspec.Raw(b'"x"\n'), uuid.uuid4()], ids=repr)
def test_what_is_no_text_is_refused_where_text_is_due(saying: str, value: Any) -> None:
    run, outlet = a_run()
    with run:
        message = run.text("m1")
        before = len(outlet.payloads)
        with pytest.raises(EncodingError, match="is not a JSON value"):
            SAYINGS[saying](run, message, value)
        assert len(outlet.payloads) == before
    consumed(outlet)


@pytest.mark.parametrize("opens", [lambda run: run.step("s"), lambda run: run.subagent("helper")])
def test_an_error_ends_steps_and_subagents_as_well(opens: Callable[[Run], Any]) -> None:
    run, outlet = a_run()
    with run, opens(run):
        run.emit(RunErrorEvent(message="over"))
    assert outlet.types[-1] == "RUN_ERROR"
    consumed(outlet, failed=True)


def test_an_item_is_ended_under_the_lock_of_its_run() -> None:
    run, outlet = a_run()
    with run:
        message = run.text("m1")
        ending = threading.Thread(target=message.end)
        with run.lock:
            ending.start()
            ending.join(0.05)
            assert ending.is_alive()
            assert outlet.types[-1] == "TEXT_MESSAGE_START"
        ending.join(10)
    assert outlet.types[-2] == "TEXT_MESSAGE_END"


class Phase(StrEnum):
    COOKING = "cooking"


def test_a_member_of_an_enumeration_of_texts_is_its_text() -> None:
    run, outlet = a_run()
    with run:
        run.step(Phase.COOKING).end()
        run.text("m1").write(Phase.COOKING)
        run.custom(Phase.COOKING, 1)
    told = [to_wire(event) for event in outlet.events]
    assert [event["delta"] for event in told if event["type"] == "TEXT_MESSAGE_CONTENT"] == ["cooking"]
    assert [event["stepName"] for event in told if event["type"].startswith("STEP_")] == ["cooking"] * 2
    consumed(outlet)
