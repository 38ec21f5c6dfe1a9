"""What a conversation hands out is never changed afterwards, whoever kept it, and costs nothing until it is read."""

from __future__ import annotations

import copy
import gc
import json
import sys
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accord.consumer import Conversation, MessagesView, Pipeline, admit_input
from accord.errors import ProtocolViolation
from accord.protocol import Event, Message, RunAgentInput, UserMessage
from consumer.feeding import FINISHED, INPUT, STARTED, Raw, call, raw, reasoning, result, text, typed
from support.streams import make_stream

ACTIVITY = raw("ACTIVITY_SNAPSHOT", "a", activityType="t", content={"n": [1]})
#: Every event that changes a message or the state, in an order in which all have an effect.
EVERYTHING: list[Raw] = [
    STARTED,
    *text("m", "a", "b", metadata={"k": [1]}),
    *call("c", "1", "2", parentMessageId="m", metadata={"k": 1}),
    result("t", "c", [{"type": "text", "text": "x"}]),
    *reasoning("q", "h"),
    *text("m", "c"),
    raw("REASONING_ENCRYPTED_VALUE", subtype="message", entityId="m", encryptedValue="x"),
    raw("REASONING_ENCRYPTED_VALUE", subtype="tool-call", entityId="c", encryptedValue="x"),
    ACTIVITY,
    raw("ACTIVITY_DELTA", "a", activityType="u", patch=[{"op": "add", "path": "/n/-", "value": 2}], metadata={"k": 1}),
    raw("ACTIVITY_SNAPSHOT", "a", activityType="t", content={}, replace=False, metadata={"l": 1}),
    {**ACTIVITY, "content": {}},
    raw("STATE_DELTA", delta=[{"op": "add", "path": "/a", "value": {"b": [1]}}]),
    raw("STATE_DELTA", delta=[{"op": "add", "path": "/a/b/0", "value": 0}]),
    raw("STATE_DELTA", delta=[{"op": "remove", "path": "/a/b/1"}]),
    raw("STATE_SNAPSHOT", snapshot={"s": [1]}),
    raw("STATE_DELTA", delta=[{"op": "add", "path": "/s/-", "value": 2}]),
    raw("TEXT_MESSAGE_START", "m", metadata={"again": 1}),
    raw("TEXT_MESSAGE_END", "m", metadata={"k": None}),
    result("t", "c", "again"),
    raw(
        "MESSAGES_SNAPSHOT", messages=[{"id": "m", "role": "user", "content": "new"}, {"id": "n", "role": "assistant"}]
    ),
    *text("n", "d", "e"),
    *call("c", "3", parentMessageId="n"),
    FINISHED,
    {**STARTED, "input": {**INPUT, "messages": [{"id": "o", "role": "user", "content": ""}]}},
    *text("o", "f"),
    FINISHED,
]


def wire(messages: Sequence[Message]) -> list[Raw]:
    made: list[Raw] = msgspec.to_builtins(list(messages))
    return made


