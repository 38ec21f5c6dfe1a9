from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import UNSET

from accord.errors import EncodingError, LimitExceeded, PatchError, ProtocolViolation, RunFailed
from accord.producer import OutletOverflow, Run, drive
from accord.protocol import (
    CustomEvent,
    Event,
    Interrupt,
    RawEvent,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
    TokenUsage,
    Tool,
    UserMessage,
    to_wire,
)
from producer.recording import Recording, a_run, an_input, consumed


async def emitted(producer: Callable[[Run], Any], *, failed: bool = False, **members: Any) -> Recording:
    """What a producer emits, driven from start to end; a consumer must accept all of it."""
    run_input = an_input(**members)
    run, outlet = a_run(run_input)
    await drive(producer, run)
    consumed(outlet, run_input, failed=failed)
    return outlet


def last(outlet: Recording) -> Event:
    return outlet.events[-1]


async def test_a_run_opens_and_closes_itself() -> None:
    async def producer(run: Run) -> None:
        run.result = {"answer": 42}

    outlet = await emitted(producer, parent_run_id="r0")
    assert outlet.events == [
        RunStartedEvent(thread_id="t1", run_id="r1", protocol_version="1.0", parent_run_id="r0"),
        RunFinishedEvent(thread_id="t1", run_id="r1", result={"answer": 42}),
    ]


