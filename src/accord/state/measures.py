"""How large and how deep parts of a document are, counted once for as long as they do not change.

A short operation may name the same large part again and again, and must not cost what the part does.
"""

from __future__ import annotations

from typing import Any

from accord.state.size import json_size

_WORTH = 256
"""What is remembered of a part pays from about this many bytes or elements on."""

_MAX_WEIGHT = 8_388_608
"""How much may be remembered, in bytes or elements: what is remembered is kept from being freed."""


class Measures:
    """Measures of containers; `lasting` says of one that neither it nor what is in it will ever be changed."""

    __slots__ = ("_known", "_weight")

    def __init__(self) -> None:
        #: What was measured, of which container and up to which limit: the container, the answer, its weight here.
        self._known: dict[tuple[str, int, int], tuple[Any, int, int]] = {}
        self._weight = 0

    def size(self, value: Any, limit: int, *, lasting: bool) -> int:
        """Bytes of `value` as compact JSON; any number beyond `limit` stands for all of them."""
        exact, least = ("size", id(value), 0), ("least", id(value), 0)
        known = self._known.get(exact)
        if known is not None:
            return known[1]
        known = self._known.get(least)
        if known is not None and known[1] > limit:
            return known[1]
        size = json_size(value, limit + 1)
        if lasting:
            self._keep(exact if size <= limit else least, value, size, size)
        return size

    def depth(self, value: Any, limit: int, *, lasting: bool) -> int:
        """Levels of containers in `value`, itself included; one more than `limit` stands for any number beyond."""
        key = ("depth", id(value), limit)
        known = self._known.get(key)
        if known is not None:
            return known[1]
        depth = visited = 0
        level = containers([value])
        while level and depth <= limit:
            depth += 1
            inner: dict[int, Any] = {}  # one that a level holds twice is entered once
            for container in level:
                visited += 1 + len(container)
                for each in containers(container):
                    inner[id(each)] = each
            level = list(inner.values())
        if lasting:
            self._keep(key, value, depth, visited)
        return depth

    def _keep(self, key: tuple[str, int, int], value: Any, measure: int, weight: int) -> None:
        if weight < _WORTH:
            return
        replaced = self._known.pop(key, None)
        self._known[key] = (value, measure, weight)
        self._weight += weight - (0 if replaced is None else replaced[2])
        while self._weight > _MAX_WEIGHT and len(self._known) > 1:
            self._weight -= self._known.pop(next(iter(self._known)))[2]


def containers(value: Any) -> list[Any]:
    """The objects and lists directly in an object or list."""
    values = value.values() if type(value) is dict else value
    return [each for each in values if type(each) is dict or type(each) is list]
