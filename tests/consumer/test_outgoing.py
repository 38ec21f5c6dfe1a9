from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from accord.consumer import Deviation, admit_input, check_resume, prepare_input
from accord.errors import InputRejected
from accord.protocol import (
    UNSET,
    ActivityMessage,
    AssistantMessage,
    Interrupt,
    Message,
    ResumeEntry,
    RunAgentInput,
    SystemMessage,
    TextPart,
    ToolMessage,
    UserMessage,
    to_wire,
)
from consumer.feeding import FINISHED, INPUT, STARTED, Raw, consume, raw, text
from support.shapes import fullest


def circle() -> Any:
    """A value inside itself, in which JSON cannot carry a text either."""
    value: list[Any] = ["\ud83d"]
    value.append(value)
    return value


NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)


def run_input(*messages: Message, **members: Any) -> RunAgentInput:
    return RunAgentInput(thread_id="t", run_id="r", messages=list(messages), **members)


def prepared(given: RunAgentInput, **options: Any) -> tuple[Raw, list[Deviation]]:
    warnings: list[Deviation] = []
    return to_wire(prepare_input(given, on_deviation=warnings.append, **options)), warnings


# What comes in as a raw input


def test_a_well_formed_input_is_admitted_whole() -> None:
    raw = fullest(RunAgentInput)
    assert to_wire(admit_input(raw)) == raw


def test_unknown_material_is_stripped_with_a_warning() -> None:
    warnings: list[Deviation] = []
    raw = {
        **INPUT,
        "novel": 1,
        "messages": [{"id": "x", "role": "critic"}, {"id": "u", "role": "user", "content": "hi"}],
    }
    assert [message.id for message in admit_input(raw, warnings.append).messages] == ["u"]
    assert [(each.stage, each.event_type, each.path) for each in warnings] == [
        ("enforcement", "RunAgentInput", "/messages/0"),
        ("enforcement", "RunAgentInput", "/novel"),
    ]


@pytest.mark.parametrize(
    ("members", "path"),
    [
        ({"messages": [{"id": "u", "role": "user", "content": 5}]}, "/messages/0/content"),
        ({"threadId": None}, "/threadId"),
        ({"tools": None}, "/tools"),
        ({"parentRunId": None}, "/parentRunId"),
        ({"resume": [{"status": "resolved"}]}, "/resume/0/interruptId"),
    ],
)
def test_a_malformed_member_rejects_the_input_by_its_path(members: Raw, path: str) -> None:
    with pytest.raises(InputRejected) as caught:
        admit_input({**INPUT, **members})
    assert caught.value.path == path
    assert path in str(caught.value)


def test_retired_shapes_of_an_input_are_translated() -> None:
    warnings: list[Deviation] = []
    binary = {"type": "binary", "mimeType": "image/png", "data": "QQ=="}
    raw = {
        **INPUT,
        "forwardedProps": None,
        "tools": [{"name": "n", "description": "", "parameters": None}],
        "resume": [{"interruptId": "i", "status": "resolved", "payload": None}],
        "messages": [{"id": "u", "role": "user", "content": [binary]}],
    }
    admitted = to_wire(admit_input(raw, warnings.append))
    assert "forwardedProps" not in admitted
    assert "parameters" not in admitted["tools"][0]
    assert "payload" not in admitted["resume"][0]
    assert admitted["messages"][0]["content"][0]["type"] == "image"
    assert {each.stage for each in warnings} == {"boundary"}
    assert len(warnings) == 4


# What goes out


def test_our_version_is_declared() -> None:
    assert prepared(run_input())[0]["protocolVersion"] == "1.0"
    assert prepared(run_input(), peer_version="1.0")[0]["protocolVersion"] == "1.0"
    assert prepared(run_input(), peer_version="2.0.0")[0]["protocolVersion"] == "1.0"


@pytest.mark.parametrize("version", ["0.0.58", "0.0.57", "0.0.39", "0.9"])
def test_an_older_peer_is_told_no_version(version: str) -> None:
    assert "protocolVersion" not in prepared(run_input(protocol_version="1.0"), peer_version=version)[0]


def test_activities_stay_here() -> None:
    activity = ActivityMessage(id="a", activity_type="plan", content={})
    given = run_input(activity, UserMessage(id="u", content="hi"))
    sent, warnings = prepared(given)
    assert [message["id"] for message in sent["messages"]] == ["u"]
    assert warnings == []
    assert given.messages[0] is activity


