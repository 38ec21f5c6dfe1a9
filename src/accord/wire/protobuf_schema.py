"""`agui.proto` as tables, read from its generated module: the only place where field numbers are known.

The codec beside it is driven by these tables and not by the generated classes, because those cannot keep the rules: the
runtime refuses messages nested deeper than 100, which in a `Value` is 33 objects, where an event gets one verdict on
both wires (rules section 2); it forgets the order of an object's members; and of two arms of a oneof it shows the last.
Tests hold the codec against the generated classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from google.protobuf import descriptor_pb2

from accord.wire import agui_pb2
from accord.wire.protobuf_fields import DELIMITED, VARINT

Kind = Literal["string", "bool", "int64", "enum", "message", "value", "struct"]


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its JSON name, its number and what it holds; `of` names the message or enum.

    An `explicit` field may be absent; any other that is not repeated has its type's empty value when it is not sent.
    """

    name: str
    number: int
    kind: Kind
    of: str
    repeated: bool
    explicit: bool

    @property
    def tag(self) -> int:
        """What stands before the field's value on the wire: number and wire type."""
        return self.number << 3 | (VARINT if self.kind in ("bool", "int64", "enum") else DELIMITED)


@dataclass(frozen=True, slots=True)
class Message:
    """One message: its fields by ascending number. In a `union` all of them are arms of one oneof."""

    name: str
    fields: tuple[Field, ...]
    union: bool


def _kind(field: Any) -> Kind:
    kinds: dict[int, Kind] = {
        descriptor_pb2.FieldDescriptorProto.TYPE_STRING: "string",
        descriptor_pb2.FieldDescriptorProto.TYPE_BOOL: "bool",
        descriptor_pb2.FieldDescriptorProto.TYPE_INT64: "int64",
        descriptor_pb2.FieldDescriptorProto.TYPE_ENUM: "enum",
        descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE: "message",
    }
    open_kinds: dict[str, Kind] = {".google.protobuf.Value": "value", ".google.protobuf.Struct": "struct"}
    return open_kinds.get(field.type_name) or kinds[field.type]


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)


def _field(field: Any) -> Field:
    return Field(
        name=_camel(field.name),
        number=field.number,
        kind=_kind(field),
        of=field.type_name.removeprefix(".ag_ui."),
        repeated=field.label == descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED,
        explicit=field.HasField("oneof_index") or field.type == descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE,
    )


def _messages(found: Iterable[Any], within: str = "") -> Iterable[Message]:
    for each in found:
        fields = sorted(map(_field, each.field), key=lambda field: field.number)
        union = bool(each.oneof_decl) and not any(field.proto3_optional for field in each.field)
        yield Message(within + each.name, tuple(fields), union)
        yield from _messages(each.nested_type, f"{within}{each.name}.")


_FILE: Final = descriptor_pb2.FileDescriptorProto.FromString(agui_pb2.DESCRIPTOR.serialized_pb)

#: Every message by its name in `agui.proto`; a nested one is `Outer.Inner`.
MESSAGES: Final[Mapping[str, Message]] = {each.name: each for each in _messages(_FILE.message_type)}
#: The numbers of every enum's values, by the enum's name and the value's.
ENUMS: Final[Mapping[str, Mapping[str, int]]] = {
    each.name: {value.name: value.number for value in each.value} for each in _FILE.enum_type
}
