"""One id for each function call, whatever a model server's stream makes of ids.

Servers of the chat completions kind send calls as fragments with an index, an id, a name and a piece of the
arguments, each of which may be missing, repeated or wrong. What they have in common:

- a call's first fragment brings its name, sooner or later, and no other call's fragment belongs to it;
- an id that is known says which call is meant, else the index does, else it is the latest call;
- a name says that a new call begins, when the call meant has another name or its arguments are a whole object.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

from accord.agents.content import FunctionCallContent
from accord.agents.surrogates import SurrogateJoiner


class CallFragments:
    """Takes fragments as a server sends them, gives those that a `ChatClient` owes.

    Each call's first fragment has its name and all of them have its id: the server's, or one of `new_id` where the
    server gave none or gave the same one twice.
    """

    def __init__(self, new_id: Callable[[], str] = lambda: f"call_{uuid4().hex}") -> None:
        self._new_id = new_id
        self._calls: list[_Call] = []
        self._latest: _Call | None = None
        self._taken: set[str] = set()
        self._by_id: dict[str, _Call] = {}
        self._by_index: dict[int, _Call] = {}

    def add(
        self, *, index: int | None, call_id: str | None, name: str | None, arguments: str | None
    ) -> FunctionCallContent | None:
        """The fragment to pass on; None while the name of its call is not known."""
        call = self._meant(index, call_id, name)
        if call is None or self._begins_another(call, index, call_id, name, arguments):
            call = self._open(call_id)
        if call_id:
            call.server_id = call.server_id or call_id
            self._by_id[call_id] = call
        if index is not None:
            call.index = index
            self._by_index[index] = call
        self._latest = call
        return call.take(name or "", arguments or "")

    def finish(self) -> list[FunctionCallContent]:
        """What was held back for a name, or for half a character, that never came."""
        return [fragment for call in self._calls if (fragment := call.finish()) is not None]

    def _meant(self, index: int | None, call_id: str | None, name: str | None) -> _Call | None:
        if call_id and call_id in self._by_id:
            return self._by_id[call_id]
        if index is not None and (index in self._by_index or name or call_id):
            return self._by_index.get(index)
        if call_id and self._latest is not None and self._latest.server_id:
            return None
        return self._latest

    def _begins_another(
        self, call: _Call, index: int | None, call_id: str | None, name: str | None, arguments: str | None
    ) -> bool:
        new_id = bool(call_id) and call_id not in self._by_id
        if not name:
            # Some servers change the id with every fragment; only after a whole call is it the next one's.
            return new_id and bool(call.server_id) and call.is_whole
        if call.name and name != call.name:
            return True
        if new_id:
            # The id may also be late for a call that had none.
            return bool(call.server_id) or call.is_whole
        if not call.is_whole:
            return False
        moved = index is not None and call.index is not None and index != call.index
        return bool(arguments and arguments.strip()) or moved or not call.server_id

    def _open(self, call_id: str | None) -> _Call:
        unique = call_id if call_id and call_id not in self._taken else self._new_id()
        self._taken.add(unique)
        call = _Call(unique)
        self._calls.append(call)
        return call


class _Call:
    def __init__(self, call_id: str) -> None:
        self.call_id = call_id
        self.server_id = ""
        self.index: int | None = None
        self.name = ""
        self._held = ""
        self._announced = False
        self._text = SurrogateJoiner()
        self._object = _ObjectEnd()

    @property
    def is_whole(self) -> bool:
        """Whether the arguments so far are a whole JSON object."""
        return self._object.reached

    def take(self, name: str, arguments: str) -> FunctionCallContent | None:
        self._object.feed(arguments)
        self.name = self.name or name
        self._held += self._text.feed(arguments)
        return self._pass_on() if self.name else None

    def finish(self) -> FunctionCallContent | None:
        self._held += self._text.close()
        return None if self._announced and not self._held else self._pass_on()

    def _pass_on(self) -> FunctionCallContent:
        fragment = FunctionCallContent(self.call_id, "" if self._announced else self.name, self._held)
        self._announced, self._held = True, ""
        return fragment


class _ObjectEnd:
    """Finds the end of a JSON object in a growing text, by its brackets alone."""

    def __init__(self) -> None:
        self.reached = False
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def feed(self, text: str) -> None:
        for character in text:
            if self._escaped:
                self._escaped = False
            elif self._in_string:
                self._escaped = character == "\\"
                self._in_string = character != '"'
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                self.reached = self._depth == 0
