"""An agent's updates as a run's events: a text message, reasoning and calls for each answer of the model.

Items open when their first piece comes and close when the answer is over, whichever way it ends. Pieces of parallel
calls may interleave; each call has its own start, arguments and end.
"""

from __future__ import annotations

import base64
import logging

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
from accord.producer import Reasoning, Run, TextMessage, ToolCallItem
from accord.protocol import (
    MAX_SAFE_INTEGER,
    AudioPart,
    ContentPart,
    DataSource,
    DocumentPart,
    ImagePart,
    PartSource,
    TextPart,
    TokenUsage,
    UrlSource,
    VideoPart,
)

_logger = logging.getLogger("accord")

JSON_MEDIA_TYPE = "application/json"


class Emission:
    """Emits the updates of one agent's run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._message_id: str | None = None
        self._text: TextMessage | None = None
        self._reasoning: Reasoning | None = None
        self._calls: dict[str, ToolCallItem] = {}
        self._nameless: dict[str, list[str]] = {}
        #: What the interface is shown of a call's result, where it is not what the model reads.
        self.interface_results: dict[str, str] = {}

    def content(self, update: AgentResponseUpdate, content: Content) -> None:
        """Emits one content of an update. Results end the answer that called."""
        if update.role is Role.ASSISTANT and update.message_id != self._message_id:
            self.end_answer()
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
                self.end_answer()
                shown = self.interface_results.pop(content.call_id, None) or result_for_interface(content)
                self._run.tool_result(content.call_id, shown, message_id=update.message_id)
            case UsageContent(usage=usage):
                self._run.usage(token_usage(usage))
            case DataContent(data=data, media_type=media_type):
                value = {"mediaType": media_type, "data": base64.b64encode(data).decode()}
                self._run.custom("content", {"type": "data", **value})
            case UriContent(uri=uri, media_type=media_type):
                self._run.custom("content", {"type": "uri", "uri": uri, "mediaType": media_type})

    def end_answer(self) -> None:
        """Closes what the model's answer opened."""
        for item in (self._reasoning, self._text, *self._calls.values()):
            if item is not None:
                item.end()
        self._reasoning = self._text = None
        self._calls.clear()
        self._nameless.clear()

    def _write(self, text: str) -> None:
        if not text:
            return
        if self._reasoning is not None:
            self._reasoning.end()
            self._reasoning = None
        if self._text is None:
            self._text = self._run.text(self._message_id)
        self._text.write(text)

    def _think(self, content: ReasoningContent) -> None:
        if self._reasoning is None:
            self._reasoning = self._run.reasoning()
        self._reasoning.write(content.text)
        if content.encrypted_value is not None:
            self._reasoning.seal(content.encrypted_value)
            self._reasoning.end()
            self._reasoning = None

    def _call(self, content: FunctionCallContent) -> None:
        call = self._calls.get(content.call_id)
        if call is None:
            waiting = self._nameless.setdefault(content.call_id, [])
            waiting.append(content.arguments)
            if not content.name:
                return
            if self._reasoning is not None:
                self._reasoning.end()
                self._reasoning = None
            call = self._calls[content.call_id] = self._run.tool_call(
                content.name, content.call_id, parent_message_id=self._message_id or UNSET
            )
            for text in self._nameless.pop(content.call_id):
                call.write(text)
        else:
            call.write(content.arguments)


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
