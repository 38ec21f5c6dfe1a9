"""The operations of a JSON Patch (RFC 6902 section 4).

The one open object of the protocol: members an operation does not define are kept, in `extra`, and written again.
"""

import sys
from typing import Annotated, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from accord.protocol.values import JSON, JSONObject, JsonPointer

#: Undescribed members. On the wire they stand beside the described ones; the length asked for is one no JSON reaches,
#: so that the strict decoder never fills this and leaves every operation that has such members to `conform`.
Extra: TypeAlias = Annotated[JSONObject, Meta(min_length=sys.maxsize)]
EXTRA = "(extra)"


class PatchOperation(
    Struct,
    frozen=True,
    kw_only=True,
    tag_field="op",
    forbid_unknown_fields=True,
    rename={"extra": EXTRA, "from_": "from"},
):
    """What the six operations share: the place they work on."""

    path: JsonPointer
    extra: Extra | UnsetType = UNSET

    @property
    def op(self) -> str:
        """The operation's name, as on the wire."""
        return str(self.__struct_config__.tag)


class AddOperation(PatchOperation, frozen=True, kw_only=True, tag="add"):
    """Put `value` at `path`: a new member or element, or a new value of an existing member."""

    value: JSON


class RemoveOperation(PatchOperation, frozen=True, kw_only=True, tag="remove"):
    """Take away what is at `path`."""


class ReplaceOperation(PatchOperation, frozen=True, kw_only=True, tag="replace"):
    """Put `value` where something already is."""

    value: JSON


class MoveOperation(PatchOperation, frozen=True, kw_only=True, tag="move"):
    """Take what is at `from_` and add it at `path`."""

    from_: JsonPointer


class CopyOperation(PatchOperation, frozen=True, kw_only=True, tag="copy"):
    """Add at `path` what is at `from_`."""

    from_: JsonPointer


class TestOperation(PatchOperation, frozen=True, kw_only=True, tag="test"):
    """Hold the whole patch back unless `value` is at `path`."""

    __test__ = False  # not a test class, whatever a test collector makes of its name
    value: JSON


JsonPatchOperation: TypeAlias = (
    AddOperation | RemoveOperation | ReplaceOperation | MoveOperation | CopyOperation | TestOperation
)
JsonPatch: TypeAlias = list[JsonPatchOperation]

_OPERATIONS: dict[str, type[JsonPatchOperation]] = {
    "add": AddOperation,
    "remove": RemoveOperation,
    "replace": ReplaceOperation,
    "move": MoveOperation,
    "copy": CopyOperation,
    "test": TestOperation,
}


def read_operation(operation: JSONObject | JsonPatchOperation) -> JsonPatchOperation:
    """The shape of an operation given as a well-formed JSON object, whose values it shares; a shape is itself."""
    if isinstance(operation, PatchOperation):
        return operation
    shape = _OPERATIONS[operation["op"]]
    members = {"from_" if name == "from" else name: value for name, value in operation.items() if name != "op"}
    extra = {name: members.pop(name) for name in operation.keys() - {*shape.__struct_fields__, "from", "op"}}
    return shape(**members, extra=extra) if extra else shape(**members)
