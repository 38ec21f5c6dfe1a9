"""Which element of the old list lives on as which of the new, and how to get from one to the other.

Elements are known by an id-like member where all are objects that have one, by their content otherwise. The longest
run of elements in unchanged order stays; the rest moves, goes or comes. Everything is O(n log n).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from typing import Any

import msgspec

ID_MEMBERS = ("id", "_id", "uuid", "key", "name")
"""Members that tell objects apart, in the order in which they are tried."""

_encode_sorted = msgspec.msgpack.Encoder(order="sorted").encode
_GONE = -1


def id_keys(old: Sequence[Any], new: Sequence[Any]) -> tuple[list[Hashable], list[Hashable]] | None:
    """The ids of both lists by the first of `ID_MEMBERS` that is a string or integer in every element, and unique."""
    for member in ID_MEMBERS:
        old_ids = _ids(old, member)
        if old_ids is None:
            continue
        new_ids = _ids(new, member)
        if new_ids is not None:
            return old_ids, new_ids
    return None


def content_keys(elements: Sequence[Any]) -> list[Hashable]:
    """A key for each element: its content with types kept, and which occurrence of that content it is."""
    seen: dict[bytes, int] = {}
    keys: list[Hashable] = []
    for element in elements:
        try:
            content = _encode_sorted(element)
        except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
            keys.append(object())  # too deep or too odd to compare this way: equal to nothing
            continue
        occurrence = seen[content] = seen.get(content, -1) + 1
        keys.append((content, occurrence))
    return keys


class Alignment:
    """For each new index the old one it continues: `kept`, or -1. `stable` are the new indices that need no move."""

    def __init__(self, old_keys: Sequence[Hashable], new_keys: Sequence[Hashable]) -> None:
        index = {key: position for position, key in enumerate(old_keys)}
        self.old_length = len(old_keys)
        self.kept = [index.get(key, _GONE) for key in new_keys]
        self.stable = _longest_increasing(self.kept)
        self.paired: list[int] = []
        self._pair_leftovers()

    def _pair_leftovers(self) -> None:
        """Between stable elements, let new ones without a match continue old ones without a match, in order.

        They are `paired`: in place, with contents that differ.
        """
        free = [True] * self.old_length
        for position in self.kept:
            if position != _GONE:
                free[position] = False
        anchors = [*self.stable, len(self.kept)]
        stable: list[int] = []
        old_start = new_start = 0
        for anchor in anchors:
            old_end = self.kept[anchor] if anchor < len(self.kept) else self.old_length
            olds = [position for position in range(old_start, old_end) if free[position]]
            news = [position for position in range(new_start, anchor) if self.kept[position] == _GONE]
            for old_position, new_position in zip(olds, news, strict=False):
                self.kept[new_position] = old_position
                self.paired.append(new_position)
                stable.append(new_position)
            stable.append(anchor)
            old_start, new_start = old_end + 1, anchor + 1
        self.stable = stable[:-1]

    def removed(self) -> list[int]:
        """Old indices of the elements that go, last first, so that each index still holds when its turn comes."""
        kept = set(self.kept)
        return [position for position in range(self.old_length - 1, -1, -1) if position not in kept]

    def moves(self) -> list[tuple[int, int]]:
        """`(from, to)` for each element that changes its place, among the kept ones only, one after the other.

        Each is the index at its turn; `to` counts without the element itself (RFC 6902 section 4.4).
        """
        order = [position for position in self.kept if position != _GONE]
        stable = {self.kept[position] for position in self.stable}
        if len(stable) == len(order):
            return []
        # Slot r + 1 holds the kept element with old rank r until it moves, and after it those moved behind it; slot 0
        # those moved to the front. The index of a place is the number of elements in the slots before it.
        rank = {position: slot for slot, position in enumerate(sorted(order), start=1)}
        counts = _Counts(len(order) + 1)
        for slot in rank.values():
            counts.add(slot, 1)
        moves: list[tuple[int, int]] = []
        anchor = 0
        for position in order:
            slot = rank[position]
            if position in stable:
                anchor = slot
                continue
            source = counts.before(slot)
            counts.add(slot, -1)
            target = counts.before(anchor + 1)
            counts.add(anchor, 1)
            moves.append((source, target))
        return moves

    def added(self) -> list[int]:
        """New indices of the elements that come, first first: each is its place when its turn comes."""
        return [position for position, old_position in enumerate(self.kept) if old_position == _GONE]


class _Counts:
    """Counts per slot with sums over the first slots, both in O(log n) (a Fenwick tree)."""

    def __init__(self, size: int) -> None:
        self._tree = [0] * (size + 1)

    def add(self, slot: int, amount: int) -> None:
        slot += 1
        while slot < len(self._tree):
            self._tree[slot] += amount
            slot += slot & -slot

    def before(self, slot: int) -> int:
        """The sum of all slots before `slot`."""
        total = 0
        while slot:
            total += self._tree[slot]
            slot &= slot - 1
        return total


def _longest_increasing(values: Sequence[int]) -> list[int]:
    """Positions of a longest increasing subsequence of the values that are not -1."""
    ends: list[int] = []
    positions: list[int] = []
    before: list[int] = []
    for position, value in enumerate(values):
        if value == _GONE:
            before.append(_GONE)
            continue
        length = bisect_left(ends, value)
        if length == len(ends):
            ends.append(value)
            positions.append(position)
        else:
            ends[length] = value
            positions[length] = position
        before.append(positions[length - 1] if length else _GONE)
    chain: list[int] = []
    position = positions[-1] if positions else _GONE
    while position != _GONE:
        chain.append(position)
        position = before[position]
    chain.reverse()
    return chain


def _ids(elements: Sequence[Any], member: str) -> list[Hashable] | None:
    ids: list[Hashable] = []
    for element in elements:
        value = element.get(member) if isinstance(element, dict) else None
        if type(value) is not str and type(value) is not int:
            return None
        ids.append(value)
    return ids if len(set(ids)) == len(ids) else None
