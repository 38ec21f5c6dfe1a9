"""A JSON value to change in place, of which only what is touched is copied.

Reading a member of a draft makes a draft of it; writing marks it and everything above it. The value it was made of is
never changed, and what nobody touched is the same object afterwards, which lets `diff` pass it by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping, MutableSequence
from typing import Any, SupportsIndex, overload

from accord.protocol import JSON


class DraftObject(MutableMapping[str, Any]):
    """An object under change."""

    def __init__(self, base: dict[str, Any]) -> None:
        self._members: dict[str, Any] = dict(base)
        self._base = base

    def __getitem__(self, name: str) -> Any:
        member = self._members[name]
        if type(member) in (dict, list) and name in self._base and self._base[name] is member:
            member = self._members[name] = draft_of(member)
        return member

    def __setitem__(self, name: str, value: Any) -> None:
        self._members[name] = value

    def __delitem__(self, name: str) -> None:
        del self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __repr__(self) -> str:
        return repr(self._members)

    def finish(self, plain: Callable[[Any], JSON]) -> JSON:
        """The value as it is now; the base itself when nothing has changed."""
        members = {
            name: member if name in self._base and self._base[name] is member else finished(member, plain)
            for name, member in self._members.items()
        }
        same = len(members) == len(self._base) and all(
            name in self._base and self._base[name] is member for name, member in members.items()
        )
        return self._base if same else members


class DraftArray(MutableSequence[Any]):
    """An array under change."""

    def __init__(self, base: list[Any]) -> None:
        self._elements: list[Any] = list(base)
        self._base = base
        self._ours = {id(element) for element in base if type(element) in (dict, list)}

    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self._elements)))]
        element = self._elements[index]
        if type(element) in (dict, list) and id(element) in self._ours:
            element = self._elements[index] = draft_of(element)
        return element

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements[index] = value

    def __delitem__(self, index: Any) -> None:
        del self._elements[index]

    def __len__(self) -> int:
        return len(self._elements)

    def __eq__(self, other: object) -> bool:
        return list(self) == (list(other) if isinstance(other, DraftArray) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._elements)

    def insert(self, index: int, value: Any) -> None:
        """Puts `value` before the element at `index`."""
        self._elements.insert(index, value)

    def sort(self, *, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> None:
        """Sorts the elements in place."""
        self._elements.sort(key=key, reverse=reverse)

    def extend(self, values: Iterable[Any]) -> None:
        """Appends several."""
        self._elements.extend(values)

    def finish(self, plain: Callable[[Any], JSON]) -> JSON:
        """The value as it is now; the base itself when nothing has changed."""
        elements = [element if id(element) in self._ours else finished(element, plain) for element in self._elements]
        same = len(elements) == len(self._base) and all(
            new is old for new, old in zip(elements, self._base, strict=True)
        )
        return self._base if same else elements


def draft_of(value: JSON) -> Any:
    """A draft of an object or an array; any other value is itself."""
    if type(value) is dict:
        return DraftObject(value)
    return DraftArray(value) if type(value) is list else value


def finished(value: Any, plain: Callable[[Any], JSON]) -> JSON:
    """The JSON value a draft stands for; what was put into it is made plain, drafts within it included."""
    if isinstance(value, DraftObject | DraftArray):
        return value.finish(plain)
    if type(value) is dict:
        return {name: finished(member, plain) for name, member in value.items()}
    if type(value) is list:
        return [finished(element, plain) for element in value]
    return plain(value)
