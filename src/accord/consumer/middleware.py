"""Middleware: the application's own stages on raw material, between the boundary and enforcement (rules section 2).

A middleware sees everything the peer sent, before anything is stripped, and may drop, replace or add. Raw events pass
the middleware in the order given, first the one nearest the wire; the outgoing input passes them in the reverse order.
An error in one ends the run and names it.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from accord.errors import AccordError, ProtocolViolation
from accord.protocol.values import JSONObject

#: What a middleware makes of a raw event: nothing (dropped), one raw event, or several.
Passed: TypeAlias = JSONObject | Iterable[JSONObject] | None
#: A raw event in, what goes on out.
EventMiddleware: TypeAlias = Callable[[JSONObject], Passed | Awaitable[Passed]]


@runtime_checkable
class InputMiddleware(Protocol):
    """A middleware that also handles the outgoing run input, as a raw object."""

    def on_input(self, raw: JSONObject) -> JSONObject | Awaitable[JSONObject]:
        """The input to send in place of `raw`."""
        ...


class MiddlewareChain:
    """The middleware of one stream, driven synchronously or, where one of them is asynchronous, by awaiting."""

    def __init__(self, middleware: Sequence[EventMiddleware] = ()) -> None:
        self._middleware = tuple(middleware)

    def __bool__(self) -> bool:
        return bool(self._middleware)

    def pass_event(self, raw: JSONObject, index: int) -> list[JSONObject]:
        """What goes on of `raw`; an asynchronous middleware is an error here."""
        events = [raw]
        for middleware in self._middleware:
            passed: list[JSONObject] = []
            for event in events:
                try:
                    made = _events(middleware(event))
                except Exception as error:
                    raise _failure(middleware, error, index) from error
                passed += made
            events = passed
        return events

    async def pass_event_async(self, raw: JSONObject, index: int) -> list[JSONObject]:
        """What goes on of `raw`."""
        events = [raw]
        for middleware in self._middleware:
            passed: list[JSONObject] = []
            for event in events:
                try:
                    made = middleware(event)
                    passed += _events(await made if inspect.isawaitable(made) else made)
                except Exception as error:
                    raise _failure(middleware, error, index) from error
            events = passed
        return events

    async def pass_input(self, raw: JSONObject) -> JSONObject:
        """The outgoing input after all that handle one."""
        for middleware in reversed(self._middleware):
            if not isinstance(middleware, InputMiddleware):
                continue
            try:
                made = middleware.on_input(raw)
                (raw,) = _events(await made if inspect.isawaitable(made) else made)
            except Exception as error:
                raise _failure(middleware, error, None) from error
        return raw


class ToolFilter:
    """Keeps tool calls to those permitted: exactly one of `allow` and `block`, names of tools.

    A call of another tool is dropped whole, its result with it. A chunk need not name its call: which call it goes on
    with follows from the shorthand that is open in each lane, as in `accord.consumer.chunks`.
    """

    def __init__(self, *, allow: Iterable[str] | None = None, block: Iterable[str] | None = None) -> None:
        if (allow is None) == (block is None):
            raise ValueError("ToolFilter takes exactly one of allow= and block=")
        self._allow = None if allow is None else frozenset(allow)
        self._block = frozenset(block or ())
        self._dropped: set[str] = set()
        self._lanes: dict[str | None, tuple[str, str | None]] = {}  # by owner: the type of chunk, and the item's id

    def __call__(self, raw: JSONObject) -> JSONObject | None:
        """The event, or None when it belongs to a call that is not permitted."""
        event_type, owner = _text(raw, "type"), _text(raw, "subagentRunId")
        if event_type == "RUN_STARTED":
            self._dropped.clear()
        if event_type in _CHUNK_IDS:
            call_id = self._follow(event_type, _text(raw, _CHUNK_IDS[event_type]), owner)
        else:
            call_id = _text(raw, "toolCallId")
            if event_type in _ENDS_ALL_SHORTHAND:
                self._lanes.clear()
            elif event_type not in _ENDS_NO_SHORTHAND:
                self._lanes.pop(owner, None)
        if event_type not in _OF_A_CALL or call_id is None:
            return raw
        name = _text(raw, "toolCallName")
        if name is not None and not self._permits(name):
            self._dropped.add(call_id)
        dropping = call_id in self._dropped
        if event_type == "TOOL_CALL_RESULT":
            self._dropped.discard(call_id)
        return None if dropping else raw

    def _permits(self, name: str) -> bool:
        return name not in self._block if self._allow is None else name in self._allow

    def _follow(self, kind: str, identifier: str | None, owner: str | None) -> str | None:
        """The id of the item that a chunk opens or goes on with."""
        lane = owner
        if identifier is not None:
            holders = [each for each, building in self._lanes.items() if building == (kind, identifier)]
            lane = holders[0] if holders else owner
        elif owner is None:
            lanes = [each for each, building in self._lanes.items() if building[0] == kind]
            lane = lanes[0] if len(lanes) == 1 else None
        building = self._lanes.get(lane)
        if identifier is None and building is not None and building[0] == kind:
            return building[1]
        self._lanes[lane] = (kind, identifier)
        return identifier


_CHUNK_IDS = {
    "TEXT_MESSAGE_CHUNK": "messageId",
    "REASONING_MESSAGE_CHUNK": "messageId",
    "TOOL_CALL_CHUNK": "toolCallId",
}
_OF_A_CALL = frozenset({"TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT", "TOOL_CALL_CHUNK"})
_ENDS_ALL_SHORTHAND = frozenset({"RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "MESSAGES_SNAPSHOT"})
_ENDS_NO_SHORTHAND = frozenset(
    {"RAW", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "REASONING_ENCRYPTED_VALUE", "SUBAGENT_STARTED"}
)


def _text(raw: JSONObject, name: str) -> str | None:
    value = raw.get(name)
    return value if isinstance(value, str) else None


def _events(made: Any) -> list[JSONObject]:
    """What a middleware returned, as a list; raises TypeError for what is no event."""
    if inspect.isawaitable(made):
        if inspect.iscoroutine(made):
            made.close()
        raise TypeError("it is asynchronous, and this path is not")
    events = [] if made is None else [made] if isinstance(made, dict) else list(made)
    for event in events:
        if not isinstance(event, dict):
            raise TypeError(f"it made {type(event).__name__} of an event, not an object")
    return events


def _failure(middleware: object, error: object, index: int | None) -> AccordError:
    name = getattr(middleware, "__qualname__", None) or type(middleware).__qualname__
    return ProtocolViolation(f"middleware {name} failed: {error}", stage="middleware", rule="middleware", index=index)
