from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from msgspec import UNSET

from accord.client import AGUIClient, Cancelled, InProcessTransport, ReplayTransport
from accord.consumer import Deviation, ToolFilter
from accord.errors import InputRejected, ProtocolViolation, RunFailed, TransportError, TruncatedRun
from accord.producer import Run
from accord.protocol import (
    ActivityMessage,
    AssistantMessage,
    Context,
    Interrupt,
    Message,
    ResumeEntry,
    RunAgentInput,
    TextPart,
    ToolMessage,
    UserMessage,
    to_wire,
)
from client.streams import Raw, Script, contents, failed, finished, interrupted, started, text, until_error

DONE = [started(), finished()]


def user(content: str, message_id: str = "u1") -> UserMessage:
    return UserMessage(id=message_id, content=content)


# What is held from run to run


async def test_the_conversation_goes_on() -> None:
    transport = Script(
        [started("r1"), *text("one"), {"type": "STATE_SNAPSHOT", "snapshot": {"n": 1}}, finished("r1")],
        [
            started("r2"),
            {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/n", "value": 2}]},
            finished("r2"),
        ],
    )
    client = AGUIClient(transport=transport, thread_id="t1")
    await client.run("hi")
    await client.run("and?")
    first, second = transport.sent
    assert (client.thread_id, first.thread_id, second.thread_id) == ("t1", "t1", "t1")
    assert (first.state, second.state, client.state) == ({}, {"n": 1}, {"n": 2})
    assert [message.content for message in second.messages] == ["hi", "one", "and?"]
    assert [record.run_id for record in client.runs] == ["r1", "r2"]
    assert first.run_id != second.run_id
    assert second.parent_run_id is UNSET


async def test_state_and_messages_can_be_set() -> None:
    transport = Script(DONE, DONE, DONE)
    client = AGUIClient(transport=transport, state=[1], messages=[user("earlier"), "later"])
    assert client.state == [1]
    await client.run()
    client.state = {"deep": {"null": None}}
    client.messages = [user("instead")]
    await client.run()
    await client.run(state=None)
    assert [run_input.state for run_input in transport.sent] == [[1], {"deep": {"null": None}}, None]
    assert [len(run_input.messages) for run_input in transport.sent] == [2, 1, 1]
    assert client.state is None


async def test_messages_of_every_kind_of_argument() -> None:
    transport = Script(DONE, DONE, DONE)
    client = AGUIClient(transport=transport)
    await client.run(user("one"))
    await client.run(["two", user("one, again")])
    assert contents(client) == ["one, again", "two"]
    assert [message.content for message in transport.sent[1].messages] == ["one, again", "two"]
    await client.run(UserMessage(id="u2", content=[TextPart(text="parts")]))
    assert contents(client)[-1] == [TextPart(text="parts")]
    with pytest.raises(InputRejected, match="not dict") as caught:
        client.run(["fine", {"role": "user"}])  # type: ignore[list-item]
    assert caught.value.path == "/messages/1"


async def test_what_a_run_is_asked_with_is_sent() -> None:
    transport = Script(DONE, DONE)
    context = Context(description="city", value="Rome")
    client = AGUIClient(transport=transport, context=[context])
    await client.run(run_id="r1", parent_run_id="r0", forwarded_props={"a": 1})
    await client.run(context=[])
    first, second = transport.sent
    assert (first.run_id, first.parent_run_id, first.forwarded_props) == ("r1", "r0", {"a": 1})
    assert first.context == [context]
    assert (second.context, second.forwarded_props, second.tools) == ([], {}, [])


async def test_what_was_not_taken_is_not_added() -> None:
    transport = Script(TransportError("down"), InputRejected("no", status=422), DONE)
    client = AGUIClient(transport=transport, state=1)
    for error in (TransportError, InputRejected):
        run = client.run("hi", state=2)
        with pytest.raises(error):
            await run
        assert run.new_messages == []
        assert (client.messages, client.state) == ([], 1)
    await client.run("hi", state=2)
    assert (contents(client), client.state) == (["hi"], 2)


async def test_messages_are_there_when_the_first_event_is() -> None:
    client = AGUIClient(transport=ReplayTransport([started(), *text("Hello"), finished()]))
    seen: list[list[Any]] = []
    async for _ in client.run("hi"):
        seen.append(contents(client))
    assert seen[0] == ["hi"]
    assert seen[2] == ["hi", "Hello"]  # applied as it is handed out, not before


async def test_what_is_read_is_not_changed_later() -> None:
    deltas = [{"type": "STATE_DELTA", "delta": [{"op": "add", "path": f"/{n}", "value": n}]} for n in range(3)]
    client = AGUIClient(transport=ReplayTransport([started(), *deltas, finished()]))
    states = [client.state async for _ in client.run()]
    assert states == [{}, {"0": 0}, {"0": 0, "1": 1}, {"0": 0, "1": 1, "2": 2}, {"0": 0, "1": 1, "2": 2}]


async def test_subscribers_hear_of_the_events() -> None:
    client = AGUIClient(transport=ReplayTransport([started(), *text("a", "b"), finished()]))
    heard: list[str] = []
    unsubscribe = client.conversation.subscribe(on_event=lambda event: heard.append(event.type))
    await client.run()
    assert len(heard) == 6
    unsubscribe()
    await client.run()
    assert len(heard) == 6


async def test_activities_stay_here_and_runs_are_forgotten_beyond_a_limit() -> None:
    activity = {"type": "ACTIVITY_SNAPSHOT", "messageId": "a1", "activityType": "PLAN", "content": {}}
    transport = Script([started(), activity, finished()], DONE)
    client = AGUIClient(transport=transport, max_runs=1)
    await client.run("hi")
    await client.run()
    assert isinstance(client.messages[1], ActivityMessage)
    assert [message.id for message in transport.sent[1].messages] == [client.messages[0].id]
    assert len(client.runs) == 1


# What is not sent


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"state": {"n": float("nan")}}, "/state/n"),
        ({"state": {"when": object()}}, "/state/when"),
        ({"messages": UserMessage(id=5, content="x")}, "/messages/0/id"),  # type: ignore[arg-type]
        ({"forwarded_props": {"a": {1, 2}}}, "/forwardedProps/a"),
        ({"context": [Context(description="x", value=None)]}, "/context/0/value"),  # type: ignore[arg-type]
    ],
)
async def test_what_cannot_be_sent_is_not(options: dict[str, Any], path: str) -> None:
    transport = Script(DONE)
    client = AGUIClient(transport=transport)
    run = client.run(**options)
    with pytest.raises(InputRejected) as caught:
        await run
    assert caught.value.path == path
    assert (run.outcome, transport.sent, client.messages, client.state) == ("rejected", [], [], {})
    await client.run("fine")


