"""JSON Schemas for models to read: what pydantic writes, without its noise.

Titles made up from field names go; a definition used once stands where it is used, since not every model server
resolves `$ref`; one used more often (so every recursive one) stays under `$defs`, which keeps the size linear.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

JSONSchema = dict[str, Any]

_MAPS_OF_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "dependentSchemas"})
_LISTS_OF_SCHEMAS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SCHEMAS = frozenset({"items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"})
_DEFINITIONS = "#/$defs/"


class _WithoutMadeUpTitles(GenerateJsonSchema):
    # A default that is no JSON value is left out of the schema; that is no reason to warn.
    ignored_warning_kinds: ClassVar[set[JsonSchemaWarningKind]] = {"skipped-choice", "non-serializable-default"}  # type: ignore[misc]

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def json_schema_of(adapter: TypeAdapter[Any]) -> JSONSchema:
    """The JSON Schema (2020-12) of what the adapter accepts. Errors are pydantic's."""
    schema = _unwrapped(adapter.json_schema(schema_generator=_WithoutMadeUpTitles))
    definitions: dict[str, JSONSchema] = schema.pop("$defs", {})
    uses = Counter(_references(schema))
    for definition in definitions.values():
        uses.update(_references(definition))
    if isinstance(root := schema.get("$ref"), str):
        # A root that recurs refers to itself; servers want the object itself at the root.
        schema = {**definitions[_name_of(root)], **{key: value for key, value in schema.items() if key != "$ref"}}

    def inline(part: JSONSchema) -> JSONSchema:
        reference = part.get("$ref")
        if isinstance(reference, str) and uses[reference] == 1:
            part = {**definitions[_name_of(reference)], **{key: part[key] for key in part if key != "$ref"}}
        if "discriminator" in part:
            # An OpenAPI word that repeats what `oneOf` says, by references that may be gone.
            part = {key: part[key] for key in part if key != "discriminator"}
        return map_subschemas(part, inline)

    result = inline(schema)
    kept = {name: body for name, body in definitions.items() if uses[_DEFINITIONS + name] > 1}
    if kept:
        result["$defs"] = {name: map_subschemas(body, inline) for name, body in kept.items()}
    return result


def map_subschemas(schema: JSONSchema, change: Callable[[JSONSchema], JSONSchema]) -> JSONSchema:
    """A copy of `schema` with `change` applied to each schema directly in it; values (`default`, `enum`) are not."""
    result: JSONSchema = {}
    for key, value in schema.items():
        if key in _MAPS_OF_SCHEMAS and isinstance(value, dict):
            result[key] = {name: _mapped(member, change) for name, member in value.items()}
        elif key in _LISTS_OF_SCHEMAS and isinstance(value, list):
            result[key] = [_mapped(member, change) for member in value]
        else:
            result[key] = _mapped(value, change) if key in _SCHEMAS else value
    return result


def _unwrapped(schema: JSONSchema) -> JSONSchema:
    """Older pydantic puts a reference that has words beside it into an `allOf` of its own."""
    schema = map_subschemas(schema, _unwrapped)
    whole = schema.get("allOf", ())
    if len(whole) == 1 and isinstance(whole[0], dict):
        return {**whole[0], **{key: value for key, value in schema.items() if key != "allOf"}}
    return schema


def _mapped(value: Any, change: Callable[[JSONSchema], JSONSchema]) -> Any:
    return change(value) if isinstance(value, dict) else value  # true and false are schemas too


def _references(schema: JSONSchema) -> list[str]:
    found: list[str] = []

    def visit(part: JSONSchema) -> JSONSchema:
        if isinstance(reference := part.get("$ref"), str):
            found.append(reference)
        return map_subschemas(part, visit)

    visit(schema)
    return found


def _name_of(reference: str) -> str:
    return reference.removeprefix(_DEFINITIONS)
