"""Values a program holds made into the JSON they stand for, as a copy that nobody else can change."""

from __future__ import annotations

import dataclasses
import math
from enum import Enum
from typing import Any

import msgspec

from accord.errors import EncodingError
from accord.protocol import JSON
from accord.protocol.conform import escape_token


def plain(value: Any) -> JSON:
    """`value` as JSON, sharing nothing with it that can change.

    JSON values, tuples, enum members with a JSON value, Pydantic models (by alias), msgspec structs and dataclasses,
    at any depth; members that are None stay `null`. `EncodingError` names the path of anything else.
    """
    try:
        return _plain(value, "")
    except RecursionError:
        raise EncodingError("nested too deeply, or inside itself", path="") from None


_BASES: tuple[Any, ...] = (str, int, float, dict, list)


def _plain(value: Any, path: str) -> JSON:
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is float:
        if not math.isfinite(value):
            raise EncodingError(f"{value} is not a JSON number", path=path)
        return value
    if kind is dict:
        copied = {}
        for key, member in value.items():
            if not isinstance(key, str):
                raise EncodingError(f"a member's name must be a string, not {key!r}", path=path)
            copied[str(key)] = _plain(member, f"{path}/{escape_token(key)}")
        return copied
    if kind is list or kind is tuple:
        return [_plain(element, f"{path}/{position}") for position, element in enumerate(value)]
    if isinstance(value, Enum):
        return _plain(value.value, path)
    dump = getattr(kind, "model_dump", None)
    if dump is not None:  # a Pydantic model, without importing Pydantic for it
        return _plain(dump(value, mode="json", by_alias=True), path)
    if isinstance(value, msgspec.Struct):
        members = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        found = {wire_name: getattr(value, attribute) for attribute, wire_name in members}
        config = value.__struct_config__
        tag = {} if config.tag_field is None else {config.tag_field: config.tag}
        return _plain({**tag, **{name: each for name, each in found.items() if each is not msgspec.UNSET}}, path)
    if dataclasses.is_dataclass(value):
        return _plain({each.name: getattr(value, each.name) for each in dataclasses.fields(value)}, path)
    for base in _BASES:  # a subclass stands for the JSON value it is
        if isinstance(value, base):
            return _plain(base(value), path)
    raise EncodingError(f"{kind.__module__}.{kind.__qualname__} is not a JSON value", path=path)