async def test_half_a_character_does_not_stop_a_thread() -> None:
    warnings: list[Deviation] = []
    transport = Script(DONE)
    await AGUIClient(transport=transport, on_deviation=warnings.append).run("half \ud83d")
    assert [message.content for message in transport.sent[0].messages] == ["half \ufffd"]
    assert [warning.path for warning in warnings] == ["/messages/0/content"]


def test_arguments_that_contradict_each_other() -> None:
    transport = ReplayTransport(b"")
    for options in ({}, {"url": "http://h/", "transport": transport}, {"transport": transport, "headers": {}}):
        with pytest.raises(ValueError, match="transport"):
            AGUIClient(**options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not a version"):
        AGUIClient(transport=transport, peer_version="new")


# Interrupts


def asked(*interrupts: str, **members: Any) -> list[Raw]:
    return [started(), interrupted(*interrupts, **members)]


async def test_a_run_is_resumed() -> None:
    transport = Script(asked("i1", "i2"), DONE)
    client = AGUIClient(transport=transport)
    assert not client.pending_interrupts
    run = await client.run("go")
    assert [interrupt.id for interrupt in client.pending_interrupts] == ["i1", "i2"]
    assert run.interrupts == client.pending_interrupts
    resumed = await client.resume({"i2": {"ok": True}, "i1": Cancelled}, "and be quick")
    assert resumed.outcome == "success"
    assert transport.sent[1].resume == [
        ResumeEntry(interrupt_id="i1", status="cancelled"),
        ResumeEntry(interrupt_id="i2", status="resolved", payload={"ok": True}),
    ]
    assert transport.sent[1].parent_run_id == "r1"
    assert contents(client) == ["go", "and be quick"]
    assert client.pending_interrupts == ()


@pytest.mark.parametrize("answers", [{"i1": 1}, {"i1": 1, "i2": 2, "i9": 9}, {}])
async def test_answers_that_do_not_cover_the_questions(answers: dict[str, Any]) -> None:
    transport = Script(asked("i1", "i2"), DONE)
    warnings: list[Deviation] = []
    client = AGUIClient(transport=transport, on_deviation=warnings.append)
    await client.run()
    with pytest.raises(InputRejected):
        await client.resume(answers)
    assert len(transport.sent) == 1
    await client.resume({"i1": None, "i2": Cancelled()})
    assert transport.sent[1].resume[0] == ResumeEntry(interrupt_id="i1", status="resolved")  # type: ignore[index]
    assert warnings == []


async def test_answers_given_as_entries_are_judged_alike() -> None:
    transport = Script(asked("i1", "i2"), DONE)
    client = AGUIClient(transport=transport)
    await client.run()
    one, two = (ResumeEntry(interrupt_id=each, status="cancelled") for each in ("i1", "i2"))
    for entries in ([one], [one, one], [one, two, two], []):
        with pytest.raises(InputRejected):
            await client.run(resume=entries)
    await client.run(resume=[two, one])
    assert len(transport.sent) == 2


async def test_a_run_that_answers_nothing_is_refused_while_a_question_is_open() -> None:
    transport = Script(asked("i1"), [started("r2"), failed()], DONE)
    client = AGUIClient(transport=transport)
    await client.run()
    with pytest.raises(InputRejected, match="i1"):
        await client.run("never mind")
    with pytest.raises(RunFailed):
        await client.resume({"i1": 1})
    await client.resume({"i1": 1})  # the question is open until a run has ended without it
    assert client.pending_interrupts == ()


async def test_an_answer_to_nothing_is_refused() -> None:
    transport = Script(DONE)
    with pytest.raises(InputRejected, match="i1"):
        await AGUIClient(transport=transport).resume({"i1": 1})
    assert transport.sent == []


@pytest.mark.parametrize("expires_at", ["2020-01-01T00:00:00Z", "2020-01-01T00:00:00", "2020-01-01"])
async def test_an_expired_question_can_only_be_cancelled(expires_at: str) -> None:
    transport = Script(asked("i1", expiresAt=expires_at), DONE)
    client = AGUIClient(transport=transport)
    await client.run()
    with pytest.raises(InputRejected, match="expired"):
        await client.resume({"i1": True})
    assert (await client.resume({"i1": Cancelled})).outcome == "success"


@pytest.mark.parametrize("expires_at", ["9999-01-01T00:00:00Z", "soon"])
async def test_a_question_that_has_not_expired(expires_at: str) -> None:
    client = AGUIClient(transport=Script(asked("i1", expiresAt=expires_at), DONE))
    await client.run()
    assert (await client.resume({"i1": True})).outcome == "success"


async def test_nulls_and_parents_of_a_resume_through_a_producer() -> None:
    received: list[RunAgentInput] = []

    async def producer(run: Run) -> None:
        received.append(run.input)
        if run.input.resume is UNSET:
            run.interrupt(Interrupt(id="i1", reason="confirm"))

    client = AGUIClient(transport=InProcessTransport(producer))
    first = await client.run("go")
    await client.resume({"i1": {"null": None}})
    assert received[1].parent_run_id == first.run_id
    assert to_wire(received[1])["resume"] == [{"interruptId": "i1", "status": "resolved", "payload": {"null": None}}]


# Middleware


class Tagging:
    """Marks what passes in either direction."""

    def __init__(self, tag: str, *, asynchronous: bool = False) -> None:
        self.tag = tag
        self.asynchronous = asynchronous

    def __call__(self, raw: Raw) -> Any:
        return self._later(self._event(raw)) if self.asynchronous else self._event(raw)

    def on_input(self, raw: Raw) -> Any:
        made = {**raw, "forwardedProps": {"seen": [*raw["forwardedProps"].get("seen", []), self.tag]}}
        return self._later(made) if self.asynchronous else made

    def _event(self, raw: Raw) -> Raw:
        if raw["type"] != "TEXT_MESSAGE_CONTENT":
            return raw
        return {**raw, "delta": raw["delta"] + self.tag}

    async def _later(self, made: Any) -> Any:
        await asyncio.sleep(0)
        return made


@pytest.mark.parametrize("asynchronous", [(False, False), (True, True), (True, False), (False, True)])
async def test_middleware_both_ways(asynchronous: tuple[bool, bool]) -> None:
    middleware = [Tagging(tag, asynchronous=each) for tag, each in zip("ab", asynchronous, strict=True)]
    transport = ReplayTransport([started(), *text("x", "y"), finished()])
    client = AGUIClient(transport=transport, middleware=middleware)
    await client.run("hi")
    assert contents(client) == ["hi", "xabyab"]
    assert transport.sent[0].forwarded_props == {"seen": ["b", "a"]}


async def test_middleware_that_makes_an_input_nobody_can_send() -> None:
    class Breaking(Tagging):
        def on_input(self, raw: Raw) -> Raw:
            return {**raw, "messages": [{"id": "u1", "role": "user", "content": None}], "news": 1}

    transport = Script(DONE)
    warnings: list[Deviation] = []
    client = AGUIClient(transport=transport, middleware=[Breaking("x")], on_deviation=warnings.append)
    with pytest.raises(InputRejected) as caught:
        await client.run("hi")
    assert caught.value.path == "/messages/0/content"
    assert transport.sent == []


async def test_what_middleware_adds_to_the_input_is_stripped_with_a_warning() -> None:
    class Adding(Tagging):
        def on_input(self, raw: Raw) -> Raw:
            return {**raw, "news": 1}

    warnings: list[Deviation] = []
    client = AGUIClient(transport=Script(DONE), middleware=[Adding("x")], on_deviation=warnings.append)
    await client.run("hi")
    assert [(warning.stage, warning.path) for warning in warnings] == [("enforcement", "/news")]


async def test_middleware_that_answers_an_interrupt() -> None:
    class Answering(Tagging):
        def on_input(self, raw: Raw) -> Raw:
            return {**raw, "resume": [{"interruptId": "i1", "status": "cancelled"}]} if asks else raw

    asks = False
    client = AGUIClient(transport=Script(asked("i1"), DONE), middleware=[Answering("x")])
    await client.run()
    asks = True
    await client.run("go on")
    assert client.pending_interrupts == ()


@pytest.mark.parametrize("fails_on", ["input", "event"])
async def test_middleware_that_fails_is_named(fails_on: str) -> None:
    class Failing(Tagging):
        def on_input(self, raw: Raw) -> Raw:
            if fails_on == "input":
                raise KeyError("lost")
            return raw

        def _event(self, raw: Raw) -> Raw:
            if raw["type"] == "RUN_FINISHED":
                raise KeyError("lost")
            return raw

    transport = ReplayTransport([started(), *text("x"), finished()])
    run = AGUIClient(transport=transport, middleware=[Failing("x")]).run()
    types, error = await until_error(run)
    assert isinstance(error, ProtocolViolation)
    assert error.stage == "middleware"
    assert "Failing" in str(error)
    assert len(types) == (0 if fails_on == "input" else 4)
    assert run.outcome == "rejected"


async def test_an_input_that_json_cannot_carry_does_not_reach_middleware() -> None:
    client = AGUIClient(transport=Script(DONE), middleware=[Tagging("x")])
    with pytest.raises(InputRejected) as caught:
        await client.run(state={"n": float("inf")})
    assert caught.value.path == "/state/n"


async def test_a_ready_made_middleware() -> None:
    calls = [
        {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "rm"},
        {"type": "TOOL_CALL_END", "toolCallId": "c1"},
    ]
    transport = ReplayTransport([started(), *calls, finished()])
    client = AGUIClient(transport=transport, middleware=[ToolFilter(block=["rm"])])
    assert [event.type async for event in client.run()] == ["RUN_STARTED", "RUN_FINISHED"]


# Peers and warnings


async def test_warnings_go_to_the_callback_and_the_log(caplog: pytest.LogCaptureFixture) -> None:
    stream = [started(news=1), {"type": "NEWS"}, {"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/x"}]}]
    warnings: list[Deviation] = []
    client = AGUIClient(transport=ReplayTransport([*stream, finished()]), on_deviation=warnings.append)
    with caplog.at_level(logging.WARNING, "accord"):
        await client.run()
    assert [(each.stage, each.event_type, each.path) for each in warnings] == [
        ("enforcement", "RUN_STARTED", "/news"),
        ("enforcement", "NEWS", ""),
        ("application", "STATE_DELTA", "/delta/0"),
    ]
    assert len(caplog.records) == 3


