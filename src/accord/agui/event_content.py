"""What an AG-UI server says that an agent's update has no content for."""

from __future__ import annotations

from typing import Any

from accord.agents import Content


class StateDeltaContent(Content, frozen=True):
    """The shared state has changed: `delta` is a JSON Patch (RFC 6902), a list of objects."""

    delta: list[dict[str, Any]]


class AGUIEventContent(Content, frozen=True):
    """An event of the server that is nothing an agent's update has a content for, as the object it is on the wire."""

    event: dict[str, Any]
