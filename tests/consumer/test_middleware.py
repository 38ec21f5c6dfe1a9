from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from accord.consumer import Pipeline, ToolFilter
from accord.consumer.middleware import MiddlewareChain
from accord.errors import AccordError, ProtocolViolation
from accord.protocol import Event
from consumer.feeding import FINISHED, STARTED, Raw, call, consume, payload, raw, result, text

NOVEL = raw("TEXT_MESSAGE_START", "m", novel={"kept": "whole"})


def note(name: str, log: list[str]) -> Any:
    def middleware(event: Raw) -> Raw:
        log.append(f"{name}:{event['type']}")
        return event

    return middleware


def test_middleware_sees_what_is_stripped_later() -> None:
    seen: list[Raw] = []

    def watch(event: Raw) -> Raw:
        seen.append(event)
        return event

    found = consume([NOVEL, raw("NOVEL_EVENT", x=1), raw("TEXT_MESSAGE_END", "m")], whole=True, middleware=[watch])
    assert seen[1] == NOVEL
    assert seen[2] == {"type": "NOVEL_EVENT", "x": 1}
    assert [each.path for each in found.deviations] == ["/novel", ""]


def test_middleware_sees_what_the_boundary_made() -> None:
    log: list[str] = []
    consume([raw("THINKING_START")], whole=True, middleware=[note("a", log)])
    assert log[1] == "a:REASONING_START"


def test_events_pass_in_the_order_given() -> None:
    log: list[str] = []
    consume([STARTED], middleware=[note("a", log), note("b", log)])
    assert log == ["a:RUN_STARTED", "b:RUN_STARTED"]


async def test_the_input_passes_in_the_reverse_order() -> None:
    class Signs:
        def __init__(self, name: str) -> None:
            self.name = name

        def __call__(self, event: Raw) -> Raw:
            return event

        def on_input(self, sent: Raw) -> Raw:
            return {**sent, "signed": [*sent.get("signed", []), self.name]}

    class SignsLater(Signs):
        async def on_input(self, sent: Raw) -> Raw:  # type: ignore[override]
            await asyncio.sleep(0)
            return super().on_input(sent)

    chain = MiddlewareChain([Signs("a"), note("no input", []), SignsLater("b")])
    assert await chain.pass_input({"threadId": "t"}) == {"threadId": "t", "signed": ["b", "a"]}


async def test_an_error_on_the_input_names_the_middleware() -> None:
    class Breaks:
        def __call__(self, event: Raw) -> Raw:
            return event

        def on_input(self, sent: Raw) -> Any:
            raise KeyError("tools")

    class Loses(Breaks):
        def on_input(self, sent: Raw) -> Any:
            return None

    for middleware in (Breaks(), Loses()):
        with pytest.raises(AccordError, match=f"{type(middleware).__name__} failed"):
            await MiddlewareChain([middleware]).pass_input({})


def test_middleware_drops_replaces_and_adds() -> None:
    def change(event: Raw) -> Any:
        if event["type"] == "CUSTOM":
            return None
        if event["type"] == "RAW":
            return text("m", "made")
        return {**event, "metadata": {"seen": True}}

    def generate(event: Raw) -> Iterator[Raw]:
        yield event
        if event["type"] == "RUN_STARTED":
            yield raw("STATE_SNAPSHOT", snapshot=1)

    found = consume([raw("CUSTOM", name="n", value=1), raw("RAW", event=1)], whole=True, middleware=[change, generate])
    assert found.types == [
        "RUN_STARTED",
        "STATE_SNAPSHOT",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    assert found.messages[0]["content"] == "made"
    assert found.events[0].metadata == {"seen": True}


def test_an_error_ends_the_run_and_names_the_middleware() -> None:
    def loses_its_way(event: Raw) -> Raw:
        return event["no such member"]  # type: ignore[no-any-return]

    found = consume([STARTED, FINISHED], middleware=[loses_its_way])
    assert found.violation is not None
    assert (found.violation.stage, found.violation.index) == ("middleware", 0)
    assert "loses_its_way" in str(found.violation)
    assert isinstance(found.violation.__cause__, KeyError)


def test_what_is_delivered_before_a_later_middleware_fails_stays() -> None:
    def adds_nonsense(event: Raw) -> list[Raw]:
        return [event, {"type": "CUSTOM", "name": 5}] if event["type"] == "RAW" else [event]

    found = consume([STARTED, raw("RAW", event=1)], middleware=[adds_nonsense])
    assert found.types == ["RUN_STARTED", "RAW"]
    assert found.rule == "malformed"


@pytest.mark.parametrize("made", [5, "event", [1], ["event"], [[STARTED]]])
def test_what_is_no_event_is_an_error(made: Any) -> None:
    found = consume([STARTED], middleware=[lambda _: made])
    assert found.rule == "middleware"


@pytest.mark.parametrize("value", [{1}, float("nan"), object(), {5: 1}])
def test_what_is_no_json_does_not_go_on(value: Any) -> None:
    found = consume([STARTED], middleware=[lambda event: {**event, "metadata": {"k": value}}])
    assert found.violation is not None
    assert found.violation.stage == "middleware"


def test_middleware_may_not_nest_without_end() -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    assert consume([STARTED], middleware=[lambda event: {**event, "metadata": {"k": deep}}]).rule == "depth"


# Asynchronous middleware


async def later(event: Raw) -> list[Raw]:
    await asyncio.sleep(0)
    return [event, raw("CUSTOM", name="late", value=1)] if event["type"] == "RUN_STARTED" else [event]


async def feed(pipeline: Pipeline, *events: Raw) -> list[Event]:
    return [event for each in events for event in await pipeline.feed_async(payload(each))]


async def test_asynchronous_middleware_is_awaited_in_its_place() -> None:
    log: list[str] = []
    pipeline = Pipeline([note("a", log), later, note("b", log)])
    events = await feed(pipeline, STARTED, FINISHED)
    pipeline.finish()
    assert [event.type for event in events] == ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]
    assert log == ["a:RUN_STARTED", "b:RUN_STARTED", "b:CUSTOM", "a:RUN_FINISHED", "b:RUN_FINISHED"]


