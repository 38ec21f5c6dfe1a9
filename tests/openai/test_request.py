from __future__ import annotations

import base64
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from accord.agents import (
    ChatClientError,
    Content,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    Message,
    ReasoningContent,
    Role,
    TextContent,
    ToolDefinition,
    UriContent,
)
from accord.openai.request import api_messages, api_response_format, api_tool, api_tool_choice

PNG = DataContent(b"\x89PNG", "image/png")
PNG_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}


def one(*contents: Content | str, role: str = "user", **rest: Any) -> dict[str, Any]:
    (message,) = api_messages([Message(role, contents, **rest)])
    return message


def test_plain_conversation() -> None:
    roles = ["system", "developer", "user", "assistant"]
    assert api_messages([Message(role, role) for role in roles]) == [{"role": role, "content": role} for role in roles]


def test_several_texts_are_one() -> None:
    assert one("a", "b") == {"role": "user", "content": "ab"}
    assert one() == {"role": "user", "content": ""}


def test_an_author_is_named_where_the_api_takes_the_name() -> None:
    assert one("a", author_name="ann")["name"] == "ann"
    assert "name" not in one("a", author_name="Ann Smith")


def test_calls_and_results() -> None:
    call = FunctionCallContent("c1", "f", '{"a": 1}')
    empty = FunctionCallContent("c2", "g")
    messages = [
        Message(Role.ASSISTANT, [ReasoningContent("unheard"), "text", call, empty]),
        Message(Role.TOOL, FunctionResultContent("c1", {"b": [2]})),
        Message(Role.TOOL, FunctionResultContent("c2", error="no")),
        Message(Role.ASSISTANT, [call]),
        Message(Role.ASSISTANT, [ReasoningContent("unheard"), ErrorContent("unheard")]),
    ]
    api_call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    api_empty = {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}}
    assert api_messages(messages) == [
        {"role": "assistant", "content": "text", "tool_calls": [api_call, api_empty]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"b": [2]}'},
        {"role": "tool", "tool_call_id": "c2", "content": "Error: no"},
        {"role": "assistant", "content": None, "tool_calls": [api_call]},
        {"role": "assistant", "content": ""},
    ]


def test_several_results_in_one_message() -> None:
    results = [FunctionResultContent("c1", 1), FunctionResultContent("c2", 2)]
    assert [item["tool_call_id"] for item in api_messages([Message(Role.TOOL, results)])] == ["c1", "c2"]


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (PNG, PNG_PART),
        (UriContent("https://e.org/a"), {"type": "image_url", "image_url": {"url": "https://e.org/a"}}),
        (UriContent("https://e.org/a.jpg"), {"type": "image_url", "image_url": {"url": "https://e.org/a.jpg"}}),
        (
            DataContent(b"RIFF", "audio/wav"),
            {"type": "input_audio", "input_audio": {"data": base64.b64encode(b"RIFF").decode(), "format": "wav"}},
        ),
        (
            DataContent(b"%PDF", "application/pdf", "a.pdf"),
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}},
        ),
    ],
)
def test_images_sounds_and_files(content: Content, part: dict[str, Any]) -> None:
    assert one("See:", content)["content"] == [{"type": "text", "text": "See:"}, part]


@pytest.mark.parametrize("media_type", ["text/plain; charset=utf-8", "application/json", "image-set/x+json"])
def test_data_that_is_text_is_sent_as_text(media_type: str) -> None:
    assert one(DataContent("é".encode(), media_type))["content"] == "é"


@pytest.mark.parametrize(
    "content", [DataContent(b"a", "video/mp4"), UriContent("https://e.org/a.mp4"), UriContent("https://e.org/a", "a/b")]
)
def test_what_the_api_does_not_take_is_refused_with_its_place(content: Content) -> None:
    with pytest.raises(ChatClientError, match=r"messages\[1\]: .*(video/mp4|a/b)") as caught:
        api_messages([Message("user", "a"), Message("user", content)])
    assert caught.value.code == "unsupported_content"


def test_pictures_from_tools_follow_the_results_of_their_turn() -> None:
    messages = [
        Message(Role.TOOL, FunctionResultContent("c1", [TextContent("A picture:"), PNG])),
        Message(Role.TOOL, FunctionResultContent("c2", "text")),
        Message(Role.ASSISTANT, "Nice."),
        Message(Role.TOOL, FunctionResultContent("c3", [PNG])),
    ]
    result = [(item["role"], item["content"]) for item in api_messages(messages)]
    assert result == [
        ("tool", "A picture:"),
        ("tool", "text"),
        ("user", [{"type": "text", "text": "From the result of call c1:"}, PNG_PART]),
        ("assistant", "Nice."),
        ("tool", ""),
        ("user", [{"type": "text", "text": "From the result of call c3:"}, PNG_PART]),
    ]


def test_tools() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    assert api_tool(ToolDefinition("f", "Do it.", schema)) == {
        "type": "function",
        "function": {"name": "f", "description": "Do it.", "parameters": schema},
    }
    assert [api_tool_choice(choice) for choice in ("auto", "none", "required")] == ["auto", "none", "required"]
    assert api_tool_choice("f") == {"type": "function", "function": {"name": "f"}}


class Level(StrEnum):
    EASY = "easy"


class Part(BaseModel):
    name: str = "x"


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Whole(BaseModel):
    level: Level = Level.EASY
    first: Part = Field(description="The first")
    others: list[Part] = []
    pet: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None


class Open(BaseModel):
    names: dict[str, int]


class AnyValue(BaseModel):
    value: Any


class Pair(BaseModel):
    value: tuple[int, str]


def objects(schema: Any) -> list[dict[str, Any]]:
    found = []
    if isinstance(schema, dict):
        found = [schema] if schema.get("type") == "object" else []
        schema = list(schema.values())
    if isinstance(schema, list):
        for item in schema:
            found += objects(item)
    return found


def test_a_format_is_strict_where_it_can_be() -> None:
    api_format = api_response_format(Whole)["json_schema"]
    assert (api_format["name"], api_format["strict"]) == ("Whole", True)
    parts = objects(api_format["schema"])
    assert len(parts) == 4
    for part in parts:
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])
    text = str(api_format)
    assert "default" not in text
    assert "oneOf" not in text
    assert api_format["schema"]["properties"]["first"] == {"$ref": "#/$defs/Part"}


@pytest.mark.parametrize("kind", [Open, AnyValue, Pair, list[int]])
def test_a_format_that_has_no_strict_form_is_sent_as_it_is(kind: Any) -> None:
    api_format = api_response_format(kind)["json_schema"]
    assert api_format["strict"] is False
    assert api_format["schema"]["type"] in ("object", "array")


def test_schemas_and_formats_of_ones_own() -> None:
    schema = {"title": "My answer!", "type": "object", "properties": {}}
    assert api_response_format(schema) == {
        "type": "json_schema",
        "json_schema": {"name": "My_answer_", "schema": schema, "strict": False},
    }
    assert api_response_format({"type": "json_object"}) == {"type": "json_object"}
