from __future__ import annotations

import dataclasses

import pytest

from accord.agents import FunctionCallContent, Message, MessageError, Role, TextContent
from accord.agents.message import as_messages


def test_a_message_from_plain_text() -> None:
    message = Message("user", "Hello", message_id="m1", author_name="ann", metadata={"a": 1})
    assert message.role is Role.USER
    assert message.contents == (TextContent("Hello"),)
    assert message.text == "Hello"
    assert (message.message_id, message.author_name, message.metadata) == ("m1", "ann", {"a": 1})


def test_a_message_does_not_change_with_what_it_was_made_of() -> None:
    contents, metadata = ["a"], {"a": 1}
    message = Message(Role.USER, contents, metadata=metadata)
    contents.append("b")
    metadata["a"] = 2
    assert message.text == "a"
    assert message.metadata == {"a": 1}
    with pytest.raises(dataclasses.FrozenInstanceError):
        message.role = Role.TOOL  # type: ignore[misc]


def test_a_changed_copy() -> None:
    message = Message(Role.USER, "a", message_id="m1")
    assert dataclasses.replace(message, contents=(TextContent("b"),)) == Message(Role.USER, "b", message_id="m1")


def test_an_unknown_role_is_named() -> None:
    with pytest.raises(MessageError, match="'robot' is none of system, developer, user, assistant, tool"):
        Message("robot", "Hello")


def test_function_calls_in_order() -> None:
    first, second = FunctionCallContent("c1", "f"), FunctionCallContent("c2", "g")
    assert Message(Role.ASSISTANT, [first, "text", second]).function_calls == [first, second]


def test_messages_from_whatever_stands_for_them() -> None:
    hello = Message(Role.USER, "Hello")
    assert as_messages("Hello") == [hello]
    assert as_messages(hello) == [hello]
    assert as_messages(["Hello", Message(Role.ASSISTANT, "Hi")]) == [hello, Message(Role.ASSISTANT, "Hi")]
    with pytest.raises(MessageError, match=r"messages\[1\].*dict"):
        as_messages(["Hello", {"role": "user"}])  # type: ignore[list-item]
