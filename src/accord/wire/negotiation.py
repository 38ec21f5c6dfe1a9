"""Which wire a response speaks: HTTP content negotiation (RFC 9110 section 12.5.1) between SSE and protobuf.

Protobuf is for a client whose `Accept` admits its media type with a weight above zero. Whether it would rather have
another type is not consulted; a header that is absent or cannot be read means SSE.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

PROTOBUF_MEDIA_TYPE: Final = "application/vnd.ag-ui.event+proto"
JSON_MEDIA_TYPE: Final = "application/json"

_TYPE, _SUBTYPE = PROTOBUF_MEDIA_TYPE.split("/")
_WEIGHT = re.compile(r"\d+(?:\.\d*)?|\.\d+")
# A run of text with no separator in it, quoted strings (closed or not) taken whole.
_BETWEEN_COMMAS = re.compile(r'(?:[^,"]|"[^"]*"?)+')
_BETWEEN_SEMICOLONS = re.compile(r'(?:[^;"]|"[^"]*"?)+')


class _Range(NamedTuple):
    """How well one range of `Accept` names the protobuf type, and its weight; the greatest one decides."""

    exact_type: bool
    exact_subtype: bool
    has_parameters: bool
    weight: float


def admits_protobuf(accept: str | None) -> bool:
    """Whether an `Accept` header admits `PROTOBUF_MEDIA_TYPE`. Absent (`None`) and empty do not."""
    ranges = [found for text in _BETWEEN_COMMAS.findall(accept or "") if (found := _match(text)) is not None]
    return bool(ranges) and max(ranges).weight > 0


def media_type(content_type: str | None) -> str:
    """The `type/subtype` of a `Content-Type` header in lower case, without parameters; `""` when it is absent."""
    return (content_type or "").partition(";")[0].strip().lower()


def _match(text: str) -> _Range | None:
    """The range that `text` is, if it is one and the protobuf type lies in it."""
    name, _, parameters = text.partition(";")
    type_, _, subtype = name.strip().lower().partition("/")
    if type_ not in (_TYPE, "*") or subtype not in (_SUBTYPE, "*"):
        return None
    own, weight = _parameters(_BETWEEN_SEMICOLONS.findall(parameters))
    # Our type has no parameters: a range that asks for one, whatever its name, does not mean it.
    if any(value not in ("", "*") for value in own.values()):
        return None
    return _Range(type_ == _TYPE, subtype == _SUBTYPE, bool(own), weight)


def _parameters(parameters: Sequence[str]) -> tuple[dict[str, str], float]:
    """The parameters of the media type, which end at `q`, and the weight; 0 when `q` is not a number."""
    own: dict[str, str] = {}
    for parameter in parameters:
        name, _, value = (part.strip() for part in parameter.partition("="))
        value = value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value
        if name.lower() == "q":
            number = _WEIGHT.match(value)
            return own, float(number[0]) if number else 0.0
        own[name.lower()] = value
    return own, 1.0
