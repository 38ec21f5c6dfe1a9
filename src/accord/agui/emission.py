"""An agent's updates as a run's events: a text message, reasoning and calls for each answer of the model.

Items open when their first piece comes and close when the answer is over, whichever way it ends. Pieces of parallel
calls may interleave, also with those of another message; each call has its own start, arguments and end. A message id
that the thread has already is given to no other message.

An agent may itself be asking an AG-UI server: of that server's run, changes of the state, custom and raw events,
activities and steps are this run's as well. The rest of what frames and records a run there (its beginning, snapshots
of its messages, its subagents, its sealed reasoning) is about that run alone and is passed over.
"""

from __future__ import annotations

import base64
import logging
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET

from accord.agents import (
    AgentResponseUpdate,
    Content,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    ReasoningContent,
    Role,
    TextContent,
    UriContent,
    Usage,
    UsageContent,
)
from accord.agui.event_content import AGUIEventContent, StateDeltaContent
from accord.errors import EncodingError, LimitExceeded, PatchError, ProtocolViolation
from accord.producer import Reasoning, Run, TextMessage, ToolCallItem
from accord.protocol import (
    MAX_SAFE_INTEGER,
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    AudioPart,
    ContentPart,
    CustomEvent,
    DataSource,
    DocumentPart,
    Event,
    ImagePart,
    PartSource,
    RawEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextPart,
    TokenUsage,
    UrlSource,
    VideoPart,
    conform,
)

_logger = logging.getLogger("accord")

JSON_MEDIA_TYPE = "application/json"

_NAMELESS = "unknown"

_PASSED_ON: dict[str, type[Event]] = {
    str(struct.__struct_config__.tag): struct
    for struct in (
        ActivityDeltaEvent,
        ActivitySnapshotEvent,
        CustomEvent,
        RawEvent,
        StepFinishedEvent,
        StepStartedEvent,
    )
}


