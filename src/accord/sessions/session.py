"""What outlives an agent's run: ids, and a state that whoever takes part in the run may keep things in.

A session is saved as JSON and restored from it. Values that JSON has no form for are tagged, and the tag can never be
mistaken for a value: an object that looks like one is written as an escaped object.
"""

from __future__ import annotations

import base64
import datetime
import math
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from accord.errors import AccordError, EncodingError

#: The version of the saved form.
VERSION = 1

_TAG = "$accord"


class SessionError(AccordError):
    """A saved session that cannot be restored, and where it is wrong."""


class AgentSession:
    """One conversation of an agent.

    `session_id` names it here. `service_session_id` names it at a model service that keeps the history itself; it is
    no credential, and belongs only to the user it was issued for. `state` is shared by the agent's parts, each under
    a key of its own; it holds JSON values, datetimes, dates, times, timedeltas, bytes, sets, tuples, UUIDs and
    Decimals.
    """

    def __init__(
        self,
        session_id: str | None = None,
        *,
        service_session_id: str | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id or str(uuid.uuid4())
        self.service_session_id = service_session_id
        self.state: dict[str, Any] = dict(state or {})

    def to_dict(self) -> dict[str, Any]:
        """The session as a JSON object. Raises `EncodingError` naming the path of a value it cannot hold."""
        return {
            "version": VERSION,
            "session_id": self.session_id,
            "service_session_id": self.service_session_id,
            "state": _save(self.state, "/state"),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> AgentSession:
        """The session that `to_dict` saved. Raises `SessionError`."""
        if not isinstance(saved, Mapping) or "session_id" not in saved:
            raise SessionError("a saved session is an object with a session_id")
        version = saved.get("version", VERSION)
        if not isinstance(version, int) or version > VERSION:
            raise SessionError(f"/version: {version!r} is newer than {VERSION}, which is read here")
        state = _restore(saved.get("state", {}), "/state")
        if not isinstance(state, dict):
            raise SessionError("/state: an object is due")
        return cls(saved["session_id"], service_session_id=saved.get("service_session_id"), state=state)

    def __repr__(self) -> str:
        return f"<AgentSession {self.session_id}>"


def _save(value: Any, path: str) -> Any:
    kind = type(value)
    if value is None or kind in (str, bool, int):
        return value
    if kind is float:
        if not math.isfinite(value):
            raise EncodingError(f"{value} is not a JSON number", path=path)
        return value
    if kind is list:
        return [_save(element, f"{path}/{position}") for position, element in enumerate(value)]
    if isinstance(value, Mapping):
        return _save_object(value, path)
    for name, (types, save, _) in _TYPES.items():
        if kind is types:
            return {_TAG: name, "value": _save(save(value), path)}
    raise EncodingError(f"{kind.__module__}.{kind.__qualname__} cannot be kept in a session", path=path)


def _save_object(value: Mapping[Any, Any], path: str) -> dict[str, Any]:
    for name in value:
        if not isinstance(name, str):
            raise EncodingError(f"a member's name must be a string, not {name!r}", path=path)
    saved = {name: _save(member, f"{path}/{name}") for name, member in value.items()}
    return {_TAG: "object", "value": saved} if _TAG in saved else saved


def _restore(saved: Any, path: str) -> Any:
    if isinstance(saved, list):
        return [_restore(element, f"{path}/{position}") for position, element in enumerate(saved)]
    if not isinstance(saved, Mapping):
        return saved
    if _TAG not in saved:
        return {name: _restore(member, f"{path}/{name}") for name, member in saved.items()}
    name = saved[_TAG]
    if name == "object" and isinstance(saved.get("value"), Mapping):
        return {key: _restore(member, f"{path}/{key}") for key, member in saved["value"].items()}
    if not isinstance(name, str) or name not in _TYPES:
        raise SessionError(f"{path}: nothing is known of {name!r}")
    try:
        return _TYPES[name][2](_restore(saved.get("value"), path))
    except (TypeError, ValueError, ArithmeticError) as error:
        raise SessionError(f"{path}: no {name}: {error}") from None


_TYPES: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "datetime": (datetime.datetime, datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    "date": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    "time": (datetime.time, datetime.time.isoformat, datetime.time.fromisoformat),
    "timedelta": (
        datetime.timedelta,
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda saved: datetime.timedelta(*saved),
    ),
    "bytes": (
        bytes,
        lambda value: base64.b64encode(value).decode(),
        lambda saved: base64.b64decode(saved, validate=True),
    ),
    "set": (set, lambda value: sorted(value, key=repr), set),
    "frozenset": (frozenset, lambda value: sorted(value, key=repr), frozenset),
    "tuple": (tuple, list, tuple),
    "uuid": (uuid.UUID, str, uuid.UUID),
    "decimal": (Decimal, str, Decimal),
}
