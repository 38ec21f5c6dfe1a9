"""A tool's answer to three readers apart: the model, the interface and the shared state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class StateUpdate:
    """What `state_update` makes; returned by a tool, carried out by the run of an `AGUIAgent`."""

    text: str
    tool_result: Any = None
    state: Mapping[str, Any] | None = None
    patch: Sequence[Mapping[str, Any]] = ()


def state_update(
    text: str = "",
    *,
    tool_result: Any = None,
    state: Mapping[str, Any] | None = None,
    patch: Sequence[Mapping[str, Any]] = (),
) -> StateUpdate:
    """A tool's return: `text` for the model, `tool_result` (JSON, or a model) for the interface, and a state change.

    `state` gives members their new values and leaves the others as they are; `patch` is RFC 6902 operations on the
    whole state, which can also reach within and remove. Where only `text` is given, the interface sees it too. A
    change that the state's schema refuses, or that does not apply, is not made, and the model reads why.
    """
    return StateUpdate(text, tool_result, state, patch)