async def test_items_close_with_their_block() -> None:
    async def producer(run: Run) -> None:
        with run.step("plan"):
            with run.reasoning("th1", span_id="s1") as reasoning:
                reasoning.write("hm")
                reasoning.seal("opaque")
            with run.text("m1") as message:
                message.write("Hel")
                message.write("")
                message.write("lo")
            with run.tool_call("search", "c1", parent_message_id="m1") as call:
                call.write('{"q":')
                call.write("1}")
        run.tool_result("c1", "found", message_id="m2")
        run.custom("note", [1])
        run.raw({"x": None}, source="elsewhere")

    outlet = await emitted(producer)
    assert outlet.types == [
        "RUN_STARTED",
        "STEP_STARTED",
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_ENCRYPTED_VALUE",
        "REASONING_MESSAGE_END",
        "REASONING_END",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "STEP_FINISHED",
        "TOOL_CALL_RESULT",
        "CUSTOM",
        "RAW",
        "RUN_FINISHED",
    ]
    assert [to_wire(message) for message in consumed(outlet).messages] == [
        {"role": "reasoning", "id": "th1", "content": "hm", "encryptedValue": "opaque"},
        {
            "role": "assistant",
            "id": "m1",
            "content": "Hello",
            "toolCalls": [{"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q":1}'}}],
        },
        {"role": "tool", "id": "m2", "content": "found", "toolCallId": "c1"},
    ]


async def test_what_is_left_open_is_closed() -> None:
    async def producer(run: Run) -> None:
        run.text("m1").write("half")
        run.tool_call("search", "c1")
        run.reasoning("th1", span_id="s1")
        run.step("plan")
        run.subagent("helper", "a1")

    outlet = await emitted(producer)
    assert outlet.types[-1] == "RUN_FINISHED"
    assert outlet.types.count("SUBAGENT_FINISHED") == 1


async def test_ending_twice_is_ending_once() -> None:
    async def producer(run: Run) -> None:
        with run.text("m1") as message:
            message.write("a")
            message.end()

    assert (await emitted(producer)).types.count("TEXT_MESSAGE_END") == 1


async def test_an_exception_is_told_plainly_and_logged_whole(caplog: pytest.LogCaptureFixture) -> None:
    async def producer(run: Run) -> None:
        run.text("m1").write("half")
        raise ValueError("password=hunter2")

    with caplog.at_level(logging.ERROR, "accord"):
        outlet = await emitted(producer, failed=True)
    assert outlet.types == [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_ERROR",
    ]
    failure = last(outlet)
    assert isinstance(failure, RunErrorEvent)
    assert failure.code == "internal_error"
    assert "hunter2" not in outlet.payloads[-1].decode()
    assert "ValueError" not in outlet.payloads[-1].decode()
    assert "hunter2" in caplog.text


async def test_a_failure_made_to_be_told_is_told() -> None:
    async def producer(run: Run) -> None:
        raise RunFailed("The kitchen is closed.", code="closed")

    assert last(await emitted(producer, failed=True)) == RunErrorEvent(message="The kitchen is closed.", code="closed")


@pytest.mark.parametrize("text", ["cut \ud83d", "\udc00"])
async def test_a_failure_can_always_be_told(text: str) -> None:
    async def producer(run: Run) -> None:
        raise RunFailed(text, code=text)

    assert last(await emitted(producer, failed=True)).type == "RUN_ERROR"


async def test_a_producer_that_exits_fails_its_run_only() -> None:
    async def producer(run: Run) -> None:
        raise SystemExit(2)

    assert (await emitted(producer, failed=True)).types == ["RUN_STARTED", "RUN_ERROR"]


async def test_a_state_that_cannot_be_sent_back_does_not_hide_the_failure(caplog: pytest.LogCaptureFixture) -> None:
    async def producer(run: Run) -> None:
        run.state.predict(["a"]).show([{"op": "add", "path": "/a", "value": 1}])
        raise ValueError("the failure")

    run, outlet = a_run()
    run.state.begin({"b": "\ud83d"})
    await drive(producer, run)
    assert outlet.types == ["RUN_STARTED", "STATE_DELTA", "RUN_ERROR"]
    assert "ValueError: the failure" in caplog.text
    assert "could not be taken back" in caplog.text


async def test_an_event_larger_than_readers_take_does_not_leave() -> None:
    outlet = Recording()
    run = Run(an_input(), outlet, max_event_bytes=1_000)
    with run:
        with pytest.raises(LimitExceeded, match="max_event_bytes"):
            run.custom("large", "x" * 1_000)
        run.custom("small", "x" * 100)
        with run.text() as message, pytest.raises(LimitExceeded, match="max_event_bytes"):
            message.write("x" * 1_000)
    assert outlet.types == ["RUN_STARTED", "CUSTOM", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "RUN_FINISHED"]


@pytest.mark.parametrize("count", [-1, 1.5, True, "12", 2**60])
async def test_counts_that_are_none_are_refused_at_once(count: Any) -> None:
    async def producer(run: Run) -> None:
        with pytest.raises(ProtocolViolation):
            run.usage(TokenUsage(input_tokens=count))

    assert (await emitted(producer)).types == ["RUN_STARTED", "RUN_FINISHED"]


async def test_a_cancellation_is_the_cancelled_outcome_and_goes_on() -> None:
    waiting = asyncio.Event()

    async def producer(run: Run) -> None:
        run.text("m1").write("half")
        run.result = "never"
        waiting.set()
        await asyncio.Event().wait()

    run, outlet = a_run()
    task = asyncio.create_task(drive(producer, run))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert last(outlet) == RunFinishedEvent(thread_id="t1", run_id="r1", outcome=RunFinishedCancelledOutcome())
    assert consumed(outlet).runs[-1].status == "cancelled"


@pytest.mark.parametrize(
    ("event", "rule"),
    [
        (TextMessageContentEvent(message_id="m1", delta="x"), "not-open"),
        (RunStartedEvent(thread_id="t1", run_id="r2"), "nested-run"),
        (RunFinishedEvent(thread_id="t1", run_id="other"), "run-ids"),
        (TextMessageChunkEvent(delta="x"), "first-chunk"),
    ],
)
def test_what_a_consumer_would_refuse_does_not_leave(event: Event, rule: str) -> None:
    run, outlet = a_run()
    with run:
        with pytest.raises(ProtocolViolation) as refused:
            run.emit(event)
        assert refused.value.rule == rule
        assert outlet.types == ["RUN_STARTED"]


@pytest.mark.parametrize(
    "event",
    [
        TextMessageStartEvent(message_id=5),  # type: ignore[arg-type]
        TextMessageStartEvent(message_id="m", role="narrator"),  # type: ignore[arg-type]
        CustomEvent(name="n", value=1, metadata=None),  # type: ignore[arg-type]
        CustomEvent(name="n", value=1, timestamp=2**60),
        RunFinishedEvent(thread_id="t1", run_id="r1", outcome=RunFinishedInterruptOutcome(interrupts=[])),
    ],
)
def test_malformed_events_do_not_leave(event: Event) -> None:
    run, outlet = a_run()
    with run:
        with pytest.raises(ProtocolViolation):
            run.emit(event)
        assert outlet.types == ["RUN_STARTED"]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (math.nan, "/value/x"),
        (math.inf, "/value/x"),
        ("hi \ud83d", "/value/x"),
        ({1, 2}, "/value/x"),
        (object(), "/value/x"),
    ],
)
async def test_a_value_that_cannot_be_encoded_fails_the_run_and_nothing_else(value: object, path: str) -> None:
    async def producer(run: Run) -> None:
        run.emit(CustomEvent(name="n", value={"x": value}))

    run, outlet = a_run()
    await drive(producer, run)
    assert outlet.types == ["RUN_STARTED", "RUN_ERROR"]

    run, _ = a_run()
    with run, pytest.raises(EncodingError) as refused:
        run.emit(CustomEvent(name="n", value={"x": value}))
    assert refused.value.path == path


