"""JSON Pointer (RFC 6901): text to reference tokens and back, and tokens to array indices.

Strict on purpose: an index is `0` or digits without a leading zero, so no two pointers name one element.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from accord.errors import AccordError
from accord.protocol.conform import escape_token

MAX_POINTER_LENGTH = 65_536
"""Default limit in characters: far above any real document, and short enough to repeat in an error."""

_CACHED_LENGTH = 256
_BAD_ESCAPE = re.compile(r"~(?![01])")
_INDEX = re.compile(r"0|[1-9][0-9]{0,17}")


class PointerError(AccordError):
    """Text that is no JSON Pointer, or a token that is no index of the array it is applied to."""


def parse_pointer(pointer: str, *, max_pointer_length: int = MAX_POINTER_LENGTH) -> tuple[str, ...]:
    """The reference tokens of `pointer`, unescaped; the whole document (`""`) has none.

    Raises `PointerError` for a value that is not text, text that does not begin with `/`, a `~` followed by
    neither `0` nor `1`, and more than `max_pointer_length` characters (RFC 6901 sections 3 and 4).
    """
    if not isinstance(pointer, str):
        raise PointerError(f"a JSON Pointer is a string, not {type(pointer).__name__}")
    length = len(pointer)
    if length > max_pointer_length:
        raise PointerError(f"the JSON Pointer has {length} characters (limit max_pointer_length={max_pointer_length})")
    return _parse_cached(pointer) if length <= _CACHED_LENGTH else _parse(pointer)


def format_pointer(tokens: Iterable[str | int]) -> str:
    """The JSON Pointer of `tokens` (member names as they are, indices as integers or text)."""
    return "".join(["/" + escape_token(str(token)) for token in tokens])


REFUSED_NAMES = frozenset({"__proto__", "prototype"})
"""The names that `is_refused_below` knows; all others are fine everywhere."""


def is_refused_below(pointer: str, name: str) -> bool:
    """Whether peers refuse a pointer to the member `name` of what stands at `pointer`.

    What guards JavaScript's prototypes refuses `__proto__` anywhere and `prototype` below `constructor`. Such a member
    can only be sent inside of what it is a member of.
    """
    return name == "__proto__" or (name == "prototype" and pointer.endswith("/constructor"))


def array_index(token: str, length: int) -> int:
    """The index of an existing element in an array of `length`; `PointerError` when `token` names none."""
    index = _digits(token)
    if index >= length:
        raise PointerError(f"index {token} is outside the array of {length}")
    return index


def insertion_index(token: str, length: int) -> int:
    """The index to insert at, the end included; `-` is the end (RFC 6902 section 4.1)."""
    if token == "-":
        return length
    index = _digits(token)
    if index > length:
        raise PointerError(f"index {token} is beyond the end of the array of {length}")
    return index


@lru_cache(maxsize=1024)  # as pointers do, indices come again, and a match costs more than all the rest of a step
def _digits(token: str) -> int:
    if _INDEX.fullmatch(token) is None:
        raise PointerError(f"{shorten(token)} is not an array index")
    return int(token)


def shorten(text: str, limit: int = 60) -> str:
    """`text` quoted for a message, cut when it is long."""
    return repr(text if len(text) <= limit else text[:limit] + "…")


def _parse(pointer: str) -> tuple[str, ...]:
    if not pointer:
        return ()
    if pointer[0] != "/":
        raise PointerError(f"the JSON Pointer {shorten(pointer)} does not begin with '/'")
    if "~" not in pointer:
        return tuple(pointer[1:].split("/"))
    bad = _BAD_ESCAPE.search(pointer)
    if bad is not None:
        raise PointerError(f"the '~' at character {bad.start()} of the JSON Pointer begins no escape")
    return tuple([token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")])


# A stream of patches names the same few places again and again.
_parse_cached = lru_cache(maxsize=1024)(_parse)