class Keeper:
    """Keeps what it is handed, with a copy of what it was."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.messages: list[tuple[Sequence[Message], list[Raw]]] = []
        self.values: list[tuple[Any, Any]] = []

    def look(self) -> None:
        messages = self.conversation.messages
        self.messages.append((messages, wire(messages)))
        self.keep(self.conversation.state)
        self.keep(self.conversation.runs)

    def keep(self, value: Any) -> None:
        self.values.append((value, copy.deepcopy(value)))

    def check(self) -> None:
        for messages, copied in self.messages:
            assert wire(messages) == copied
        for value, copied in self.values:
            assert value == copied


def apply(conversation: Conversation, events: list[Raw]) -> None:
    for event in events:
        conversation.apply(typed(event))


def events_of(seed: int, damage: int) -> tuple[RunAgentInput, list[Event]]:
    stream = make_stream(seed, damage=damage)
    pipeline = Pipeline()
    events: list[Event] = []
    try:
        for each in stream.events:
            events += pipeline.feed(each)
    except ProtocolViolation as violation:
        events += violation.delivered
    return admit_input(stream.run_input), events


@pytest.mark.parametrize("position", range(len(EVERYTHING)))
def test_what_was_read_before_an_event_is_what_it_was(position: int) -> None:
    conversation = Conversation()
    keeper = Keeper(conversation)
    apply(conversation, EVERYTHING[:position])
    keeper.look()
    apply(conversation, EVERYTHING[position : position + 1])
    keeper.check()
    keeper.look()
    apply(conversation, EVERYTHING[position + 1 :])
    keeper.check()


@given(seed=st.integers(0, 2**32), damage=st.integers(0, 2), looks=st.sets(st.integers(0, 60), max_size=8))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nothing_handed_out_ever_changes(quiet: None, seed: int, damage: int, looks: set[int]) -> None:
    run_input, events = events_of(seed, damage)
    conversation = Conversation(run_input)
    keeper = Keeper(conversation)
    unread: list[MessagesView] = []
    expected: list[list[Raw]] = []
    other = Conversation(run_input)  # one that is read after each event says what the unread views should hold

    def keep(messages: Sequence[Message]) -> None:
        assert isinstance(messages, MessagesView)
        unread.append(messages)

    conversation.subscribe(on_messages=keep, on_state=keeper.keep)
    given_input = copy.deepcopy(msgspec.to_builtins(run_input))
    for position, event in enumerate(events):
        views = len(unread)
        conversation.apply(event)
        other.apply(event)
        if len(unread) > views:
            expected.append(wire(other.messages))
        if position in looks:
            keeper.look()
    keeper.check()
    assert [wire(view) for view in unread] == expected
    assert wire(conversation.messages) == wire(other.messages)
    assert conversation.state == other.state
    assert msgspec.to_builtins(run_input) == given_input


def test_the_events_themselves_are_not_changed() -> None:
    events = [typed(event) for event in EVERYTHING]
    before = [msgspec.json.encode(event) for event in events]
    conversation = Conversation()
    for event in events:
        conversation.apply(event)
        assert conversation.state is not None
    assert [msgspec.json.encode(event) for event in events] == before


def test_the_list_of_messages_is_the_caller_s_own() -> None:
    conversation = Conversation()
    apply(conversation, [STARTED, *text("m", "x")])
    conversation.messages.clear()
    conversation.runs.clear()
    assert len(conversation.messages) == 1
    assert len(conversation.runs) == 1


def test_unchanged_values_are_handed_out_again() -> None:
    conversation = Conversation()
    apply(conversation, [STARTED, *text("m", "x"), *text("n", "y")])
    first = conversation.messages
    state = conversation.state
    apply(conversation, text("n", "z"))
    assert conversation.messages[0] is first[0]
    assert conversation.state is state


# Subscribers


class Log:
    def __init__(self, conversation: Conversation) -> None:
        self.calls: list[str] = []
        self.unsubscribe = conversation.subscribe(
            on_event=lambda event: self.calls.append(event.type),
            on_state=lambda state: self.calls.append(f"state {state}"),
            on_messages=lambda messages: self.calls.append(f"messages {len(messages)}"),
        )


def test_subscribers_are_told_of_events_and_of_changes() -> None:
    conversation = Conversation()
    log = Log(conversation)
    start, content, end = text("m", "x")
    apply(
        conversation,
        [
            STARTED,
            start,
            content,
            end,
            raw("TEXT_MESSAGE_END", "m", metadata={}),
            raw("STATE_SNAPSHOT", snapshot=1),
            raw("STATE_DELTA", delta=[{"op": "add", "path": "/a", "value": 1}]),
            raw("RAW", event=1),
            FINISHED,
        ],
    )
    assert log.calls == [
        "RUN_STARTED",
        *("TEXT_MESSAGE_START", "messages 1"),
        *("TEXT_MESSAGE_CONTENT", "messages 1"),
        "TEXT_MESSAGE_END",
        *("TEXT_MESSAGE_END", "messages 1"),
        *("STATE_SNAPSHOT", "state 1"),
        "STATE_DELTA",
        "RAW",
        "RUN_FINISHED",
    ]


def test_subscribers_see_the_event_s_effect() -> None:
    conversation = Conversation()
    seen: list[int] = []
    conversation.subscribe(on_event=lambda _: seen.append(len(conversation.messages)))
    apply(conversation, [STARTED, *text("m")[:1]])
    assert seen == [0, 1]


def test_a_subscriber_may_leave() -> None:
    conversation = Conversation()
    first, second = Log(conversation), Log(conversation)
    first.unsubscribe()
    first.unsubscribe()
    apply(conversation, [STARTED])
    assert (first.calls, second.calls) == ([], ["RUN_STARTED"])


def test_a_subscriber_that_leaves_while_called_harms_no_other() -> None:
    conversation = Conversation()
    leave = conversation.subscribe(on_event=lambda _: leave())
    log = Log(conversation)
    apply(conversation, [STARTED, FINISHED])
    assert log.calls == ["RUN_STARTED", "RUN_FINISHED"]


def test_a_subscriber_that_fails_is_logged_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    conversation = Conversation()

    def fails(_: Any) -> None:
        raise KeyError("mine")

    seen: list[str] = []
    conversation.subscribe(on_event=fails, on_state=lambda state: seen.append(f"state {state}"))
    log = Log(conversation)
    apply(conversation, [STARTED, raw("STATE_SNAPSHOT", snapshot=1)])
    assert log.calls == ["RUN_STARTED", "STATE_SNAPSHOT", "state 1"]
    assert seen == ["state 1"]
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]


def test_a_subscriber_may_change_the_conversation() -> None:
    conversation = Conversation()

    def answer(messages: Sequence[Message]) -> None:
        if len(messages) == 1:
            conversation.add_message(UserMessage(id="u", content="noted"))

    views: list[Sequence[Message]] = []
    conversation.subscribe(on_messages=answer)
    conversation.subscribe(on_messages=views.append)
    apply(conversation, [STARTED, *text("m", "x")])
    assert [message.id for message in conversation.messages] == ["m", "u"]
    assert [len(view) for view in views] == [1, 2]


def test_a_view_reads_like_a_list() -> None:
    conversation = Conversation()
    views: list[Sequence[Message]] = []
    conversation.subscribe(on_messages=views.append)
    apply(conversation, [STARTED, *text("m", "x"), *text("n")])
    last = views[-1]
    assert [message.id for message in last] == ["m", "n"]
    assert (len(last), last[-1].id, [each.id for each in last[:1]]) == (2, "n", ["m"])
    assert last == conversation.messages
    assert last == views[-1]
    assert views[0] != last


# What it costs


def calls_made(conversation: Conversation, events: list[Event]) -> int:
    """Python and C functions called while the events are applied."""
    count = 0

    def tally(frame: Any, what: str, argument: Any) -> None:
        nonlocal count
        count += what in ("call", "c_call")

    gc.disable()  # a collection calls back
    before = sys.getprofile()
    sys.setprofile(tally)
    try:
        for event in events:
            conversation.apply(event)
    finally:
        sys.setprofile(before)
        gc.enable()
    return count


def grown(messages: int, state: int) -> Conversation:
    held = [UserMessage(id=f"u{number}", content="x") for number in range(messages)]
    given = {f"k{number}": {"deep": [number]} for number in range(state)}
    conversation = Conversation(RunAgentInput(thread_id="t", run_id="r", messages=[*held], state=given))
    apply(conversation, [STARTED, *text("m", "x"), *call("c"), ACTIVITY])
    return conversation


@pytest.mark.parametrize("subscribers", [0, 3])
@pytest.mark.parametrize(
    "event",
    [
        raw("TEXT_MESSAGE_CONTENT", "m", delta="x"),
        raw("TEXT_MESSAGE_CONTENT", "u0", delta="x"),
        raw("TOOL_CALL_ARGS", "c", delta="x"),
        result("t{}", "c"),
        raw("STATE_DELTA", delta=[{"op": "add", "path": "/k0/deep/-", "value": 1}]),
        raw("ACTIVITY_DELTA", "a", activityType="t", patch=[{"op": "add", "path": "/n/-", "value": 1}]),
    ],
    ids=lambda event: event["type"],
)
def test_an_event_costs_the_same_whatever_is_held(event: Raw, subscribers: int) -> None:
    def cost(messages: int, state: int) -> int:
        conversation = grown(messages, state)
        for _ in range(subscribers):
            conversation.subscribe(on_messages=lambda _: None, on_state=lambda _: None)
        events = [typed(json.loads(json.dumps(event).replace("{}", str(number)))) for number in range(4)]
        conversation.apply(events[0])
        return calls_made(conversation, events[1:])

    assert cost(1, 1) == cost(400, 400)


def test_a_read_costs_what_has_changed() -> None:
    def cost(messages: int) -> int:
        conversation = grown(messages, 1)
        assert conversation.messages
        return calls_made(conversation, [typed(raw("TEXT_MESSAGE_CONTENT", "m", delta="x"))])

    assert cost(1) == cost(400)
