from __future__ import annotations

import asyncio
import datetime
import enum
import functools
import json
import threading
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from msgspec import UNSET
from pydantic import BaseModel, Field

from accord.client import AGUIClient, FrontendCall, FrontendTool, InProcessTransport
from accord.consumer import Deviation
from accord.errors import InputRejected, LimitExceeded, TruncatedRun
from accord.producer import Run
from accord.protocol import AssistantMessage, ImagePart, TextPart, Tool, ToolMessage, UrlSource, to_wire
from client.streams import Raw, Script, call, contents, finished, interrupted, pending, started, text

DONE = [started("r2"), *text("done", message_id="m2"), finished("r2")]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Place(BaseModel):
    city: str
    since: datetime.date | None = None


def locate(place: Place, precise: Annotated[bool, Field(description="to the metre")] = False) -> dict[str, Any]:
    """Finds a place on the map."""
    return {"city": place.city, "since": place.since, "precise": precise}


async def paint(colour: Colour) -> str:
    return f"painted {colour.name}"


def asking(name: str, arguments: str = "{}") -> Script:
    return Script([started(), *call(name, arguments), pending("c1")], DONE)


async def answer_of(tool: Any, arguments: str = "{}", **options: Any) -> ToolMessage:
    """The tool message that goes back for one call of `tool`."""
    name = tool.tool.name if isinstance(tool, FrontendTool) else tool.__name__
    transport = asking(name, arguments)
    client = AGUIClient(transport=transport, tools=[tool], **options)
    run = await client.run("go")
    assert (run.outcome, run.pending_tool_call_ids) == ("success", ())
    message = transport.sent[1].messages[-1]
    assert isinstance(message, ToolMessage)
    assert message.tool_call_id == "c1"
    assert message in client.messages
    return message


# What the agent is told


async def test_a_tool_is_described_by_its_signature() -> None:
    transport = Script(DONE)
    await AGUIClient(transport=transport, tools=[locate, paint]).run("go")
    first, second = transport.sent[0].tools  # type: ignore[misc]
    assert (first.name, first.description) == ("locate", "Finds a place on the map.")
    parameters: Any = first.parameters
    assert parameters["required"] == ["place"]
    assert parameters["properties"]["precise"] == {"default": False, "description": "to the metre", "type": "boolean"}
    assert parameters["$defs"]["Place"]["required"] == ["city"]
    assert "title" not in parameters["$defs"]["Place"]["properties"]["city"]
    assert (second.name, second.description) == ("paint", "")


async def test_tools_of_one_run_stand_in_for_the_clients() -> None:
    transport = Script(DONE, DONE)
    client = AGUIClient(transport=transport, tools=[locate])
    await client.run("go", tools=[paint])
    await client.run("go")
    assert [[tool.name for tool in run_input.tools] for run_input in transport.sent] == [["paint"], ["locate"]]  # type: ignore[union-attr]


def returns_what_nobody_knows(a: int) -> Nowhere: ...  # type: ignore[name-defined]  # noqa: F821


async def test_what_a_tool_returns_need_not_be_known() -> None:
    assert (await answer_of(returns_what_nobody_knows, '{"a": 1}')).content == "null"
    assert set(returns_what_nobody_knows.__annotations__) == {"a", "return"}


