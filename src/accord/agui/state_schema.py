"""What the shared state must look like: one JSON Schema, whatever it was written as.

A Pydantic model, a dataclass, a msgspec struct, a JSON Schema, or the simple form `{member: {"type", "description"}}`.
It judges what comes in and every change the agent makes, knows the defaults, and which members are private (never
leave, and are ignored when they come in) or read-only (not the client's to change).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from copy import deepcopy
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from accord.agents import AgentSetupError
from accord.errors import AccordError
from accord.producer import plain
from accord.protocol import JSON, JSONObject
from accord.protocol.conform import escape_token

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

#: What a state schema may be written as.
StateSchemaLike: TypeAlias = Mapping[str, Any] | type

#: Of how many errors the one nearest the root is told.
_MAX_ERRORS = 100

READ_ONLY = "readOnly"
PRIVATE = "x-private"


class StateRejected(AccordError):
    """A state that its schema does not allow; `path` is a JSON Pointer into the state."""

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(f"{path or '(root)'}: {message}")
        self.path = path


class StateSchema:
    """The schema of a shared state, an object.

    `schema` is written in any of the forms of `StateSchemaLike`. Members named in `private` and `read_only`, or marked
    in the JSON Schema by `"x-private": true` and `"readOnly": true`, are what their names say. Raises
    `AgentSetupError` for what is no schema, and for names of members that do not exist.
    """

    def __init__(self, schema: StateSchemaLike, *, private: Iterable[str] = (), read_only: Iterable[str] = ()) -> None:
        self.schema: JSONObject = _json_schema(schema)
        self._model = schema if isinstance(schema, type) else None
        members: Mapping[str, Any] = self.schema.get("properties", {})
        self.members = frozenset(members)
        marked = {name: spec for name, spec in members.items() if isinstance(spec, Mapping)}
        self.private = frozenset(private) | {name for name, spec in marked.items() if spec.get(PRIVATE) is True}
        self.read_only = frozenset(read_only) | {name for name, spec in marked.items() if spec.get(READ_ONLY) is True}
        for name in sorted((self.private | self.read_only) - self.members):
            raise AgentSetupError(f"state_schema: there is no member {name!r}; it has {sorted(self.members)}")

    @property
    def shown(self) -> JSONObject:
        """The schema without private members, as a model may see it."""
        if not self.private:
            return self.schema
        members = {name: spec for name, spec in self.schema["properties"].items() if name not in self.private}
        return {
            **self.schema,
            "properties": members,
            "required": [name for name in self.schema.get("required", ()) if name not in self.private],
        }

    @cached_property
    def defaults(self) -> JSONObject:
        """The default of each member that has one."""
        declared = {
            name: deepcopy(spec["default"])
            for name, spec in self.schema.get("properties", {}).items()
            if isinstance(spec, Mapping) and "default" in spec
        }
        return {**declared, **_model_defaults(self._model)}

    def completed(self, state: JSON) -> JSON:
        """`state` with the defaults of the members it lacks; a state that is no object as it is."""
        return {**deepcopy(self.defaults), **state} if isinstance(state, dict) else state

    def check(self, state: JSON, *, partial: bool = True) -> None:
        """Raises `StateRejected` naming the path of what is wrong first.

        A `partial` state may lack members that are required: a conversation begins with none and fills them in.
        """
        from jsonschema_rs import ValidationErrorKind

        found = [
            error
            for error in islice(self._validator.iter_errors(state), _MAX_ERRORS)
            if error.instance_path or not (partial and isinstance(error.kind, ValidationErrorKind.Required))
        ]
        if found:
            error = min(found, key=lambda each: (len(each.instance_path), str(each.instance_path)))
            raise StateRejected(error.message[:500], path=_pointer(error))

    @cached_property
    def _validator(self) -> Validator:
        from jsonschema_rs import validator_for

        # What is refused is told to the model and the client, and may hold private members.
        return validator_for(self.schema, mask="the value")


def _json_schema(schema: StateSchemaLike) -> JSONObject:
    if isinstance(schema, type):
        made = _model_schema(schema)
    elif isinstance(schema, Mapping):
        made = deepcopy(dict(schema)) if _is_json_schema(schema) else _from_simple(schema)
    else:
        raise AgentSetupError(f"state_schema: a model, a JSON Schema or members are due, not {type(schema).__name__}")
    from jsonschema_rs import ValidationError, meta

    try:
        meta.validate(made)
    except ValidationError as error:
        message = f"no JSON Schema at {_pointer(error) or '(root)'}: {error.message[:500]}"
        raise AgentSetupError(f"state_schema: {message}") from None
    return made


def _pointer(error: ValidationError) -> str:
    return "".join(f"/{escape_token(str(step))}" for step in error.instance_path)


def _is_json_schema(schema: Mapping[str, Any]) -> bool:
    """The simple form has nothing but objects for members, so a keyword that is none tells a JSON Schema."""
    return isinstance(schema.get("type"), str | list) or "$schema" in schema or "$ref" in schema


def _from_simple(members: Mapping[str, Any]) -> JSONObject:
    for name, spec in members.items():
        if not isinstance(spec, Mapping):
            raise AgentSetupError(f"state_schema[{name!r}]: an object with 'type' is due, not {spec!r}")
    return {"type": "object", "properties": {name: deepcopy(dict(spec)) for name, spec in members.items()}}


def _model_schema(model: type) -> JSONObject:
    if issubclass(model, msgspec.Struct):
        made = msgspec.json.schema(model)
    else:
        from pydantic import BaseModel, TypeAdapter

        if not issubclass(model, BaseModel) and not dataclasses.is_dataclass(model):
            raise AgentSetupError(f"state_schema: {model.__name__} is no Pydantic model, dataclass or msgspec struct")
        made = TypeAdapter(model).json_schema(mode="validation")
    if "$ref" in made:  # the members are looked up at the root
        name = made["$ref"].rsplit("/", 1)[-1]
        made = {**made["$defs"][name], "$defs": made["$defs"]}
    return dict(made)


def _model_defaults(model: type | None) -> JSONObject:
    """Defaults that JSON Schema does not carry: those made by a factory."""
    if model is None:
        return {}
    if issubclass(model, msgspec.Struct):
        return {
            each.encode_name: plain(each.default_factory())
            for each in msgspec.structs.fields(model)
            if each.default_factory is not msgspec.NODEFAULT
        }
    if dataclasses.is_dataclass(model):
        return {
            each.name: plain(each.default_factory())
            for each in dataclasses.fields(model)
            if each.default_factory is not dataclasses.MISSING
        }
    found: JSONObject = {}
    for name, each in getattr(model, "model_fields", {}).items():
        if each.default_factory is not None and not each.default_factory_takes_validated_data:
            found[each.alias or name] = plain(each.default_factory())
    return found
