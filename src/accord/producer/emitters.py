"""The streamed items of a run, each a handle that opens when it is made and closes with its `with` block."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType

from accord.errors import PatchError
from accord.producer.item import GrowingItem, Item
from accord.producer.plain import plain
from accord.protocol import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    JSONObject,
    Metadata,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentFinishedOutcome,
    SubagentStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageRole,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
    read_operation,
)
from accord.state import apply_patch, diff

if TYPE_CHECKING:
    from accord.producer.run import Run


class TextMessage(GrowingItem):
    """A text message being written."""

    def __init__(
        self,
        run: Run,
        message_id: str,
        *,
        role: TextMessageRole,
        name: str | UnsetType,
        metadata: Metadata | UnsetType,
        subagent_run_id: str | UnsetType,
    ) -> None:
        run.emit(
            TextMessageStartEvent(
                message_id=message_id, role=role, name=name, metadata=metadata, subagent_run_id=subagent_run_id
            )
        )
        super().__init__(run, TextMessageStartEvent, message_id, subagent_run_id)

    def addition(self, delta: str, metadata: Metadata | UnsetType = UNSET) -> TextMessageContentEvent:
        return TextMessageContentEvent(message_id=self.id, delta=delta, metadata=metadata, subagent_run_id=self.owner)

    def _close(self) -> None:
        self._run.emit(TextMessageEndEvent(message_id=self.id, subagent_run_id=self.owner))


class Reasoning(GrowingItem):
    """A span of reasoning with one message in it, being written."""

    def __init__(self, run: Run, message_id: str, span_id: str, *, subagent_run_id: str | UnsetType) -> None:
        self.span_id = span_id
        run.emit(ReasoningStartEvent(message_id=span_id, subagent_run_id=subagent_run_id))
        run.emit(ReasoningMessageStartEvent(message_id=message_id, role="reasoning", subagent_run_id=subagent_run_id))
        super().__init__(run, ReasoningMessageStartEvent, message_id, subagent_run_id)

    def addition(self, delta: str, metadata: Metadata | UnsetType = UNSET) -> ReasoningMessageContentEvent:
        return ReasoningMessageContentEvent(
            message_id=self.id, delta=delta, metadata=metadata, subagent_run_id=self.owner
        )

    def seal(self, encrypted_value: str) -> None:
        """Attaches the provider's opaque value, for the consumer to return with the next input."""
        self._run.encrypted_value("message", self.id, encrypted_value, subagent_run_id=self.owner)

    def _close(self) -> None:
        self._run.emit(ReasoningMessageEndEvent(message_id=self.id, subagent_run_id=self.owner))
        if self.span_id in self._run.open_ids(ReasoningStartEvent):
            self._run.emit(ReasoningEndEvent(message_id=self.span_id, subagent_run_id=self.owner))


class ToolCallItem(GrowingItem):
    """A tool call whose arguments are being written, as JSON text."""

    def __init__(
        self,
        run: Run,
        name: str,
        call_id: str,
        *,
        parent_message_id: str | UnsetType,
        metadata: Metadata | UnsetType,
        subagent_run_id: str | UnsetType,
    ) -> None:
        self.name = name
        run.emit(
            ToolCallStartEvent(
                tool_call_id=call_id,
                tool_call_name=name,
                parent_message_id=parent_message_id,
                metadata=metadata,
                subagent_run_id=subagent_run_id,
            )
        )
        super().__init__(run, ToolCallStartEvent, call_id, subagent_run_id)

    def addition(self, delta: str, metadata: Metadata | UnsetType = UNSET) -> ToolCallArgsEvent:
        return ToolCallArgsEvent(tool_call_id=self.id, delta=delta, metadata=metadata, subagent_run_id=self.owner)

    def _close(self) -> None:
        self._run.emit(ToolCallEndEvent(tool_call_id=self.id, subagent_run_id=self.owner))


class Step(Item):
    """A named step of the run."""

    def __init__(self, run: Run, name: str, *, subagent_run_id: str | UnsetType) -> None:
        super().__init__(run, subagent_run_id)
        self.name = name
        run.emit(StepStartedEvent(step_name=name, subagent_run_id=subagent_run_id))

    def _is_open(self) -> bool:
        return self._run.step_is_open(self.name, self.owner)

    def _close(self) -> None:
        self._run.emit(StepFinishedEvent(step_name=self.name, subagent_run_id=self.owner))


class Activity:
    """An activity on the consumer's screen; its content is replaced or patched."""

    def __init__(
        self,
        run: Run,
        message_id: str,
        activity_type: str,
        content: JSONObject,
        *,
        subagent_run_id: str | UnsetType,
    ) -> None:
        self._run = run
        self.owner = subagent_run_id
        self._content = content
        self.id = message_id
        self.type = activity_type
        self._snapshot(content)

    def replace(self, content: JSONObject) -> None:
        """Sends what has changed, as a patch, or whole when that is shorter."""
        content = plain(content)
        operations = diff(self._content, content)
        if any(operation["path"] == "" for operation in operations):
            self._snapshot(content)
        elif operations:
            self._delta(operations, content)

    def patch(self, operations: list[Any]) -> None:
        """Sends RFC 6902 operations on the content; raises `PatchError` when they do not apply to it."""
        patched = apply_patch(self._content, operations, max_depth=self._run.max_nesting)
        if not isinstance(patched, dict):
            raise PatchError("the content of an activity must stay an object", index=len(operations) - 1)
        self._delta(operations, patched)

    def _snapshot(self, content: JSONObject) -> None:
        content = plain(content)
        self._run.emit(
            ActivitySnapshotEvent(
                message_id=self.id, activity_type=self.type, content=content, subagent_run_id=self.owner
            )
        )
        self._content = content

    def _delta(self, operations: list[Any], content: JSONObject) -> None:
        self._run.emit(
            ActivityDeltaEvent(
                message_id=self.id,
                activity_type=self.type,
                patch=[read_operation(each) for each in operations],
                subagent_run_id=self.owner,
            )
        )
        self._content = content


class Subagent(Item):
    """An invocation of a subagent; what it emits carries `id` as its `subagent_run_id`."""

    def __init__(
        self,
        run: Run,
        name: str,
        subagent_run_id: str,
        *,
        description: str | UnsetType,
        parent_subagent_run_id: str | UnsetType,
        parent_tool_call_id: str | UnsetType,
        parent_message_id: str | UnsetType,
    ) -> None:
        super().__init__(run, subagent_run_id)
        self.id = subagent_run_id
        run.emit(
            SubagentStartedEvent(
                subagent_run_id=subagent_run_id,
                name=name,
                description=description,
                parent_subagent_run_id=parent_subagent_run_id,
                parent_tool_call_id=parent_tool_call_id,
                parent_message_id=parent_message_id,
            )
        )

    def finish(self, *, result: Any = UNSET, outcome: SubagentFinishedOutcome | UnsetType = UNSET) -> None:
        """Ends the invocation with a result."""
        self._ended = True
        self._run.emit(SubagentFinishedEvent(subagent_run_id=self.id, result=result, outcome=outcome))

    def fail(self, message: str, *, code: str | UnsetType = UNSET) -> None:
        """Ends the invocation, not the run, as failed; `message` is for the person."""
        self._ended = True
        self._run.emit(SubagentErrorEvent(subagent_run_id=self.id, message=message, code=code))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not self._ended and self._is_open():
            self.fail("The subagent could not finish.")
        self.end()

    def _is_open(self) -> bool:
        return self._run.subagent_is_active(self.id)

    def _close(self) -> None:
        self.finish()
