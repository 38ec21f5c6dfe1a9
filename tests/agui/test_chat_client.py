from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import jsonpatch
import pytest
from starlette.applications import Starlette

from accord import (
    Agent,
    AgentResponseUpdate,
    AgentSession,
    ChatOptions,
    FunctionApprovalRequestContent,
    Message,
    ScriptedChatClient,
    ToolDefinition,
    UsageContent,
    tool,
)
from accord.agents import ChatClientError, Usage, scripted_call
from accord.agui import AGUIAgent, AGUIChatClient, AGUIEventContent, add_agui_endpoint
from accord.client import InProcessTransport
from accord.errors import RunFailed
from accord.producer import Run
from support.serving import serve

RECIPE = {"title": "Carbonara", "ingredients": [{"name": "Guanciale"}, {"name": "Eggs"}]}


@tool
def update_recipe(recipe: dict[str, Any]) -> str:
    """Write the recipe."""
    return "Recipe updated."


def cook(messages: Sequence[Message], options: ChatOptions) -> Any:
    if messages[-1].role == "tool":
        return f"Done after {sum(message.role == 'user' for message in messages)} requests."
    return [scripted_call("update_recipe", {"recipe": RECIPE})]


def recipe_agent(**options: Any) -> AGUIAgent:
    return AGUIAgent(
        Agent(ScriptedChatClient(cook, usage=Usage(input_tokens=3)), tools=[update_recipe]),
        predict_state_config={"recipe": {"tool": "update_recipe", "tool_argument": "recipe"}},
        **options,
    )


async def test_the_client_loop_of_a_user() -> None:
    """The loop users write: text as it comes, snapshots as JSON data, patches by a library of their choice."""
    app = Starlette()
    add_agui_endpoint(app, recipe_agent())
    async with serve(app) as url, AGUIChatClient(server_url=url) as client:
        agent = Agent(name="ClientAgent", client=client, instructions="You are a helpful assistant.")
        thread = agent.create_session()
        state: Any = {}
        seen = {"snapshot": 0, "delta": 0}
        text = ""
        for request in ("A carbonara", "Another"):
            async for update in agent.run(request, session=thread, stream=True):
                text += update.text
                content: Any
                for content in update.contents:
                    if hasattr(content, "media_type") and content.media_type == "application/json":
                        state = json.loads(content.data.decode())
                        seen["snapshot"] += 1
                    if hasattr(content, "delta") and content.delta:
                        state = jsonpatch.JsonPatch(content.delta).apply(state)
                        seen["delta"] += 1
            assert state == client.state == {"recipe": RECIPE}
        # The instructions of the local agent come as a user's, once: a client has no authority over the server's agent.
        assert text == "Done after 2 requests.Done after 3 requests."
        assert min(seen.values()) >= 2
        assert client.state_of(thread) == state


async def test_a_saved_session_goes_on() -> None:
    agent = Agent(AGUIChatClient(transport=InProcessTransport(recipe_agent())))
    thread = agent.create_session()
    await agent.run("A carbonara", session=thread)
    saved = json.loads(json.dumps(thread.to_dict()))

    later = Agent(other := AGUIChatClient(transport=InProcessTransport(recipe_agent())))
    restored = AgentSession.from_dict(saved)
    response = await later.run("Another", session=restored)
    assert response.text == "Done after 2 requests."
    assert restored.service_session_id == thread.service_session_id
    assert other.state == {"recipe": RECIPE}


async def test_sessions_do_not_mix() -> None:
    client = AGUIChatClient(transport=InProcessTransport(recipe_agent()))
    agent = Agent(client)
    first, second = agent.create_session(), agent.create_session()
    await agent.run("A", session=first)
    assert (await agent.run("B", session=second)).text == "Done after 1 requests."
    assert first.service_session_id != second.service_session_id
    client.set_state(second, {"mine": 1})
    assert client.state_of(first) == {"recipe": RECIPE}


async def test_tools_of_the_local_agent_run_here() -> None:
    asked: list[list[str]] = []

    def remote(messages: Sequence[Message], options: ChatOptions) -> Any:
        asked.append([definition.name for definition in options.tools])
        if messages[-1].role == "tool":
            return f"It is {messages[-1].contents[0].text}."  # type: ignore[attr-defined]
        return [scripted_call("local_time", {"zone": "Rome"})]

    @tool
    def local_time(zone: str) -> str:
        """Tell the time."""
        return f"noon in {zone}"

    client = AGUIChatClient(transport=InProcessTransport(AGUIAgent(Agent(ScriptedChatClient(remote)))))
    response = await Agent(client, tools=[local_time]).run("What time is it?")
    assert response.text == "It is noon in Rome."
    assert asked == [["local_time"], ["local_time"]]
    assert len(client.state_of(AgentSession())) == 0


