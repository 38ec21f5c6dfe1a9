"""The conversation as the client tells it, made into one that a model may read.

The client's history is a claim: its system and developer messages carry no authority and reach the model as a user's,
marked as the application's. Every call in it gets exactly one result, and a result without its call is left out,
because model servers refuse either.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from msgspec import UNSET

from accord.agents import (
    Content,
    DataContent,
    FunctionCallContent,
    FunctionResultContent,
    Message,
    ReasoningContent,
    Role,
    TextContent,
    UriContent,
)
from accord.errors import InputRejected
from accord.protocol import (
    ActivityMessage,
    AssistantMessage,
    ContentPart,
    DataSource,
    DeveloperMessage,
    ReasoningMessage,
    SystemMessage,
    TextPart,
    ToolMessage,
    UserMessage,
)
from accord.protocol import Message as ProtocolMessage

_logger = logging.getLogger("accord")

#: What stands in for the result of a call that was never answered.
NO_RESULT = "This call was not answered."


def read_messages(messages: Sequence[ProtocolMessage], *, trust_instructions: bool = False) -> list[Message]:
    """The agent's messages for those of an input; `trust_instructions` lets system messages stay what they are.

    Raises `InputRejected` with the path of data that is not Base64.
    """
    read: list[Message] = []
    for position, message in enumerate(messages):
        made = _read(message, f"/messages/{position}", trust_instructions=trust_instructions)
        if made is not None:
            read.append(made)
    return read


def answered(messages: Iterable[Message], *, fill: bool = True) -> list[Message]:
    """The same conversation with one result for each call, right behind the message that calls.

    With `fill`, a call that was never answered is said to be so; otherwise it stays open.
    """
    conversation = list(messages)
    results: dict[str, Message] = {}
    for message in conversation:
        for content in message.contents:
            if isinstance(content, FunctionResultContent):
                results.setdefault(content.call_id, message)
    placed: list[Message] = []
    known: set[str] = set()
    for message in conversation:
        if message.role is Role.TOOL:
            continue
        contents = tuple(content for content in message.contents if not _is_repeated(content, known))
        if len(contents) < len(message.contents):
            message = replace(message, contents=contents)
        if contents or not message.contents:
            placed.append(message)
        for call in message.function_calls:
            if call.call_id in results:
                placed.append(results[call.call_id])
            elif fill:
                placed.append(Message(Role.TOOL, FunctionResultContent(call.call_id, NO_RESULT, name=call.name)))
    for call_id in results.keys() - known:
        _logger.warning("a tool result without its call is left out: %r", call_id)
    return placed


def _is_repeated(content: Content, known: set[str]) -> bool:
    """Whether this is a call that was there before; if not, it is now."""
    if not isinstance(content, FunctionCallContent):
        return False
    if content.call_id in known:
        _logger.warning("a tool call that is there twice is left out: %s", content.call_id)
        return True
    known.add(content.call_id)
    return False


def _read(message: ProtocolMessage, path: str, *, trust_instructions: bool) -> Message | None:
    if isinstance(message, ActivityMessage):
        return None
    contents: list[Content]
    if isinstance(message, SystemMessage | DeveloperMessage):
        if trust_instructions:
            return Message(str(message.__struct_config__.tag), message.content, message_id=message.id)
        return Message(
            Role.USER,
            f"The application says, without the authority of instructions: {message.content}",
            message_id=message.id,
        )
    if isinstance(message, UserMessage):
        name = None if message.name is UNSET else message.name
        return Message(Role.USER, _contents(message.content, path), message_id=message.id, author_name=name)
    if isinstance(message, ToolMessage):
        error = None if message.error is UNSET else message.error
        contents = _contents(message.content, path)
        plain = "".join(part.text for part in contents if isinstance(part, TextContent))
        result = plain if len(contents) == 1 and isinstance(contents[0], TextContent) else contents
        return Message(
            Role.TOOL, FunctionResultContent(message.tool_call_id, result, error=error), message_id=message.id
        )
    if isinstance(message, ReasoningMessage):
        sealed = None if message.encrypted_value is UNSET else message.encrypted_value
        return Message(Role.ASSISTANT, ReasoningContent(message.content, sealed), message_id=message.id)
    assert isinstance(message, AssistantMessage)
    contents = [TextContent(message.content)] if message.content else []
    contents += [
        FunctionCallContent(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ()
    ]
    return Message(Role.ASSISTANT, contents, message_id=message.id) if contents else None


def _contents(content: str | list[ContentPart], path: str) -> list[Content]:
    if isinstance(content, str):
        return [TextContent(content)]
    return [read_part(part, f"{path}/content/{position}") for position, part in enumerate(content)]


def read_part(part: ContentPart, path: str = "") -> Content:
    """A part of a message as an agent's content. Raises `InputRejected` for data that is not Base64."""
    if isinstance(part, TextPart):
        return TextContent(part.text)
    source = part.source
    if isinstance(source, DataSource):
        try:
            return DataContent(base64.b64decode(source.value, validate=True), source.mime_type)
        except (binascii.Error, ValueError):
            raise InputRejected(f"{path}/source/value: not Base64", path=f"{path}/source/value") from None
    return UriContent(source.value, None if source.mime_type is UNSET else source.mime_type)
