from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from accord.agents import (
    AgentResponse,
    AgentResponseUpdate,
    AgentSetupError,
    ChatClient,
    ChatClientError,
    ChatOptions,
    Content,
    DataContent,
    FunctionCallContent,
    FunctionResultContent,
    Interleaved,
    Message,
    ReasoningContent,
    Role,
    ScriptedChatClient,
    TextContent,
    Usage,
    scripted_call,
)
from accord.agents.scripted import Turn

HELLO = Message(Role.USER, "Hello")


async def answer(client: ScriptedChatClient, *messages: Message) -> list[AgentResponseUpdate]:
    return [update async for update in client.stream(messages or (HELLO,), ChatOptions())]


def contents(updates: list[AgentResponseUpdate]) -> list[Content]:
    return [content for update in updates for content in update.contents]


def test_it_is_a_chat_client() -> None:
    assert isinstance(ScriptedChatClient([]), ChatClient)


async def test_text_streams_in_pieces() -> None:
    updates = await answer(ScriptedChatClient(["Hello there"], piece_size=4))
    assert [update.text for update in updates] == ["Hell", "o th", "ere", ""]
    assert [update.finish_reason for update in updates] == [None, None, None, "stop"]


async def test_others_run_between_the_pieces() -> None:
    seen: list[str] = []

    async def read(name: str) -> None:
        async for update in ScriptedChatClient(["abc"], piece_size=1).stream((HELLO,), ChatOptions()):
            seen.append(name + update.text)

    await asyncio.gather(read("1"), read("2"))
    assert seen[:5] == ["1a", "2a", "1b", "2b", "1c"]


async def test_every_kind_of_content_streams() -> None:
    image = DataContent(b"a", "image/png")
    turn: Turn = [ReasoningContent("think", "sealed"), "text", image, scripted_call("f", {"é": 1}, call_id="mine")]
    updates = await answer(ScriptedChatClient([turn], piece_size=3))
    assert contents(updates) == [
        ReasoningContent("thi"),
        ReasoningContent("nk"),
        ReasoningContent("", "sealed"),
        TextContent("tex"),
        TextContent("t"),
        image,
        FunctionCallContent("mine", "f"),
        FunctionCallContent("mine", "", '{"é'),
        FunctionCallContent("mine", "", '": '),
        FunctionCallContent("mine", "", "1}"),
    ]
    assert updates[-1].finish_reason == "tool_calls"


async def test_interleaved_calls_take_turns() -> None:
    turn = Interleaved(scripted_call("f", "abcd"), scripted_call("g", "1"))
    updates = await answer(ScriptedChatClient([turn], piece_size=2))
    assert contents(updates) == [
        FunctionCallContent("call_1", "f"),
        FunctionCallContent("call_2", "g"),
        FunctionCallContent("call_1", "", "ab"),
        FunctionCallContent("call_2", "", "1"),
        FunctionCallContent("call_1", "", "cd"),
    ]


async def test_calls_are_numbered_through_the_conversation() -> None:
    client = ScriptedChatClient([scripted_call("f"), [scripted_call("f"), scripted_call("f", call_id="own")]])
    first = AgentResponse.from_updates(await answer(client)).messages
    result = Message(Role.TOOL, FunctionResultContent("call_1", 1))
    second = AgentResponse.from_updates(await answer(client, HELLO, *first, result)).messages
    assert [call.call_id for call in second[0].function_calls] == ["call_2", "own"]


async def test_the_turn_depends_on_the_conversation_alone() -> None:
    client = ScriptedChatClient(["one", "two"], piece_size=10)
    said = Message(Role.ASSISTANT, "one")
    for _ in range(2):
        assert (await answer(client))[0].text == "one"
        assert (await answer(client, HELLO, said, said, HELLO))[0].text == "two"


async def test_a_script_that_ends_says_so() -> None:
    with pytest.raises(ChatClientError, match=r"has 1 turns.*turn 2") as caught:
        await answer(ScriptedChatClient(["one"]), HELLO, Message(Role.ASSISTANT, "one"), HELLO)
    assert caught.value.code == "script_ended"


async def test_a_function_of_the_conversation() -> None:
    def reply(messages: Sequence[Message], options: ChatOptions) -> Turn:
        return messages[-1].text.upper()

    async def later(messages: Sequence[Message], options: ChatOptions) -> Turn:
        return reply(messages, options)

    for script in (reply, later):
        assert AgentResponse.from_updates(await answer(ScriptedChatClient(script))).text == "HELLO"


async def test_a_failure_comes_where_it_stands() -> None:
    client = ScriptedChatClient([["abc", ChatClientError("gone", code="cut"), "never"]], piece_size=3)
    stream = client.stream((HELLO,), ChatOptions())
    assert (await anext(stream)).text == "abc"
    with pytest.raises(ChatClientError, match="gone"):
        await anext(stream)


async def test_usage_comes_with_the_end() -> None:
    usage = Usage(model="scripted", input_tokens=3, output_tokens=2)
    updates = await answer(ScriptedChatClient(["a"], usage=usage))
    assert AgentResponse.from_updates(updates).usage == usage
    assert updates[-1].finish_reason == "stop"


@pytest.mark.parametrize("script", ["text", 3])
def test_what_is_no_script(script: object) -> None:
    with pytest.raises(AgentSetupError, match="script"):
        ScriptedChatClient(script)  # type: ignore[arg-type]


async def test_what_is_no_step() -> None:
    with pytest.raises(AgentSetupError, match="int is no step"):
        await answer(ScriptedChatClient([[1]]))  # type: ignore[list-item]


def test_a_piece_has_at_least_a_character() -> None:
    with pytest.raises(AgentSetupError, match="piece_size"):
        ScriptedChatClient([], piece_size=0)
