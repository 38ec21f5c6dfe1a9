"""Values of every described shape in wire form, made from `accord.protocol.definitions`: the smallest, one with every
member, and hypothesis strategies for any."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from accord.protocol import definition
from accord.protocol.definitions import (
    Boolean,
    Choice,
    Integer,
    Kind,
    Object,
    Opaque,
    OpenObject,
    Sequence,
    Text,
    TextOrSequence,
    Variant,
)

Raw = dict[str, Any]

TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
JSON_OBJECTS = st.dictionaries(TEXTS, JSON_VALUES, max_size=3)
POINTERS = st.lists(st.sampled_from(("a", "b", "0", "-", "", "~0", "~1", "é")), max_size=3).map(
    lambda tokens: "".join(f"/{token}" for token in tokens)
)


def smallest(struct: type[msgspec.Struct]) -> Raw:
    """The required members only."""
    return _example(struct, everything=False)


def fullest(struct: type[msgspec.Struct]) -> Raw:
    """Every member, and every member of a union where a list takes several."""
    return _example(struct, everything=True)


def wire(struct: type[msgspec.Struct]) -> st.SearchStrategy[Raw]:
    """Any well-formed value."""
    return st.deferred(lambda: _wire(struct))


def _example(struct: type[msgspec.Struct], *, everything: bool) -> Raw:
    table = definition(struct)
    return {
        **dict((table.tag,) if table.tag else ()),
        **{
            name: _example_of(member.kind, everything=everything)
            for name, member in table.members.items()
            if everything or member.required
        },
    }


def _example_of(kind: Kind, *, everything: bool) -> Any:
    match kind:
        case Opaque():
            return {"any": [1, 1.5, None, "x"]}
        case OpenObject():
            return {"key": None}
        case Text(pointer=pointer):
            return "/a~1b" if pointer else "text"
        case Boolean():
            return True
        case Integer(high=high):
            return high
        case Choice(choices=choices):
            return min(choices)
        case Object(struct=struct):
            return _example(struct, everything=everything)
        case Variant(members=members):
            return _example(next(iter(members.values())), everything=everything)
        case TextOrSequence(sequence=sequence):
            return _example_of(sequence, everything=True) if everything else "text"
        case Sequence(element=element, least=least):
            if not everything:
                return [_example_of(element, everything=False)] * least
            if isinstance(element, Variant):
                return [_example(struct, everything=True) for struct in element.members.values()]
            return [_example_of(element, everything=True)]


def _wire(struct: type[msgspec.Struct]) -> st.SearchStrategy[Raw]:
    table = definition(struct)
    required = {name: _values(member.kind) for name, member in table.members.items() if member.required}
    optional = {name: _values(member.kind) for name, member in table.members.items() if not member.required}
    if table.tag:
        required[table.tag[0]] = st.just(table.tag[1])
    return st.fixed_dictionaries(required, optional=optional)


def _values(kind: Kind) -> st.SearchStrategy[Any]:
    match kind:
        case Opaque(nullable=nullable):
            return JSON_VALUES if nullable else JSON_VALUES.filter(lambda value: value is not None)
        case OpenObject():
            return JSON_OBJECTS
        case Text(pointer=pointer):
            return POINTERS if pointer else TEXTS
        case Boolean():
            return st.booleans()
        case Integer(low=low, high=high):
            return st.integers(low, high)
        case Choice(choices=choices):
            return st.sampled_from(sorted(choices))
        case Object(struct=struct):
            return wire(struct)
        case Variant(members=members):
            return st.one_of([wire(struct) for struct in members.values()])
        case TextOrSequence(sequence=sequence):
            return TEXTS | _values(sequence)
        case Sequence(element=element, least=least):
            return st.lists(_values(element), min_size=least, max_size=max(2, least))