def positional(a: int, /) -> None: ...
def many(*numbers: int) -> None: ...
def unknown(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def odd(a: Callable[..., threading.Lock], b: Annotated[int, object()] = 5) -> None: ...


@pytest.mark.parametrize("tool", [positional, many, unknown, odd, lambda: 1, 5, functools.partial(locate)])
def test_what_cannot_be_a_tool(tool: Any) -> None:
    with pytest.raises(InputRejected) as caught:
        AGUIClient(transport=Script(), tools=[locate, tool])
    assert caught.value.path == "/tools/1"


def test_two_tools_of_one_name() -> None:
    with pytest.raises(InputRejected, match="two tools are called 'locate'"):
        AGUIClient(transport=Script(), tools=[locate, Tool(name="locate", description="")])


# What a call does


async def test_a_run_goes_on_with_the_answer() -> None:
    transport = asking("locate", '{"place": {"city": "Röm", "since": "0753-04-21"}}')
    client = AGUIClient(transport=transport, tools=[locate])
    run = client.run("where?")
    types = [event.type async for event in run]
    assert types.count("RUN_STARTED") == 2
    assert (run.outcome, run.pending_tool_call_ids) == ("success", ())
    first, second = transport.sent
    assert run.run_id == second.run_id
    assert (second.thread_id, second.parent_run_id) == (first.thread_id, first.run_id)
    assert second.tools == first.tools
    answer = second.messages[-1]
    assert isinstance(answer, ToolMessage)
    assert json.loads(str(answer.content)) == {"city": "Röm", "since": "0753-04-21", "precise": False}
    assert "Röm" in str(answer.content)
    assert [type(message) for message in run.new_messages] == [AssistantMessage, ToolMessage, AssistantMessage]
    assert contents(client)[-1] == "done"


async def test_an_async_tool_runs_on_the_loop_and_another_does_not() -> None:
    here = threading.get_ident()

    async def on_loop() -> bool:
        return threading.get_ident() == here

    def elsewhere() -> bool:
        return threading.get_ident() == here

    class Instance:
        __name__ = "instance"

        async def __call__(self) -> bool:
            return threading.get_ident() == here

    class Owner:
        async def method(self) -> bool:
            return threading.get_ident() == here

    assert (await answer_of(on_loop)).content == "true"
    assert (await answer_of(elsewhere)).content == "false"
    assert (await answer_of(Instance())).content == "true"
    assert (await answer_of(Owner().method)).content == "true"


async def test_a_tool_that_blocks_does_not_hold_up_the_loop() -> None:
    released = threading.Event()

    def blocking() -> str:
        assert released.wait(10)
        return "released"

    answering = asyncio.ensure_future(answer_of(blocking))
    for _ in range(20):
        await asyncio.sleep(0)
    released.set()
    assert (await answering).content == "released"


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", "text"),
        ("", ""),
        (None, "null"),
        ([1, True, None], "[1, true, null]"),
        ({"when": datetime.date(2024, 2, 29), "colour": Colour.RED}, '{"when": "2024-02-29", "colour": "red"}'),
        (Place(city="Oslo"), '{"city": "Oslo", "since": null}'),
        ([], "[]"),
    ],
)
async def test_what_a_tool_returns(value: Any, content: str) -> None:
    def returning() -> Any:
        return value

    message = await answer_of(returning)
    assert message.content == content
    assert not message.error


async def test_parts_are_an_answer() -> None:
    parts = [TextPart(text="look"), ImagePart(source=UrlSource(value="https://example.com/a.png"))]

    def picture() -> Any:
        return parts

    assert (await answer_of(picture)).content == parts


async def test_a_tool_with_a_description_of_its_own() -> None:
    seen: list[Any] = []

    def handler(arguments: dict[str, Any]) -> int:
        seen.append(arguments)
        return 7

    tool = FrontendTool(Tool(name="weigh", description="Weighs.", parameters={"type": "object"}), handler)
    assert (await answer_of(tool, '{"a/b": [1]}')).content == "7"
    assert seen == [{"a/b": [1]}]


async def test_a_tool_that_makes_changes_to_the_state() -> None:
    transport = asking("mark")
    client = AGUIClient(transport=transport)

    def mark() -> None:
        client.state = {"marked": True}

    await client.run("go", tools=[mark])
    assert [run_input.state for run_input in transport.sent] == [{}, {"marked": True}]


# What goes wrong is an answer


def failing() -> None:
    raise ValueError("no\nsignal")


def stopping() -> None:
    raise StopIteration


def infinite() -> float:
    return float("inf")


def muttering() -> None:
    raise ValueError("half \ud83d")


def half() -> str:
    return "half \ud83d"


def foreign() -> object:
    return {"lock": threading.Lock()}


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        (failing, "", "ValueError: no\nsignal"),
        (stopping, "{}", "StopIteration"),
        (infinite, "{}", "inf is not a JSON number"),
        (half, "{}", "surrogate"),
        (muttering, "{}", "ValueError: half ?"),
        (foreign, "{}", "_thread.lock"),
        (failing, "[]", "must be a JSON object"),
        (failing, '{"a', "cannot be read"),
        (failing, '{"a": 1}', "/a: Unexpected keyword argument"),
        (paint, '{"colour": "green"}', "/colour: Input should be 'red' or 'blue'"),
        (paint, "{}", "/colour: Missing required"),
        (locate, '{"place": {"city": "\\ud83d"}}', "the arguments do not fit"),
    ],
)
async def test_what_goes_wrong_is_told_as_an_error(tool: Any, arguments: str, said: str) -> None:
    message = await answer_of(tool, arguments)
    assert said in str(message.error)
    assert message.content == message.error


async def test_arguments_are_not_repeated_in_an_error() -> None:
    message = await answer_of(paint, '{"colour": "s3cret"}')
    assert "s3cret" not in str(message.error)


async def test_every_call_is_answered_in_order_whatever_its_end() -> None:
    async def late() -> str:
        for _ in range(10):
            await asyncio.sleep(0)
        return "late"

    async def early() -> str:
        return "early"

    calls = [*call("late", call_id="c1"), *call("failing", call_id="c2"), *call("early", call_id="c3")]
    transport = Script([started(), *calls, pending("c3", "c1", "c2", "c1")], DONE)
    client = AGUIClient(transport=transport, tools=[late, early, failing])
    await client.run("go")
    answers = [message for message in transport.sent[1].messages if isinstance(message, ToolMessage)]
    assert [answer.tool_call_id for answer in answers] == ["c3", "c1", "c2"]
    assert [answer.content for answer in answers[:2]] == ["early", "late"]