async def test_without_middleware_both_ways_of_feeding_are_one() -> None:
    assert [event.type for event in await feed(Pipeline(), STARTED, FINISHED)] == ["RUN_STARTED", "RUN_FINISHED"]


async def test_an_error_in_asynchronous_middleware_ends_the_run() -> None:
    async def breaks(event: Raw) -> Raw:
        raise OSError("gone")

    pipeline = Pipeline([breaks])
    for _ in range(2):
        with pytest.raises(ProtocolViolation, match="breaks failed: gone"):
            await pipeline.feed_async(STARTED)


def test_asynchronous_middleware_cannot_be_fed_synchronously() -> None:
    with pytest.raises(ProtocolViolation, match="later failed: it is asynchronous"):
        Pipeline([later]).feed(STARTED)


# Tools allowed or blocked


def names(events: list[Raw], **lists: Any) -> list[str]:
    found = consume(events, whole=True, middleware=[ToolFilter(**lists)])
    assert found.violation is None, found.violation
    return [
        call["function"]["name"] + ":" + call["function"]["arguments"]
        for message in found.messages
        for call in message.get("toolCalls", ())
    ] + [message["id"] for message in found.messages if message["role"] == "tool"]


TWO_CALLS = [*call("c1", "1", name="read"), *call("c2", "2", name="erase"), result("t1", "c1"), result("t2", "c2")]


def test_calls_are_filtered_with_their_results() -> None:
    assert names(TWO_CALLS, allow=["read"]) == ["read:1", "t1"]
    assert names(TWO_CALLS, block=["erase"]) == ["read:1", "t1"]
    assert names(TWO_CALLS, block=[]) == ["read:1", "erase:2", "t1", "t2"]
    assert names(TWO_CALLS, allow=[]) == []


@pytest.mark.parametrize("lists", [{}, {"allow": [], "block": []}])
def test_exactly_one_list_is_due(lists: Any) -> None:
    with pytest.raises(ValueError, match="exactly one"):
        ToolFilter(**lists)


def chunk(identifier: str | None = None, delta: str = "", **members: Any) -> Raw:
    return raw("TOOL_CALL_CHUNK", identifier, delta=delta, **members)


@pytest.mark.parametrize("tag", [{}, {"tag": "s1"}])
def test_chunks_of_a_blocked_call_are_dropped_to_its_end(tag: Raw) -> None:
    events = [
        chunk("c1", "1", toolCallName="erase", **tag),
        chunk(None, "2", **tag),
        chunk("c2", "3", toolCallName="read", **tag),
        chunk(None, "4", **tag),
        chunk("c1", "5", toolCallName="erase", **tag),
        chunk(None, "6", **tag),
    ]
    assert names(events, block=["erase"]) == ["read:34"]


def test_a_chunk_without_id_or_owner_goes_on_with_the_only_call_open() -> None:
    events = [chunk("c1", "1", toolCallName="erase", tag="s1"), chunk(None, "2")]
    assert names(events, block=["erase"]) == []
    beside = [chunk("c1", "1", toolCallName="erase", tag="s1"), chunk("c2", "2", toolCallName="read"), chunk(None, "3")]
    assert names(beside, block=["erase"]) == ["read:23"]
    held = [chunk("c2", "1", toolCallName="read", tag="s1"), chunk("c1", "2", toolCallName="erase"), chunk(None, "3")]
    assert names(held, block=["erase"]) == ["read:1"]


@pytest.mark.parametrize(
    "between",
    [
        raw("RAW", event=1),
        raw("ACTIVITY_SNAPSHOT", "a", activityType="t", content={}),
        raw("SUBAGENT_STARTED", "s2", name="n"),
    ],
)
def test_events_aside_do_not_end_a_blocked_call(between: Raw) -> None:
    events = [chunk("c1", "1", toolCallName="erase"), between, chunk(None, "2")]
    found = consume([STARTED, *events], middleware=[ToolFilter(block=["erase"])])
    assert found.violation is None
    assert found.types == ["RUN_STARTED", between["type"]]


@pytest.mark.parametrize(
    "between",
    [raw("STATE_SNAPSHOT", snapshot=1), raw("MESSAGES_SNAPSHOT", messages=[]), raw("TEXT_MESSAGE_CHUNK", "m")],
)
def test_a_chunk_that_goes_on_with_nothing_is_left_to_be_refused(between: Raw) -> None:
    events = [STARTED, chunk("c1", "1", toolCallName="erase"), between, chunk(None, "2")]
    assert consume(events, middleware=[ToolFilter(block=["erase"])]).rule == "first-chunk"


def test_a_new_run_forgets_what_was_dropped() -> None:
    again = [STARTED, *call("c1", name="erase"), FINISHED, STARTED, result("t1", "c1"), FINISHED]
    found = consume(again, middleware=[ToolFilter(block=["erase"])])
    assert [message["role"] for message in found.messages] == ["tool"]


def test_a_malformed_call_is_left_to_be_refused() -> None:
    broken: list[Raw] = [{"toolCallId": 5}, {"toolCallId": "c", "toolCallName": None}, {"subagentRunId": []}]
    for members in broken:
        event = {**raw("TOOL_CALL_START", "c", toolCallName="read"), **members}
        assert consume([STARTED, event], middleware=[ToolFilter(block=["erase"])]).rule == "malformed"