async def test_a_peer_known_to_be_old() -> None:
    transport = ReplayTransport([started(), finished()])
    warnings: list[Deviation] = []
    client = AGUIClient(transport=transport, peer_version="0.0.39", on_deviation=warnings.append)
    await client.run(UserMessage(id="u1", content=[TextPart(text="a"), TextPart(text="b")]))
    assert transport.sent[0].protocol_version is UNSET
    assert transport.sent[0].messages == [UserMessage(id="u1", content="ab")]
    assert client.messages == [UserMessage(id="u1", content=[TextPart(text="a"), TextPart(text="b")])]


async def test_a_patch_beyond_a_limit_does_not_apply() -> None:
    add = {"op": "add", "path": "/a", "value": [1] * 100}
    patches = [[add, {"op": "copy", "from": "/a", "path": "/b"}], [add, add], [{**add, "path": "/" + 50 * "a"}]]
    limits: list[dict[str, Any]] = [{"max_copied_bytes": 50}, {"max_operations": 1}, {"max_pointer_length": 20}]
    for patch, limit in zip(patches, limits, strict=True):
        stream = [started(), {"type": "STATE_DELTA", "delta": patch}, finished()]
        for options, applies in ((limit, False), ({}, True)):
            client = AGUIClient(transport=ReplayTransport(stream), **options)
            await client.run()
            assert (client.state != {}) is applies


