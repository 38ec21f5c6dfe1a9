"""JSON values that evolve: pointers, patches, differences, a shared value, and text that becomes a value as it grows.

Nothing handed in or out is ever mutated, and no cost depends on how large the untouched rest is.
"""

from accord.errors import PatchError
from accord.protocol.conform import escape_token
from accord.state.diff import diff
from accord.state.equality import identical, json_equal
from accord.state.json_reader import IncompleteJSON, MalformedJSON
from accord.state.partial_json import PartialJSON
from accord.state.patch import apply_patch
from accord.state.pointer import PointerError, array_index, format_pointer, parse_pointer
from accord.state.shared import SharedValue

__all__ = [
    "IncompleteJSON",
    "MalformedJSON",
    "PartialJSON",
    "PatchError",
    "PointerError",
    "SharedValue",
    "apply_patch",
    "array_index",
    "diff",
    "escape_token",
    "format_pointer",
    "identical",
    "json_equal",
    "parse_pointer",
]
