"""Messages to the raw values they stand for, whatever message of `agui.proto` it is.

Members get their JSON names. A field that is not sent is absent where the message can tell, else its type's empty
value; a message sent twice in one place is merged, as protobuf has it. What a message means beyond its fields (a role
chooses where content stands, an arm is a part's type, an operation's number is its name) is put right once it is read.

Nothing is judged that enforcement can judge: a role, operation, outcome or part that this version does not know is
handed on under a name that none describes, and taken away there, with a warning and a path, as it is over JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, get_args

from accord.protocol import JSONObject
from accord.protocol import Message as AnyMessage
from accord.protocol.definitions import OpenObject, TextOrSequence, definition
from accord.wire.protobuf_fields import Span, joined, signed, violation, walk
from accord.wire.protobuf_schema import ENUMS, MESSAGES, Field
from accord.wire.protobuf_value import ABSENT, decode_struct, decode_value

#: The type of a part or source in an arm that this version does not know.
UNKNOWN_ARM: Final = "(unknown arm)"

#: `data[start:end]`, or a number and where it ends, to a value; the last argument is `max_depth`.
ReadField = Callable[[bytes, int, int, int], Any]
#: What several occurrences make together.
ReadMerged = Callable[[bytes, Sequence[Span], int], Any]


@cache
def message_reader(name: str) -> ReadField:
    """What reads a message of `agui.proto`; it raises `ProtocolViolation`, `UnicodeDecodeError` or `IndexError`."""
    message = MESSAGES[name]
    fields = {field.tag: (field.name, field.repeated, _read_one(field)) for field in message.fields}
    merged = {field.name: _merged(field) for field in message.fields if _read_one(field) is None}
    empty = {field.name: _EMPTY[field.kind] for field in message.fields if not field.explicit and not field.repeated}
    lists = tuple(field.name for field in message.fields if field.repeated)
    finish = _union if message.union else _FINISH.get(name)

    def read(data: bytes, start: int, end: int, max_depth: int) -> Any:
        found: JSONObject = empty.copy()
        for name in lists:
            found[name] = []
        spans: dict[str, list[Span]] = {}
        for tag, first, last in walk(data, start, end):
            field = fields.get(tag)
            if field is None:
                continue
            name, repeated, read_one = field
            if read_one is None:
                if name in spans:
                    spans[name].append((first, last))
                else:
                    spans[name] = [(first, last)]
            elif repeated:
                found[name].append(read_one(data, first, last, max_depth))
            else:
                found[name] = read_one(data, first, last, max_depth)
        for name, occurrences in spans.items():
            value = merged[name](data, occurrences, max_depth)
            if value is not ABSENT:
                found[name] = value
        return found if finish is None else finish(found)

    return read


# Fields, by what they hold


def _text(data: bytes, start: int, end: int, max_depth: int) -> str:
    return str(data[start:end], "utf-8")


_READERS: Final[dict[str, ReadField]] = {
    "string": _text,
    "bool": lambda data, number, end, max_depth: number != 0,
    "int64": lambda data, number, end, max_depth: signed(number, 64),
    "enum": lambda data, number, end, max_depth: signed(number, 32),
}
_EMPTY: Final[dict[str, Any]] = {"string": "", "enum": 0}


def _read_one(field: Field) -> ReadField | None:
    """What reads one occurrence of a field; None where all of them are to be merged first."""
    if field.repeated and field.kind == "message":
        return message_reader(field.of)
    return _READERS.get(field.kind)


def _merged(field: Field) -> ReadMerged:
    if field.kind == "value":
        return decode_value
    if field.kind == "struct":
        return decode_struct
    if field.of == "BaseEvent":
        return _base_event
    read = message_reader(field.of)

    def read_merged(data: bytes, spans: Sequence[Span], max_depth: int) -> Any:
        data, start, end = joined(data, spans)
        return read(data, start, end, max_depth)

    return read_merged


def _base_event(data: bytes, spans: Sequence[Span], max_depth: int) -> JSONObject:
    """Most hold nothing but a type; those are made once."""
    data, start, end = joined(data, spans)
    plain = _PLAIN.get(data[start:end]) if end - start <= 2 else None
    if plain is None:
        plain = message_reader("BaseEvent")(data, start, end, max_depth)
    return plain


# What a message means beyond its fields


def _union(found: JSONObject) -> JSONObject:
    """The one arm is the type of what it holds."""
    if len(found) > 1:
        raise violation("several-arms", f"one value is given as {' and as '.join(found)}")
    for arm, members in found.items():
        return {"type": arm, **members}
    return {"type": UNKNOWN_ARM}


def _operation(found: JSONObject) -> JSONObject:
    found["op"] = _OPERATIONS.get(found["op"]) or str(found["op"])
    return found


def _message(found: JSONObject) -> JSONObject:
    """Content is text, a list of parts or an activity's object, in a field of its own each; the role tells which."""
    if not found["toolCalls"]:
        del found["toolCalls"]
    if not found["contentParts"]:
        del found["contentParts"]
    sent = [name for name in ("content", "contentParts", "activityContent") if name in found]
    if len(sent) > 1:
        raise violation("content", f"a message has {' and '.join(sent)}, which exclude one another")
    due = _CONTENT.get(found["role"])
    if sent and due is not None and sent[0] not in due:
        raise violation("content", f"a message of the role {found['role']} cannot have {sent[0]}")
    if sent:
        found["content"] = found.pop(sent[0])
    elif due is not None and "contentParts" in due:
        found["content"] = []
    return found


