"""Keys of the agent session that are also members of the shared state, kept equal in both directions.

What has changed since they were last equal goes to the other side; where both have changed, the agent's side counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from accord.producer import Run, plain
from accord.protocol import JSON, JSONObject
from accord.sessions import AgentSession
from accord.state import identical


class SessionMirror:
    """The declared keys of one run's session. A value in the session must be JSON, or a model that stands for it."""

    def __init__(self, run: Run, session: AgentSession, keys: Sequence[str]) -> None:
        self._run = run
        self._session = session
        self._keys = keys
        self._equal: JSONObject = {}

    def begin(self) -> None:
        """Takes what the client holds into the session; what only the session has goes to the client."""
        if not self._keys:
            return
        shared = self._shared()
        for key in self._keys:
            if key in shared:
                self._session.state[key] = plain(shared[key])
        self.settle()

    def settle(self) -> None:
        """Makes both sides equal, and tells the client what it did not know."""
        if not self._keys:
            return
        shared = self._shared()
        changes: JSONObject = {}
        for key in self._keys:
            own = plain(self._session.state[key]) if key in self._session.state else _ABSENT
            other = shared.get(key, _ABSENT)
            known = self._equal.get(key, _ABSENT)
            if not _same(own, known) or _same(other, known):
                changes[key] = own
            elif other is _ABSENT:
                self._session.state.pop(key, None)
            else:
                self._session.state[key] = plain(other)
        self._commit(shared, changes)
        held = self._shared()
        self._equal = {key: held[key] for key in self._keys if key in held}

    def _commit(self, shared: JSONObject, changes: JSONObject) -> None:
        changed = {key: value for key, value in changes.items() if not _same(value, shared.get(key, _ABSENT))}
        if not changed:
            return
        with self._run.state.edit() as draft:
            for key, value in changed.items():
                if value is _ABSENT:
                    draft.pop(key, None)
                else:
                    draft[key] = value

    def _shared(self) -> JSONObject:
        state = self._run.state.committed
        return state if isinstance(state, dict) else {}


class _Absent:
    """Where a side has no such key."""


_ABSENT = _Absent()


def _same(left: JSON, right: JSON) -> bool:
    return left is right if _ABSENT in (left, right) else identical(left, right)
