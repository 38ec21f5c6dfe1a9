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

    A call of another tool is dropped whole, its result with it. Names are known where a call opens, so a chunk of a
    dropped call is dropped as well.
    """

    def __init__(self, *, allow: Iterable[str] | None = None, block: Iterable[str] | None = None) -> None:
        if (allow is None) == (block is None):
            raise ValueError("ToolFilter takes exactly one of allow= and block=")
        self._allow = None if allow is None else frozenset(allow)
        self._block = frozenset(block or ())
        self._dropped: set[str] = set()
        self._dropping: dict[str, bool] = {}  # by owner, for chunks that do not name their call

    def __call__(self, raw: JSONObject) -> JSONObject | None:
        """The event, or None when it belongs to a call that is not permitted."""
        event_type, call_id = raw.get("type"), raw.get("toolCallId")
        if event_type == "RUN_STARTED":
            self._dropped.clear()
            self._dropping.clear()
        if not isinstance(event_type, str) or not event_type.startswith("TOOL_CALL_"):
            return raw
        name, owner = raw.get("toolCallName"), str(raw.get("subagentRunId"))
        if isinstance(call_id, str):
            if isinstance(name, str) and not self._permits(name):
                self._dropped.add(call_id)
            dropping = call_id in self._dropped
            if event_type == "TOOL_CALL_CHUNK":
                self._dropping[owner] = dropping
            elif event_type == "TOOL_CALL_RESULT":
                self._dropped.discard(call_id)
        else:  # a chunk that goes on without naming its call
            dropping = event_type == "TOOL_CALL_CHUNK" and self._dropping.get(owner, False)
        return None if dropping else raw

    def _permits(self, name: str) -> bool:
        return name not in self._block if self._allow is None else name in self._allow


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
