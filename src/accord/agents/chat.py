"""A model, as an agent sees it: messages in, updates out.

`ChatClient` is all there is to implement for a model that is not supported yet.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, runtime_checkable

from accord.agents.message import Message
from accord.agents.structured import ResponseFormat
from accord.agents.tools import ToolDefinition
from accord.agents.update import AgentResponseUpdate
from accord.sessions import AgentSession


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """How a model is to answer. None leaves a setting to the model.

    `tools` are those it may call. `tool_choice` is `auto`, `none` (it must not call any), `required` (it must call
    one) or the name of the one that it must call. `response_format`: see `structured`. `max_tokens` bounds the
    answer. `extra` goes to the model server as it is. `session` is the run's own, for a client whose service keeps
    something of it; a run sets it.
    """

    tools: Iterable[ToolDefinition] = ()
    tool_choice: str | None = None
    response_format: ResponseFormat | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    model: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    session: AgentSession | None = None

    def over(self, base: ChatOptions) -> ChatOptions:
        """These options, and those of `base` where these say nothing; the tools and extras of both."""
        chosen = {
            item.name: getattr(base if getattr(self, item.name) is None else self, item.name) for item in fields(self)
        }
        chosen["tools"] = (*base.tools, *self.tools)
        chosen["extra"] = {**base.extra, **self.extra}
        return ChatOptions(**chosen)


@runtime_checkable
class ChatClient(Protocol):
    """Something that answers a conversation.

    `stream` gives the answer as it is made. Of each function call, the first fragment names the tool and every
    fragment carries the call's `call_id`. The last update has the `finish_reason`, and usage comes as
    `UsageContent`. An answer that breaks off raises `ChatClientError`; it never just ends. Closing the iterator
    ends the model's work.
    """

    def stream(self, messages: Sequence[Message], options: ChatOptions) -> AsyncIterator[AgentResponseUpdate]: ...
