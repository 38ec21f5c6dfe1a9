"""One entry of a conversation: who says it, and what it is made of. Immutable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from accord.agents.content import Content, FunctionCallContent, as_contents, text_of
from accord.agents.errors import MessageError


class Role(StrEnum):
    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True, init=False)
class Message:
    """`Message("user", "Hello")`, or with several contents `Message("user", ["What is this?", DataContent(...)])`."""

    role: Role
    contents: tuple[Content, ...]
    message_id: str | None
    author_name: str | None
    metadata: Mapping[str, Any]

    def __init__(
        self,
        role: Role | str,
        contents: str | Content | Iterable[str | Content] = (),
        *,
        message_id: str | None = None,
        author_name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        try:
            role = Role(role)
        except ValueError:
            raise MessageError(f"role: {role!r} is none of {', '.join(Role)}") from None
        object.__setattr__(self, "role", role)
        object.__setattr__(self, "contents", as_contents(contents))
        object.__setattr__(self, "message_id", message_id)
        object.__setattr__(self, "author_name", author_name)
        object.__setattr__(self, "metadata", dict(metadata or {}))

    @property
    def text(self) -> str:
        """All text of the message."""
        return text_of(self.contents)

    @property
    def function_calls(self) -> list[FunctionCallContent]:
        """The calls in the message, in order."""
        return [content for content in self.contents if isinstance(content, FunctionCallContent)]


MessagesInput = str | Message | Iterable["str | Message"]


def as_messages(value: MessagesInput) -> list[Message]:
    """A conversation from a text (said by the user), a message, or several of either. Raises `MessageError`."""
    if isinstance(value, str):
        return [Message(Role.USER, value)]
    if isinstance(value, Message):
        return [value]
    return [_as_message(item, index) for index, item in enumerate(value)]


def _as_message(item: object, index: int) -> Message:
    if isinstance(item, str):
        return Message(Role.USER, item)
    if isinstance(item, Message):
        return item
    raise MessageError(f"messages[{index}]: a text or a Message is needed, not {type(item).__name__}")
