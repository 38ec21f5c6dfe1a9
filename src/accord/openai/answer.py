"""A streamed answer, chunk by chunk, as updates.

What differs between servers ends here: every call has one id of its own, every character is whole, usage comes once
at the end, and an answer that ends without a `finish_reason` was cut.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from accord.agents.content import (
    Content,
    ErrorContent,
    FunctionCallContent,
    ReasoningContent,
    TextContent,
    UsageContent,
)
from accord.agents.errors import ChatClientError
from accord.agents.surrogates import SurrogateJoiner
from accord.agents.update import AgentResponseUpdate
from accord.agents.usage import Usage
from accord.openai.call_fragments import CallFragments


class AnswerReader:
    """`read` each chunk, then `end`. Chunks are the SDK's, which checks nothing: any member may be missing, or be of
    another type than is due, and then says nothing."""

    def __init__(self, provider: str | None) -> None:
        self._provider = provider
        self._reasoning = SurrogateJoiner()
        self._text = SurrogateJoiner()
        self._refusal = SurrogateJoiner()
        self._calls = CallFragments()
        self._refused = False
        self._finish_reason: str | None = None
        self._response_id: str | None = None
        self._model: str | None = None
        self._usage: Any = None

    def read(self, chunk: Any) -> AgentResponseUpdate | None:
        """The update of a chunk; None where it says nothing yet."""
        self._response_id = _text(chunk, "id") or self._response_id
        self._model = _text(chunk, "model") or self._model
        # Some servers count along with every chunk: the last count is the whole.
        self._usage = getattr(chunk, "usage", None) or self._usage
        contents: list[Content] = []
        for choice in _list(chunk, "choices"):
            if not _count(getattr(choice, "index", 0)):
                self._finish_reason = _text(choice, "finish_reason") or self._finish_reason
                contents += self._contents_of(getattr(choice, "delta", None))
        return AgentResponseUpdate(contents, response_id=self._response_id) if contents else None

    def end(self) -> AgentResponseUpdate:
        """The last update. Raises `ChatClientError` (`cut`) when the answer is not whole."""
        if self._finish_reason is None:
            raise ChatClientError("the model's answer was cut off before its end", code="cut")
        if self._finish_reason == "error":
            raise ChatClientError("the model server failed while it answered", code="server_error")
        contents: list[Content] = []
        _append(contents, ReasoningContent, self._reasoning.close())
        _append(contents, TextContent, self._text.close() + self._refusal.close())
        contents += self._calls.finish()
        if self._refused:
            contents.append(ErrorContent("the model refused to answer", "refusal"))
        if self._usage is not None:
            contents.append(UsageContent(self._read_usage()))
        return AgentResponseUpdate(contents, finish_reason=self._finish_reason, response_id=self._response_id)

    def _contents_of(self, delta: Any) -> list[Content]:
        contents: list[Content] = []
        self._think(contents, _text(delta, "reasoning_content") or _text(delta, "reasoning"))
        self._say(contents, _text(delta, "content"))
        for part in _list(delta, "content"):
            self._read_part(contents, part)
        if refusal := _text(delta, "refusal"):
            self._refused = True
            _append(contents, TextContent, self._refusal.feed(refusal))
        for call in _list(delta, "tool_calls"):
            if (fragment := self._call_fragment(call)) is not None:
                contents.append(fragment)
        return contents

    def _read_part(self, contents: list[Content], part: Any) -> None:
        """A part of content that comes as a list; what a model thinks is a part of its own, of text or of parts."""
        if not isinstance(part, dict):
            return
        if isinstance(text := part.get("text"), str):
            self._say(contents, text)
        thinking = part.get("thinking")
        for thought in thinking if isinstance(thinking, list) else (thinking,):
            text = thought.get("text") if isinstance(thought, dict) else thought
            self._think(contents, text if isinstance(text, str) else "")

    def _think(self, contents: list[Content], text: str) -> None:
        _append(contents, ReasoningContent, self._reasoning.feed(text))

    def _say(self, contents: list[Content], text: str) -> None:
        _append(contents, TextContent, self._text.feed(text))

    def _call_fragment(self, call: Any) -> FunctionCallContent | None:
        function = getattr(call, "function", None)
        arguments = getattr(function, "arguments", None)
        if arguments is not None and not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)  # some servers send the object itself
        return self._calls.add(
            index=_count(getattr(call, "index", None)),
            call_id=_text(call, "id"),
            name=_text(function, "name"),
            arguments=arguments,
        )

    def _read_usage(self) -> Usage:
        usage = self._usage
        input_tokens = _tokens(usage, "prompt_tokens")
        output_tokens = _tokens(usage, "completion_tokens")
        total_tokens = _tokens(usage, "total_tokens")
        if total_tokens is None and input_tokens is not None and output_tokens is not None:
            total_tokens = input_tokens + output_tokens
        of_input = getattr(usage, "prompt_tokens_details", None)
        of_output = getattr(usage, "completion_tokens_details", None)
        return Usage(
            provider=self._provider,
            model=self._model,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            total_tokens=total_tokens,
            reasoning_tokens=_tokens(of_output, "reasoning_tokens"),
            cached_input_tokens=_tokens(of_input, "cached_tokens"),
            cache_write_input_tokens=_tokens(of_input, "cache_write_tokens"),
        )


def _text(holder: Any, name: str) -> str:
    value = getattr(holder, name, None)
    return value if isinstance(value, str) else ""


def _list(holder: Any, name: str) -> list[Any]:
    value = getattr(holder, name, None)
    return value if isinstance(value, list) else []


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _tokens(holder: Any, name: str) -> int | None:
    return _count(getattr(holder, name, None))


def _append(contents: list[Content], kind: Callable[[str], Content], text: str) -> None:
    if text:
        contents.append(kind(text))
