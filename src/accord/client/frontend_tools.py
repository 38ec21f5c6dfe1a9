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
from typing import Any, ClassVar, TypeAlias

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import to_jsonable_python

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

_logger = logging.getLogger("accord")
_MAX_FAULTS = 20


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

    def __init__(self, function: Callable[..., Any], arguments: TypeAdapter[Any] | None) -> None:
        self._function = function
        self._arguments = arguments

    def bind(self, arguments: JSONObject) -> functools.partial[Any]:
        """The call to make; raises `_Refused` for arguments that do not fit the signature."""
        if self._arguments is None:
            return functools.partial(self._function, arguments)
        try:
            # As JSON, which is what they are: a strict model takes a date from a string then, and only then.
            positional, named = self._arguments.validate_json(json.dumps(arguments))
        except ValidationError as error:
            raise _Refused(f"the arguments do not fit: {_faults(error)}") from None
        return functools.partial(self._function, *positional, **named)


class _Schema(GenerateJsonSchema):
    # A default that is no JSON value is left out of the schema; that is no reason to warn.
    ignored_warning_kinds: ClassVar[set[JsonSchemaWarningKind]] = {"skipped-choice", "non-serializable-default"}  # type: ignore[misc]

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False  # a title made up from the name says nothing to a model


def _read(each: ToolLike, path: str) -> tuple[Tool, _Handler | None]:
    if isinstance(each, Tool):
        return each, None
    if isinstance(each, FrontendTool):
        return each.tool, _Handler(each.handler, None)
    name = getattr(each, "__name__", "")
    if not callable(each) or not name.isidentifier():
        raise InputRejected(f"a tool is a function with a name, a Tool or a FrontendTool, not {each!r}", path=path)
    try:
        arguments = _arguments_of(each)
        schema = arguments.json_schema(schema_generator=_Schema)
    except (PydanticUserError, NameError) as error:
        raise InputRejected(f"tool {name!r}: {str(error).splitlines()[0]}", path=path) from error
    if schema.get("type") != "object":
        raise InputRejected(f"tool {name!r}: every parameter must have a name that a model can send", path=path)
    tool = Tool(name=name, description=inspect.getdoc(each) or "", parameters=schema)
    return tool, _Handler(each, arguments)


def _arguments_of(function: Callable[..., Any]) -> TypeAdapter[Any]:
    """Validates arguments against the function's signature, without calling the function."""

    @functools.wraps(function)
    def given(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return args, kwargs

    # What it returns is of no interest, and perhaps known to type checkers only.
    given.__annotations__ = {name: each for name, each in given.__annotations__.items() if name != "return"}
    adapter: TypeAdapter[Any] = TypeAdapter(given)  # type: ignore[arg-type]  # pydantic takes functions, too
    return adapter


def _arguments(call: ToolCall) -> JSONObject:
    try:
        arguments = decode_json(call.function.arguments or "{}")
    except ProtocolViolation as violation:
        raise _Refused(f"the arguments cannot be read: {violation.args[0]}") from None
    if not isinstance(arguments, dict):
        raise _Refused("the arguments must be a JSON object")
    return arguments


def _faults(error: ValidationError) -> str:
    faults = error.errors(include_url=False)
    lines = [f"/{'/'.join(str(step) for step in fault['loc'])}: {fault['msg']}" for fault in faults[:_MAX_FAULTS]]
    return "; ".join(lines)


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
    plain = to_jsonable_python(value, by_alias=True, inf_nan_mode="constants")  # which are then refused
    check_json(plain)
    return json.dumps(plain, ensure_ascii=False)
