"""Structured output: an answer that has to be JSON of a given shape, and the value it stands for.

The shape is a type that pydantic knows (a model, mostly), or a JSON Schema. An answer in a type's format becomes a
value of that type; one in a schema's format becomes the JSON value, and is not checked against the schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from accord.agents.errors import AgentSetupError, StructuredOutputError
from accord.agents.json_value import parse_json
from accord.agents.schema import JSONSchema, json_schema_of
from accord.agents.validation import describe_errors
from accord.errors import EncodingError

ResponseFormat = type[Any] | Mapping[str, Any]


def response_schema(response_format: ResponseFormat) -> tuple[str, JSONSchema]:
    """A name and the JSON Schema of the format. Raises `AgentSetupError` for a type that has none."""
    if isinstance(response_format, Mapping):
        return str(response_format.get("title") or "response"), dict(response_format)
    name = getattr(response_format, "__name__", "response")
    try:
        return name, json_schema_of(TypeAdapter(response_format))
    except PydanticUserError as error:
        raise AgentSetupError(f"response_format {name}: {str(error).splitlines()[0]}") from error


def parse_response(text: str, response_format: ResponseFormat) -> Any:
    """The value that `text` stands for. Raises `StructuredOutputError`, which names the place that is wrong."""
    try:
        value = parse_json(text)
    except EncodingError as error:
        raise StructuredOutputError(f"the answer has another shape: {error}", text=text, path=error.path) from error
    if isinstance(response_format, Mapping):
        return value
    try:
        return TypeAdapter(response_format).validate_json(text)
    except ValidationError as error:
        reasons, path = describe_errors(error, value)
        raise StructuredOutputError(f"the answer has another shape: {reasons}", text=text, path=path) from error
