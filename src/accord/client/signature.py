"""A function's parameters as what a model may send: their JSON Schema, and the judge of arguments by it.

The one part of the client that needs pydantic, which takes as long to load as the rest of it: imported where the first
function is offered as a tool.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any, ClassVar

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from accord.errors import InputRejected
from accord.protocol import JSONObject

_MAX_FAULTS = 20


class Signature:
    """The parameters of `function`, and their `schema`.

    Raises `InputRejected`, with `path`, for those that no schema can describe or that a model could not name.
    """

    def __init__(self, function: Callable[..., Any], *, name: str, path: str) -> None:
        try:
            self._arguments = _arguments_of(function)
            self.schema: JSONObject = self._arguments.json_schema(schema_generator=_Schema)
        except (PydanticUserError, NameError) as error:
            raise InputRejected(f"tool {name!r}: {str(error).splitlines()[0]}", path=path) from error
        if self.schema.get("type") != "object":
            raise InputRejected(f"tool {name!r}: every parameter must have a name that a model can send", path=path)

    def read(self, arguments: JSONObject) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The positional and named arguments to call the function with; `ValueError` says how they do not fit."""
        try:
            # As JSON, which is what they are: a strict model takes a date from a string then, and only then.
            return self._arguments.validate_json(json.dumps(arguments))
        except ValidationError as error:
            raise ValueError(_faults(error)) from None


class _Schema(GenerateJsonSchema):
    # A default that is no JSON value is left out of the schema; that is no reason to warn.
    ignored_warning_kinds: ClassVar[set[JsonSchemaWarningKind]] = {"skipped-choice", "non-serializable-default"}  # type: ignore[misc]

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False  # a title made up from the name says nothing to a model


def _arguments_of(function: Callable[..., Any]) -> TypeAdapter[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Validates arguments against the function's signature, without calling the function."""

    @functools.wraps(function)
    def given(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return args, kwargs

    # What it returns is of no interest, and perhaps known to type checkers only.
    given.__annotations__ = {name: each for name, each in given.__annotations__.items() if name != "return"}
    return TypeAdapter(given)  # type: ignore[arg-type]  # pydantic takes functions, too


def _faults(error: ValidationError) -> str:
    faults = error.errors(include_url=False)
    lines = [f"/{'/'.join(str(step) for step in fault['loc'])}: {fault['msg']}" for fault in faults[:_MAX_FAULTS]]
    return "; ".join(lines)
