from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from accord.agents import (
    AgentResponse,
    AgentResponseUpdate,
    Content,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    Message,
    ReasoningContent,
    ResponseBuilder,
    Role,
    StructuredOutputError,
    TextContent,
    Usage,
    UsageContent,
)


def update(*contents: Content | str, role: Role = Role.ASSISTANT, message_id: str | None = "m1") -> AgentResponseUpdate:
    return AgentResponseUpdate(contents, role, message_id)


def test_fragments_join() -> None:
    response = AgentResponse.from_updates(
        [
            update(ReasoningContent("Let me ")),
            update(ReasoningContent("think.")),
            update("Hel"),
            update("lo ", FunctionCallContent("c1", "f", '{"a"')),
            update(FunctionCallContent("c2", "g")),
            update(FunctionCallContent("c1", "", ": 1}")),
            update("again"),
            update(FunctionCallContent("c2", "", "{}")),
        ]
    )
    assert response.messages == (
        Message(
            Role.ASSISTANT,
            [
                ReasoningContent("Let me think."),
                "Hello ",
                FunctionCallContent("c1", "f", '{"a": 1}'),
                FunctionCallContent("c2", "g", "{}"),
                "again",
            ],
            message_id="m1",
        ),
    )
    assert response.text == "Hello again"


def test_a_seal_ends_a_thought() -> None:
    response = AgentResponse.from_updates(
        [update(ReasoningContent("a")), update(ReasoningContent("", "sealed")), update(ReasoningContent("b"))]
    )
    assert response.messages[0].contents == (ReasoningContent("a", "sealed"), ReasoningContent("b"))


def test_messages_are_told_apart_by_id_and_role() -> None:
    result = FunctionResultContent("c1", 1)
    response = AgentResponse.from_updates(
        [
            update("a", message_id="m1"),
            update("b", message_id="m2"),
            update("c", message_id="m1"),
            update(result, role=Role.TOOL, message_id="m1"),
        ]
    )
    assert [(message.role, message.contents) for message in response.messages] == [
        (Role.ASSISTANT, (TextContent("ac"),)),
        (Role.ASSISTANT, (TextContent("b"),)),
        (Role.TOOL, (result,)),
    ]


def test_without_ids_a_message_lasts_as_long_as_its_role() -> None:
    result = FunctionResultContent("c1", 1)
    response = AgentResponse.from_updates(
        [
            update("a", message_id=None),
            update("b", message_id=None),
            update(result, role=Role.TOOL, message_id=None),
            update("c", message_id=None),
        ]
    )
    assert [message.contents for message in response.messages] == [(TextContent("ab"),), (result,), (TextContent("c"),)]


def test_usage_adds_up_and_is_no_part_of_a_message() -> None:
    response = AgentResponse.from_updates(
        [
            AgentResponseUpdate(UsageContent(Usage(input_tokens=1)), finish_reason="tool_calls"),
            AgentResponseUpdate(UsageContent(Usage(input_tokens=2, output_tokens=3)), finish_reason="stop"),
            AgentResponseUpdate(()),
        ]
    )
    assert response == AgentResponse((), Usage(input_tokens=3, output_tokens=3), "stop")


def test_pending_calls_are_those_without_a_result() -> None:
    calls = [FunctionCallContent("c1", "f"), FunctionCallContent("c2", "g")]
    response = AgentResponse.from_updates(
        [update(*calls), update(FunctionResultContent("c1", 1), role=Role.TOOL, message_id="m2")]
    )
    assert response.pending_calls == [calls[1]]


CONTENTS = st.lists(
    st.builds(TextContent, st.text(min_size=1))
    | st.builds(ReasoningContent, st.text(min_size=1))
    | st.builds(DataContent, st.binary(max_size=3), st.just("image/png"))
    | st.builds(FunctionCallContent, st.text(min_size=1, max_size=3), st.just("f"), st.text()),
    max_size=6,
    # Neighbours of one kind would be one content, and calls of one id one call.
    unique_by=lambda content: content.call_id if isinstance(content, FunctionCallContent) else id(content),
).filter(
    lambda contents: all(
        type(left) is not type(right) or isinstance(left, FunctionCallContent | DataContent)
        for left, right in pairwise(contents)
    )
)