def test_the_state_goes_out_as_it_is() -> None:
    states: tuple[Any, ...] = ({"a": [None, {"b": None}]}, None, 0, "", [], False)
    for state in states:
        assert prepared(run_input(state=state))[0]["state"] == state
    assert "state" not in prepared(run_input())[0]


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (run_input(UserMessage(id="u", content=None)), "/messages/0/content"),  # type: ignore[arg-type]
        (run_input(UserMessage(id=5, content="")), "/messages/0/id"),  # type: ignore[arg-type]
        (run_input(AssistantMessage(id="a", name=None)), "/messages/0/name"),  # type: ignore[arg-type]
        (run_input(state={"a": float("nan")}), "/state/a"),
        (run_input(state={"a": [{1}]}), "/state/a/0"),
        (run_input(UserMessage(id="\ud83d", content=""), state=float("inf")), "/state"),
        (run_input(state=circle()), ""),
        (msgspec.structs.replace(run_input(), messages=None), "/messages"),
        (msgspec.structs.replace(run_input(), messages=UNSET), "/messages"),
        (msgspec.structs.replace(run_input(), messages=[None]), "/messages/0"),
    ],
)
def test_a_malformed_input_is_not_sent(given: RunAgentInput, path: str) -> None:
    with pytest.raises(InputRejected) as caught:
        prepare_input(given)
    assert caught.value.path == path


def test_a_lone_surrogate_is_replaced_wherever_it_is() -> None:
    content: Any = [TextPart(text="x\udc00"), TextPart(text="\ud83d\ude00")]
    given = run_input(
        ActivityMessage(id="a", activity_type="t", content={"stays here": "\ud800"}),
        UserMessage(id="u", content="cut \ud83d"),
        UserMessage(id="v", content=content),
        state={"draft": ["\ud83d", "ok", {"n\udfff": 1, "a/b": "\ud800\ud83d\ude00"}], "untouched": [1]},
        forwarded_props={"k": "\udc00\ud800"},
    )
    sent, warnings = prepared(given)
    assert [message["content"] for message in sent["messages"]] == [
        "cut \ufffd",
        [{"type": "text", "text": "x\ufffd"}, {"type": "text", "text": "😀"}],
    ]
    assert sent["state"] == {"draft": ["\ufffd", "ok", {"n\ufffd": 1, "a/b": "\ufffd😀"}], "untouched": [1]}
    assert sent["forwardedProps"] == {"k": "\ufffd\ufffd"}
    assert {(each.stage, each.event_type) for each in warnings} == {("boundary", "RunAgentInput")}
    assert sorted(each.path for each in warnings) == [
        "/forwardedProps/k",
        "/messages/0/content",
        "/messages/1/content/0/text",
        "/state/draft/0",
        "/state/draft/2",
        "/state/draft/2/a~1b",
    ]
    assert given.messages[1].content == "cut \ud83d"


def test_what_a_peer_left_behind_does_not_stop_the_next_run() -> None:
    cut = text("m", "cut \ud83d")
    found = consume([STARTED, *cut, raw("STATE_SNAPSHOT", snapshot={"x": "\ud83d"}), FINISHED])
    outgoing = run_input(*found.conversation.messages, state=found.conversation.state)
    sent, warnings = prepared(outgoing)
    assert (sent["messages"][0]["content"], sent["state"]) == ("cut \ufffd", {"x": "\ufffd"})
    assert len(warnings) == 2


def test_the_warnings_of_an_input_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    many: Raw = {**INPUT, "messages": [{"id": "u", "role": "user", "content": "x", f"z{n}": 1} for n in range(500)]}
    warnings: list[Deviation] = []
    assert len(admit_input(many, warnings.append).messages) == 500
    assert len(warnings) == len(caplog.records) == 101
    assert [each.path for each in warnings[:100]] == [f"/messages/{n}/z{n}" for n in range(100)]
    assert "400 more" in warnings[100].detail
    warnings.clear()
    admit_input(many, warnings.append, max_deviations=500)
    assert len(warnings) == 500
    state: Any = ["\ud800"] * 5
    warnings.clear()
    prepare_input(run_input(state=state), on_deviation=warnings.append, max_deviations=2)
    assert [each.path for each in warnings] == ["/state/0", "/state/1", ""]
    assert "3 more" in warnings[2].detail


def test_what_is_sent_holds_nothing_undescribed() -> None:
    message: Any = {"id": "u", "role": "user", "content": "hi", "mood": 1}
    sent, warnings = prepared(run_input(message))
    assert sent["messages"] == [{"role": "user", "id": "u", "content": "hi"}]
    assert [each.path for each in warnings] == ["/messages/0/mood"]


def test_what_is_sent_is_not_changed_afterwards() -> None:
    state = {"a": [1]}
    outgoing = prepare_input(run_input(state=state))
    state["a"].append(2)
    assert outgoing.state == {"a": [1]}


# Toward a peer known to be old


IMAGE = {"type": "image", "source": {"type": "url", "value": "u"}}
RICH = admit_input(
    {
        **INPUT,
        "parentRunId": "r0",
        "messages": [
            {"id": "s", "role": "system", "content": "be kind"},
            {
                "id": "u",
                "role": "user",
                "content": [{"type": "text", "text": "a"}, IMAGE, {"type": "text", "text": "b"}],
            },
            {"id": "m", "role": "assistant", "toolCalls": [], "subagentRunId": "s1"},
            {"id": "t", "role": "tool", "toolCallId": "c", "content": [IMAGE]},
            {"id": "p", "role": "user", "content": [{"type": "text", "text": "plain"}]},
        ],
    }
)