@pytest.mark.parametrize(("options", "levels"), [({}, 255), ({"max_depth": 6}, 5), ({"max_depth": 300}, 299)])
async def test_patches_nest_no_deeper_than_an_event_can_carry(options: dict[str, Any], levels: int) -> None:
    for depth, applies in ((levels, True), (levels + 1, False)):
        deltas = [{"op": "add", "path": "/a" * level, "value": {}} for level in range(1, depth)]
        events = [{"type": "STATE_DELTA", "delta": [delta]} for delta in deltas]
        warnings: list[Deviation] = []
        stream = [started(), *events, finished()]
        await AGUIClient(transport=ReplayTransport(stream), on_deviation=warnings.append, **options).run()
        assert ["max_depth" in each.detail for each in warnings] == ([] if applies else [True])


class Chatty(Tagging):
    def on_input(self, raw: Raw) -> Raw:
        return {**raw, **dict.fromkeys("abcde", 1)}


@pytest.mark.parametrize(
    ("event", "options"),
    [
        ({"type": "CUSTOM", "name": "x", "value": 1, **dict.fromkeys("abcde", 1)}, {}),
        ({"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "u", "role": "user", "content": ""}] * 6}, {}),
        (finished(outcome={"type": "success", "pendingToolCallIds": list("abcde")}), {}),
        (finished(), {"middleware": [Chatty("x")]}),
        (finished(), {"state": ["\ud800"] * 5}),
    ],
    ids=["event", "conversation", "calls", "middleware", "input"],
)
async def test_the_warnings_of_an_event_or_input_are_bounded(event: Raw, options: dict[str, Any]) -> None:
    stream = [started(), event] if event["type"] == "RUN_FINISHED" else [started(), event, finished()]
    for limit, told in ((2, 3), (5, 5)):
        warnings: list[Deviation] = []
        transport = Script(stream, DONE)
        client = AGUIClient(transport=transport, on_deviation=warnings.append, max_deviations=limit, **options)
        await client.run("hi")
        assert len(warnings) == told
        assert ("3 more warnings (max_deviations=2)" in warnings[-1].detail) is (told == 3)


async def test_encrypted_values_go_back() -> None:
    sealed = {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "m1", "encryptedValue": "xyz"}
    transport = Script([started(), *text("a"), sealed, finished()], DONE)
    client = AGUIClient(transport=transport)
    await client.run()
    await client.run("more")
    assert transport.sent[1].messages[0] == AssistantMessage(id="m1", content="a", encrypted_value="xyz")


async def test_a_client_without_a_with_block() -> None:
    client = AGUIClient("http://127.0.0.1:1/")
    with pytest.raises(TransportError):
        await client.run("hi")
    await client.aclose()
    await client.aclose()


async def test_a_rejected_stream_leaves_the_thread_usable() -> None:
    transport = Script([started(), *text("a")[:2], {"type": "RUN_STARTED"}], [started("r2"), finished("r2")])
    client = AGUIClient(transport=transport)
    with pytest.raises(ProtocolViolation):
        await client.run("one")
    assert (await client.run("two")).outcome == "success"
    assert contents(client) == ["one", "a", "two"]


async def test_a_message_answered_by_hand() -> None:
    answer: Message = ToolMessage(id="x1", tool_call_id="c1", content="42")
    transport = Script([started(), *text("a"), finished()])
    client = AGUIClient(transport=transport)
    await client.run(["hi", answer])
    assert transport.sent[0].messages[1] == answer


async def test_a_truncated_run_keeps_the_partial_text_for_the_next_input() -> None:
    transport = Script([started(), *text("half of")[:2]], DONE)
    client = AGUIClient(transport=transport)
    with pytest.raises(TruncatedRun):
        await client.run("tell me")
    await client.run("go on")
    assert [message.content for message in transport.sent[1].messages] == ["tell me", "half of", "go on"]