class Emission:
    """Emits the updates of one agent's run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._message_id: str | None = None
        self._taken = {message.id for message in run.input.messages}
        self._named: dict[str, str] = {}  # the id that stands for the one that the model gave its message
        self._text: TextMessage | None = None
        self._reasoning: Reasoning | None = None
        self._calls: dict[str, ToolCallItem] = {}
        self._nameless: dict[str, list[str]] = {}
        #: What the interface is shown of a call's result, where it is not what the model reads.
        self.interface_results: dict[str, str] = {}

    def content(self, update: AgentResponseUpdate, content: Content) -> None:
        """Emits one content of an update. A result ends its call; others may still be written."""
        if isinstance(content, StateDeltaContent):
            self._patch(content)
            return
        if isinstance(content, AGUIEventContent):
            self._pass_on(content.event)
            return
        if update.role is Role.ASSISTANT and update.message_id != self._message_id:
            self._end_text()
            self._message_id = update.message_id
        match content:
            case TextContent(text=text):
                self._write(text)
            case ErrorContent(message=message, code=code):
                if code != "refusal":  # a refusal has been streamed as text
                    self._write(message)
            case ReasoningContent():
                self._think(content)
            case FunctionCallContent():
                self._call(content)
            case FunctionResultContent():
                self._end_text()
                self._end_call(content.call_id)
                shown = self.interface_results.pop(content.call_id, None) or result_for_interface(content)
                message_id = None if update.message_id in self._taken else update.message_id
                self._taken.add(self._run.tool_result(content.call_id, shown, message_id=message_id))
            case UsageContent(usage=usage):
                self._run.usage(token_usage(usage))
            case DataContent(data=data, media_type=media_type):
                value = {"mediaType": media_type, "data": base64.b64encode(data).decode()}
                self._run.custom("content", {"type": "data", **value})
            case UriContent(uri=uri, media_type=media_type):
                self._run.custom("content", {"type": "uri", "uri": uri, "mediaType": media_type})

    def end_answer(self) -> None:
        """Closes what the model's answer opened.

        A call that never got a name is announced all the same: there will be a result of it.
        """
        self._end_text()
        for call_id in [*self._calls, *self._nameless]:
            self._end_call(call_id)

    def _end_call(self, call_id: str) -> None:
        pieces = self._nameless.pop(call_id, None)
        if pieces is not None:
            self._open_call(call_id, _NAMELESS, pieces)
        call = self._calls.pop(call_id, None)
        if call is not None:
            call.end()

    def _end_text(self) -> None:
        self._end_reasoning()
        if self._text is not None:
            self._text.end()
            self._text = None

    def _end_reasoning(self) -> None:
        if self._reasoning is not None:
            self._reasoning.end()
            self._reasoning = None

    def _name(self) -> str | None:
        """The id of the message that the model writes; None where it has none."""
        given = self._message_id
        if given is None:
            return None
        name = self._named.get(given)
        if name is None:
            name = self._named[given] = str(uuid.uuid4()) if given in self._taken else given
            self._taken.add(name)
        return name

    def _write(self, text: str) -> None:
        if not text:
            return
        self._end_reasoning()
        if self._text is None:
            self._text = self._run.text(self._name())
        self._text.write(text)

    def _think(self, content: ReasoningContent) -> None:
        if self._reasoning is None:
            self._reasoning = self._run.reasoning()
        self._reasoning.write(content.text)
        if content.encrypted_value is not None:
            self._reasoning.seal(content.encrypted_value)
            self._end_reasoning()

    def _call(self, content: FunctionCallContent) -> None:
        call = self._calls.get(content.call_id)
        if call is None:
            waiting = self._nameless.setdefault(content.call_id, [])
            waiting.append(content.arguments)
            if not content.name:
                return
            self._open_call(content.call_id, content.name, self._nameless.pop(content.call_id))
        else:
            call.write(content.arguments)

    def _open_call(self, call_id: str, name: str, pieces: Sequence[str]) -> None:
        self._end_reasoning()
        call = self._run.tool_call(name, call_id, parent_message_id=self._name() or UNSET)
        self._calls[call_id] = call
        for text in pieces:
            call.write(text)

    def _patch(self, content: StateDeltaContent) -> None:
        """A change of the server's state. The server's state need not have begun as this run's: what does not fit is
        left out, as every consumer of a stream does it."""
        try:
            self._run.state.patch(content.delta)
        except PatchError as error:
            _logger.warning("run %r: a change of the model's state does not fit: %s", self._run.run_id, error)

    def _pass_on(self, raw: Mapping[str, Any]) -> None:
        struct = _PASSED_ON.get(str(raw.get("type")))
        if struct is None:
            return
        try:
            # Nobody has heard of the server's subagents here.
            event, _ = conform({name: value for name, value in raw.items() if name != "subagentRunId"}, struct)
            if event is not None:
                self._run.emit(event)
        except (ProtocolViolation, EncodingError, LimitExceeded) as error:
            _logger.warning("run %r: an event of the model's server is left out: %s", self._run.run_id, error)


def result_for_interface(content: FunctionResultContent) -> str | list[ContentPart]:
    """A call's result as the tool message's content: text, or parts where the tool answered with media."""
    parts = content.contents
    if content.error is not None:
        return f"Error: {content.error}"
    if not any(isinstance(part, DataContent | UriContent) for part in parts):
        return content.text
    return [content_part(part) for part in parts]


def token_usage(usage: Usage) -> TokenUsage:
    """An agent's token counts in the protocol's shape."""
    entries = {name: getattr(usage, name) for name in TokenUsage.__struct_fields__}
    reported = {name: UNSET if entry is None else entry for name, entry in entries.items()}
    for name, count in reported.items():
        if (
            name.endswith("_tokens")
            and count is not UNSET
            and not (type(count) is int and 0 <= count <= MAX_SAFE_INTEGER)
        ):
            _logger.warning("a model server reports %s as %r, which is no count; it is left out", name, count)
            reported[name] = UNSET
    return TokenUsage(**reported)


_MEDIA: dict[str, type[ImagePart | AudioPart | VideoPart]] = {
    "image": ImagePart,
    "audio": AudioPart,
    "video": VideoPart,
}


def content_part(content: Content) -> ContentPart:
    """A content as a part of a message: text, or media by its type."""
    source: PartSource
    if isinstance(content, DataContent):
        media_type = content.media_type
        source = DataSource(value=base64.b64encode(content.data).decode(), mime_type=media_type)
    elif isinstance(content, UriContent):
        media_type = content.media_type or ""
        source = UrlSource(value=content.uri, mime_type=media_type or UNSET)
    else:
        return TextPart(text=content.text if isinstance(content, TextContent) else str(content))
    return _MEDIA.get(media_type.split("/", 1)[0], DocumentPart)(source=source)