async def test_a_result_that_cannot_be_encoded_fails_the_run() -> None:
    async def producer(run: Run) -> None:
        run.result = {"when": object()}

    assert (await emitted(producer, failed=True)).types == ["RUN_STARTED", "RUN_ERROR"]


@pytest.mark.parametrize("result", [10**5000, [-(10**4500)]], ids=["one", "in a list"])
async def test_an_integer_that_nothing_can_write_fails_the_run(result: Any) -> None:
    async def producer(run: Run) -> None:
        run.result = result

    outlet = await emitted(producer, failed=True)
    assert to_wire(last(outlet))["code"] == "invalid_event"

    run, _ = a_run()
    with run, pytest.raises(EncodingError, match="integer") as refused:
        run.custom("n", {"x": 10**5000})
    assert refused.value.path == "/value/x"


async def test_a_chunk_that_is_refused_leaves_what_was_open_as_it_was() -> None:
    async def producer(run: Run) -> None:
        run.subagent("helper", "s1")
        message = run.text("m1")
        run.emit(TextMessageChunkEvent(message_id="m2", delta="by chunks"))
        before = len(outlet.payloads)
        for refused, error in (
            (TextMessageChunkEvent(message_id="m1", delta="z", subagent_run_id="s1"), ProtocolViolation),
            (TextMessageChunkEvent(message_id="m2", delta="\ud800"), EncodingError),
            (TextMessageChunkEvent(message_id="m3", delta="\ud800", subagent_run_id="s1"), EncodingError),
        ):
            with pytest.raises(error):
                run.emit(refused)
        assert len(outlet.payloads) == before
        run.emit(TextMessageChunkEvent(message_id="m2", delta=", two of them"))
        message.write("goes on")

    run, outlet = a_run()
    await drive(producer, run)
    texts = {message.id: message.content for message in consumed(outlet).messages}
    assert texts == {"m1": "goes on", "m2": "by chunks, two of them"}


async def test_a_producer_that_fails_after_a_refused_chunk_says_so() -> None:
    async def producer(run: Run) -> None:
        run.text("m1")
        run.emit(TextMessageChunkEvent(message_id="m1", delta="z", subagent_run_id="s1"))

    outlet = await emitted(producer, failed=True)
    assert outlet.types == ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "RUN_ERROR"]


async def test_chunks_leave_expanded() -> None:
    async def producer(run: Run) -> None:
        run.emit(TextMessageChunkEvent(message_id="m1", delta="a"))
        run.emit(RawEvent(event=1))
        run.emit(TextMessageChunkEvent(delta="b"))

    outlet = await emitted(producer)
    assert "TEXT_MESSAGE_CHUNK" not in outlet.types
    (message,) = consumed(outlet).messages
    assert to_wire(message)["content"] == "ab"


async def test_shorthand_that_is_left_open_is_closed_once() -> None:
    async def producer(run: Run) -> None:
        run.emit(TextMessageChunkEvent(message_id="m1", delta="Hello"))

    outlet = await emitted(producer)
    assert outlet.types[-3:] == ["TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED"]


async def test_an_operation_keeps_what_the_rfc_does_not_define() -> None:
    operations = [{"op": "add", "path": "/a", "value": 1, "note": "why"}]

    async def producer(run: Run) -> None:
        run.state.patch(operations)
        run.activity("plan", {}, message_id="p").patch(operations)

    outlet = await emitted(producer)
    assert [to_wire(event)["delta"] for event in outlet.events if event.type == "STATE_DELTA"] == [operations]
    assert consumed(outlet).state == {"a": 1}


