"""A piece of an answer, as it streams. Immutable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import force_setattr

from accord.agents.content import Content, as_contents, text_of
from accord.agents.message import Role


class AgentResponseUpdate(msgspec.Struct, frozen=True):
    """Contents that came together; each may be a fragment. Updates of one message share its `message_id`.

    `finish_reason` comes with the last update of a model's answer: `stop`, `tool_calls`, `length`,
    `content_filter`, or a word of the model server's own. `msgspec.structs.replace` makes a changed one.
    """

    contents: tuple[Content, ...] = ()
    role: Role = Role.ASSISTANT
    message_id: str | None = None
    author_name: str | None = None
    finish_reason: str | None = None
    response_id: str | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            contents: str | Content | Iterable[str | Content] = (),
            role: Role = Role.ASSISTANT,
            message_id: str | None = None,
            author_name: str | None = None,
            finish_reason: str | None = None,
            response_id: str | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        contents = self.contents
        if type(contents) is tuple:
            for content in contents:
                if not isinstance(content, Content):
                    break
            else:
                return
        force_setattr(self, "contents", as_contents(contents))

    @property
    def text(self) -> str:
        """The text in this update: `""` for one that has none."""
        return text_of(self.contents)