async def test_a_call_of_a_tool_that_was_never_offered_is_answered() -> None:
    transport = asking("beep")
    await AGUIClient(transport=transport).run("go")
    answer = transport.sent[1].messages[-1]
    assert isinstance(answer, ToolMessage)
    assert answer.error == "there is no tool 'beep'"


async def test_a_pending_call_that_is_nowhere_is_a_warning() -> None:
    warnings: list[Deviation] = []
    client = AGUIClient(transport=Script([started(), pending("c9")], DONE), on_deviation=warnings.append)
    run = await client.run("go")
    assert (run.outcome, run.pending_tool_call_ids) == ("success", ())
    assert [warning.path for warning in warnings] == ["/outcome/pendingToolCallIds"]
    await client.run("go on")


async def test_a_call_that_has_its_answer_is_not_run_again() -> None:
    ran: list[int] = []

    def count() -> None:
        ran.append(1)

    result = {"type": "TOOL_CALL_RESULT", "messageId": "x1", "toolCallId": "c1", "content": "by the producer"}
    client = AGUIClient(transport=Script([started(), *call("count"), result, pending("c1")]), tools=[count])
    run = await client.run("go")
    assert (run.outcome, ran) == ("success", [])


async def test_a_producer_that_does_not_name_pending_calls() -> None:
    stream = [started(), *call("locate", '{"place":{"city":"Rome"}}'), *call("theirs", call_id="c2"), finished()]
    transport = Script(stream, DONE)
    await AGUIClient(transport=transport, tools=[locate]).run("go")
    answers = [message for message in transport.sent[1].messages if isinstance(message, ToolMessage)]
    assert [answer.tool_call_id for answer in answers] == ["c1"]


async def test_calls_of_a_run_that_was_interrupted_are_left() -> None:
    ran: list[int] = []

    def count() -> None:
        ran.append(1)

    client = AGUIClient(transport=Script([started(), *call("count"), interrupted("i1")]), tools=[count])
    run = await client.run("go")
    assert (run.outcome, ran) == ("interrupt", [])


# Consent


@pytest.mark.parametrize("verdict", [True, False, None])
@pytest.mark.parametrize("asynchronous", [True, False])
async def test_nothing_runs_without_consent(verdict: Any, asynchronous: bool) -> None:
    asked: list[FrontendCall] = []
    here = threading.get_ident()
    threads: list[int] = []

    def consent(call: FrontendCall) -> Any:
        threads.append(threading.get_ident())
        asked.append(call)
        return verdict

    async def later(call: FrontendCall) -> Any:
        return consent(call)

    message = await answer_of(paint, '{"colour": "red"}', consent=later if asynchronous else consent)
    assert asked == [FrontendCall("c1", "paint", {"colour": "red"})]
    assert (threads == [here]) is asynchronous  # one that may wait for a person must not hold up the loop
    if verdict:
        assert message.content == "painted RED"
    else:
        assert message.error == "the user did not allow this call"


async def test_consent_that_fails_is_none() -> None:
    async def consent(call: FrontendCall) -> bool:
        raise EOFError("nobody there")

    message = await answer_of(paint, '{"colour": "red"}', consent=consent)
    assert message.error == "EOFError: nobody there"


async def test_consent_is_not_asked_for_what_cannot_run() -> None:
    def consent(call: FrontendCall) -> bool:
        raise AssertionError("asked")

    assert "do not fit" in str((await answer_of(paint, '{"colour": 5}', consent=consent)).error)


async def test_one_question_at_a_time() -> None:
    asking = 0

    async def consent(call: FrontendCall) -> bool:
        nonlocal asking
        asking += 1
        assert asking == 1
        for _ in range(5):
            await asyncio.sleep(0)
        asking -= 1
        return True

    calls = [*call("failing", call_id="c1"), *call("failing", call_id="c2")]
    transport = Script([started(), *calls, pending("c1", "c2")], DONE)
    await AGUIClient(transport=transport, tools=[failing], consent=consent).run("go")
    errors = {message.error for message in transport.sent[1].messages if isinstance(message, ToolMessage)}
    assert errors == {"ValueError: no\nsignal"}


# Rounds


async def always_calling(run: Run) -> None:
    with run.tool_call("paint") as call:
        call.write('{"colour": "blue"}')


