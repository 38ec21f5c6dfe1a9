from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import BaseModel

from accord.agents import DataContent, FunctionCallContent, FunctionResultContent, TextContent
from accord.agents.result import as_error, as_result
from accord.errors import EncodingError

CALL = FunctionCallContent("c1", "f", "{}")
IMAGE = DataContent(b"\x89PNG", "image/png")


class City(BaseModel):
    name: str
    mayor: str | None = None


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("text", "text"),
        (None, None),
        (City(name="Oslo"), {"name": "Oslo", "mayor": None}),
        ((1, 2), [1, 2]),
        (IMAGE, [IMAGE]),
        (("a", IMAGE), [TextContent("a"), IMAGE]),
        ([], []),
    ],
)
def test_a_value_becomes_the_result_of_the_call(value: Any, result: Any) -> None:
    assert as_result(value, CALL) == FunctionResultContent("c1", result, name="f")


def test_a_result_is_taken_as_it_is_but_for_whose_it_is() -> None:
    given = FunctionResultContent("other", City(name="Oslo"), error=None, name="g")
    assert as_result(given, CALL) == FunctionResultContent("c1", {"name": "Oslo", "mayor": None}, name="f")
    refused = FunctionResultContent("c1", error="not allowed")
    assert as_result(refused, CALL) == FunctionResultContent("c1", error="not allowed", name="f")


@pytest.mark.parametrize(
    "value", [math.nan, "\ud83d", object(), [IMAGE, 1], FunctionResultContent("c1", {"a": math.inf})]
)
def test_what_cannot_be_encoded_is_no_result(value: Any) -> None:
    with pytest.raises(EncodingError):
        as_result(value, CALL)


def test_the_text_of_an_error_can_always_be_encoded() -> None:
    result = as_error("no such file: \udcff", CALL)
    assert result.text.encode() == b"Error: no such file: \\udcff"