def _tool_call_result(found: JSONObject) -> JSONObject:
    parts = found.pop("contentParts")
    if parts and "content" in found:
        raise violation("content", "a tool call's result has content and contentParts, which exclude one another")
    found.setdefault("content", parts)
    return found


def _run_finished(found: JSONObject) -> JSONObject:
    found = _with_outcome(_without_empty_usage(found), "pendingToolCallIds", "interrupts")
    if found.get("outcome", {}).get("type") == "interrupt":
        found["outcome"].setdefault("interrupts", [])
    return found


def _subagent_finished(found: JSONObject) -> JSONObject:
    return _with_outcome(found, "interruptIds")


def _with_outcome(found: JSONObject, *names: str) -> JSONObject:
    """An outcome's members stand beside its name; without a name they belong to nothing, and stay where they are."""
    outcome = found.pop("outcome")
    members = {name: value for name in names if (value := found.pop(name))}
    if outcome:
        found["outcome"] = {"type": outcome, **members}
    else:
        found.update(members)
    return found


def _without_empty_usage(found: JSONObject) -> JSONObject:
    if not found["usage"]:
        del found["usage"]
    return found


_FINISH: Final[dict[str, Callable[[JSONObject], JSONObject]]] = {
    "JsonPatchOperation": _operation,
    "Message": _message,
    "RunErrorEvent": _without_empty_usage,
    "RunFinishedEvent": _run_finished,
    "SubagentFinishedEvent": _subagent_finished,
    "ToolCallResultEvent": _tool_call_result,
}


def _content_fields(kind: object) -> tuple[str, ...]:
    if isinstance(kind, OpenObject):
        return ("activityContent",)
    return ("content", "contentParts") if isinstance(kind, TextOrSequence) else ("content",)


_OPERATIONS: Final = {number: name.lower() for name, number in ENUMS["JsonPatchOperationType"].items()}
_CONTENT: Final = {
    table.tag[1]: _content_fields(table.members["content"].kind)
    for table in map(definition, get_args(AnyMessage))
    if table.tag is not None
}
_PLAIN: Final = {
    (bytes([MESSAGES["BaseEvent"].fields[0].tag, number]) if number else b""): {"type": number}
    for number in ENUMS["EventType"].values()
}
