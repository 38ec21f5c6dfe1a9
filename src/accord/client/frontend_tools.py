"""Tools the application offers and runs itself (rules section 7): described for the agent, guarded, answered.

The arguments are what a model wrote: they are validated against the function's signature before anybody sees them,
then the application is asked for its consent, then the function runs, off the event loop unless it is async. Whatever
goes wrong becomes the answer: a call is never left without one.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from accord.errors import InputRejected, ProtocolViolation
from accord.protocol import (
    AudioPart,
    ContentPart,
    DocumentPart,
    ImagePart,
    JSONObject,
    TextPart,
    Tool,
    ToolCall,
    ToolMessage,
    VideoPart,
    check_json,
    decode_json,
)

if TYPE_CHECKING:
    from accord.client.signature import Signature

_logger = logging.getLogger("accord")


@dataclass(frozen=True, slots=True)
class FrontendTool:
    """A tool with a description of its own making. `handler` is called with the arguments, an object, unvalidated."""

    tool: Tool
    handler: Callable[[JSONObject], Any]


@dataclass(frozen=True, slots=True)
class FrontendCall:
    """A call that waits for consent."""

    call_id: str
    name: str
    arguments: JSONObject


#: Decides whether a call may run. One that is not async is asked in a thread.
Consent: TypeAlias = Callable[[FrontendCall], bool | Awaitable[bool]]
#: What `tools=` takes: a function, described by its signature and docstring; a description with its handler; or a
#: description alone, whose calls the application answers itself.
ToolLike: TypeAlias = Callable[..., Any] | FrontendTool | Tool


class FrontendTools:
    """The tools of one input, by name."""

    def __init__(self, tools: Iterable[ToolLike], consent: Consent | None) -> None:
        self.definitions: list[Tool] = []
        self._handlers: dict[str, _Handler | None] = {}
        self._consent = consent
        self._asking = asyncio.Lock()  # one question at a time
        for position, each in enumerate(tools):
            tool, handler = _read(each, f"/tools/{position}")
            if tool.name in self._handlers:
                raise InputRejected(f"two tools are called {tool.name!r}", path=f"/tools/{position}/name")
            self.definitions.append(tool)
            self._handlers[tool.name] = handler

    def offers(self, name: str) -> bool:
        """Whether there is a tool of that name."""
        return name in self._handlers

    def leaves(self, name: str) -> bool:
        """Whether calls of that name are left to the application: the tool was described without a handler."""
        return name in self._handlers and self._handlers[name] is None

    async def answer(self, calls: Sequence[ToolCall], store: Callable[[ToolMessage], None]) -> None:
        """Runs the calls side by side and stores an answer to each, in their order, also when it is cancelled.

        What a function returned is the answer, as text, JSON text or content parts; or else what went wrong.
        """
        answers: dict[str, ToolMessage] = {}

        async def run(call: ToolCall) -> None:
            answers[call.id] = await self._run(call)

        try:
            await asyncio.gather(*(run(call) for call in calls))
        finally:
            for call in calls:
                store(answers.get(call.id) or failed_answer(call, "stopped before it had a result"))

    async def _run(self, call: ToolCall) -> ToolMessage:
        name = call.function.name
        try:
            handler = self._handlers.get(name)
            if handler is None:
                raise _Refused(f"there is no tool {name!r}")
            arguments = _arguments(call)
            bound = handler.bind(arguments)
            if not await self._allows(FrontendCall(call.id, name, arguments)):
                raise _Refused("the user did not allow this call")
            content = _content(await _call(bound))
        except _Refused as refused:
            return failed_answer(call, str(refused))
        except Exception as error:  # whatever the function raises is an answer
            _logger.warning("frontend tool %s failed", name, exc_info=error)
            return failed_answer(call, f"{type(error).__name__}: {error}")
        return ToolMessage(id=str(uuid.uuid4()), tool_call_id=call.id, content=content)

    async def _allows(self, call: FrontendCall) -> bool:
        if self._consent is None:
            return True
        async with self._asking:
            return bool(await _call(functools.partial(self._consent, call)))


def failed_answer(call: ToolCall, error: str) -> ToolMessage:
    """The answer to a call that has no result; the text is there for the model and marked as an error."""
    text = error.encode(errors="replace").decode()
    return ToolMessage(id=str(uuid.uuid4()), tool_call_id=call.id, content=text, error=text)


class _Refused(Exception):
    """A call that is not run, and why."""


class _Handler:
    """What runs the calls of one tool."""

    def __init__(self, function: Callable[..., Any], signature: Signature | None) -> None:
        self._function = function
        self._signature = signature

    def bind(self, arguments: JSONObject) -> functools.partial[Any]:
        """The call to make; raises `_Refused` for arguments that do not fit the signature."""
        if self._signature is None:
            return functools.partial(self._function, arguments)
        try:
            positional, named = self._signature.read(arguments)
        except ValueError as misfit:
            raise _Refused(f"the arguments do not fit: {misfit}") from None
        return functools.partial(self._function, *positional, **named)


def _read(each: ToolLike, path: str) -> tuple[Tool, _Handler | None]:
    if isinstance(each, Tool):
        return each, None
    if isinstance(each, FrontendTool):
        return each.tool, _Handler(each.handler, None)
    name = getattr(each, "__name__", "")
    if not callable(each) or not name.isidentifier():
        raise InputRejected(f"a tool is a function with a name, a Tool or a FrontendTool, not {each!r}", path=path)
    from accord.client.signature import Signature  # with pydantic, which no other tool needs

    signature = Signature(each, name=name, path=path)
    tool = Tool(name=name, description=inspect.getdoc(each) or "", parameters=signature.schema)
    return tool, _Handler(each, signature)


def _arguments(call: ToolCall) -> JSONObject:
    try:
        arguments = decode_json(call.function.arguments or "{}")
    except ProtocolViolation as violation:
        raise _Refused(f"the arguments cannot be read: {violation.args[0]}") from None
    if not isinstance(arguments, dict):
        raise _Refused("the arguments must be a JSON object")
    return arguments


async def _call(call: functools.partial[Any]) -> Any:
    """What the function returns; it runs in a thread unless it is async."""
    function = call.func
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        value = call()
    else:
        value, error = await asyncio.to_thread(_settled, call)
        if error is not None:
            raise error
    return await value if inspect.isawaitable(value) else value


def _settled(call: functools.partial[Any]) -> tuple[Any, Exception | None]:
    try:
        return call(), None
    except Exception as error:  # noqa: BLE001  a future cannot carry StopIteration: its reader would wait for ever
        return None, error


_PARTS = (TextPart, ImagePart, AudioPart, VideoPart, DocumentPart)


def _content(value: Any) -> str | list[ContentPart]:
    if isinstance(value, list) and value and all(isinstance(part, _PARTS) for part in value):
        return value
    if isinstance(value, str):
        check_json(value)
        return value
    from pydantic_core import to_jsonable_python  # needed here only, and not by whoever returns text

    plain = to_jsonable_python(value, by_alias=True, inf_nan_mode="constants")  # which are then refused
    check_json(plain)
    return json.dumps(plain, ensure_ascii=False)
