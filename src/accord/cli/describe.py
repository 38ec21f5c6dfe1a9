"""What an event or a message says, for people: members and material in a line, shortened, safe to print."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import UNSET

from accord.cli.visible import one_line, visible
from accord.protocol import ActivityMessage, AssistantMessage, ContentPart, Event, Message, TextPart, ToolMessage
from accord.protocol.patch import PatchOperation

_LIMIT: Final = 90  # terminal cells
#: Members that say nothing of what happened.
_PASSED_OVER: Final = frozenset({"timestamp", "raw_event"})
#: Text that is quoted, so that its spaces show; every other string is an id or a name.
_QUOTED: Final = frozenset({"delta", "content", "message", "encrypted_value"})


def describe_event(event: Event) -> str:
    """The event's members by their wire names: `messageId=m1 delta="Hello"`; operations as `op path value`."""
    members = zip(event.__struct_fields__, event.__struct_encode_fields__, strict=True)
    said = []
    for attribute, wire_name in members:
        value = getattr(event, attribute)
        if value is not UNSET and attribute not in _PASSED_OVER:
            said.append(f"{wire_name}={_short(value, quoted=attribute in _QUOTED)}")
    return one_line(" ".join(said), _LIMIT)


def describe_message(message: Message) -> Iterator[str]:
    """The lines of a message: who says it, what it says, the calls it asks for."""
    role = str(message.__struct_config__.tag)
    about = f" ({one_line(message.tool_call_id)})" if isinstance(message, ToolMessage) else ""
    if isinstance(message, ActivityMessage):
        yield f"activity {one_line(message.activity_type)}: {_short(message.content)}"
        return
    first, *rest = visible(content_text(message.content)).split("\n")
    yield f"{role}{about}: {first}".rstrip()
    yield from (f"  {line}" for line in rest)
    if isinstance(message, AssistantMessage):
        for call in message.tool_calls or ():
            yield f"  calls {one_line(call.function.name)}({one_line(call.function.arguments)})"
    if isinstance(message, ToolMessage) and message.error is not UNSET:
        yield f"  error: {one_line(message.error)}"


def content_text(content: Any) -> str:
    """A message's content as text, parts that are none by what they are: `[image]`."""
    if isinstance(content, list):
        return "".join(_part_text(part) for part in content)
    return "" if content is UNSET else str(content)


def _part_text(part: ContentPart) -> str:
    return part.text if isinstance(part, TextPart) else f"[{part.__struct_config__.tag}]"


def _short(value: Any, *, quoted: bool = False) -> str:
    if isinstance(value, str) and not quoted:
        return one_line(value, _LIMIT)
    if isinstance(value, list) and value and all(isinstance(each, PatchOperation) for each in value):
        return f"[{'; '.join(map(_operation, value))}]"
    plain = msgspec.to_builtins(value)
    return one_line(json.dumps(plain, ensure_ascii=False), _LIMIT)


def _operation(operation: Any) -> str:
    words = [operation.op, operation.path or "(root)"]
    if hasattr(operation, "from_"):
        words.append(f"from {operation.from_ or '(root)'}")
    if hasattr(operation, "value"):
        words.append(_short(operation.value, quoted=True))
    return " ".join(words)
