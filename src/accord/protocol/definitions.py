"""The shapes read back as tables, so that whoever judges a value needs no second schema.

`definition(UserMessage)` tells each member's wire name, whether it is required and what kind of value is due. The
tables are made from the struct classes themselves, once, on first use.
"""

from __future__ import annotations

import inspect as python_inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from accord.protocol import capabilities, content, events, messages, outcomes, patch, run_input, usage, values
from accord.protocol.values import JSON, JsonPointer, NonNull


@dataclass(frozen=True, slots=True)
class Opaque:
    """Any JSON value, never looked into; `nullable` tells whether it may be `null` as a whole."""

    nullable: bool


@dataclass(frozen=True, slots=True)
class OpenObject:
    """A JSON object whose members nobody describes."""


@dataclass(frozen=True, slots=True)
class Text:
    """Any string; with `pointer`, a JSON Pointer."""

    pointer: bool = False


@dataclass(frozen=True, slots=True)
class Boolean:
    """`true` or `false`."""


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer in a range."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a closed set of strings. A set of one is a constant: another string in its place is malformed, not new."""

    choices: frozenset[str]


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list of one kind of element."""

    element: Kind
    least: int = 0


@dataclass(frozen=True, slots=True)
class TextOrSequence:
    """A string, or a list."""

    sequence: Sequence


@dataclass(frozen=True, slots=True)
class Object:
    """One described object."""

    struct: type[msgspec.Struct]


@dataclass(frozen=True, slots=True)
class Variant:
    """A union of described objects, told apart by the string under `discriminator`."""

    discriminator: str
    members: Mapping[str, type[msgspec.Struct]] = field(hash=False)


Kind = Opaque | OpenObject | Text | Boolean | Integer | Choice | Sequence | TextOrSequence | Object | Variant


@dataclass(frozen=True, slots=True)
class Member:
    """One described member: its attribute's name, whether it must be there, and what is due."""

    attribute: str
    required: bool
    kind: Kind


@dataclass(frozen=True, slots=True)
class Definition:
    """One described object: its constant discriminator if it has one, its members by wire name, and whether it is open
    (members that are not described are kept)."""

    name: str
    struct: type[msgspec.Struct]
    tag: tuple[str, str] | None
    members: Mapping[str, Member]
    open: bool


@cache
def definition(struct: type[msgspec.Struct]) -> Definition:
    """The table of a struct class of this package."""
    config = struct.__struct_config__
    hints = get_type_hints(struct, include_extras=True)
    members = {
        wire_name: Member(attribute, default is msgspec.NODEFAULT, _kind(hints[attribute]))
        for attribute, wire_name, default in zip(
            struct.__struct_fields__, struct.__struct_encode_fields__, _defaults(struct), strict=True
        )
        if wire_name != patch.EXTRA
    }
    tag = (config.tag_field, str(config.tag)) if config.tag_field is not None else None
    return Definition(struct.__name__, struct, tag, members, issubclass(struct, patch.PatchOperation))


@cache
def definitions() -> Mapping[str, Definition]:
    """Every described object by its name in the protocol's schema, such as `UserMessage`."""
    found: dict[str, Definition] = {}
    for module in (content, messages, patch, usage, outcomes, run_input, capabilities, events):
        for name, struct in python_inspect.getmembers(module, python_inspect.isclass):
            abstract = struct.__subclasses__() or struct in (values.Shape, values.Identified)
            if issubclass(struct, msgspec.Struct) and not abstract:
                found[name] = definition(struct)
    return found


def _defaults(struct: type[msgspec.Struct]) -> tuple[Any, ...]:
    return tuple(entry.default for entry in msgspec.structs.fields(struct))


def _kind(hint: Any) -> Kind:
    """What a member's annotation asks for; absence is told by the default, so `UnsetType` is left out."""
    alternatives = [each for each in _alternatives(hint) if each is not msgspec.UnsetType]
    if set(alternatives) == set(get_args(NonNull)):
        return Opaque(nullable=False)
    if len(alternatives) == 1:
        return _single(alternatives[0])
    if alternatives[0] is str:
        sequence = _single(alternatives[1])
        assert isinstance(sequence, Sequence)
        return TextOrSequence(sequence)
    members = {str(each.__struct_config__.tag): each for each in alternatives}
    return Variant(alternatives[0].__struct_config__.tag_field, members)


def _single(hint: Any) -> Kind:
    if hint is JSON:
        return Opaque(nullable=True)
    if hint is JsonPointer:
        return Text(pointer=True)
    if hint is str:
        return Text()
    if hint is bool:
        return Boolean()
    origin = get_origin(hint)
    if origin is Annotated:
        bounds: msgspec.Meta = hint.__metadata__[0]
        if hint.__origin__ is int:
            assert isinstance(bounds.ge, int)
            assert isinstance(bounds.le, int)
            return Integer(bounds.ge, bounds.le)
        return Sequence(_kind(get_args(hint.__origin__)[0]), bounds.min_length or 0)
    if origin is Literal:
        return Choice(frozenset(get_args(hint)))
    if origin is list:
        return Sequence(_kind(get_args(hint)[0]))
    if origin is dict:
        return OpenObject()
    return Object(hint)


def _alternatives(hint: Any) -> list[Any]:
    if get_origin(hint) in (Union, UnionType):
        return [each for part in get_args(hint) for each in _alternatives(part)]
    return [hint]
