from __future__ import annotations

from typing import Any

import msgspec
import pytest

from accord.agents import (
    AgentResponseUpdate,
    Content,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    Message,
    MessageError,
    ReasoningContent,
    Role,
    TextContent,
    UriContent,
    Usage,
    UsageContent,
)
from accord.agents.content import as_contents, text_of

ONE_OF_EACH = {
    "text": TextContent("a"),
    "reasoning": ReasoningContent("a"),
    "data": DataContent(b"a", "text/plain"),
    "uri": UriContent("https://example.org/a.png"),
    "function_call": FunctionCallContent("c1", "f", "{}"),
    "function_result": FunctionResultContent("c1", 1),
    "usage": UsageContent(Usage(input_tokens=1)),
    "error": ErrorContent("a"),
}


@pytest.mark.parametrize(("name", "content"), ONE_OF_EACH.items())
def test_each_content_says_its_type(name: str, content: Content) -> None:
    assert content.type == name
    assert msgspec.to_builtins(content)["type"] == name


@pytest.mark.parametrize("content", ONE_OF_EACH.values())
def test_contents_are_immutable(content: Content) -> None:
    with pytest.raises(AttributeError):
        setattr(content, content.__struct_fields__[0], "other")


def test_a_text_stands_for_a_text_content() -> None:
    assert as_contents("a") == (TextContent("a"),)
    assert as_contents(TextContent("a")) == (TextContent("a"),)
    assert as_contents(["a", UriContent("b")]) == (TextContent("a"), UriContent("b"))


def test_what_is_no_content_is_refused_with_its_place() -> None:
    with pytest.raises(MessageError, match=r"contents\[1\].*int"):
        as_contents(["a", 1])  # type: ignore[list-item]


@pytest.mark.parametrize("value", [None, 5])
def test_what_stands_for_no_contents_is_refused(value: Any) -> None:
    with pytest.raises(MessageError, match=type(value).__name__):
        Message(Role.USER, value)
    with pytest.raises(MessageError, match=type(value).__name__):
        AgentResponseUpdate(value)


def test_text_of_contents_is_their_text_alone() -> None:
    assert text_of([TextContent("a"), ReasoningContent("no"), TextContent("b")]) == "ab"


def test_data_uri() -> None:
    assert DataContent(b"\x00\xff", "image/png").data_uri() == "data:image/png;base64,AP8="


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("as it is", "as it is"),
        (None, "null"),
        ({"é": [1, True]}, '{"é": [1, true]}'),
        ([], "[]"),
        ([TextContent("a"), DataContent(b"", "image/png"), TextContent("b")], "ab"),
    ],
)
def test_a_result_as_the_model_reads_it(result: object, text: str) -> None:
    assert FunctionResultContent("c1", result).text == text


def test_an_error_is_what_the_model_reads() -> None:
    assert FunctionResultContent("c1", error="no such city").text == "Error: no such city"


def test_only_a_list_of_contents_alone_is_contents() -> None:
    image = DataContent(b"", "image/png")
    assert FunctionResultContent("c1", [image]).contents == [image]
    assert FunctionResultContent("c1", [image, 1]).contents == []
    assert FunctionResultContent("c1", "text").contents == []
