"""What a message is made of: one small immutable value a kind, told apart by `type`.

In a stream a text, a reasoning text and a function call arrive as several contents, each a fragment of the whole;
`response.ResponseBuilder` puts them together.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from accord.agents.errors import MessageError
from accord.agents.usage import Usage


def _type_of(class_name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", class_name.removesuffix("Content")).lower()


class Content(msgspec.Struct, frozen=True, tag_field="type", tag=_type_of):
    """Base of every content. `type` is the class name without its ending, in snake case: `function_call`."""

    @property
    def type(self) -> str:
        return str(self.__struct_config__.tag)


class TextContent(Content, frozen=True):
    text: str


class ReasoningContent(Content, frozen=True):
    """What a model thinks before it answers; `encrypted_value` is its sealed form, to be given back unread."""

    text: str
    encrypted_value: str | None = None


class DataContent(Content, frozen=True):
    """Bytes in the message itself: an image, a file, a piece of JSON."""

    data: bytes
    media_type: str
    name: str | None = None

    def data_uri(self) -> str:
        """The bytes as a `data:` URI (RFC 2397)."""
        return f"data:{self.media_type};base64,{base64.b64encode(self.data).decode('ascii')}"


class UriContent(Content, frozen=True):
    """Something to be fetched from elsewhere."""

    uri: str
    media_type: str | None = None


class FunctionCallContent(Content, frozen=True):
    """The model calls a tool. `arguments` is JSON text, as the model wrote it.

    In a stream each content is a fragment: those of one `call_id` concatenate, and only the first needs `name`
    (`""` on the others).
    """

    call_id: str
    name: str
    arguments: str = ""


class FunctionResultContent(Content, frozen=True):
    """The one answer to a function call.

    `result` is a JSON value, or a list of contents for a tool that answers with images, files and the like. `error`
    is set when the call failed or was refused; it then is the answer, and `result` is None. `error_detail` is more of
    an error, for the model alone to read.
    """

    call_id: str
    result: Any = None
    error: str | None = None
    name: str | None = None
    error_detail: str | None = None

    @property
    def contents(self) -> list[Content]:
        """The contents of a result that is made of them, else an empty list."""
        if isinstance(self.result, list) and self.result and all(isinstance(item, Content) for item in self.result):
            return list(self.result)
        return []

    @property
    def text(self) -> str:
        """The answer as a model reads it: text as it is, contents by their text, any other value as JSON."""
        if self.error is not None:
            return f"Error: {self.error}" if self.error_detail is None else f"Error: {self.error}: {self.error_detail}"
        if isinstance(self.result, str):
            return self.result
        if contents := self.contents:
            return text_of(contents)
        return json.dumps(self.result, ensure_ascii=False)


class FunctionApprovalRequestContent(Content, frozen=True):
    """A person has to say whether a call may run. `answer` makes what the next run is to be told."""

    id: str
    call: FunctionCallContent

    def answer(
        self, approved: bool, *, arguments: Mapping[str, Any] | None = None, reason: str | None = None
    ) -> FunctionApprovalResponseContent:
        """The person's answer; `arguments` replace all of the call's, `reason` is for the model to read."""
        call = self.call
        if arguments is not None:
            text = json.dumps(arguments, ensure_ascii=False)
            call = FunctionCallContent(call.call_id, call.name, text)
        return FunctionApprovalResponseContent(self.id, approved, call, reason)


class FunctionApprovalResponseContent(Content, frozen=True):
    """Whether a call may run, and with which arguments."""

    id: str
    approved: bool
    call: FunctionCallContent
    reason: str | None = None


class UsageContent(Content, frozen=True):
    """Tokens spent, as the model's server reports them with its answer. Is part of a stream, never of a message."""

    usage: Usage


class ErrorContent(Content, frozen=True):
    """Something the model's server reports that does not end the run, such as a refusal (`code` `refusal`)."""

    message: str
    code: str | None = None


def as_contents(value: str | Content | Iterable[str | Content]) -> tuple[Content, ...]:
    """Contents from whatever may stand for them: a text, a content, or several of either. Raises `MessageError`."""
    if isinstance(value, str):
        return (TextContent(value),)
    if isinstance(value, Content):
        return (value,)
    if not isinstance(value, Iterable):
        raise MessageError(f"contents: a text, a content or several are needed, not {type(value).__name__}")
    return tuple(_as_content(item, index) for index, item in enumerate(value))


def _as_content(item: object, index: int) -> Content:
    if isinstance(item, str):
        return TextContent(item)
    if isinstance(item, Content):
        return item
    raise MessageError(f"contents[{index}]: a text or a content is needed, not {type(item).__name__}")


def text_of(contents: Iterable[Content]) -> str:
    """The text of the text contents, in order."""
    return "".join(content.text for content in contents if isinstance(content, TextContent))
