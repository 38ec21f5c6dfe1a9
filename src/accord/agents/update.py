"""A piece of an answer, as it streams. Immutable."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from accord.agents.content import Content, as_contents, text_of
from accord.agents.message import Role


@dataclass(frozen=True, slots=True, init=False)
class AgentResponseUpdate:
    """Contents that came together; each may be a fragment. Updates of one message share its `message_id`.

    `finish_reason` comes with the last update of a model's answer: `stop`, `tool_calls`, `length`,
    `content_filter`, or a word of the model server's own.
    """

    contents: tuple[Content, ...]
    role: Role
    message_id: str | None
    author_name: str | None
    finish_reason: str | None
    response_id: str | None

    def __init__(
        self,
        contents: str | Content | Iterable[str | Content] = (),
        role: Role = Role.ASSISTANT,
        message_id: str | None = None,
        author_name: str | None = None,
        finish_reason: str | None = None,
        response_id: str | None = None,
    ) -> None:
        object.__setattr__(self, "contents", as_contents(contents))
        object.__setattr__(self, "role", role)
        object.__setattr__(self, "message_id", message_id)
        object.__setattr__(self, "author_name", author_name)
        object.__setattr__(self, "finish_reason", finish_reason)
        object.__setattr__(self, "response_id", response_id)

    @property
    def text(self) -> str:
        """The text in this update: `""` for one that has none."""
        return text_of(self.contents)
