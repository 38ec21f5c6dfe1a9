"""Tools: functions that a model may call.

`@tool` makes a `FunctionTool` of a function: what a model is told of it comes from the signature and the docstring,
what a model sends is validated against the signature, and a function that is not `async` runs in a thread, so that
it cannot hold up the event loop. A bare `ToolDefinition` is a tool that somebody else runs.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, ParamSpec, TypeVar, overload

from accord.agents.errors import ToolDefinitionError
from accord.agents.schema import JSONSchema
from accord.agents.signature import FunctionSignature
from accord.agents.threads import run_in_thread
from accord.sessions import AgentSession

P = ParamSpec("P")
R = TypeVar("R")

ApprovalMode = Literal["never_require", "always_require"]


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """What a model is told of a tool: `parameters` is the JSON Schema of the object of its arguments."""

    name: str
    description: str = ""
    parameters: JSONSchema = field(default_factory=lambda: {"type": "object", "properties": {}})


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may know of its call, by having a parameter annotated `ToolContext`, which no model sees.

    `arguments` are as the model sent them (or as middleware changed them), `session` is what `Agent.run` was given,
    and `extras` a dict of this call's own that starts with the run's and into which middleware may put things.
    """

    call_id: str
    name: str
    arguments: Mapping[str, Any]
    session: AgentSession | None = None
    extras: dict[str, Any] = field(default_factory=dict)


class FunctionTool(Generic[P, R]):
    """A function as a tool. Calling it calls the function; `invoke` is how an agent runs it."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
        approval_mode: ApprovalMode = "never_require",
        local_names: Mapping[str, Any] | None = None,
    ) -> None:
        if not callable(function):
            raise ToolDefinitionError(f"a function is needed, not {type(function).__name__}")
        if approval_mode not in ("never_require", "always_require"):
            raise ToolDefinitionError(f"approval_mode: {approval_mode!r} is neither never_require nor always_require")
        functools.update_wrapper(self, function)
        self._function = function
        self._name = str(name or getattr(function, "__name__", ""))
        if not self._name or self._name == "<lambda>":
            raise ToolDefinitionError("a function without a name needs name=")
        self._description = description
        self.approval_mode: ApprovalMode = approval_mode
        self._runs_on_loop = _is_async(function)
        self._signature: FunctionSignature | None = None
        # A type that is not known yet may be defined further down; it is looked up again at the first use.
        with contextlib.suppress(NameError):
            self._signature = self._read_signature(local_names)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> FunctionTool[..., R]:
        """A tool made of a method is, on an instance, the tool of the bound method."""
        if instance is None:
            return self
        return FunctionTool(
            self._function.__get__(instance, owner),
            name=self._name,
            description=self._description,
            approval_mode=self.approval_mode,
        )

    def __repr__(self) -> str:
        return f"<FunctionTool {self._name}>"

    @property
    def name(self) -> str:
        return self._name

    @property
    def signature(self) -> FunctionSignature:
        """Raises `ToolDefinitionError` when an annotation names something that does not exist."""
        if self._signature is None:
            try:
                self._signature = self._read_signature(None)
            except NameError as error:
                raise ToolDefinitionError(f"tool {self._name!r}: an annotation is not known: {error}") from error
        return self._signature

    @property
    def definition(self) -> ToolDefinition:
        signature = self.signature
        description = signature.description if self._description is None else self._description
        return ToolDefinition(self._name, description, signature.schema)

    async def invoke(
        self,
        arguments: Mapping[str, Any],
        context: ToolContext | None = None,
        *,
        executor: Executor | None = None,
    ) -> Any:
        """Validate the arguments (JSON values) and run the function; its value, as it returned it.

        A function that is not async runs in `executor`, with a copy of the caller's context variables. Cancelling
        the call then abandons the thread, which runs to its end unheard. Raises `ToolArgumentsError`, and whatever
        the function raises.
        """
        values = self.signature.validate(arguments)
        context = context or ToolContext(call_id="", name=self._name, arguments=arguments)
        bound = self.signature.bind(values, context)
        call = functools.partial(self._function, *bound.args, **bound.kwargs)
        result = call() if self._runs_on_loop else await run_in_thread(call, executor)
        return await result if inspect.isawaitable(result) else result

    def _read_signature(self, local_names: Mapping[str, Any] | None) -> FunctionSignature:
        return FunctionSignature(self._function, name=self._name, injected=ToolContext, local_names=local_names)


ToolLike = FunctionTool[..., Any] | ToolDefinition | Callable[..., Any]


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None, approval_mode: ApprovalMode = "never_require"
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    approval_mode: ApprovalMode = "never_require",
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a tool of a function: `@tool`, or `@tool(name=..., description=..., approval_mode="always_require")`.

    Name and description are the function's own unless given. A parameter is described by `Annotated[..., Field(
    description=...)]`, `Annotated[..., "text"]` or the docstring's `Args`. Raises `ToolDefinitionError` for a
    signature that cannot be described to a model.
    """
    # Types defined in the function that holds the decorated one are known here, and nowhere later.
    local_names = sys._getframe(1).f_locals

    def decorate(function: Callable[P, R]) -> FunctionTool[P, R]:
        return FunctionTool(
            function, name=name, description=description, approval_mode=approval_mode, local_names=local_names
        )

    return decorate if function is None else decorate(function)


def as_tools(tools: ToolLike | Iterable[ToolLike] | None) -> tuple[FunctionTool[..., Any] | ToolDefinition, ...]:
    """Tools from tools, definitions and plain functions. Raises `ToolDefinitionError`, for two of one name too."""
    if tools is None:
        return ()
    several = tools if isinstance(tools, Iterable) else (tools,)
    found: dict[str, FunctionTool[..., Any] | ToolDefinition] = {}
    for item in several:
        ready = item if isinstance(item, FunctionTool | ToolDefinition) else FunctionTool(item)
        if ready.name in found:
            raise ToolDefinitionError(f"two tools are called {ready.name!r}")
        if isinstance(ready, FunctionTool):
            ready.signature  # noqa: B018  (a signature that cannot be described is an error now, not in a run)
        found[ready.name] = ready
    return tuple(found.values())


def definition_of(tool: FunctionTool[..., Any] | ToolDefinition) -> ToolDefinition:
    return tool.definition if isinstance(tool, FunctionTool) else tool


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