async def test_an_activity_stays_an_object() -> None:
    async def producer(run: Run) -> None:
        activity = run.activity("plan", {"a": 1}, message_id="p")
        with pytest.raises(PatchError):
            activity.patch([{"op": "replace", "path": "", "value": 5}])

    assert (await emitted(producer)).types == ["RUN_STARTED", "ACTIVITY_SNAPSHOT", "RUN_FINISHED"]


async def test_usage_is_one_entry_for_each_provider_and_model() -> None:
    async def producer(run: Run) -> None:
        run.usage(TokenUsage(model="a", input_tokens=1))
        run.usage(TokenUsage(model="b", input_tokens=7))
        run.usage(TokenUsage(model="a", input_tokens=2, output_tokens=5))

    finished = last(await emitted(producer))
    assert isinstance(finished, RunFinishedEvent)
    assert finished.usage == [
        TokenUsage(model="a", input_tokens=3, output_tokens=5),
        TokenUsage(model="b", input_tokens=7),
    ]


async def test_unanswered_frontend_calls_are_named() -> None:
    async def producer(run: Run) -> None:
        for call_id, name in (("c1", "pick_color"), ("c2", "search"), ("c3", "pick_color")):
            run.tool_call(name, call_id).end()
        run.tool_result("c3", "done")

    outlet = await emitted(producer, tools=[Tool(name="pick_color", description="")])
    finished = last(outlet)
    assert isinstance(finished, RunFinishedEvent)
    assert finished.outcome == RunFinishedSuccessOutcome(pending_tool_call_ids=["c1"])


async def test_interrupts_end_the_run_with_questions() -> None:
    async def producer(run: Run) -> None:
        run.interrupt(Interrupt(id="i1", reason="tool_call"))
        run.interrupt(Interrupt(id="i2", reason="tool_call"))

    outlet = await emitted(producer)
    assert [each.id for each in consumed(outlet).pending_interrupts] == ["i1", "i2"]


async def test_two_interrupts_of_one_id_fail_the_run() -> None:
    async def producer(run: Run) -> None:
        run.interrupt(Interrupt(id="i1", reason="a"))
        run.interrupt(Interrupt(id="i1", reason="b"))

    assert (await emitted(producer, failed=True)).types == ["RUN_STARTED", "RUN_ERROR"]


async def test_a_subagent_that_raises_has_failed_and_the_run_goes_on() -> None:
    async def producer(run: Run) -> None:
        try:
            with run.subagent("helper", "a1"):
                with run.text("m1", subagent_run_id="a1") as message:
                    message.write("...")
                raise ValueError("detail")
        except ValueError:
            run.custom("survived", True)

    outlet = await emitted(producer)
    assert outlet.types[-3:] == ["SUBAGENT_ERROR", "CUSTOM", "RUN_FINISHED"]
    assert b"detail" not in b"".join(outlet.payloads)


async def test_an_activity_sends_what_changed() -> None:
    async def producer(run: Run) -> None:
        activity = run.activity("search", {"query": "ag-ui", "hits": []}, message_id="a1")
        activity.replace({"query": "ag-ui", "hits": [1]})
        activity.patch([{"op": "add", "path": "/done", "value": True}])
        activity.replace({"query": "ag-ui", "hits": [1], "done": True})

    outlet = await emitted(producer)
    assert outlet.types == ["RUN_STARTED", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "ACTIVITY_DELTA", "RUN_FINISHED"]
    (message,) = consumed(outlet).messages
    assert to_wire(message)["content"] == {"query": "ag-ui", "hits": [1], "done": True}


class Full(Recording):
    """An outlet that takes a few events."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def put(self, payload: bytes) -> None:
        if len(self.payloads) == self._limit:
            raise OutletOverflow("full")
        super().put(payload)


async def test_an_overflow_ends_the_producer_and_never_looks_like_success() -> None:
    reached = False

    async def producer(run: Run) -> None:
        nonlocal reached
        with run.text("m1") as message:
            for _ in range(10):
                message.write("x")
        reached = True

    outlet = Full(4)
    await drive(producer, Run(an_input(), outlet))
    assert not reached
    assert "RUN_FINISHED" not in outlet.types


async def test_the_input_is_the_producers_to_read() -> None:
    seen: list[str] = []

    async def producer(run: Run) -> None:
        (message,) = run.input.messages
        seen.append(message.id)
        assert run.state.value == {"n": 1}
        assert run.input.tools is UNSET

    await emitted(producer, messages=[UserMessage(id="u1", content="hi")], state={"n": 1})
    assert seen == ["u1"]
