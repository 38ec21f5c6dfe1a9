"""Text that no encoder could send on (rules section 2, "Text"): a string of JSON may hold a lone surrogate, UTF-8 not.

What came in keeps it; in what goes on, U+FFFD stands for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET

from accord.protocol.conform import escape_token


def encodable(value: Any, path: str, lost: Callable[[str, str], None]) -> Any:
    """`value`, a shape or JSON, with each lone surrogate replaced and its pointer told; the very object without any.

    Members whose names become one are one: the last stands. Raises `RecursionError` for a value inside itself.
    """
    kind = type(value)
    if kind is str:
        return _text(value, path, lost)
    if kind is list:
        elements = [encodable(each, f"{path}/{position}", lost) for position, each in enumerate(value)]
        return value if all(new is old for new, old in zip(elements, value, strict=True)) else elements
    if kind is dict:
        members: dict[Any, Any] = {}
        changed = False
        for name, member in value.items():
            new_name = _text(name, path, lost) if type(name) is str else name
            new = encodable(member, f"{path}/{escape_token(new_name) if type(name) is str else name}", lost)
            changed = changed or new is not member or new_name is not name
            members[new_name] = new
        return members if changed else value
    if isinstance(value, msgspec.Struct):
        changes = {}
        for attribute, wire_name in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
            member = getattr(value, attribute)
            if member is not UNSET and (new := encodable(member, f"{path}/{wire_name}", lost)) is not member:
                changes[attribute] = new
        return msgspec.structs.replace(value, **changes) if changes else value
    return value


def _text(text: str, path: str, lost: Callable[[str, str], None]) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        mended = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        if mended.count("\ufffd") > text.count("\ufffd"):  # else they were pairs in two pieces
            lost(path, "a lone surrogate is not text, U+FFFD stands for it")
        return mended
    return text
