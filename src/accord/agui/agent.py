"""An agent as an AG-UI producer: where the agent runtime and the protocol meet.

    input ─▶ messages ─▶ agent.run ─▶ updates ─▶ events
                            ▲                      │
                            └── shared state ◀─────┘

`AGUIAgent` holds nothing of a run; any number may run at once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from accord.agents import (
    Agent,
    AgentResponseUpdate,
    Content,
    DataContent,
    FunctionCall,
    FunctionCallContent,
    FunctionMiddleware,
    FunctionResultContent,
    Role,
    ToolDefinition,
    function_middleware,
)
from accord.agents.middleware import FunctionNext
from accord.agui.emission import JSON_MEDIA_TYPE, Emission
from accord.agui.messages import read_messages
from accord.agui.predictive import Predictor, PredictStateConfig
from accord.agui.shared_state import Showing, state_middleware
from accord.producer import Run
from accord.protocol import JSON

_current_run: ContextVar[Run] = ContextVar("accord_current_run")


def current_run() -> Run:
    """The run that a tool, a middleware or a chat client works for: its state, its events. Any thread of it may ask.

    Raises `LookupError` outside a run of an `AGUIAgent`.
    """
    return _current_run.get()


class AGUIAgent:
    """Serves an `Agent` over AG-UI: give it to `add_agui_endpoint`, or call it with a `Run` as any producer.

    `predict_state_config` maps a member of the state to the tool argument that predicts it, `{"recipe": {"tool":
    "update_recipe", "tool_argument": "recipe"}}`, `"*"` for all arguments. `showing` says how the state and the
    context are shown to the model. With `trust_instructions`, system messages of the client keep their role.
    """

    def __init__(
        self,
        agent: Agent,
        name: str | None = None,
        description: str | None = None,
        state_schema: Mapping[str, Any] | None = None,
        predict_state_config: Mapping[str, Mapping[str, str]] | None = None,
        *,
        showing: Showing | None = None,
        trust_instructions: bool = False,
    ) -> None:
        self.agent = agent
        self.name = name or agent.name
        self.description = description or agent.description
        self.state_schema = dict(state_schema) if state_schema is not None else None
        self._predicting = PredictStateConfig(predict_state_config or {}, agent.tools, self.state_schema)
        self._showing = showing or Showing()
        self._trust_instructions = trust_instructions

    async def __call__(self, run: Run) -> None:
        """Answers the run's input."""
        await _AgentRun(self, run).go()


class _AgentRun:
    """One run of an agent."""

    def __init__(self, served: AGUIAgent, run: Run) -> None:
        self._served = served
        self._run = run
        self._emission = Emission(run)
        self._predictor = Predictor(run, served._predicting, time.monotonic)
        self._arguments: dict[str, Mapping[str, Any]] = {}
        self._names: dict[str, str] = {}

    async def go(self) -> None:
        served, run = self._served, self._run
        messages = read_messages(run.input.messages, trust_instructions=served._trust_instructions)
        served._predicting.announce(run)
        token = _current_run.set(run)
        try:
            updates = served.agent.run(
                messages,
                stream=True,
                tools=self._frontend_tools(),
                middleware=[
                    state_middleware(
                        lambda: run.state.value, run.input.context or (), served.state_schema, served._showing
                    ),
                    self._note_arguments(),
                ],
            )
            async with updates:
                async for update in updates:
                    self._take(update)
                    await run.drain()
        finally:
            _current_run.reset(token)
        self._emission.end_answer()

    def _take(self, update: AgentResponseUpdate) -> None:
        for content in update.contents:
            if not self._sets_state(update, content):
                self._emission.content(update, content)
            if isinstance(content, FunctionCallContent):
                self._names.setdefault(content.call_id, content.name)
                self._predictor.feed(content.call_id, content.name, content.arguments)
            elif isinstance(content, FunctionResultContent):
                self._settle(content)
        if update.finish_reason is not None and update.role is Role.ASSISTANT:
            self._emission.end_answer()

    def _settle(self, result: FunctionResultContent) -> None:
        arguments: JSON = self._arguments.pop(result.call_id, None)
        if result.error is None and arguments is not None:
            self._predictor.succeed(result.call_id, self._names.get(result.call_id, ""), dict(arguments))
        else:
            self._predictor.fail(result.call_id)

    def _sets_state(self, update: AgentResponseUpdate, content: Content) -> bool:
        """An agent says what the state is by JSON data in its answer."""
        if not isinstance(content, DataContent) or content.media_type != JSON_MEDIA_TYPE:
            return False
        if update.role is not Role.ASSISTANT:
            return False
        self._run.state.set(json.loads(content.data))
        return True

    def _note_arguments(self) -> FunctionMiddleware:
        """Remembers what each tool was run with, which is what its prediction comes to."""

        @function_middleware
        async def note(call: FunctionCall, call_next: FunctionNext) -> Any:
            self._arguments[call.call_id] = call.arguments
            return await call_next(call)

        return note

    def _frontend_tools(self) -> list[ToolDefinition]:
        """The application's own tools; where the agent has one of the same name, that one is meant."""
        own = {tool.name for tool in self._served.agent.tools}
        definitions: list[ToolDefinition] = []
        for tool in self._run.input.tools or ():
            if tool.name not in own:
                own.add(tool.name)
                parameters = tool.parameters if isinstance(tool.parameters, dict) else {"type": "object"}
                definitions.append(ToolDefinition(tool.name, tool.description, parameters))
        return definitions
