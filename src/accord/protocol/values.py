"""The kinds of value the shapes are made of: JSON, ids, ranges, and the base every shape shares.

Absent means absent: an optional member without a value is `msgspec.UNSET` and is left out on the wire. `None` is the
JSON `null`, which only the open values (`JSON`) may be. Source: rules section 1, "Absent means absent".
"""

from typing import Annotated, Any, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

#: Any JSON value, `null` included. Typed as `Any`: what is in it is not described by the protocol.
JSON: TypeAlias = Any
#: Any JSON object.
JSONObject: TypeAlias = dict[str, Any]
#: Any JSON value except `null`: an optional open value, which is absent rather than null.
NonNull: TypeAlias = dict[str, Any] | list[Any] | str | int | float | bool
#: Open key-value data; merged key by key, last write wins.
Metadata: TypeAlias = dict[str, Any]
#: Names one invocation of a subagent.
SubagentRunId: TypeAlias = str

#: The integers that every JSON implementation holds exactly.
MAX_SAFE_INTEGER = 2**53 - 1
SafeInt: TypeAlias = Annotated[int, Meta(ge=-MAX_SAFE_INTEGER, le=MAX_SAFE_INTEGER)]
#: A token count: 0 to 2^53-1.
Count: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_SAFE_INTEGER)]
#: RFC 6901 section 3: empty, or segments each opened by `/`, where `~` stands only in `~0` and `~1`.
JsonPointer: TypeAlias = Annotated[str, Meta(pattern=r"\A(?:/[^~]*(?:~[01][^~]*)*)?\Z")]


class Shape(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of every closed object of the protocol: immutable, camelCase on the wire, nothing undescribed."""


class Identified(Shape, frozen=True, kw_only=True):
    """A shape that may be attributed to a subagent's invocation."""

    subagent_run_id: SubagentRunId | UnsetType = UNSET
