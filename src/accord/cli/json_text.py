"""JSON text of whatever was delivered: RFC 8259, UTF-8, lone surrogates as the escapes they came as, any nesting."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import UNSET

from accord.errors import EncodingError
from accord.protocol import JSON
from accord.protocol.codec import encode
from accord.protocol.patch import EXTRA


def shape_text(shape: msgspec.Struct) -> bytes:
    """A shape of the protocol in its wire form, compact.

    What we send may hold no lone surrogate and nest only so deep; what we received, and made of it, may.
    """
    try:
        return encode(shape)
    except (EncodingError, RecursionError):
        return _bytes("".join(_pieces(shape)))


def json_text(value: JSON) -> bytes:
    """Any JSON value, compact."""
    try:
        return _bytes(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    except RecursionError:
        return _bytes("".join(_pieces(value)))


def _bytes(text: str) -> bytes:
    # The handler writes a lone surrogate as `\\udXXX`, which in JSON is its escape; nothing else fails to encode.
    return text.encode("utf-8", "backslashreplace")


def _pieces(value: Any) -> Iterator[str]:
    """The text of a value, shapes included, without recursion: each open object or list waits on the stack."""
    stack: list[tuple[Iterator[tuple[str, Any]], str]] = [(iter([("", value)]), "")]
    while stack:
        members, closing = stack[-1]
        for introduction, member in members:
            yield introduction
            if isinstance(member, list):
                yield "["
                stack.append((_separated(("", element) for element in member), "]"))
                break
            if isinstance(member, dict | msgspec.Struct):
                yield "{"
                named = member.items() if isinstance(member, dict) else _members(member)
                stack.append(
                    (_separated((f"{json.dumps(name, ensure_ascii=False)}:", each) for name, each in named), "}")
                )
                break
            yield json.dumps(member, ensure_ascii=False)
        else:
            yield closing
            stack.pop()


def _separated(members: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    separator = ""
    for introduction, member in members:
        yield separator + introduction, member
        separator = ","


def _members(shape: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    """The members of a shape by their wire names, the undescribed ones of an operation beside the others."""
    config = shape.__struct_config__
    if config.tag_field is not None:
        yield config.tag_field, config.tag
    for attribute, wire_name in zip(shape.__struct_fields__, shape.__struct_encode_fields__, strict=True):
        value = getattr(shape, attribute)
        if wire_name == EXTRA:
            yield from () if value is UNSET else value.items()
        elif value is not UNSET:
            yield wire_name, value
