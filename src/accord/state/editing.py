"""A JSON document under edit: containers made here change in place, all others are copied on the way to the change.

The copies are *owned* until someone else sees them (`release`), so that a run of edits nobody looks at copies each
container once. Every edit is logged before the next, so a refused patch can be taken back.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from accord.state.equality import json_equal
from accord.state.measures import Measures, containers
from accord.state.pointer import array_index, insertion_index, shorten

Tokens: TypeAlias = tuple[str, ...]
Container: TypeAlias = dict[str, Any] | list[Any]

SCALARS: Final = frozenset({str, int, float, bool, type(None)})
"""The types of values that nothing can lie below."""

PLACE_LENGTH: Final = 128
"""How many characters, and so how many levels at most, the pointer of a remembered place has."""

_MAX_PLACES: Final = 1_024
"""A stream of patches names the same few places again and again."""

# The log holds one tuple an edit: what was done, to which container, under which key, and what was there before.
_ROOT: Final = 0
SET: Final = 1
_INSERTED: Final = 2
_REMOVED: Final = 3


class Refused(Exception):
    """An edit that RFC 6902 does not allow on this document; the text is the reason."""


class Editor:
    """The six operations of RFC 6902 section 4 on one document.

    `owned` maps the id of each container made here to the container itself, which keeps the id from being reused.
    Three things keep it exact: every owned container hangs in the document below owned ones only; a subtree that a
    `copy` shares between two places is owned by neither; what leaves the document leaves `owned` as well.
    Giving up a subtree costs no more than making it did.

    `places` says where scalars were replaced by scalars, as container and key by pointer: whoever puts a scalar there
    need not look for the place again, and has only to log it in `edits`. Each container in it is owned and stands
    where the pointer leads. So all are forgotten when anything leaves the document, or `owned`, or moves within a list.

    `depth_bound` is for whoever limits the document's depth: no fewer levels than it has, None when that is not known.
    """

    __slots__ = ("_dropped", "_measures", "_owned", "_root", "_split", "depth_bound", "edits", "places")

    def __init__(self, root: Any) -> None:
        self._root = root
        self._owned: dict[int, Container] = {}
        self.edits: list[tuple[int, Any, Any, Any]] = []
        self.places: dict[str, tuple[Any, str | int]] = {}
        self._dropped: list[Container] = []
        self._split = False
        self._measures = Measures()
        self.depth_bound: int | None = None

    @property
    def root(self) -> Any:
        """The document as it stands, not to be handed out."""
        return self._root

    def release(self) -> Any:
        """The document, to be handed out: nothing in it is changed in place from here on."""
        if self._owned:
            self._owned = {}
            self.places.clear()
        return self._root

    def commit(self) -> None:
        """Keep the edits made since the last `commit` or `roll_back`."""
        self.edits.clear()
        if self._dropped:
            for value in self._dropped:
                self._disown(value)
            self._dropped.clear()
        self._split = False

    def roll_back(self) -> None:
        """Take back the edits made since the last `commit` or `roll_back`.

        The order of an object's members, which JSON gives no meaning, may end differently where one was removed.
        """
        for kind, container, key, old in reversed(self.edits):
            if kind is _ROOT:
                self._disown(self._root)
                self._root = old
                continue
            if kind is not _REMOVED:
                self._disown(container[key])
            if kind is _INSERTED:
                del container[key]
                continue
            if id(container) not in self._owned:
                self._disown(old)  # shared or moved since
            if kind is _REMOVED and isinstance(container, list):
                container.insert(key, old)
            else:
                container[key] = old
        self.edits.clear()
        self.places.clear()
        self._dropped.clear()
        self._split = False

    def add(self, tokens: Tokens, value: Any) -> None:
        if not tokens:
            self._set_root(value)
            return
        parent = self._own_parent(tokens)
        key = tokens[-1]
        if isinstance(parent, list):
            index = insertion_index(key, len(parent))
            if index < len(parent):
                self.places.clear()
            parent.insert(index, value)
            self.edits.append((_INSERTED, parent, index, None))
        elif key in parent:
            self._set(parent, key, value)
        else:
            parent[key] = value
            self.edits.append((_INSERTED, parent, key, None))

    def replace(self, tokens: Tokens, value: Any, pointer: str) -> None:
        """Put `value` where something is already; `pointer` is the text of `tokens`."""
        if not tokens:
            self._set_root(value)
            return
        parent: Any = self._own_parent(tokens)
        token = tokens[-1]
        if type(parent) is list:
            key: str | int = array_index(token, len(parent))
        elif token in parent:
            key = token
        else:
            raise Refused(f"no member {shorten(token)} to replace")
        if self._set(parent, key, value) and len(pointer) <= PLACE_LENGTH:
            if len(self.places) >= _MAX_PLACES:
                self.places.clear()
            self.places[pointer] = parent, key

    def remove(self, tokens: Tokens) -> None:
        self._drop(self._take(tokens))

    def move(self, source: Tokens, target: Tokens) -> None:
        if source == target:
            self.look_up(source)
        elif target[: len(source)] == source:
            raise Refused("a value cannot be moved into itself")
        else:
            self.add(target, self._take(source))

    def copy(self, source: Tokens, target: Tokens) -> None:
        value = self.look_up(source)
        if id(value) in self._owned:
            self.places.clear()
            self._disown(value)
            self._split = True
        self.add(target, value)

    def test(self, tokens: Tokens, value: Any) -> None:
        if not json_equal(self.look_up(tokens), value):
            raise Refused("the value there is not the one tested for")

    def look_up(self, tokens: Tokens) -> Any:
        """The value at `tokens`, not to be changed."""
        node = self._root
        for token in tokens:
            node = node[_key(node, token)]
        return node

    def size(self, tokens: Tokens, limit: int) -> int:
        """Bytes of the value at `tokens` as compact JSON; any number beyond `limit` stands for all of them."""
        value = self.look_up(tokens)
        return self._measures.size(value, limit, lasting=self._lasts(value))

    def depth(self, limit: int) -> int:
        """Levels of the document; some number beyond `limit` stands for all of them.

        What was walked through before, and has not changed, is not walked through again.
        """
        depth = deepest = 0
        level = containers([self._root])
        while level and depth <= limit:
            depth += 1
            inner: dict[int, Any] = {}
            for container in level:
                if self._lasts(container):
                    deepest = max(deepest, depth - 1 + self._measures.depth(container, limit, lasting=True))
                else:
                    for each in containers(container):
                        inner[id(each)] = each
            level = list(inner.values())
        return max(depth, deepest)

    def _lasts(self, value: Any) -> bool:
        """Whether no edit and no `roll_back` can change `value` any more.

        Below what is not owned nothing is; but a `copy` in this patch may have given up what still has edits to take
        back.
        """
        return not self._split and id(value) not in self._owned

    def _own_parent(self, tokens: Tokens) -> Container:
        """The container that holds the last token, owned like every container on the way to it.

        A copy is equal to what it was made from, so making it is no edit to take back; unless this patch has changed
        the original already and then shared it, by a `copy`: the original's edits are taken back there.
        """
        owned = self._owned
        node = self._root
        if id(node) not in owned:
            copy = self._copy_of(node, tokens[0])
            if self._split:
                self.edits.append((_ROOT, None, None, node))
            node = self._root = copy
        for position in range(len(tokens) - 1):
            token = tokens[position]
            key = token if type(node) is dict and token in node else _key(node, token)
            child = node[key]
            if id(child) not in owned:
                copy = self._copy_of(child, tokens[position + 1])
                if self._split:
                    self.edits.append((SET, node, key, child))
                child = node[key] = copy
            node = child
        return node  # type: ignore[no-any-return]

    def _copy_of(self, value: Any, token: str) -> Container:
        copy: Container
        if type(value) is dict:
            copy = value.copy()
        elif isinstance(value, dict):
            copy = dict(value)
        elif isinstance(value, list):
            copy = value[:]
        else:
            raise Refused(f"nothing can lie at {shorten(token)}, below a {_name(value)}")
        self._owned[id(copy)] = copy
        return copy

    def _take(self, tokens: Tokens) -> Any:
        if not tokens:
            raise Refused("the whole document cannot be removed")
        parent: Any = self._own_parent(tokens)
        key = _key(parent, tokens[-1])
        self.places.clear()
        value = parent.pop(key)
        self.edits.append((_REMOVED, parent, key, value))
        return value

    def _set(self, container: Any, key: str | int, value: Any) -> bool:
        """Put `value` in place of another one; whether both are scalars."""
        old = container[key]
        container[key] = value
        self.edits.append((SET, container, key, old))
        if type(old) in SCALARS and type(value) in SCALARS:
            return True
        self.places.clear()
        self._drop(old)
        return False

    def _set_root(self, value: Any) -> None:
        self.places.clear()
        self.edits.append((_ROOT, None, None, self._root))
        self._drop(self._root)
        self._root = value

    def _drop(self, value: Any) -> None:
        """Note that `value` is gone for good; its containers are given up when the patch is kept."""
        if id(value) in self._owned:
            self._dropped.append(value)

    def _disown(self, value: Any) -> None:
        values = [value]
        while values:
            node = self._owned.pop(id(values.pop()), None)
            if node is not None:
                values.extend(node.values() if isinstance(node, dict) else node)


def _key(node: Any, token: str) -> str | int:
    """The member name or index that `token` is in `node`, where something stands under it."""
    if isinstance(node, dict):
        if token in node:
            return token
        raise Refused(f"no member {shorten(token)}")
    if isinstance(node, list):
        return array_index(token, len(node))
    raise Refused(f"nothing can lie at {shorten(token)}, below a {_name(node)}")


def _name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "string" if isinstance(value, str) else "number"
