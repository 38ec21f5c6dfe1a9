"""Any Python value as the JSON value that stands for it, or an error that names what JSON cannot carry.

Checks are made where a value comes in (a tool's result, a model's arguments), so that nothing unencodable is found
only when the next request is being written.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator
from typing import Any

import msgspec
import pydantic_core
from pydantic import BaseModel

from accord.errors import EncodingError

# Refusals of a value's shape as a whole: no single part of it is to blame.
_OF_THE_WHOLE = ("Circular reference", "Maximum serialization depth")


def to_json_value(value: object) -> Any:
    """`value` in JSON's own types. Pydantic models, dataclasses, structs, enums, dates, sets and the like are
    turned into theirs. Raises `EncodingError` for foreign types, non-finite numbers and lone surrogates."""
    try:
        check_json_value(value)
    except TypeError:
        converted = _converted(value)
        check_json_value(converted)
        # Some members of a pydantic model that are no numbers come out as null: only the value itself tells.
        if (found := _find_unencodable(value)) is not None:
            raise found from None
        return converted
    return _converted(value)  # tuples to lists, keys to text


def check_json_value(value: Any) -> None:
    """Raise `EncodingError` where a value of JSON's types cannot be encoded, `TypeError` for other types."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        raise EncodingError("nested too deeply", path="") from None
    except ValueError as error:
        if str(error).startswith(_OF_THE_WHOLE):
            raise EncodingError(str(error), path="") from error
        # The encoder does not say where; it is looked for only now that something is known to be wrong.
        raise _find_unencodable(value) or EncodingError(str(error), path="") from error


def parse_json(text: str) -> Any:
    """The JSON value that a model wrote. Raises `EncodingError` with the line and column, or the path, of what is no
    JSON: numbers without end and halves of characters too, which other parsers let pass."""
    try:
        value = pydantic_core.from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise EncodingError(f"no JSON: {error}", path="") from error
    check_json_value(value)
    return value


def child_path(path: str, key: str | int) -> str:
    """The JSON Pointer (RFC 6901) of a member or an element of what `path` names."""
    return f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"


def _find_unencodable(value: object) -> EncodingError | None:
    pending: list[tuple[str, object]] = [("", value)]
    while pending:
        path, item = pending.pop()
        if isinstance(item, str):
            if at := _lone_surrogate(item):
                return EncodingError(at, path=path)
        elif isinstance(item, float):
            if not math.isfinite(item):
                return EncodingError(f"{item} is no JSON number", path=path)
        else:
            for key, member in _members(item):
                if isinstance(key, str) and (at := _lone_surrogate(key)):
                    return EncodingError(f"a key holds a {at}", path=path)
                pending.append((child_path(path, key), member))
    return None


def _lone_surrogate(text: str) -> str | None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"lone surrogate at character {error.start}"
    return None


def _converted(value: object) -> Any:
    try:
        return _convert(value)
    except (ValueError, TypeError) as error:
        raise _located(value, _reason(error)) from error


def _convert(value: object) -> Any:
    return pydantic_core.to_jsonable_python(value, fallback=_struct_to_builtins)


def _struct_to_builtins(value: object) -> Any:
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _reason(error: Exception) -> str:
    return str(error).removeprefix("Error calling `fallback`: ")


def _refusal(value: object) -> str | None:
    try:
        _convert(value)
    except (ValueError, TypeError) as error:
        return _reason(error)
    return None


def _located(value: object, reason: str) -> EncodingError:
    """The converter names no path: go down, a level at a time, to the innermost part that it refuses."""
    path = ""
    descending = not reason.startswith(_OF_THE_WHOLE)
    while descending:
        descending = False
        for key, member in _members(value):
            if (deeper := _refusal(member)) is not None:
                value, path, reason, descending = member, child_path(path, key), deeper, True
                break
    return EncodingError(reason, path=path)


def _members(value: object) -> Iterator[tuple[str | int, object]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list | tuple):
        yield from enumerate(value)
    elif isinstance(value, BaseModel):
        yield from value.model_dump().items()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
