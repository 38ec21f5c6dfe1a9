"""An agent's updates as events, where a model's server does not keep to the rules."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from accord.agents import Agent, AgentResponseUpdate, ChatOptions, FunctionCallContent, Message, TextContent
from accord.agui import AGUIAgent
from agui.talk import Talk


class Nameless:
    """A model that calls a tool and never says which."""

    def __init__(self, finish_reason: str | None) -> None:
        self._finish_reason = finish_reason

    async def stream(self, messages: Sequence[Message], options: ChatOptions) -> AsyncIterator[AgentResponseUpdate]:
        if messages[-1].role == "tool":
            yield AgentResponseUpdate(TextContent("Sorry."), finish_reason="stop")
            return
        yield AgentResponseUpdate(FunctionCallContent("c", "", '{"a":'))
        yield AgentResponseUpdate(FunctionCallContent("c", "", "1}"), finish_reason=self._finish_reason)


async def check(finish_reason: str | None) -> None:
    talk = Talk(AGUIAgent(Agent(Nameless(finish_reason))))
    run = await talk.say()
    assert run.outcome == "success", run.error
    of_call = [event for event in talk.events if event.get("toolCallId") == "c"]
    assert [event["type"] for event in of_call] == [
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
    ]
    assert of_call[0]["toolCallName"] == "unknown"
    assert "".join(event.get("delta", "") for event in of_call) == '{"a":1}'
    assert talk.warnings == []


async def test_a_call_that_never_gets_a_name_is_announced_before_its_result() -> None:
    await check("tool_calls")


async def test_a_call_that_never_gets_a_name_in_an_answer_without_an_end() -> None:
    await check(None)
