"""A model without a model: answers that were written beforehand, streamed the way a real one streams."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import Any

import msgspec

from accord.agents.chat import ChatOptions
from accord.agents.content import Content, FunctionCallContent, ReasoningContent, TextContent, UsageContent
from accord.agents.errors import AgentSetupError, ChatClientError
from accord.agents.message import Message, Role
from accord.agents.update import AgentResponseUpdate
from accord.agents.usage import Usage


def scripted_call(name: str, arguments: Mapping[str, Any] | str = "", *, call_id: str = "") -> FunctionCallContent:
    """A call for a script. `arguments` is a JSON object, or text that is sent as it is (malformed text, too)."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return FunctionCallContent(call_id, name, text)


@dataclass(frozen=True, slots=True, init=False)
class Interleaved:
    """Calls whose pieces arrive by turns, as those of a model that writes several at once."""

    calls: tuple[FunctionCallContent, ...]

    def __init__(self, *calls: FunctionCallContent) -> None:
        object.__setattr__(self, "calls", calls)


Step = str | Content | Interleaved | Exception
Turn = Step | Sequence[Step]
Script = Sequence[Turn] | Callable[[Sequence[Message], ChatOptions], Turn | Awaitable[Turn]]


class ScriptedChatClient:
    """A chat client with no model behind it: for demonstrations, examples and tests. It understands nothing.

    It answers by a script, which is one of

    - a sequence of turns: turn `n` answers a conversation that holds `n` answers already (assistant messages in a row
      are one), so an answer depends on the conversation alone and concurrent runs do not disturb one another;
    - a function of the conversation and the options that returns the turn, `async` or not.

    A turn is a text, or a sequence of steps: texts and contents, `Interleaved` calls, and an exception to be raised
    at that place. Texts, reasoning and call arguments go out in pieces of `piece_size` characters, `delay` seconds
    apart. A call without an id gets `call_1`, `call_2`, ... by its number in the conversation. The answer ends with
    the `finish_reason` that it has earned, and with `usage` where that is given.

    Raises `ChatClientError` (code `script_ended`) when the script has no turn for the conversation.
    """

    def __init__(self, script: Script, *, piece_size: int = 4, delay: float = 0.0, usage: Usage | None = None) -> None:
        if isinstance(script, str) or not (callable(script) or isinstance(script, Sequence)):
            raise AgentSetupError("script: a sequence of turns or a function is needed")
        if piece_size < 1:
            raise AgentSetupError(f"piece_size: {piece_size} is less than 1")
        self._script = script
        self._piece_size = piece_size
        self._delay = delay
        self._usage = usage

    async def stream(self, messages: Sequence[Message], options: ChatOptions) -> AsyncIterator[AgentResponseUpdate]:
        turn = self._script(messages, options) if callable(self._script) else self._turn_for(messages)
        steps = _steps(await turn if inspect.isawaitable(turn) else turn)
        number = sum(len(message.function_calls) for message in messages)
        calls = 0
        for step in steps:
            if isinstance(step, Exception):
                raise step
            numbered: list[Content] = []
            for content in step:
                if isinstance(content, FunctionCallContent):
                    calls += 1
                    if not content.call_id:
                        content = msgspec.structs.replace(content, call_id=f"call_{number + calls}")
                numbered.append(content)
            for piece in self._pieces(numbered):
                # A real model never answers without letting others run, not even at once.
                await asyncio.sleep(self._delay)
                yield AgentResponseUpdate((piece,))
        yield AgentResponseUpdate(
            () if self._usage is None else UsageContent(self._usage),
            finish_reason="tool_calls" if calls else "stop",
        )

    def _turn_for(self, messages: Sequence[Message]) -> Turn:
        assert not callable(self._script)
        index = sum(role is Role.ASSISTANT for role, _ in groupby(message.role for message in messages))
        if index >= len(self._script):
            raise ChatClientError(
                f"the script has {len(self._script)} turns, and the model is asked for turn {index + 1}",
                code="script_ended",
            )
        return self._script[index]

    def _pieces(self, contents: Sequence[Content]) -> Iterator[Content]:
        """The fragments of the contents, by turns."""
        for round_of_pieces in zip_longest(*(self._pieces_of(content) for content in contents)):
            yield from (piece for piece in round_of_pieces if piece is not None)

    def _pieces_of(self, content: Content) -> Iterator[Content]:
        match content:
            case TextContent(text=text):
                yield from (TextContent(piece) for piece in self._cut(text))
            case ReasoningContent(text=text, encrypted_value=encrypted_value):
                yield from (ReasoningContent(piece) for piece in self._cut(text))
                if encrypted_value is not None:
                    yield ReasoningContent("", encrypted_value)
            case FunctionCallContent(call_id=call_id, name=name, arguments=arguments):
                yield FunctionCallContent(call_id, name)
                yield from (FunctionCallContent(call_id, "", piece) for piece in self._cut(arguments))
            case _:
                yield content

    def _cut(self, text: str) -> Iterator[str]:
        return (text[start : start + self._piece_size] for start in range(0, len(text), self._piece_size))


def _steps(turn: Turn) -> Iterator[Sequence[Content] | Exception]:
    """Each step as the contents that go out together."""
    for step in [turn] if isinstance(turn, str | Content | Interleaved | Exception) else turn:
        match step:
            case str():
                yield [TextContent(step)]
            case Content():
                yield [step]
            case Interleaved():
                yield step.calls
            case Exception():
                yield step
            case _:
                raise AgentSetupError(f"script: {type(step).__name__} is no step of a turn")
