"""Who is told what of a failure: the model the detail, the interface that it failed, nobody a private member."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from accord import Agent, Message, ScriptedChatClient, tool
from accord.agents import ChatClientError, ChatOptions, scripted_call
from accord.agui import AGUIAgent, state_update
from accord.client import AGUIClient, InProcessTransport
from accord.errors import RunFailed
from accord.producer import drive
from accord.protocol import UserMessage
from producer.recording import Recording, a_run, an_input, consumed


async def served(agent: AGUIAgent) -> Recording:
    run_input = an_input(messages=[UserMessage(id="u", content="x")])
    run, outlet = a_run(run_input)
    await drive(agent, run)
    consumed(outlet, run_input)
    return outlet


async def test_what_an_exception_says_is_for_the_model() -> None:
    @tool
    def look_up() -> str:
        """Look up."""
        raise ConnectionError("no postgresql://app:hunter2@db")

    read: list[str] = []

    def script(messages: list[Message], options: ChatOptions) -> Any:
        if messages[-1].role == "tool":
            read.append(messages[-1].contents[0].text)  # type: ignore[attr-defined]
            return "sorry"
        return scripted_call("look_up")

    outlet = await served(AGUIAgent(Agent(ScriptedChatClient(script), tools=[look_up])))  # type: ignore[arg-type]
    assert "hunter2" in read[0]
    assert b"hunter2" not in b"".join(outlet.payloads)
    assert b"ConnectionError" not in b"".join(outlet.payloads)
    assert b"the tool failed" in b"".join(outlet.payloads)


async def test_a_refused_change_does_not_show_private_members() -> None:
    schema = {
        "type": "object",
        "properties": {"seats": {"type": "integer"}, "token": {"type": "string", "x-private": True}},
        "maxProperties": 2,
    }

    @tool
    def login() -> Any:
        """Log in."""
        return state_update("ok", state={"token": "sk-SECRET"})

    @tool
    def note() -> Any:
        """Note something."""
        return state_update("ok", state={"seats": 1, "note": "x"})

    read: list[str] = []

    def script(messages: list[Message], options: ChatOptions) -> Any:
        read.extend(content.text for content in messages[-1].contents)  # type: ignore[attr-defined]
        turn = sum(message.role == "tool" for message in messages)
        return [scripted_call("login"), scripted_call("note"), "done"][turn]

    agent = Agent(ScriptedChatClient(script), tools=[login, note])  # type: ignore[arg-type]
    outlet = await served(AGUIAgent(agent, state_schema=schema))
    assert any("the state was not changed" in text for text in read)
    assert "SECRET" not in "".join(read)
    assert b"SECRET" not in b"".join(outlet.payloads)


def test_warnings_are_not_printed_unasked() -> None:
    program = 'from accord.consumer import Pipeline\nPipeline().feed(b\'{"type":"A_LATER_EVENT"}\')\n'
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == done.stdout == ""


async def test_an_answer_that_is_sent_again_after_a_failure_goes_on_with_the_model() -> None:
    """The approved call has run, then the model failed: the retry asks the model and does not run the call again."""
    ran: list[int] = []
    asked: list[str] = []

    @tool(approval_mode="always_require")
    def pay(amount: int) -> str:
        """Pay."""
        ran.append(amount)
        return "paid"

    def script(messages: list[Message], options: ChatOptions) -> Any:
        asked.append(messages[-1].role)
        if len(asked) == 2:
            return ChatClientError("busy", code="rate_limited")
        return scripted_call("pay", {"amount": 1}) if len(asked) == 1 else f"You said: {messages[-1].text}"

    agent = AGUIAgent(Agent(ScriptedChatClient(script), tools=[pay]))  # type: ignore[arg-type]
    async with AGUIClient(transport=InProcessTransport(agent)) as client:
        await client.run("pay it")
        (question,) = client.pending_interrupts
        answer = {question.id: {"approved": True}}
        with pytest.raises(RunFailed):
            await client.resume(answer)
        run = await client.resume(answer, "are you there?")
        assert [getattr(message, "content", None) for message in run.new_messages] == ["You said: are you there?"]
        assert ran == [1]
        assert asked == ["user", "tool", "user"]