def fragments(content: Content, draw: Any) -> Iterator[Content]:
    match content:
        case TextContent(text=text):
            yield from (TextContent(piece) for piece in cut(text, draw))
        case ReasoningContent(text=text):
            yield from (ReasoningContent(piece) for piece in cut(text, draw))
        case FunctionCallContent(call_id=call_id, name=name, arguments=arguments):
            pieces = cut(arguments, draw)
            yield FunctionCallContent(call_id, name, pieces[0])
            yield from (FunctionCallContent(call_id, "", piece) for piece in pieces[1:])
        case _:
            yield content


def cut(text: str, draw: Any) -> list[str]:
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=4)))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


@given(CONTENTS, st.data())
def test_any_fragmentation_gives_the_same_message(contents: list[Content], data: st.DataObject) -> None:
    updates = [update(piece) for content in contents for piece in fragments(content, data.draw)]
    response = AgentResponse.from_updates(updates)
    assert response.messages == ((Message(Role.ASSISTANT, contents, message_id="m1"),) if contents else ())
    assert response.text == "".join(update.text for update in updates)


@given(st.lists(st.text(min_size=1), min_size=2, max_size=4), st.data())
def test_any_interleaving_of_calls_gives_the_same_calls(texts: list[str], data: st.DataObject) -> None:
    calls = [FunctionCallContent(f"c{index}", f"f{index}", text) for index, text in enumerate(texts)]
    waiting = [list(fragments(call, data.draw)) for call in calls]
    # The first fragments in order, the rest in any.
    order = [queue.pop(0) for queue in waiting]
    turns = data.draw(st.permutations([index for index, queue in enumerate(waiting) for _ in queue]))
    order += [waiting[index].pop(0) for index in turns]
    assert AgentResponse.from_updates([update(piece) for piece in order]).messages[0].function_calls == calls


class City(BaseModel):
    name: str


def test_the_value_is_that_of_the_last_answer() -> None:
    updates = [
        update("Let me look.", message_id="m1"),
        update(FunctionResultContent("c1", 1), role=Role.TOOL, message_id="m2"),
        update(json.dumps({"name": "Oslo"}), message_id="m3"),
    ]
    assert AgentResponse.from_updates(updates, response_format=City).value == City(name="Oslo")
    assert AgentResponse.from_updates(updates).value is None


def test_no_answer_and_a_refusal_have_no_value() -> None:
    with pytest.raises(StructuredOutputError, match="no JSON"):
        _ = AgentResponse.from_updates([], response_format=City).value
    refused = AgentResponse.from_updates(
        [update("I will not.", ErrorContent("refused", "refusal"))], response_format=City
    )
    with pytest.raises(StructuredOutputError, match="refused") as caught:
        _ = refused.value
    assert caught.value.text == "I will not."


def test_the_latest_answer_is_apart_from_those_before() -> None:
    builder = ResponseBuilder()
    builder.add(update("a"))
    builder.add(update("b", message_id="m"))
    builder.begin_answer()
    assert builder.answer().messages == ()
    builder.add(update("c", message_id="m"))
    assert builder.answer().text == "c"
    builder.begin_answer()
    builder.add(update("d"))
    assert builder.answer().text == "d"
    assert [message.text for message in builder.build().messages] == ["a", "b", "c", "d"]


def test_a_builder_can_be_asked_at_any_time() -> None:
    builder = ResponseBuilder()
    assert builder.build().messages == ()
    builder.add(update("a"))
    assert builder.build().text == "a"
    builder.add(update("b"))
    assert builder.build().text == "ab"
