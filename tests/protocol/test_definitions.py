from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from accord.protocol import EVENT_TYPES, MAX_SAFE_INTEGER, UNSET, Definition, definition, definitions
from accord.protocol.definitions import (
    Boolean,
    Choice,
    Integer,
    Kind,
    Member,
    Object,
    Opaque,
    OpenObject,
    Sequence,
    Text,
    TextOrSequence,
    Variant,
)

_MEMBER = re.compile(r"    (\w+)(\??) +(.+)")
_BASE = {"timestamp?": "integer -(2^53-1)..2^53-1", "rawEvent?": "any JSON except null", "metadata?": "JSON object"}


class Schema:
    """`protocol/schema.txt` beside the corpus, read by its own little grammar."""

    def __init__(self, text: str) -> None:
        self.aliases: dict[str, str] = {}
        self.shapes: dict[str, dict[str, str]] = {}
        self.open: set[str] = set()
        name = ""
        for line in text.splitlines():
            if not line or line.startswith("#"):
                continue
            member = _MEMBER.fullmatch(line)
            if member:
                self.shapes[name][member[1] + member[2]] = member[3].strip()
            elif " = " in line:
                alias, meaning = line.split(" = ", 1)
                self.aliases[alias] = meaning
            else:
                name = line.split(" ")[0]
                self.shapes[name] = {}
                if "(open" in line:
                    self.open.add(name)

    def kind(self, text: str) -> Kind:
        """What a described value is, in our own terms."""
        if text == "JsonPointer":
            return Text(pointer=True)
        text = self.aliases.get(text, text)
        simple: dict[str, Kind] = {
            "string": Text(),
            "boolean": Boolean(),
            "any JSON": Opaque(nullable=True),
            "any JSON except null": Opaque(nullable=False),
            "JSON object": OpenObject(),
            "integer 0..2^53-1": Integer(0, MAX_SAFE_INTEGER),
            "integer -(2^53-1)..2^53-1": Integer(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER),
        }
        if text in simple:
            return simple[text]
        if text.startswith('"'):
            return Choice(frozenset({text.strip('"')}))
        if text.startswith("one of "):
            return Choice(frozenset(text.removeprefix("one of ").split("|")))
        for prefix, least in (("list of ", 0), ("non-empty list of ", 1)):
            if text.startswith(prefix):
                return Sequence(self.kind(text.removeprefix(prefix)), least)
        if text.startswith("string or list of "):
            sequence = self.kind(text.removeprefix("string or "))
            assert isinstance(sequence, Sequence)
            return TextOrSequence(sequence)
        if text.startswith("union by "):
            discriminator, members = text.removeprefix("union by ").split(": ")
            named = [definitions()[name] for name in members.split(" | ")]
            tags = [table.tag for table in named]
            assert {tag and tag[0] for tag in tags} == {discriminator.strip('"')}
            by_tag = {tag[1]: table.struct for tag, table in zip(tags, named, strict=True) if tag}
            return Variant(discriminator.strip('"'), by_tag)
        return Object(definitions()[text].struct)

    def table(self, name: str) -> dict[str, tuple[bool, Kind]]:
        """The members of a shape: whether it is required, and what it is."""
        members = dict(self.shapes[name])
        if members.get("type") in {f'"{event_type}"' for event_type in EVENT_TYPES}:
            members = {**_BASE, **members}
        return {each.rstrip("?"): (not each.endswith("?"), self.kind(kind)) for each, kind in members.items()}


def ours(table: Definition) -> dict[str, tuple[bool, Kind]]:
    found = {name: (member.required, member.kind) for name, member in table.members.items()}
    if table.tag:
        found[table.tag[0]] = (True, Choice(frozenset({table.tag[1]})))
    return found


@pytest.fixture(scope="module")
def schema(corpus: Path) -> Schema:
    file = corpus.parent / "protocol" / "schema.txt"
    if not file.exists():
        pytest.skip("no schema.txt beside the corpus")
    return Schema(file.read_text(encoding="utf-8"))


def test_every_shape_of_the_schema_and_no_other_is_defined(schema: Schema) -> None:
    assert set(definitions()) == set(schema.shapes)
    assert len(schema.shapes) > 75


@pytest.mark.parametrize("name", sorted(definitions()))
def test_members_are_those_of_the_schema(schema: Schema, name: str) -> None:
    table = definitions()[name]
    assert ours(table) == schema.table(name)
    assert table.open is (name in schema.open)


@pytest.mark.parametrize("union", ["Event", "Message", "ContentPart", "PartSource", "RunFinishedOutcome"])
def test_unions_are_those_of_the_schema(schema: Schema, union: str) -> None:
    kind = schema.kind(union)
    assert isinstance(kind, Variant)
    if union == "Event":
        assert dict(kind.members) == EVENT_TYPES
        assert sorted(EVENT_TYPES) == sorted(schema.aliases["EventType"].removeprefix("one of ").split("|"))
    else:
        holders = {"Message": ("RunAgentInput", "messages"), "PartSource": ("ImagePart", "source")}
        holder, member = holders.get(union, ("ToolCallResultEvent", "content"))
        if union == "RunFinishedOutcome":
            holder, member = "RunFinishedEvent", "outcome"
        found = definitions()[holder].members[member].kind
        while not isinstance(found, Variant):
            assert isinstance(found, Sequence | TextOrSequence)
            found = found.sequence if isinstance(found, TextOrSequence) else found.element
        assert found == kind


def test_there_are_thirty_one_events() -> None:
    assert len(EVENT_TYPES) == 31
    assert all(struct.__struct_config__.tag == event_type for event_type, struct in EVENT_TYPES.items())


@pytest.mark.parametrize("name", sorted(definitions()))
def test_absent_members_are_unset_and_shapes_are_frozen(name: str) -> None:
    struct = definitions()[name].struct
    for field in msgspec.structs.fields(struct):
        assert field.default in (msgspec.NODEFAULT, UNSET)
    assert struct.__struct_config__.frozen
    assert struct.__struct_config__.forbid_unknown_fields


def test_a_definition_reads_like_its_shape() -> None:
    table = definition(definitions()["ToolCall"].struct)
    assert table.name == "ToolCall"
    assert table.tag is None
    assert table.members["encryptedValue"] == Member("encrypted_value", False, Text())