@pytest.mark.parametrize("approved", [True, False])
async def test_what_the_server_asks_the_next_run_answers(approved: bool) -> None:
    runs: list[dict[str, Any]] = []

    @tool
    def update_recipe(recipe: dict[str, Any]) -> str:
        """Write the recipe."""
        runs.append(recipe)
        return "Recipe updated."

    served = AGUIAgent(
        Agent(ScriptedChatClient(cook), tools=[update_recipe]),
        predict_state_config={"recipe": {"tool": "update_recipe", "tool_argument": "recipe"}},
        require_confirmation=True,
    )
    client = AGUIChatClient(transport=InProcessTransport(served))
    agent = Agent(client)
    thread = agent.create_session()
    response = await agent.run("A carbonara", session=thread)
    (request,) = [
        content
        for message in response.messages
        for content in message.contents
        if isinstance(content, FunctionApprovalRequestContent)
    ]
    assert request.call.name == "update_recipe"
    assert json.loads(request.call.arguments) == {"recipe": RECIPE}
    assert client.state == {"recipe": RECIPE}
    assert runs == []

    # The question outlives the process that was asked.
    thread = AgentSession.from_dict(json.loads(json.dumps(thread.to_dict())))
    client = AGUIChatClient(transport=InProcessTransport(served))
    agent = Agent(client)
    edited = {"recipe": {**RECIPE, "title": "Gricia"}}
    answer = request.answer(approved, arguments=edited) if approved else request.answer(False, reason="too rich")
    response = await agent.run(Message("user", [answer]), session=thread)
    if approved:
        assert runs == [edited["recipe"]]
        assert client.state == edited
        assert response.text.endswith("Done after 1 requests.")
    else:
        assert runs == []
        assert client.state == {}
        assert response.text


async def test_a_failed_run_is_an_error_of_the_model() -> None:
    async def producer(run: Run) -> None:
        raise RunFailed("The kitchen is closed.", code="closed")

    with pytest.raises(ChatClientError) as failed:
        await Agent(AGUIChatClient(transport=InProcessTransport(producer))).run("hi")
    assert str(failed.value) == "The kitchen is closed."
    assert failed.value.code == "closed"


async def test_a_cut_stream_is_an_error() -> None:
    from accord.client import ReplayTransport

    cut = b'data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}\n\n'
    with pytest.raises(ChatClientError):
        await Agent(AGUIChatClient(transport=ReplayTransport(cut))).run("hi")


async def test_everything_is_delivered() -> None:
    async def producer(run: Run) -> None:
        with run.step("plan"), run.reasoning() as reasoning:
            reasoning.write("hm")
        run.activity("search", {"q": 1})
        run.custom("note", {"a": None})

    updates: list[AgentResponseUpdate] = []
    client = AGUIChatClient(transport=InProcessTransport(producer))
    async for update in Agent(client).run("hi", stream=True):
        updates.append(update)
    events = [
        content.event["type"]
        for update in updates
        for content in update.contents
        if isinstance(content, AGUIEventContent)
    ]
    for expected in ("RUN_STARTED", "STEP_STARTED", "REASONING_START", "ACTIVITY_SNAPSHOT", "CUSTOM"):
        assert expected in events
    assert any(getattr(content, "text", "") == "hm" for update in updates for content in update.contents)


async def test_usage_comes_through() -> None:
    client = AGUIChatClient(transport=InProcessTransport(recipe_agent()))
    stream = Agent(client).run("hi", stream=True)
    contents = [content async for update in stream for content in update.contents]
    (usage,) = [content for content in contents if isinstance(content, UsageContent)]
    assert usage.usage.input_tokens == 6


async def test_messages_without_a_session_are_all_sent() -> None:
    def count(messages: Sequence[Message], options: ChatOptions) -> str:
        return ",".join(f"{message.role}:{message.text}" for message in messages if message.role != "system")

    client = AGUIChatClient(transport=InProcessTransport(AGUIAgent(Agent(ScriptedChatClient(count)))))
    agent = Agent(client, tools=[ToolDefinition("unused")])
    said = [Message("user", "a"), Message("assistant", "b"), Message("user", "c")]
    assert (await agent.run(said)).text == "user:a,assistant:b,user:c"


def test_where_the_server_is_must_be_said_once() -> None:
    with pytest.raises(ValueError, match="exactly one"):
        AGUIChatClient()
