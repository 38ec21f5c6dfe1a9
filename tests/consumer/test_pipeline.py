"""The stages together: order, ends, versions, limits, and what is left after a failure."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from accord.consumer import Deviation, Pipeline
from accord.errors import ProtocolViolation
from accord.protocol import to_wire
from consumer.feeding import FINISHED, INPUT, STARTED, Raw, consume, payload, raw, text


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


BOTH_FORMS = pytest.mark.parametrize("form", [payload, dict], ids=["bytes", "raw"])


# Ends


def test_a_finished_run_is_a_clean_end() -> None:
    pipeline = Pipeline()
    assert not pipeline.run_active
    pipeline.feed(STARTED)
    assert pipeline.run_active
    pipeline.feed(FINISHED)
    assert not pipeline.run_active
    pipeline.finish()


def test_a_failed_run_is_a_clean_end() -> None:
    for events in ([raw("RUN_ERROR", message="x")], [STARTED, raw("RUN_ERROR", message="x")]):
        found = consume(events)
        assert (found.violation, found.truncated) == (None, False)


@pytest.mark.parametrize("events", [[], [STARTED], [STARTED, FINISHED, STARTED], [raw("NOVEL")]])
def test_a_stream_without_its_end_is_truncated(events: list[Raw]) -> None:
    found = consume(events)
    assert found.truncated
    assert found.violation is None


def test_a_truncated_run_keeps_what_came_and_invents_nothing() -> None:
    found = consume([STARTED, *text("m", "half")[:2]])
    assert found.truncated
    assert found.types == ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT"]
    assert found.messages[0]["content"] == "half"
    (record,) = found.conversation.runs
    assert (record.status, record.result, record.error) == ("truncated", None, None)


# After a violation


def test_after_a_violation_everything_is_refused_with_it() -> None:
    pipeline = Pipeline()
    pipeline.feed(payload(STARTED))
    with pytest.raises(ProtocolViolation) as first:
        pipeline.feed(payload(raw("CUSTOM", name=5, value=1)))
    for again in (lambda: pipeline.feed(payload(FINISHED)), lambda: pipeline.feed(FINISHED), pipeline.finish):
        with pytest.raises(ProtocolViolation) as later:
            again()
        assert str(later.value) == str(first.value)
        assert (later.value.index, later.value.path, later.value.stage) == (1, "/name", "enforcement")


async def test_after_a_violation_the_asynchronous_way_is_closed_too() -> None:
    async def passes(event: Raw) -> Raw:
        return event

    pipeline = Pipeline([passes])
    for _ in range(2):
        with pytest.raises(ProtocolViolation, match="must be RUN_STARTED"):
            await pipeline.feed_async(FINISHED)


def test_what_one_payload_made_before_it_failed_is_delivered_once() -> None:
    pipeline = Pipeline()
    for event in (STARTED, raw("TEXT_MESSAGE_CHUNK", "m", delta="x")):
        pipeline.feed(event)
    with pytest.raises(ProtocolViolation) as caught:
        pipeline.feed(raw("TEXT_MESSAGE_END", "m"))
    assert [to_wire(event) for event in caught.value.delivered] == [raw("TEXT_MESSAGE_END", "m")]
    with pytest.raises(ProtocolViolation) as again:
        pipeline.feed(FINISHED)
    assert again.value.delivered == ()
    assert len(caught.value.delivered) == 1


@pytest.mark.parametrize(
    ("payload", "rule"),
    [
        (b"", "json"),
        (b"{", "json"),
        (b"[]", "json"),
        (b"\xff", "encoding"),
        (b'{"type":"RAW","event":NaN}', "json"),
        (b'{"type":"RAW","event":1e999}', "number"),
        ({"type": "RAW", "event": float("nan")}, "number"),
        ({"type": "RAW", "event": {1: 2}}, "json"),
        ({"type": "RAW", "event": {1, 2}}, "json"),
    ],
)
def test_what_is_no_json_is_fatal(payload: Any, rule: str) -> None:
    found = consume([STARTED, payload])
    assert found.violation is not None
    assert (found.violation.stage, found.rule, found.violation.index) == ("wire", rule, 1)


def test_positions_are_those_of_the_payloads() -> None:
    events = [STARTED, raw("NOVEL"), raw("TEXT_MESSAGE_CHUNK", "m", delta="x"), raw("CUSTOM", name="n", value=1, x=1)]
    found = consume([*events, raw("STEP_FINISHED", "s")])
    assert [each.index for each in found.deviations] == [1, 3]
    assert found.violation is not None
    assert found.violation.index == 4


@BOTH_FORMS
def test_what_is_handed_in_is_not_changed(form: Any) -> None:
    message = {"id": "u", "role": "user", "content": [{"type": "binary", "mimeType": "image/png", "data": "x"}], "y": 1}
    events = [STARTED, raw("MESSAGES_SNAPSHOT", messages=[message], rawEvent=None), raw("THINKING_START", title="x")]
    before = copy.deepcopy(events)
    consume([form(event) for event in events])
    assert events == before


# Versions


@pytest.mark.parametrize(
    ("declared", "warning"),
    [
        ("1.0", None),
        ("01.0", None),
        ("0.9", None),
        ("1.1", "speaks version 1.1, newer than 1.0"),
        ("1.10", "speaks version 1.10, newer than 1.0"),
        ("2.0", "speaks version 2.0, newer than 1.0"),
        ("", "cannot be read"),
        ("draft", "'draft', which cannot be read"),
        ("1.0.0", "cannot be read"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"peer_version": "0.0.57"}])
def test_a_declared_version_is_compared_and_never_fatal(declared: str, warning: str | None, options: Any) -> None:
    found = consume([{**STARTED, "protocolVersion": declared}, FINISHED], **options)
    assert found.violation is None
    if warning is None:
        assert found.warnings == []
    else:
        (deviation,) = found.deviations
        assert (deviation.event_type, deviation.path, deviation.index) == ("RUN_STARTED", "/protocolVersion", 0)
        assert warning in deviation.detail


def test_an_undeclared_version_is_fine_and_each_run_is_compared() -> None:
    newer = {**STARTED, "protocolVersion": "1.1"}
    assert [each.index for each in consume([STARTED, FINISHED, newer, FINISHED, newer, FINISHED]).deviations] == [2, 4]


def test_a_version_of_a_refused_run_start_is_not_looked_at() -> None:
    assert consume([STARTED, {**STARTED, "protocolVersion": "9.9"}]).deviations == []


# Limits


@BOTH_FORMS
def test_nesting_is_limited(form: Any) -> None:
    assert consume([form(STARTED), form(raw("RAW", event=nested(9)))], max_depth=10).violation is None
    found = consume([form(STARTED), form(raw("RAW", event=nested(10)))], max_depth=10)
    assert found.violation is not None
    assert (found.violation.stage, found.rule) == ("wire", "depth")
    assert "max_depth" in str(found.violation)


@BOTH_FORMS
def test_nesting_of_what_is_stripped_counts(form: Any) -> None:
    assert consume([form(STARTED), form(raw("NOVEL", x=nested(300)))]).rule == "depth"


def test_any_nesting_of_bytes_is_a_clear_error() -> None:
    for levels in (1_000, 100_000):
        for event in (
            b'{"type":"RAW","event":%s}',
            b'{"type":"NOVEL","x":%s}',
            b'{"type":"RAW","event":1,"metadata":%s',
        ):
            deep = event % (b"[" * levels + b"]" * levels)
            for limit in (256, 1_000_000):
                pipeline = Pipeline(max_depth=limit)
                pipeline.feed(STARTED)
                try:
                    pipeline.feed(deep)
                except ProtocolViolation:
                    continue
                assert levels < limit  # how deep the interpreter itself can go differs from version to version


@BOTH_FORMS
def test_the_events_of_a_run_are_limited(form: Any) -> None:
    events = [STARTED, *[raw("RAW", event=1)] * 3, FINISHED]
    assert consume(map(form, events), max_events=5).violation is None
    found = consume(map(form, events), max_events=4)
    assert found.violation is not None
    assert (found.violation.stage, found.rule, found.violation.index) == ("wire", "event-limit", 4)
    assert "max_events" in str(found.violation)
    assert len(found.events) == 4


@BOTH_FORMS
def test_each_run_of_a_stream_has_its_own_count(form: Any) -> None:
    run = [STARTED, raw("RAW", event=1), FINISHED]
    for version in (None, "0.0.57"):
        options: Raw = {"peer_version": version}
        assert consume(map(form, run * 4), max_events=3, **options).violation is None
        assert consume(map(form, run[:2] + run[1:] * 2), max_events=3, **options).rule == "event-limit"


async def test_the_count_holds_with_asynchronous_middleware() -> None:
    pipeline = Pipeline([lambda event: event], max_events=2)
    for event in (STARTED, raw("RAW", event=1)):
        await pipeline.feed_async(event)
    with pytest.raises(ProtocolViolation, match="max_events"):
        await pipeline.feed_async(FINISHED)


def test_events_that_are_dropped_count() -> None:
    assert consume([STARTED, *[raw("NOVEL")] * 5], max_events=5).rule == "event-limit"


# Warnings


def test_warnings_go_to_the_callback_and_the_logger_and_are_not_printed(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[Deviation] = []
    pipeline = Pipeline(on_deviation=told.append)
    pipeline.feed(json.dumps({**STARTED, "novel": 1}).encode())
    expected = "enforcement RUN_STARTED /novel: not described by the protocol, stripped"
    assert [str(each) for each in told] == [expected]
    assert [(record.name, record.levelname, record.getMessage()) for record in caplog.records] == [
        ("accord", "WARNING", expected)
    ]
    assert capsys.readouterr() == ("", "")


def test_a_conformant_run_is_quiet() -> None:
    found = consume([*text("m", "x", "y"), raw("STATE_SNAPSHOT", snapshot={"a": 1})], whole=True)
    assert found.warnings == []


# The warnings of one event are bounded


@pytest.mark.parametrize("options", [{}, {"peer_version": "0.0.57"}], ids=["stripped", "too-old"])
def test_the_warnings_of_an_event_are_bounded(options: Any, caplog: pytest.LogCaptureFixture) -> None:
    name = "subagentRunId" if options else "novel"
    messages = [{"id": str(n), "role": "user", "content": "", name: "s"} for n in range(300)]
    warnings: list[Deviation] = []
    pipeline = Pipeline(on_deviation=warnings.append, **options)
    pipeline.feed(payload(STARTED))
    for turn in range(1, 3):
        pipeline.feed(payload(raw("MESSAGES_SNAPSHOT", messages=messages)))
        assert len(warnings) == len(caplog.records) == 101 * turn
        assert "200 more" in warnings[-1].detail
        assert {each.index for each in warnings[-101:]} == {turn}


def test_the_bound_is_named_and_holds_for_what_fails_too() -> None:
    warnings: list[Deviation] = []
    pipeline = Pipeline(on_deviation=warnings.append, max_deviations=1)
    parts = [{"type": "binary", "mimeType": "image/png", "data": "QQ==", "id": "i"}, {"type": "text", "text": 5}]
    with pytest.raises(ProtocolViolation):
        pipeline.feed(
            payload({**STARTED, "input": {**INPUT, "messages": [{"id": "u", "role": "user", "content": parts}]}})
        )
    assert [each.detail for each in warnings][1:] == ["1 more warnings (max_deviations=1)"]


def test_many_runs_of_a_newer_version_are_warned_about_each() -> None:
    warnings: list[Deviation] = []
    pipeline = Pipeline(on_deviation=warnings.append)
    for _ in range(150):
        pipeline.feed(payload({**STARTED, "protocolVersion": "2.0"}))
        pipeline.feed(payload(FINISHED))
    assert len(warnings) == 150
    assert all(each.path == "/protocolVersion" for each in warnings)
