from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord import Agent, ChatOptions, Message, ScriptedChatClient, ToolContext, tool
from accord.agents import scripted_call
from accord.agui import AGUIAgent, InMemoryThreadStore, current_run
from accord.producer import drive
from producer.recording import Recording, a_run, an_input, consumed


@tool
def todos_add(title: str, context: ToolContext) -> str:
    """Add a todo."""
    assert context.session is not None
    context.session.state.setdefault("todos", []).append({"title": title})
    context.session.state["secret"] = "hush"
    return "added"


@tool
def clear(context: ToolContext) -> str:
    """Remove all todos, in the shared state."""
    with current_run().state.edit() as draft:
        del draft["todos"]
    return "cleared"


def script(messages: Sequence[Message], options: ChatOptions) -> Any:
    if messages[-1].role == "tool":
        return "ok"
    return [scripted_call("clear")] if messages[-1].text == "clear" else [scripted_call("todos_add", {"title": "a"})]


async def a_turn(agent: AGUIAgent, text: str, state: Any) -> Recording:
    from accord.protocol import UserMessage

    run_input = an_input(state=state, messages=[UserMessage(id="u", content=text)])
    run, outlet = a_run(run_input)
    await drive(agent, run)
    consumed(outlet, run_input)
    return outlet


def an_agent() -> AGUIAgent:
    return AGUIAgent(
        Agent(ScriptedChatClient(script), tools=[todos_add, clear]),
        session_state=["todos"],
        threads=InMemoryThreadStore(),
    )


async def test_what_a_tool_keeps_in_the_session_reaches_the_screen() -> None:
    agent = an_agent()
    outlet = await a_turn(agent, "add", {"x": 1})
    held = consumed(outlet, an_input(state={"x": 1})).state
    assert held == {"x": 1, "todos": [{"title": "a"}]}
    assert b"hush" not in b"".join(outlet.payloads)
    assert outlet.types.index("STATE_DELTA") < outlet.types.index("TOOL_CALL_RESULT")

    outlet = await a_turn(agent, "add", held)
    assert consumed(outlet, an_input(state=held)).state["todos"] == [{"title": "a"}, {"title": "a"}]


async def test_what_the_client_changes_reaches_the_session() -> None:
    agent = an_agent()
    outlet = await a_turn(agent, "add", {"todos": [{"title": "theirs"}]})
    held = consumed(outlet, an_input(state={"todos": [{"title": "theirs"}]})).state
    assert held["todos"] == [{"title": "theirs"}, {"title": "a"}]


async def test_the_session_outlives_the_run() -> None:
    agent = an_agent()
    await a_turn(agent, "add", {})
    outlet = await a_turn(agent, "add", {})  # a client that has forgotten
    assert consumed(outlet, an_input(state={})).state["todos"] == [{"title": "a"}, {"title": "a"}]


async def test_what_is_removed_on_one_side_goes_on_the_other() -> None:
    agent = an_agent()
    held = consumed(await a_turn(agent, "add", {}), an_input(state={})).state
    outlet = await a_turn(agent, "clear", held)
    assert consumed(outlet, an_input(state=held)).state == {}
    outlet = await a_turn(agent, "add", {})
    assert consumed(outlet, an_input(state={})).state["todos"] == [{"title": "a"}]
