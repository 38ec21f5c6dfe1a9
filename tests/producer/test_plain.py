from __future__ import annotations

import dataclasses
import datetime
from enum import StrEnum
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel, Field

from accord.errors import EncodingError
from accord.producer import plain
from accord.protocol import AddOperation


class Level(StrEnum):
    HIGH = "high"


class Inner(BaseModel):
    amount: int | None = None


class Model(BaseModel):
    level: Level
    inner: list[Inner] = Field(default_factory=list, alias="innerOnes")


@dataclasses.dataclass
class Data:
    when: str | None
    model: Model


class Shape(msgspec.Struct, rename="camel"):
    some_name: int
    absent: int | msgspec.UnsetType = msgspec.UNSET


def test_models_become_json_with_their_nulls() -> None:
    model = Model(level=Level.HIGH, innerOnes=[Inner()])
    expected = {"level": "high", "innerOnes": [{"amount": None}]}
    assert plain(model) == expected
    assert plain({"d": Data(None, model), "t": (1, Level.HIGH)}) == {
        "d": {"when": None, "model": expected},
        "t": [1, "high"],
    }
    assert plain(Shape(some_name=1)) == {"someName": 1}
    assert plain(AddOperation(path="/a", value=1)) == {"op": "add", "path": "/a", "value": 1}


def test_a_copy_shares_nothing_that_can_change() -> None:
    value: dict[str, Any] = {"a": [{"b": 1}]}
    copy = plain(value)
    value["a"][0]["b"] = 2
    assert copy == {"a": [{"b": 1}]}


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a/b": [0, {1}]}, "/a~1b/1"),
        ([datetime.date(2026, 1, 1)], "/0"),
        ({1: 2}, ""),
        ([float("nan")], "/0"),
        (object(), ""),
        (b"x", ""),
    ],
)
def test_what_is_no_json_is_named(value: object, path: str) -> None:
    with pytest.raises(EncodingError) as refused:
        plain(value)
    assert refused.value.path == path


def test_a_value_inside_itself_is_an_error() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(EncodingError):
        plain(value)
