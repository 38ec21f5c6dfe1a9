"""A function's parameters as what a model may send: a JSON Schema to show it, and a validator for what it sends.

The validator is a pydantic model made from the signature, whose fields have names of their own (the parameters' are
their aliases), so that a parameter may be called `copy`, `schema` or `_x`.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import pydantic_core
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo

from accord.agents.docstring import read_docstring
from accord.agents.errors import ToolArgumentsError, ToolDefinitionError
from accord.agents.schema import JSONSchema, json_schema_of
from accord.agents.validation import describe_errors

_UNNAMED = inspect.Parameter.VAR_POSITIONAL
_ANY_NAME = inspect.Parameter.VAR_KEYWORD


class FunctionSignature:
    """The parameters of `function` that are the model's to fill.

    `injected` is the type of which a parameter gets its value from the caller of `bind` and stays hidden from the
    model. `local_names` are names that annotations may use beside those of the function's module. Raises
    `ToolDefinitionError` for a signature that no schema can describe, and `NameError` for an annotation with a name
    that is not (yet) known.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str,
        injected: type,
        local_names: Mapping[str, Any] | None = None,
    ) -> None:
        self._signature = inspect.signature(function)
        self._parameters: dict[str, str] = {}
        self._injected: list[str] = []
        self._open = False
        self.description, described = read_docstring(inspect.getdoc(function))
        hints = _annotations(function, self._signature, local_names)
        fields: dict[str, Any] = {}
        for parameter in self._signature.parameters.values():
            if parameter.kind is _UNNAMED:
                raise ToolDefinitionError(f"tool {name!r}: *{parameter.name} has no name that a model could send")
            annotation = hints.get(parameter.name, Any)
            if parameter.kind is _ANY_NAME:
                self._open = True
            elif _mentions(annotation, injected):
                self._injected.append(parameter.name)
            else:
                field = f"argument_{len(fields)}"
                self._parameters[field] = parameter.name
                default = ... if parameter.default is parameter.empty else parameter.default
                fields[field] = (_described(annotation, described.get(parameter.name)), default)
        try:
            self._model = create_model(
                "Arguments",
                __config__=ConfigDict(
                    alias_generator=self._parameters.__getitem__, extra="allow" if self._open else "forbid"
                ),
                **fields,
            )
            self.schema = _without_title(json_schema_of(TypeAdapter(self._model)))
        except PydanticUserError as error:
            reason = str(error).split("\n")[0]
            raise ToolDefinitionError(f"tool {name!r}: {self._blame(fields)}{reason}") from error

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The values to call the function with, by parameter name. Raises `ToolArgumentsError`."""
        try:
            # JSON mode is what the arguments are: a strict model takes a date from a string in it, and only in it.
            model = self._model.__pydantic_validator__.validate_json(pydantic_core.to_json(dict(arguments)))
        except ValidationError as error:
            text, path = describe_errors(error, arguments)
            raise ToolArgumentsError(text, path=path) from error
        except (ValueError, TypeError) as error:
            raise ToolArgumentsError(f"the arguments are no JSON object: {error}") from error
        # What was not sent has the function's own default: a copy of it, where it could be changed.
        values = {parameter: getattr(model, field) for field, parameter in self._parameters.items()}
        return values | (model.model_extra or {})

    def bind(self, values: Mapping[str, Any], injected: object) -> inspect.BoundArguments:
        """The call itself: validated `values`, and `injected` for the parameters that ask for it."""
        given = {**values, **dict.fromkeys(self._injected, injected)}
        arguments: OrderedDict[str, Any] = OrderedDict()
        for parameter in self._signature.parameters.values():
            if parameter.kind is _ANY_NAME:
                known = self._signature.parameters
                arguments[parameter.name] = {key: value for key, value in given.items() if key not in known}
            else:
                arguments[parameter.name] = given[parameter.name]
        return inspect.BoundArguments(self._signature, arguments)

    def _blame(self, fields: Mapping[str, Any]) -> str:
        for field, (annotation, _) in fields.items():
            try:
                json_schema_of(TypeAdapter(annotation))
            except PydanticUserError:
                return f"parameter {self._parameters[field]!r}: "
        return ""


def _annotations(
    function: Callable[..., Any], signature: inspect.Signature, local_names: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The parameters' annotations, evaluated. The return type is left alone: it may be known to type checkers only."""

    def carrier() -> None: ...

    carrier.__annotations__ = {
        parameter.name: parameter.annotation
        for parameter in signature.parameters.values()
        if parameter.annotation is not parameter.empty
    }
    return typing.get_type_hints(carrier, _globals_of(function), dict(local_names or {}), include_extras=True)


def _globals_of(function: Callable[..., Any]) -> dict[str, Any]:
    function = inspect.unwrap(function.func if isinstance(function, functools.partial) else function)
    if not inspect.isroutine(function):
        function = inspect.unwrap(type(function).__call__)  # an object that can be called
    return getattr(function, "__globals__", {})


def _mentions(annotation: Any, wanted: type) -> bool:
    """Whether the annotation is `wanted`, alone, in a union or under `Annotated`."""
    if annotation is wanted:
        return True
    if typing.get_origin(annotation) in (Annotated, typing.Union, types.UnionType):
        return any(_mentions(part, wanted) for part in typing.get_args(annotation))
    return False


def _described(annotation: Any, from_docstring: str | None) -> Any:
    """The annotation with a description: its own `Field`, its own plain text, or the docstring's."""
    notes = annotation.__metadata__ if typing.get_origin(annotation) is Annotated else ()
    if any(isinstance(note, FieldInfo) and note.description for note in notes):
        return annotation
    text = next((note for note in notes if isinstance(note, str)), from_docstring)
    return Annotated[annotation, Field(description=text)] if text else annotation


def _without_title(schema: JSONSchema) -> JSONSchema:
    return {key: value for key, value in schema.items() if key != "title"}
