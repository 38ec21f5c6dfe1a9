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
from accord.agents import ChatClientError, FunctionCallContent, ReasoningContent, Usage, scripted_call
from accord.agui import AGUIAgent, AGUIChatClient, AGUIEventContent, add_agui_endpoint
from accord.client import InProcessTransport, ReplayTransport
from accord.errors import RunFailed
from accord.producer import Run
from agui.talk import Talk
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


async def test_a_question_that_is_still_open_is_asked_again() -> None:
    """The server failed while it carried an answer out: who answers again is asked again, and nothing is stuck."""
    ran: list[str] = []

    @tool(approval_mode="always_require")
    def delete(name: str) -> str:
        """Delete a file."""
        ran.append(name)
        return "deleted"

    def answer(messages: Sequence[Message], options: ChatOptions) -> Any:
        if messages[-1].role != "tool":
            return [scripted_call("delete", {"name": "a"})]
        if len(ran) == 1 and not failed:
            failed.append(True)
            raise ChatClientError("the model is down", code="down")
        return "Done."

    failed: list[bool] = []
    inner = AGUIAgent(Agent(ScriptedChatClient(answer), tools=[delete]))
    talk = Talk(AGUIAgent(Agent(AGUIChatClient(transport=InProcessTransport(inner)))))
    assert (await talk.say()).outcome == "interrupt"
    assert (await talk.answer({"approved": True})).outcome == "failed"
    assert (await talk.answer({"approved": True})).outcome == "interrupt"
    (asked,) = talk.client.pending_interrupts
    assert asked.message == "Allow delete?"
    assert (await talk.answer({"approved": True})).outcome == "success"
    assert ran == ["a"]
    assert talk.text.endswith("Done.")


async def test_a_failed_run_is_an_error_of_the_model() -> None:
    async def producer(run: Run) -> None:
        raise RunFailed("The kitchen is closed.", code="closed")

    with pytest.raises(ChatClientError) as failed:
        await Agent(AGUIChatClient(transport=InProcessTransport(producer))).run("hi")
    assert str(failed.value) == "The kitchen is closed."
    assert failed.value.code == "closed"


async def test_a_cut_stream_is_an_error() -> None:
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


STARTED = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
FINISHED = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
# As producers that count in UTF-16 cut it; the last half of the text, the reasoning and the call stays alone.
CUT: list[dict[str, Any]] = [
    STARTED,
    {"type": "REASONING_START", "messageId": "s"},
    {"type": "REASONING_MESSAGE_START", "messageId": "h", "role": "reasoning"},
    *({"type": "REASONING_MESSAGE_CONTENT", "messageId": "h", "delta": cut} for cut in ("h \ud83d", "\ude00\ud83d")),
    {"type": "REASONING_MESSAGE_END", "messageId": "h"},
    {"type": "REASONING_END", "messageId": "s"},
    {"type": "TEXT_MESSAGE_START", "messageId": "m"},
    *({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": cut} for cut in ("m \ud83d", "\ude00\ud83d")),
    {"type": "TEXT_MESSAGE_END", "messageId": "m"},
    {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "note"},
    *({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": cut} for cut in ('{"a":"\ud83d', '\ude00"}\ud83d')),
    {"type": "TOOL_CALL_END", "toolCallId": "c"},
    {"type": "TOOL_CALL_RESULT", "messageId": "e", "toolCallId": "c", "content": "\ud83d"},
    {"type": "STATE_SNAPSHOT", "snapshot": {"half": "\ud83d"}},
    {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/more", "value": "\ude00"}]},
    {"type": "CUSTOM", "name": "half", "value": "\ud83d"},
    FINISHED,
]


async def test_characters_that_are_cut_in_two_are_whole() -> None:
    agent = Agent(AGUIChatClient(transport=ReplayTransport(CUT)))
    session = agent.create_session()
    response = await agent.run("hi", session=session)
    assert response.text == "m 😀\ufffd"
    contents = [content for message in response.messages for content in message.contents]
    assert [content.text for content in contents if isinstance(content, ReasoningContent)] == ["h 😀\ufffd"]
    assert [content.arguments for content in contents if isinstance(content, FunctionCallContent)] == [
        '{"a":"😀"}\ufffd'
    ]
    json.dumps(session.to_dict()["state"]["agui"]["messages"], ensure_ascii=False).encode()


async def test_a_gateway_passes_on_characters_that_were_cut_in_two() -> None:
    talk = Talk(AGUIAgent(Agent(AGUIChatClient(transport=ReplayTransport(CUT)))))
    run = await talk.say()
    assert run.outcome == "success", run.error
    said = "".join(event["delta"] for event in talk.events if event["type"] == "TEXT_MESSAGE_CONTENT")
    arguments = "".join(event["delta"] for event in talk.events if event["type"] == "TOOL_CALL_ARGS")
    assert (said, arguments) == ("m 😀\ufffd", '{"a":"😀"}\ufffd')
    assert talk.client.state == {"half": "\ufffd", "more": "\ufffd"}
    assert talk.warnings == []


async def test_a_gateway_passes_on_state_and_signals() -> None:
    async def upstream(run: Run) -> None:
        run.state.set({"count": 1})
        run.state.snapshot()
        with run.step("plan"), run.text("m") as message:
            message.write("hel")
            run.state.set({"count": 2})
            run.custom("note", {"a": None})
            run.raw({"from": "elsewhere"}, source="there")
            message.write("lo")
        with run.subagent("helper", "s"):
            run.custom("note", "helped", subagent_run_id="s")
        activity = run.activity("search", {"q": 1})
        activity.patch([{"op": "replace", "path": "/q", "value": 2}])
        run.messages_snapshot([])

    model = AGUIChatClient(transport=InProcessTransport(upstream))
    talk = Talk(AGUIAgent(Agent(model)))
    run = await talk.say()
    assert run.outcome == "success", run.error
    assert talk.client.state == model.state == {"count": 2}
    assert [event["type"] for event in talk.events] == [
        "RUN_STARTED",
        "STATE_DELTA",
        "STEP_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "STATE_DELTA",
        "CUSTOM",
        "RAW",
        "TEXT_MESSAGE_CONTENT",
        "STEP_FINISHED",
        "CUSTOM",
        "ACTIVITY_SNAPSHOT",
        "ACTIVITY_DELTA",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    custom = [event for event in talk.events if event["type"] == "CUSTOM"]
    assert custom == [
        {"type": "CUSTOM", "name": "note", "value": {"a": None}},
        {"type": "CUSTOM", "name": "note", "value": "helped"},
    ]
    assert talk.warnings == []


async def test_a_change_that_does_not_fit_the_gateways_state_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    async def upstream(run: Run) -> None:
        run.state.patch([{"op": "replace", "path": "/theirs", "value": 2}])
        run.state.patch([{"op": "add", "path": "/new", "value": 3}])

    model = AGUIChatClient(transport=InProcessTransport(upstream), state={"theirs": 1})
    talk = Talk(AGUIAgent(Agent(model)), state={"ours": 1})
    run = await talk.say()
    assert run.outcome == "success"
    assert talk.client.state == {"ours": 1, "new": 3}
    assert "does not fit" in caplog.text


async def test_a_step_that_is_open_already_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    def model(messages: Sequence[Message], options: ChatOptions) -> Any:
        return [AGUIEventContent({"type": "STEP_STARTED", "stepName": "a"})] * 2

    talk = Talk(AGUIAgent(Agent(ScriptedChatClient(model))))
    run = await talk.say()
    assert run.outcome == "success"
    assert [event["type"] for event in talk.events].count("STEP_STARTED") == 1
    assert "left out" in caplog.text


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
