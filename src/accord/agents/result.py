"""What a tool returned, as the result of its call.

Text stays text, contents stay contents (with texts among them), everything else becomes the JSON value that stands
for it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from accord.agents.content import Content, FunctionCallContent, FunctionResultContent, as_contents
from accord.agents.errors import MessageError
from accord.agents.json_value import to_json_value
from accord.errors import EncodingError


def as_result(value: object, call: FunctionCallContent) -> FunctionResultContent:
    """The result of `call` from a tool's (or a middleware's) value. Raises `EncodingError` where JSON has no value
    for it."""
    if isinstance(value, FunctionResultContent):
        return msgspec.structs.replace(
            value, call_id=call.call_id, name=call.name, result=_result(value.result), error=_error(value.error)
        )
    return FunctionResultContent(call.call_id, _result(value), name=call.name)


def as_error(message: str, call: FunctionCallContent, detail: str | None = None) -> FunctionResultContent:
    """The result of a call that failed, or was not made; `detail` is for the model alone."""
    return FunctionResultContent(call.call_id, error=_error(message), name=call.name, error_detail=_error(detail))


def _result(value: object) -> Any:
    if isinstance(value, Content):
        return [value]
    if isinstance(value, list | tuple) and any(isinstance(item, Content) for item in value):
        try:
            return list(as_contents(value))
        except MessageError as error:
            raise EncodingError(str(error), path="") from error
    return to_json_value(value)


def _error(message: str | None) -> str | None:
    # Whatever an exception says, it must not make the next request unencodable.
    return message and message.encode(errors="backslashreplace").decode()
