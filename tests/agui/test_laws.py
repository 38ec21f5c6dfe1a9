"""Laws of the shared state of an agent's run, held against a consumer."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.agents import (
    Agent,
    FunctionCallContent,
    FunctionResultContent,
    Interleaved,
    Message,
    ReasoningContent,
    Role,
    TextContent,
    scripted_call,
    tool,
)
from accord.agui import AGUIAgent, current_run
from accord.agui.emission import result_for_interface
from accord.consumer import Conversation
from accord.protocol import (
    AssistantMessage,
    FunctionCall,
    MessagesSnapshotEvent,
    ReasoningMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from accord.protocol import Message as ProtocolMessage
from accord.state import identical
from agui.talk import Model, Talk, recipe_agent, run_alone
from producer.recording import Recording, an_input

KEYS = st.sampled_from(["recipe", "title", "a/b", "~", "", "0"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([1.0, "x", "😀\u2028", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
STATES = st.dictionaries(KEYS, VALUES, max_size=3)


@given(STATES, st.dictionaries(KEYS, VALUES, max_size=3), st.sampled_from(["refuse", "fail", "malformed"]))
@settings(max_examples=60, deadline=None)
def test_a_prediction_that_comes_to_nothing_leaves_the_state_before(
    state: Any, recipe: dict[str, Any], end: str
) -> None:
    @tool
    def update_recipe(recipe: dict[str, Any]) -> FunctionResultContent:
        return FunctionResultContent("", error="no")

    text = json.dumps({"recipe": recipe})
    call = scripted_call("update_recipe", text[:-1] if end == "malformed" else text)
    served, _ = recipe_agent([call, "ok"], tools=[update_recipe], require_confirmation=end == "refuse")

    async def run() -> None:
        talk = Talk(served, state=state)
        await talk.say()
        if end == "refuse":
            assert identical(talk.state, {**state, "recipe": recipe})
            await talk.answer({"approved": False})
        assert identical(talk.state, state)

    asyncio.run(run())


@given(STATES, st.dictionaries(KEYS, VALUES, max_size=3), st.booleans())
@settings(max_examples=40, deadline=None)
def test_a_prediction_that_comes_true_is_the_argument(state: Any, recipe: dict[str, Any], ask: bool) -> None:
    served, _ = recipe_agent([scripted_call("update_recipe", {"recipe": recipe}), "ok"], require_confirmation=ask)

    async def run() -> None:
        talk = Talk(served, state=state)
        await talk.say()
        if ask:
            await talk.answer({"approved": True})
        assert identical(talk.state, {**state, "recipe": recipe})

    asyncio.run(run())


def as_protocol(messages: list[Message]) -> list[ProtocolMessage]:
    """The agent's own messages of a run, as a server would list them in a MESSAGES_SNAPSHOT."""
    listed: list[ProtocolMessage] = []
    for message in messages:
        if message.role is Role.TOOL:
            for content in message.contents:
                assert isinstance(content, FunctionResultContent)
                listed.append(
                    ToolMessage(
                        id=message.message_id or "",
                        tool_call_id=content.call_id,
                        content=result_for_interface(content),
                    )
                )
            continue
        calls = [
            ToolCall(id=call.call_id, type="function", function=FunctionCall(name=call.name, arguments=call.arguments))
            for call in message.function_calls
        ]
        text = message.text
        members: dict[str, Any] = {**({"content": text} if text else {}), **({"tool_calls": calls} if calls else {})}
        if members:
            listed.append(AssistantMessage(id=message.message_id or "", **members))
    return listed