def test_a_peer_of_0_0_39_reads_text_only() -> None:
    before = to_wire(RICH)
    sent, warnings = prepared(RICH, peer_version="0.0.39")
    assert [message.get("content") for message in sent["messages"]] == ["be kind", "ab", "", "", "plain"]
    assert "subagentRunId" not in sent["messages"][2]
    assert "parentRunId" not in sent
    assert [(each.stage, each.path) for each in warnings] == [
        ("boundary", "/messages/2/subagentRunId"),
        ("boundary", "/parentRunId"),
        ("boundary", "/messages/1/content"),
        ("boundary", "/messages/3/content"),
    ]
    assert all("lost" in each.detail or "DROPS" in each.detail for each in warnings)
    assert "(image)" in warnings[2].detail
    assert to_wire(RICH) == before


@pytest.mark.parametrize("version", ["0.0.40", "0.0.45", "0.0.57"])
def test_a_peer_up_to_0_0_57_knows_no_subagents(version: str) -> None:
    sent, warnings = prepared(RICH, peer_version=version)
    assert [each.path for each in warnings] == ["/messages/2/subagentRunId"]
    assert "subagentRunId" not in sent["messages"][2]
    assert sent["messages"][1]["content"] == to_wire(RICH)["messages"][1]["content"]
    assert sent["parentRunId"] == "r0"


@pytest.mark.parametrize("version", ["0.0.58", "1.0", None])
def test_a_newer_peer_gets_everything(version: str | None) -> None:
    sent, warnings = prepared(RICH, peer_version=version)
    sent.pop("protocolVersion", None)
    assert sent == to_wire(RICH)
    assert warnings == []


def test_what_an_old_peer_can_read_is_not_warned_about() -> None:
    given = run_input(
        SystemMessage(id="s", content=""),
        UserMessage(id="u", content="x"),
        ToolMessage(id="t", content="", tool_call_id="c"),
    )
    assert prepared(given, peer_version="0.0.39")[1] == []


# Answers to interrupts


def pending(*identifiers: str, **members: Any) -> list[Interrupt]:
    return [Interrupt(id=identifier, reason="ask", **members) for identifier in identifiers]


def answers(*identifiers: str, status: Any = "resolved") -> list[ResumeEntry]:
    return [ResumeEntry(interrupt_id=identifier, status=status) for identifier in identifiers]


def resume_refused(open_interrupts: list[Interrupt], entries: list[ResumeEntry]) -> str | None:
    try:
        check_resume(open_interrupts, entries, lambda: NOW)
    except InputRejected as rejection:
        return rejection.path
    return None


@pytest.mark.parametrize(
    ("answered", "path"),
    [
        (["i1"], "/resume"),
        ([], "/resume"),
        (["i1", "i1"], "/resume/1/interruptId"),
        (["i1", "i2", "i2"], "/resume/2/interruptId"),
        (["i2", "i1"], None),
        (["i1", "i9", "i2"], "/resume/1/interruptId"),
    ],
)
def test_each_interrupt_is_answered_once(answered: list[str], path: str | None) -> None:
    assert resume_refused(pending("i1", "i2"), answers(*answered)) == path


def test_nothing_open_takes_no_answer() -> None:
    assert resume_refused([], []) is None
    assert resume_refused([], answers("i1")) == "/resume/0/interruptId"


@pytest.mark.parametrize(
    ("expires_at", "expired"),
    [
        ("2025-06-01T12:00:00Z", True),
        ("2025-06-01T11:59:59.999Z", True),
        ("2025-06-01T12:00:00.001Z", False),
        ("2025-06-01T14:00:00+02:00", True),
        ("2025-06-01T14:00:00+01:59", False),
        ("2025-06-01T12:00:00", True),
        ("2025-06-02", False),
        ("20250601T120000Z", True),
        ("0001-01-01T00:00:00+23:59", True),
        ("9999-12-31T23:59:59-23:59", False),
        ("next week", False),
        ("", False),
        ("2025-02-30T00:00:00Z", False),
        ("1748779200", False),
        (UNSET, False),
    ],
)
def test_an_expired_interrupt_can_only_be_cancelled(expires_at: Any, expired: bool) -> None:
    asked = pending("i1", expires_at=expires_at)
    assert resume_refused(asked, answers("i1")) == ("/resume/0/status" if expired else None)
    assert resume_refused(asked, answers("i1", status="cancelled")) is None


def test_the_clock_is_looked_at_only_for_what_expires() -> None:
    def no_clock() -> datetime:
        raise AssertionError("asked for the time")

    check_resume(pending("i1"), answers("i1"), no_clock)


def test_a_time_without_an_offset_is_in_the_clock_s_own_zone() -> None:
    zone = timezone(timedelta(hours=5))
    asked = pending("i1", expires_at="2025-06-01T17:00:01")
    check_resume(asked, answers("i1"), lambda: NOW.astimezone(zone))
    with pytest.raises(InputRejected):
        check_resume(asked, answers("i1"), lambda: NOW.astimezone(zone) + timedelta(seconds=1))


def test_a_clock_without_a_zone_tells_local_time() -> None:
    check_resume(pending("i1", expires_at="9999-01-01T00:00:00Z"), answers("i1"), lambda: datetime(2025, 6, 1))  # noqa: DTZ001
