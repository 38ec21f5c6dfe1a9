from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from accord.agents import (
    Agent,
    AgentResponse,
    AgentRunStream,
    AgentSetupError,
    ChatOptions,
    Message,
    MessageError,
    Role,
    ScriptedChatClient,
    ToolDefinition,
    ToolDefinitionError,
    scripted_call,
    tool,
)
from accord.agents.scripted import Turn
from accord.sessions import AgentSession


@tool
def double(x: int) -> int:
    """Double it."""
    return 2 * x


class Asked:
    """A model that keeps what it was asked."""

    def __init__(self) -> None:
        self.messages: Sequence[Message] = ()
        self.options = ChatOptions()
        self.client = ScriptedChatClient(self.answer)

    def answer(self, messages: Sequence[Message], options: ChatOptions) -> Turn:
        self.messages, self.options = messages, options
        return "ok"


async def test_the_shapes_that_programs_use() -> None:
    client = ScriptedChatClient([["Doubling. ", scripted_call("double", {"x": 2})], "Done."])
    agent = Agent(name="a", instructions="Double.", client=client, tools=[double])
    thread = AgentSession()

    response = await agent.run("Hello", session=thread)
    assert isinstance(response, AgentResponse)
    assert response.text == "Doubling. Done."

    stream = agent.run("Hello", session=thread, stream=True)
    assert isinstance(stream, AgentRunStream)
    text, contents = "", 0
    async for update in stream:
        text += update.text
        contents += len(update.contents)
    assert text == "Doubling. Done."
    assert contents > 3


async def test_the_instructions_are_a_system_message_of_each_call() -> None:
    asked = Asked()
    await Agent(asked.client, "Be brief.").run([Message(Role.USER, "a"), Message(Role.ASSISTANT, "b"), "c"])
    assert [(message.role, message.text) for message in asked.messages] == [
        ("system", "Be brief."),
        ("user", "a"),
        ("assistant", "b"),
        ("user", "c"),
    ]


async def test_the_model_is_told_of_all_tools() -> None:
    def plain(y: str) -> None:
        """Plain."""

    asked = Asked()
    agent = Agent(asked.client, tools=[double, ToolDefinition("declared")])
    await agent.run("Hello", tools=[plain], options=ChatOptions(tools=[ToolDefinition("from_options")]))
    assert [definition.name for definition in asked.options.tools] == ["double", "declared", "plain", "from_options"]
    assert next(iter(asked.options.tools)) == double.definition
    assert [found.name for found in agent.tools] == ["double", "declared"]


async def test_a_runs_options_go_over_the_agents() -> None:
    asked = Asked()
    agent = Agent(asked.client, options=ChatOptions(model="a", temperature=0.5, extra={"p": 1, "q": 1}))
    await agent.run("Hello", options=ChatOptions(model="b", max_tokens=9, extra={"q": 2}))
    expected = ChatOptions(model="b", temperature=0.5, max_tokens=9, extra={"p": 1, "q": 2})
    assert replace(asked.options, session=None) == expected
    await agent.run("Hello")
    assert (asked.options.model, asked.options.max_tokens) == ("a", None)


async def test_structured_output() -> None:
    class City(BaseModel):
        name: str

    client = ScriptedChatClient(['{"name": "Oslo"}'])
    response = await Agent(client).run("Hello", options=ChatOptions(response_format=City))
    assert response.value == City(name="Oslo")
    stream = Agent(client, options=ChatOptions(response_format=City)).run("Hello", stream=True)
    assert (await stream.response()).value == City(name="Oslo")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"client": object()}, "client: object has no stream"),
        ({"max_rounds": -1}, "max_rounds"),
        ({"tools": [double, double]}, "two tools are called 'double'"),
        ({"tools": [3]}, "a function is needed, not int"),
    ],
)
def test_parts_that_do_not_fit_are_refused_at_once(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(AgentSetupError, match=message):
        Agent(**{"client": ScriptedChatClient([]), **parts})


async def test_a_run_is_refused_before_it_begins() -> None:
    agent = Agent(ScriptedChatClient([]), tools=[double])
    with pytest.raises(MessageError, match=r"messages\[0\]"):
        agent.run([1], stream=True)  # type: ignore[call-overload]
    with pytest.raises(ToolDefinitionError, match="'double'"):
        agent.run("Hello", stream=True, tools=[ToolDefinition("double")])