@pytest.mark.parametrize("rounds", [0, 1, 3])
async def test_rounds_end_at_a_limit_with_every_call_answered(rounds: int) -> None:
    ran: list[int] = []

    async def paint(colour: Colour) -> None:
        ran.append(1)

    inputs = 0

    async def producer(run: Run) -> None:
        nonlocal inputs
        inputs += 1
        await always_calling(run)

    client = AGUIClient(transport=InProcessTransport(producer), tools=[paint], max_tool_rounds=rounds)
    run = client.run("go")
    with pytest.raises(LimitExceeded) as caught:
        await run
    assert caught.value.limit == "max_tool_rounds"
    assert (run.outcome, run.error) == ("truncated", caught.value)
    assert (inputs, len(ran)) == (rounds + 1, rounds)
    calls = [each.id for message in client.messages for each in getattr(message, "tool_calls", None) or ()]
    answers = [message.tool_call_id for message in client.messages if isinstance(message, ToolMessage)]
    assert answers == calls
    with pytest.raises(LimitExceeded):
        await client.run("again")  # and the thread can go on


async def test_the_next_input_starts_from_what_the_run_has_made_of_it() -> None:
    question = [started("r0"), interrupted("i1", run_id="r0")]
    news: list[Raw] = [
        {"type": "STATE_SNAPSHOT", "snapshot": {"n": 5}},
        {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "s1", "role": "system", "content": "summary"}]},
    ]
    transport = Script(question, [started(), *news, *call("failing"), pending("c1")], DONE)
    client = AGUIClient(transport=transport, tools=[failing])
    await client.run()
    await client.resume({"i1": 1}, "note", state={"n": 0}, forwarded_props={"kept": True})
    last = transport.sent[2]
    assert (last.state, last.resume, last.forwarded_props) == ({"n": 5}, UNSET, {"kept": True})
    assert [to_wire(message)["role"] for message in last.messages] == ["system", "assistant", "tool"]


# Calls that are left to the application


async def test_calls_of_a_described_tool_are_left_and_must_be_answered() -> None:
    transport = asking("choose")
    client = AGUIClient(transport=transport, tools=[Tool(name="choose", description="Asks the user.")])
    run = await client.run("go")
    assert (run.outcome, run.pending_tool_call_ids) == ("success", ("c1",))
    second = client.run("never mind")
    with pytest.raises(InputRejected, match=r"'c1' \(choose\)") as caught:
        await second
    assert caught.value.path == "/messages"
    assert len(transport.sent) == 1
    await client.run(ToolMessage(id="x1", tool_call_id="c1", content="the left one"))
    assert contents(client) == ["go", UNSET, "the left one", "done"]


async def test_a_call_that_is_no_longer_held_needs_no_answer() -> None:
    client = AGUIClient(transport=asking("choose"), tools=[Tool(name="choose", description="")])
    await client.run("go")
    client.messages = []
    assert (await client.run("anew")).outcome == "success"


async def test_some_answered_and_some_left() -> None:
    calls = [*call("choose", call_id="c1"), *call("paint", '{"colour": "red"}', call_id="c2")]
    transport = Script([started(), *calls, pending("c1", "c2")], DONE)
    client = AGUIClient(transport=transport, tools=[Tool(name="choose", description=""), paint])
    run = await client.run("go")
    assert run.pending_tool_call_ids == ("c1",)
    assert contents(client)[-1] == "painted RED"
    await client.run(ToolMessage(id="x1", tool_call_id="c1", content="mine"))
    assert len(transport.sent) == 2


# Leaving while a tool is at work


async def test_stopping_while_tools_run_answers_what_had_no_result() -> None:
    begun = asyncio.Event()
    cancelled = asyncio.Event()

    async def quick() -> str:
        return "quick"

    async def forever() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    calls = [*call("forever", call_id="c1"), *call("quick", call_id="c2")]
    transport = Script([started(), *calls, pending("c1", "c2")], DONE)
    client = AGUIClient(transport=transport, tools=[quick, forever])
    run = client.run("go")

    async def drain() -> list[Raw]:
        return [{} async for _ in run]

    reading = asyncio.ensure_future(drain())
    await begun.wait()
    await asyncio.sleep(0)
    await run.aclose()
    await reading
    assert cancelled.is_set()
    assert (run.outcome, type(run.error)) == ("truncated", TruncatedRun)
    assert len(transport.sent) == 1
    await client.run("go on")  # with every call answered
    answers = [message for message in transport.sent[1].messages if isinstance(message, ToolMessage)]
    assert [answer.content for answer in answers] == ["stopped before it had a result", "quick"]


async def test_a_thread_that_goes_on_after_a_stop_is_not_heard() -> None:
    released = threading.Event()
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow() -> None:
        assert released.wait(10)
        loop.call_soon_threadsafe(ended.set)

    client = AGUIClient(transport=asking("slow"), tools=[slow])
    run = client.run("go")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await run
    assert run.outcome == "truncated"
    before = contents(client)
    released.set()
    await ended.wait()
    assert contents(client) == before
