"""The compatibility boundary: shapes the protocol has retired become what replaced them (rules section 8).

Always on for what comes in and what goes out, triggered by the shape itself: `THINKING_*` events, `binary` parts, and
the nulls that old producers sent for absent members. Toward a peer known to be old, material it cannot read is taken
away. Every translation warns, and every loss says what was lost. Nothing handed in is changed.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from accord.consumer.deviation import Deviation
from accord.protocol import (
    AssistantMessage,
    Event,
    Message,
    MessagesSnapshotEvent,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentStartedEvent,
    TextPart,
    ToolMessage,
    UserMessage,
    parse_peer,
)
from accord.protocol.values import JSONObject

ShapeT = TypeVar("ShapeT")
Warn = Callable[[Deviation], None]

#: The last versions whose peers lack something: parts of a message's content; subagents.
TEXT_CONTENT_ONLY = (0, 0, 39)
NO_SUBAGENTS = (0, 0, 57)

_MEDIA = ("image", "audio", "video", "document")
_NULLABLE = {
    "RUN_FINISHED": ("result", "outcome"),
    "SUBAGENT_FINISHED": ("result",),
    "TOOL_CALL_START": ("parentMessageId",),
    "TOOL_CALL_CHUNK": ("parentMessageId",),
}


class Boundary:
    """Translates the raw events of one stream; remembers the reasoning span and message it gave ids to."""

    def __init__(self, warn: Warn, *, new_id: Callable[[], str] = lambda: str(uuid.uuid4())) -> None:
        self._warn = warn
        self._new_id = new_id
        self._span: str | None = None
        self._message: str | None = None

    def translate(self, raw: JSONObject, index: int) -> JSONObject:
        """`raw` with retired shapes replaced; the very object when there are none."""
        event_type = raw.get("type")
        if not isinstance(event_type, str):
            return raw

        def lost(path: str, detail: str) -> None:
            self._warn(Deviation("boundary", event_type, path, detail, index))

        for name in ("rawEvent", *_NULLABLE.get(event_type, ())):
            if name in raw and raw[name] is None:
                lost(f"/{name}", f"{name}: null is retired, read as absent")
                raw = {key: value for key, value in raw.items() if key != name}
        if event_type in _THINKING:
            return self._thinking(raw, event_type, lost)
        if event_type == "MESSAGES_SNAPSHOT":
            return _with(raw, "messages", modern_messages(raw.get("messages"), "/messages", lost))
        if event_type == "RUN_STARTED":
            return _with(raw, "input", modern_input(raw.get("input"), "/input", lost))
        return raw

    def _thinking(self, raw: JSONObject, event_type: str, lost: Callable[[str, str], None]) -> JSONObject:
        modern = _THINKING[event_type]
        lost("", f"{event_type} is retired, read as {modern}")
        translated = {**raw, "type": modern}
        if event_type == "THINKING_START":
            self._span = translated["messageId"] = self._new_id()
            if "title" in translated:
                lost("/title", f"the title {translated.pop('title')!r} has no place in {modern} and is lost")
        elif event_type == "THINKING_TEXT_MESSAGE_START":
            self._message = translated["messageId"] = self._new_id()
            translated["role"] = "reasoning"
        elif event_type == "THINKING_END":
            translated["messageId"], self._span = self._known(self._span, event_type, lost), None
        else:
            translated["messageId"] = self._known(self._message, event_type, lost)
            if event_type == "THINKING_TEXT_MESSAGE_END":
                self._message = None
        return translated

    def _known(self, identifier: str | None, event_type: str, lost: Callable[[str, str], None]) -> str:
        if identifier is not None:
            return identifier
        minted = self._new_id()
        lost("", f"{event_type} continues nothing; it is given the id {minted!r}")
        return minted


_THINKING = {
    "THINKING_START": "REASONING_START",
    "THINKING_TEXT_MESSAGE_START": "REASONING_MESSAGE_START",
    "THINKING_TEXT_MESSAGE_CONTENT": "REASONING_MESSAGE_CONTENT",
    "THINKING_TEXT_MESSAGE_END": "REASONING_MESSAGE_END",
    "THINKING_END": "REASONING_END",
}


def modern_input(raw: Any, path: str, lost: Callable[[str, str], None]) -> Any:
    """A raw run input with retired shapes replaced; `path` is where it stands. What is no object is left as it is."""
    if not isinstance(raw, dict):
        return raw
    if "forwardedProps" in raw and raw["forwardedProps"] is None:
        lost(f"{path}/forwardedProps", "forwardedProps: null is retired, read as absent")
        raw = {key: value for key, value in raw.items() if key != "forwardedProps"}
    for name, member in (("tools", "parameters"), ("resume", "payload")):
        raw = _with(raw, name, _without_nulls(raw.get(name), member, f"{path}/{name}", lost))
    return _with(raw, "messages", modern_messages(raw.get("messages"), f"{path}/messages", lost))


def modern_messages(raw: Any, path: str, lost: Callable[[str, str], None]) -> Any:
    """A raw list of messages with retired content parts replaced."""
    if not isinstance(raw, list):
        return raw
    messages: list[Any] = []
    for position, message in enumerate(raw):
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list):
            where = f"{path}/{position}/content"
            content = _without_nulls(content, "metadata", where, lost, only=_MEDIA)
            message = _with(message, "content", _modern_parts(content, where, lost))
        messages.append(message)
    return raw if all(new is old for new, old in zip(messages, raw, strict=True)) else messages


def _modern_parts(parts: list[Any], path: str, lost: Callable[[str, str], None]) -> list[Any]:
    if not any(_is_binary(part) for part in parts):
        return parts
    modern: list[Any] = []
    for position, part in enumerate(parts):
        where = f"{path}/{position}"
        if not _is_binary(part):
            modern.append(part)
            continue
        converted = _modern_part(part)
        if converted is None:
            lost(where, "a binary part with neither data nor url cannot be read as a media part")
            modern.append(part)
        elif any(_same_media(converted, other) for other in parts):
            lost(where, f"a binary part repeats an {converted['type']} part of the message and is left out")
        else:
            lost(where, f"a binary part is retired, read as {converted['type']}")
            if part.get("id"):
                lost(f"{where}/id", f"the id {part['id']!r} of a binary part is lost")
            modern.append(converted)
    return modern


def _is_binary(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "binary" and isinstance(part.get("mimeType"), str)


def _modern_part(part: JSONObject) -> JSONObject | None:
    media_type: str = part["mimeType"]
    for source in ("data", "url"):
        if part.get(source):
            break
    else:
        return None
    family = media_type.split("/", 1)[0] if "/" in media_type else ""
    converted: JSONObject = {
        "type": family if family in _MEDIA[:3] else "document",
        "source": {"type": source, "value": part[source], "mimeType": media_type},
    }
    if part.get("filename"):
        converted["metadata"] = {"filename": part["filename"]}
    return converted


def _same_media(converted: JSONObject, other: Any) -> bool:
    if not isinstance(other, dict) or other.get("type") != converted["type"]:
        return False
    if other.get("source") != converted["source"]:
        return False
    metadata = other.get("metadata")
    return "metadata" not in converted or (
        isinstance(metadata, dict) and metadata.get("filename") == converted["metadata"]["filename"]
    )


def _without_nulls(
    raw: Any, name: str, path: str, lost: Callable[[str, str], None], *, only: tuple[str, ...] = ()
) -> Any:
    """A raw list whose elements lose a member `name` that is null; with `only`, elements of these types."""
    if not isinstance(raw, list):
        return raw
    kept: list[Any] = []
    for position, each in enumerate(raw):
        if isinstance(each, dict) and name in each and each[name] is None and (not only or each.get("type") in only):
            lost(f"{path}/{position}/{name}", f"{name}: null is retired, read as absent")
            each = {key: value for key, value in each.items() if key != name}
        kept.append(each)
    return raw if all(new is old for new, old in zip(kept, raw, strict=True)) else kept


def _with(raw: JSONObject, name: str, value: Any) -> JSONObject:
    return raw if raw.get(name) is value else {**raw, name: value}


# Toward a peer known to be old


def lacks(peer_version: str | None, last: tuple[int, int, int]) -> bool:
    """Whether the peer is known to be of the version `last` or older."""
    return peer_version is not None and parse_peer(peer_version) <= last


def downgrade_input(run_input: RunAgentInput, peer_version: str | None, warn: Warn) -> RunAgentInput:
    """What an old peer can read of `run_input`; a new value, the same when nothing is lost."""

    def lost(path: str, detail: str) -> None:
        warn(Deviation("boundary", "RunAgentInput", path, detail))

    if lacks(peer_version, NO_SUBAGENTS):
        messages: list[Message] = []
        for position, message in enumerate(run_input.messages):
            if message.subagent_run_id is not UNSET:
                lost(f"/messages/{position}/subagentRunId", "the peer knows no subagents; the attribution is lost")
            messages.append(_untagged(message))
        run_input = msgspec.structs.replace(run_input, messages=messages)
    if lacks(peer_version, TEXT_CONTENT_ONLY):
        if run_input.parent_run_id is not UNSET:
            lost("/parentRunId", "the peer knows no parent runs; the link is lost")
        messages = [_flattened(message, position, lost) for position, message in enumerate(run_input.messages)]
        run_input = msgspec.structs.replace(run_input, messages=messages, parent_run_id=UNSET)
    return run_input


def _flattened(message: Message, position: int, lost: Callable[[str, str], None]) -> Message:
    if isinstance(message, AssistantMessage) and message.content is UNSET:
        return msgspec.structs.replace(message, content="")
    if not isinstance(message, UserMessage | ToolMessage) or isinstance(message.content, str):
        return message
    dropped = [part for part in message.content if not isinstance(part, TextPart)]
    if dropped:
        kinds = ", ".join(str(part.__struct_config__.tag) for part in dropped)
        lost(f"/messages/{position}/content", f"the peer reads text only: DROPS non-text parts ({kinds})")
    text = "".join(part.text for part in message.content if isinstance(part, TextPart))
    return msgspec.structs.replace(message, content=text)


def ignore_subagents(event: Event, warn: Warn, index: int) -> Event | None:
    """An event of a peer too old to know subagents: without attribution, or None when it is about one."""

    def lost(path: str, detail: str) -> None:
        warn(Deviation("boundary", event.type, path, f"the peer is too old to know subagents, {detail}", index))

    def untagged(shapes: list[ShapeT], path: str) -> list[ShapeT]:
        for position, shape in enumerate(shapes):
            if _is_tagged(shape):
                lost(f"{path}/{position}/subagentRunId", "attribution lost")
        return [_untagged(shape) for shape in shapes]

    if isinstance(event, SubagentStartedEvent | SubagentFinishedEvent | SubagentErrorEvent):
        lost("", "event dropped")
        return None
    if isinstance(event, MessagesSnapshotEvent):
        return msgspec.structs.replace(event, messages=untagged(event.messages, "/messages"))
    if isinstance(event, RunStartedEvent):
        if event.input is UNSET:
            return event
        messages = untagged(event.input.messages, "/input/messages")
        return msgspec.structs.replace(event, input=msgspec.structs.replace(event.input, messages=messages))
    if isinstance(event, RunFinishedEvent):
        if not isinstance(event.outcome, RunFinishedInterruptOutcome):
            return event
        interrupts = untagged(event.outcome.interrupts, "/outcome/interrupts")
        return msgspec.structs.replace(event, outcome=RunFinishedInterruptOutcome(interrupts=interrupts))
    if _is_tagged(event):
        lost("/subagentRunId", "attribution lost")
    return _untagged(event)


def _is_tagged(shape: object) -> bool:
    return getattr(shape, "subagent_run_id", UNSET) is not UNSET


def _untagged(shape: ShapeT) -> ShapeT:
    if not _is_tagged(shape):
        return shape
    return msgspec.structs.replace(shape, subagent_run_id=UNSET)  # type: ignore[type-var]
