from __future__ import annotations

import json
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from accord.agents.schema import json_schema_of


class Level(Enum):
    EASY = "easy"
    HARD = "hard"


class Part(BaseModel):
    name: str


class Once(BaseModel):
    """Used once."""

    part: Part = Field(description="The one part")
    level: Level = Level.EASY


class Twice(BaseModel):
    first: Part
    second: list[Part]


class Tree(BaseModel):
    children: list[Tree] = []


class Forest(BaseModel):
    tree: Tree
    name: str


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Owner(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    discriminator: str
    literally: dict[str, Any] = {"discriminator": 1}


def schema_of(kind: Any) -> dict[str, Any]:
    return json_schema_of(TypeAdapter(kind))


def test_a_definition_used_once_stands_in_its_place_with_the_description_given_there() -> None:
    schema = schema_of(Once)
    assert "$defs" not in schema
    assert schema["description"] == "Used once."
    assert schema["properties"]["part"] == {
        "title": "Part",
        "type": "object",
        "description": "The one part",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    }
    assert schema["properties"]["level"]["enum"] == ["easy", "hard"]
    assert schema["properties"]["level"]["default"] == "easy"


def test_a_reference_in_an_all_of_alone_is_the_reference() -> None:
    class Older(BaseModel):
        @classmethod
        def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> dict[str, Any]:
            return {"allOf": [{"type": "object", "title": "A"}], "description": "b"}

    assert schema_of(Older) == {"type": "object", "title": "A", "description": "b"}


def test_a_definition_used_twice_is_written_once() -> None:
    schema = schema_of(Twice)
    assert list(schema["$defs"]) == ["Part"]
    assert schema["properties"]["first"] == {"$ref": "#/$defs/Part"}
    assert schema["properties"]["second"]["items"] == {"$ref": "#/$defs/Part"}


def test_recursion_keeps_its_definition() -> None:
    schema = schema_of(Forest)
    assert schema["properties"]["tree"] == {"$ref": "#/$defs/Tree"}
    assert schema["$defs"]["Tree"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}


def test_a_recursive_root_is_an_object() -> None:
    schema = schema_of(Tree)
    assert schema["type"] == "object"
    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert list(schema["$defs"]) == ["Tree"]


def test_names_and_values_that_look_like_schema_words_stay() -> None:
    schema = schema_of(Owner)
    assert "discriminator" not in schema["properties"]["pet"]
    assert [option["properties"]["kind"]["const"] for option in schema["properties"]["pet"]["oneOf"]] == ["cat", "dog"]
    assert schema["properties"]["discriminator"] == {"type": "string"}
    assert schema["properties"]["literally"]["default"] == {"discriminator": 1}


def test_no_made_up_titles_and_no_warning_for_a_default_without_json() -> None:
    class Odd(BaseModel):
        some_member: Any = object()

    assert schema_of(Odd)["properties"] == {"some_member": {}}


@pytest.mark.parametrize("depth", [20])
def test_shared_definitions_do_not_multiply(depth: int) -> None:
    # Each level uses the one below twice: written out in place, the schema would double with each.
    kind: Any = Part
    for _ in range(depth):
        kind = type("Level", (BaseModel,), {"__annotations__": {"a": kind, "b": kind}})
    assert len(json.dumps(schema_of(kind))) < 1000 * depth
