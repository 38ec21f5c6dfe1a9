"""Predictive state: a tool's arguments appear in the shared state while the model is still writing them.

One parser a call, fed with that call's own text. What it shows is committed when the tool has succeeded and taken back
when it failed, was refused, or was never called properly.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from accord.agents import AgentSetupError, FunctionTool, ToolDefinition
from accord.errors import AccordError
from accord.producer import OutletOverflow, Prediction, Run
from accord.protocol import JSON, JSONObject
from accord.protocol.conform import escape_token
from accord.state import PartialJSON, identical

_logger = logging.getLogger("accord")

#: As a tool's argument: all of them.
EVERY_ARGUMENT = "*"
PREDICT_STATE = "PredictState"


@dataclass(frozen=True, slots=True)
class PredictedMember:
    """One member of the state, and the tool's argument that is its next value."""

    member: str
    tool: str
    argument: str


class PredictStateConfig:
    """Which tool's arguments predict which members of the state.

    `config` is `{member: {"tool": name, "tool_argument": name or "*"}}`. Raises `AgentSetupError` naming the member
    when a tool or an argument does not exist, or the state has no such member or one that is `private`.
    """

    def __init__(
        self,
        config: Mapping[str, Mapping[str, str]],
        tools: Iterable[FunctionTool[..., Any] | ToolDefinition],
        members: Iterable[str] | None = None,
        private: Collection[str] = (),
    ) -> None:
        known = {tool.name: tool for tool in tools}
        names = None if members is None else set(members)
        self.members: list[PredictedMember] = []
        for member, source in config.items():
            where = f"predict_state_config[{member!r}]"
            unknown = set(source) - {"tool", "tool_argument"}
            if unknown or "tool" not in source:
                raise AgentSetupError(f"{where}: exactly 'tool' and 'tool_argument' are due, not {sorted(source)}")
            predicted = PredictedMember(member, source["tool"], source.get("tool_argument", EVERY_ARGUMENT))
            if names is not None and member not in names:
                raise AgentSetupError(f"{where}: the state schema has no such member; it has {sorted(names)}")
            if member in private:
                raise AgentSetupError(f"{where}: the member is private, and what is predicted is shown")
            tool = known.get(predicted.tool)
            if tool is None:
                raise AgentSetupError(f"{where}: no tool is called {predicted.tool!r}; there are {sorted(known)}")
            _check_argument(where, predicted, tool)
            self.members.append(predicted)

    def of_tool(self, name: str) -> list[PredictedMember]:
        """The members that a tool predicts."""
        return [predicted for predicted in self.members if predicted.tool == name]

    def members_of(self, name: str) -> set[str]:
        """The names of the members that a tool predicts."""
        return {predicted.member for predicted in self.of_tool(name)}

    @property
    def tools(self) -> set[str]:
        """The names of the tools that predict."""
        return {predicted.tool for predicted in self.members}

    def announce(self, run: Run) -> None:
        """Tells front ends that predict by themselves what predicts what."""
        if self.members:
            value = [
                {"state_key": each.member, "tool": each.tool, "tool_argument": each.argument} for each in self.members
            ]
            run.custom(PREDICT_STATE, value)


class Predictor:
    """The predictions of one run. `clock` gives seconds."""

    def __init__(self, run: Run, config: PredictStateConfig, clock: Callable[[], float]) -> None:
        self._run = run
        self._config = config
        self._clock = clock
        self._calls: dict[str, _PredictingCall] = {}

    def feed(self, call_id: str, name: str, text: str) -> None:
        """Takes the next piece of a call's arguments; `name` is needed with the first only."""
        call = self._calls.get(call_id)
        if call is None:
            members = self._config.of_tool(name) if name else []
            if not members:
                return
            call = self._calls[call_id] = _PredictingCall(self._run, members)
        call.feed(text, self._clock())

    def adopt(self, call_id: str, name: str) -> None:
        """A call whose arguments an earlier run has shown, and which is now to be carried out or refused."""
        members = self._config.of_tool(name)
        if members:
            call = self._calls[call_id] = _PredictingCall(self._run, members)
            call.prediction.adopt()

    @property
    def open_members(self) -> set[str]:
        """The members that are shown and neither committed nor taken back."""
        return {name for call in self._calls.values() for name in call.prediction.members}

    def succeed(self, call_id: str, name: str, arguments: JSON, before: JSON) -> None:
        """The tool has run with these arguments: what it predicts is now so, except for members that it has written
        itself since the committed state was `before`. Raises what the state's schema raises."""
        members = self._config.of_tool(name)
        if not members or not isinstance(arguments, dict):
            return
        call = self._calls.get(call_id)
        prediction = self._run.state.predict([each.member for each in members]) if call is None else call.prediction
        values: JSONObject = {}
        now = self._run.state.committed
        for each in members:
            if not _same_member(each.member, before, now):
                continue
            if each.argument == EVERY_ARGUMENT:
                values[each.member] = arguments
            elif each.argument in arguments:
                values[each.member] = arguments[each.argument]
        if values:
            prediction.confirm(values)
        else:
            prediction.take_back()
        self._calls.pop(call_id, None)

    def fail(self, call_id: str) -> None:
        """The tool did not do what was asked: what it predicted is taken back."""
        call = self._calls.pop(call_id, None)
        if call is not None:
            call.prediction.take_back()


def is_stage(value: JSON, shown: JSON) -> bool:
    """Whether a prediction that has come to `shown` may have been `value` on its way: it only grows."""
    if isinstance(value, dict) and isinstance(shown, dict):
        return all(name in shown and is_stage(member, shown[name]) for name, member in value.items())
    if isinstance(value, list) and isinstance(shown, list):
        return len(value) <= len(shown) and all(map(is_stage, value, shown))
    if isinstance(value, str) and isinstance(shown, str):
        return shown.startswith(value)
    return identical(value, shown)


class _PredictingCall:
    """One call's arguments on their way into the state."""

    def __init__(self, run: Run, members: list[PredictedMember]) -> None:
        self.prediction: Prediction = run.state.predict([each.member for each in members])
        select: dict[str, list[str]] = {}
        for each in members:
            select.setdefault(each.argument, []).append(f"/{escape_token(each.member)}")
        self._parser: PartialJSON | None = PartialJSON(select=select)

    def feed(self, text: str, now: float) -> None:
        if self._parser is None:
            return
        try:
            self.prediction.show(self._parser.feed(text, now))
        except OutletOverflow:
            raise
        except AccordError as error:
            # Text that is no JSON (the call will fail by itself), or somebody else has changed what this builds on.
            _logger.info("a prediction was given up: %s", error)
            self._parser = None
            self.prediction.take_back()


def _same_member(name: str, before: JSON, now: JSON) -> bool:
    was, is_now = (state if isinstance(state, dict) else {} for state in (before, now))
    return (name in was) == (name in is_now) and identical(was.get(name), is_now.get(name))


def _check_argument(where: str, predicted: PredictedMember, tool: FunctionTool[..., Any] | ToolDefinition) -> None:
    if predicted.argument == EVERY_ARGUMENT:
        return
    definition = tool.definition if isinstance(tool, FunctionTool) else tool
    arguments = definition.parameters.get("properties", {})
    if predicted.argument not in arguments:
        raise AgentSetupError(
            f"{where}: tool {predicted.tool!r} has no argument {predicted.argument!r}; it has {sorted(arguments)}"
        )