@given(st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_a_snapshot_of_the_runs_own_messages_changes_nothing(seed: int) -> None:
    """Report 10: ids and places on the wire are those of the agent's own conversation."""
    rng = random.Random(seed)
    turns: list[Any] = []
    for _ in range(rng.randint(0, 2)):
        steps: list[Any] = [scripted_call("echo", {"text": str(n)}) for n in range(rng.randint(1, 3))]
        if rng.random() < 0.5:
            steps = [Interleaved(*steps)]
        for _ in range(rng.randint(0, 2)):
            steps.insert(rng.randint(0, len(steps)), rng.choice(["Some text. ", ReasoningContent("thought", "seal")]))
        turns.append(steps)
    turns.append(rng.choice(["Done.", [ReasoningContent("hm"), "Done."], ["Do", "ne."]]))

    @tool
    async def echo(text: str) -> str:
        await asyncio.sleep(rng.random() / 1000)
        return text

    class Listening(Agent):
        """Keeps the response of its last run."""

        def run(self, *arguments: Any, **options: Any) -> Any:
            self.stream = super().run(*arguments, **options)
            return self.stream

    agent = Listening(Model(turns), tools=[echo])
    asked = [UserMessage(id="u1", content="go")]
    outlet = asyncio.run(run_alone(AGUIAgent(agent), messages=asked))
    own = as_protocol(list(agent.stream.so_far().messages))
    held = Conversation(an_input(messages=asked))
    for event in outlet.events:
        held.apply(event)
    before = msgspec.to_builtins(held.messages)
    assert len(own) == len([message for message in held.messages if not isinstance(message, ReasoningMessage)]) - 1
    held.apply(MessagesSnapshotEvent(messages=[*asked, *own]))
    assert msgspec.to_builtins(held.messages) == before


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("start", [{"results": []}, {}, {"results": [{"n": -1}], "filler": "x" * 300}])
@pytest.mark.parametrize("each", [1, 2, 3])
async def test_every_completion_order_of_three_parallel_writers(order: tuple[int, ...], start: Any, each: int) -> None:
    """Report 7. All three have begun to edit before the first commits."""
    begun = asyncio.Barrier(3)
    turns = [asyncio.Event() for _ in range(4)]
    turns[0].set()

    @tool
    async def write(n: int) -> str:
        with current_run().state.edit() as draft:
            draft.setdefault("results", [])
            for step in range(each):
                draft["results"].append({"n": n, "step": step})
            draft[f"by {n}"] = True
            await begun.wait()
            await turns[order.index(n)].wait()
        turns[order.index(n) + 1].set()
        return "ok"

    model = Model([[scripted_call("write", {"n": n}) for n in range(3)], "ok"])
    talk = Talk(AGUIAgent(Agent(model, tools=[write])), state=start)
    await talk.say()
    assert sorted(talk.results.values()) == ["ok"] * 3
    expected = [{"n": n, "step": step} for n in order for step in range(each)]
    assert talk.state["results"] == [*start.get("results", []), *expected]
    assert [name for name in talk.state if name.startswith("by")] == [f"by {n}" for n in order]


async def test_a_writer_whose_ground_was_taken_is_told() -> None:
    """No change is lost in silence: what both have changed is an error for the one that comes second."""
    begun = asyncio.Barrier(2)

    @tool
    async def rename(name: str) -> str:
        with current_run().state.edit() as draft:
            draft["title"] = name
            await begun.wait()
        return "ok"

    model = Model([[scripted_call("rename", {"name": name}) for name in "ab"], "ok"])
    talk = Talk(AGUIAgent(Agent(model, tools=[rename])), state={"title": "old"})
    await talk.say()
    assert sorted(model.results())[0].startswith("Error: the state was not changed")
    assert "/title" in sorted(model.results())[0]
    assert sorted(model.results())[1] == "ok"
    assert talk.state["title"] in ("a", "b")


async def test_threads_that_count_lose_no_count() -> None:
    @tool
    def count() -> str:
        for _ in range(50):
            with current_run().state.edit() as draft:
                draft["n"] += 1
        return "ok"

    model = Model([[scripted_call("count") for _ in range(4)], "ok"])
    talk = Talk(AGUIAgent(Agent(model, tools=[count])), state={"n": 0})
    await talk.say()
    assert talk.state == {"n": 200}


@given(STATES, st.lists(st.tuples(st.sampled_from(["set", "edit", "fail"]), KEYS, VALUES), max_size=5))
@settings(max_examples=60, deadline=None)
def test_each_event_applied_gives_what_the_server_then_holds(state: Any, work: list[tuple[str, str, Any]]) -> None:
    """Report 2, through an agent's tools."""
    held: list[tuple[Any, int]] = []
    outlet = Recording()

    @tool
    def change(number: int) -> str:
        kind, name, value = work[number]
        channel = current_run().state
        if kind == "set":
            channel.set({**channel.value, name: value})
        else:
            with channel.edit() as draft:
                draft[name] = value
                if kind == "fail":
                    raise ValueError
        held.append((channel.value, len(outlet.payloads)))
        return "ok"

    turns: list[Any] = [scripted_call("change", {"number": number}) for number in range(len(work))]
    served = AGUIAgent(Agent(Model([*turns, "ok"]), tools=[change]))

    async def run() -> None:
        from accord.producer import Run, drive

        await drive(served, Run(an_input(state=state), outlet))

    asyncio.run(run())
    conversation = Conversation(an_input(state=state))
    applied = 0
    for value, count in held:
        for event in outlet.events[applied:count]:
            conversation.apply(event)
        applied = count
        assert identical(conversation.state, value)


def test_contents_of_the_law_are_all_there_are() -> None:
    """`as_protocol` says all of an assistant message; another kind of content would need a place in it."""
    message = Message(Role.ASSISTANT, [TextContent("a"), FunctionCallContent("c", "f", "{}")], message_id="m")
    (listed,) = as_protocol([message])
    assert isinstance(listed, AssistantMessage)
    assert (listed.content, len(listed.tool_calls or ())) == ("a", 1)
