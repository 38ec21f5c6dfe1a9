from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from accord.agents import AgentSetupError, StructuredOutputError, parse_response, response_schema


class City(BaseModel):
    name: str
    people: list[int] = []


@dataclass
class Point:
    x: float


SCHEMA = {"title": "Answer", "type": "object", "properties": {"x": {"type": "integer"}}}


def test_a_type_has_a_name_and_a_schema() -> None:
    name, schema = response_schema(City)
    assert name == "City"
    assert schema["required"] == ["name"]
    assert response_schema(Point)[1]["properties"] == {"x": {"type": "number"}}


def test_a_schema_is_its_own() -> None:
    assert response_schema(SCHEMA) == ("Answer", SCHEMA)
    assert response_schema({"type": "object"})[0] == "response"


def test_a_type_without_a_schema_is_refused() -> None:
    class Plain: ...

    with pytest.raises(AgentSetupError, match="response_format Plain"):
        response_schema(Plain)


def test_the_value_of_an_answer() -> None:
    assert parse_response('{"name": "Oslo", "people": [1]}', City) == City(name="Oslo", people=[1])
    assert parse_response('{"x": 1}', Point) == Point(1.0)
    assert parse_response('{"x": "unchecked"}', SCHEMA) == {"x": "unchecked"}


@pytest.mark.parametrize(
    ("text", "kind", "path", "reason"),
    [
        ('{"name": "Oslo"', City, "", "no JSON.*line 1 column 15"),
        ("I am sorry", SCHEMA, "", "no JSON"),
        ('{"x": NaN}', SCHEMA, "", "no JSON"),
        ('{"x": 1e999}', SCHEMA, "/x", "inf is no JSON number"),
        ('{"name": "Oslo", "people": [1, "many"]}', City, "/people/1", "another shape: /people/1: .*integer"),
        ("[]", City, "", "another shape"),
    ],
)
def test_an_answer_of_another_shape_is_told_with_its_place(text: str, kind: Any, path: str, reason: str) -> None:
    with pytest.raises(StructuredOutputError, match=reason) as caught:
        parse_response(text, kind)
    assert (caught.value.path, caught.value.text) == (path, text)
