"""A whole answer, put together from its updates.

Fragments join in the order they came, in time linear in their number: a text with the text right before it, a
function call with the earlier fragments of its `call_id`, wherever they stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from accord.agents.content import (
    Content,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    ReasoningContent,
    TextContent,
    UsageContent,
)
from accord.agents.errors import StructuredOutputError
from accord.agents.message import Message, Role
from accord.agents.structured import ResponseFormat, parse_response
from accord.agents.update import AgentResponseUpdate
from accord.agents.usage import Usage


@dataclass(frozen=True)
class AgentResponse:
    """What a run brought forth: its new messages in order, the tokens of all its model calls, how it ended."""

    messages: tuple[Message, ...]
    usage: Usage | None = None
    finish_reason: str | None = None
    response_format: ResponseFormat | None = None

    @classmethod
    def from_updates(
        cls, updates: Iterable[AgentResponseUpdate], *, response_format: ResponseFormat | None = None
    ) -> AgentResponse:
        """The response that the updates of a run amount to."""
        builder = ResponseBuilder(response_format)
        for update in updates:
            builder.add(update)
        return builder.build()

    @property
    def text(self) -> str:
        """All text of the run: what the updates' texts read one after the other."""
        return "".join(message.text for message in self.messages)

    @property
    def pending_calls(self) -> list[FunctionCallContent]:
        """The calls that got no result in the run: they are the caller's to answer."""
        answered = {
            content.call_id
            for message in self.messages
            for content in message.contents
            if isinstance(content, FunctionResultContent)
        }
        return [call for message in self.messages for call in message.function_calls if call.call_id not in answered]

    @cached_property
    def value(self) -> Any:
        """The last assistant message as the value that `response_format` asked for; None when nothing was asked.

        Raises `StructuredOutputError` when the model refused, or answered in another shape.
        """
        if self.response_format is None:
            return None
        last = next((message for message in reversed(self.messages) if message.role is Role.ASSISTANT), None)
        contents = last.contents if last else ()
        text = last.text if last else ""
        if any(isinstance(content, ErrorContent) and content.code == "refusal" for content in contents):
            raise StructuredOutputError("the model refused to answer", text=text)
        return parse_response(text, self.response_format)


class ResponseBuilder:
    """Takes updates as they come: `build` gives the response of those so far, `answer` that of the latest answer's."""

    def __init__(self, response_format: ResponseFormat | None = None) -> None:
        self._response_format = response_format
        self._messages: list[_OpenMessage] = []
        self._by_id: dict[tuple[Role, str], _OpenMessage] = {}
        self._latest: _OpenMessage | None = None  # nearly every update goes on with it
        self._usage: Usage | None = None
        self._finish_reason: str | None = None
        self._before = 0  # how many messages the answers before the latest have

    def begin_answer(self) -> None:
        """What comes from here on is another answer: no fragment of it joins what was there before."""
        self._before = len(self._messages)
        self._by_id.clear()
        self._latest = None

    def add(self, update: AgentResponseUpdate) -> None:
        if update.finish_reason is not None:
            self._finish_reason = update.finish_reason
        for content in update.contents:
            if isinstance(content, UsageContent):
                self._usage = content.usage if self._usage is None else self._usage + content.usage
            else:
                self._message_of(update).add(content)

    def build(self) -> AgentResponse:
        return AgentResponse(self._built(self._messages), self._usage, self._finish_reason, self._response_format)

    def answer(self) -> AgentResponse:
        """What came since `begin_answer`: its messages alone."""
        return AgentResponse(self._built(self._messages[self._before :]))

    def _built(self, messages: Sequence[_OpenMessage]) -> tuple[Message, ...]:
        return tuple(message.build() for message in messages)

    def _message_of(self, update: AgentResponseUpdate) -> _OpenMessage:
        latest = self._latest
        if latest is not None and latest.message_id == update.message_id and latest.role is update.role:
            return latest
        if update.message_id is None:
            message = self._messages[-1] if len(self._messages) > self._before else None
            if message is None or message.role is not update.role:
                message = self._open(update)
        else:
            key = (update.role, update.message_id)
            message = self._by_id.get(key)
            if message is None:
                message = self._by_id[key] = self._open(update)
        self._latest = message
        return message

    def _open(self, update: AgentResponseUpdate) -> _OpenMessage:
        message = _OpenMessage(update.role, update.message_id, update.author_name)
        self._messages.append(message)
        return message


class _OpenMessage:
    def __init__(self, role: Role, message_id: str | None, author_name: str | None) -> None:
        self.role = role
        self.message_id = message_id
        self._author_name = author_name
        self._parts: list[_OpenText | _OpenReasoning | _OpenCall | Content] = []
        self._calls: dict[str, _OpenCall] = {}

    def add(self, content: Content) -> None:
        last = self._parts[-1] if self._parts else None
        match content:
            case TextContent():
                if not isinstance(last, _OpenText):
                    self._parts.append(last := _OpenText())
                last.pieces.append(content.text)
            case ReasoningContent():
                # What comes after a seal is another thought.
                if not isinstance(last, _OpenReasoning) or last.encrypted_value is not None:
                    self._parts.append(last := _OpenReasoning())
                last.pieces.append(content.text)
                last.encrypted_value = content.encrypted_value
            case FunctionCallContent():
                call = self._calls.get(content.call_id)
                if call is None:
                    call = self._calls[content.call_id] = _OpenCall(content.call_id)
                    self._parts.append(call)
                call.name = call.name or content.name
                call.pieces.append(content.arguments)
            case _:
                self._parts.append(content)

    def build(self) -> Message:
        contents = [part if isinstance(part, Content) else part.build() for part in self._parts]
        return Message(self.role, contents, message_id=self.message_id, author_name=self._author_name)


class _OpenText:
    def __init__(self) -> None:
        self.pieces: list[str] = []

    def build(self) -> TextContent:
        return TextContent("".join(self.pieces))


class _OpenReasoning:
    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.encrypted_value: str | None = None

    def build(self) -> ReasoningContent:
        return ReasoningContent("".join(self.pieces), self.encrypted_value)


class _OpenCall:
    def __init__(self, call_id: str) -> None:
        self.call_id = call_id
        self.name = ""
        self.pieces: list[str] = []

    def build(self) -> FunctionCallContent:
        return FunctionCallContent(self.call_id, self.name, "".join(self.pieces))
