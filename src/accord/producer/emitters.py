"""The streamed items of a run, each a handle that opens when it is made and closes with its `with` block."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from msgspec import UNSET, UnsetType

from accord.errors import PatchError
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


class Item:
    """What every handle shares: it belongs to a run, may belong to a subagent, and is ended once."""

    def __init__(self, run: Run, subagent_run_id: str | UnsetType) -> None:
        self._run = run
        self._owner = subagent_run_id
        self._ended = False

    def end(self) -> None:
        """Closes the item; a second call, or one after the run closed it, does nothing."""
        if not self._ended:
            self._ended = True
            if self._is_open():
                self._close()

    def _is_open(self) -> bool:
        raise NotImplementedError

    def _close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()


class TextMessage(Item):
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
        super().__init__(run, subagent_run_id)
        self.id = message_id
        run.emit(
            TextMessageStartEvent(
                message_id=message_id, role=role, name=name, metadata=metadata, subagent_run_id=subagent_run_id
            )
        )

    def write(self, delta: str, *, metadata: Metadata | UnsetType = UNSET) -> None:
        """Appends text; empty text without metadata is nothing to say and is not sent."""
        if delta or metadata is not UNSET:
            event = TextMessageContentEvent(
                message_id=self.id, delta=delta, metadata=metadata, subagent_run_id=self._owner
            )
            if metadata is UNSET and type(delta) is str:
                self._run.append(event)
            else:
                self._run.emit(event)

    def _is_open(self) -> bool:
        return self._run.is_open(TextMessageStartEvent, self.id)

    def _close(self) -> None:
        self._run.emit(TextMessageEndEvent(message_id=self.id, subagent_run_id=self._owner))


class Reasoning(Item):
    """A span of reasoning with one message in it, being written."""

    def __init__(self, run: Run, message_id: str, span_id: str, *, subagent_run_id: str | UnsetType) -> None:
        super().__init__(run, subagent_run_id)
        self.id = message_id
        self.span_id = span_id
        run.emit(ReasoningStartEvent(message_id=span_id, subagent_run_id=subagent_run_id))
        run.emit(ReasoningMessageStartEvent(message_id=message_id, role="reasoning", subagent_run_id=subagent_run_id))

    def write(self, delta: str, *, metadata: Metadata | UnsetType = UNSET) -> None:
        """Appends text; empty text without metadata is not sent."""
        if delta or metadata is not UNSET:
            event = ReasoningMessageContentEvent(
                message_id=self.id, delta=delta, metadata=metadata, subagent_run_id=self._owner
            )
            if metadata is UNSET and type(delta) is str:
                self._run.append(event)
            else:
                self._run.emit(event)

    def seal(self, encrypted_value: str) -> None:
        """Attaches the provider's opaque value, for the consumer to return with the next input."""
        self._run.encrypted_value("message", self.id, encrypted_value, subagent_run_id=self._owner)

    def _is_open(self) -> bool:
        return self._run.is_open(ReasoningMessageStartEvent, self.id)

    def _close(self) -> None:
        self._run.emit(ReasoningMessageEndEvent(message_id=self.id, subagent_run_id=self._owner))
        if self._run.is_open(ReasoningStartEvent, self.span_id):
            self._run.emit(ReasoningEndEvent(message_id=self.span_id, subagent_run_id=self._owner))


class ToolCallItem(Item):
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
        super().__init__(run, subagent_run_id)
        self.id = call_id
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

    def write(self, delta: str, *, metadata: Metadata | UnsetType = UNSET) -> None:
        """Appends argument text; empty text without metadata is not sent."""
        if delta or metadata is not UNSET:
            event = ToolCallArgsEvent(tool_call_id=self.id, delta=delta, metadata=metadata, subagent_run_id=self._owner)
            if metadata is UNSET and type(delta) is str:
                self._run.append(event)
            else:
                self._run.emit(event)

    def _is_open(self) -> bool:
        return self._run.is_open(ToolCallStartEvent, self.id)

    def _close(self) -> None:
        self._run.emit(ToolCallEndEvent(tool_call_id=self.id, subagent_run_id=self._owner))


class Step(Item):
    """A named step of the run."""

    def __init__(self, run: Run, name: str, *, subagent_run_id: str | UnsetType) -> None:
        super().__init__(run, subagent_run_id)
        self.name = name
        run.emit(StepStartedEvent(step_name=name, subagent_run_id=subagent_run_id))

    def _is_open(self) -> bool:
        return self._run.step_is_open(self.name, self._owner)

    def _close(self) -> None:
        self._run.emit(StepFinishedEvent(step_name=self.name, subagent_run_id=self._owner))


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
        self._owner = subagent_run_id
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
        patched = apply_patch(self._content, operations)
        if not isinstance(patched, dict):
            raise PatchError("the content of an activity must stay an object", index=len(operations) - 1)
        self._delta(operations, patched)

    def _snapshot(self, content: JSONObject) -> None:
        content = plain(content)
        self._run.emit(
            ActivitySnapshotEvent(
                message_id=self.id, activity_type=self.type, content=content, subagent_run_id=self._owner
            )
        )
        self._content = content

    def _delta(self, operations: list[Any], content: JSONObject) -> None:
        self._run.emit(
            ActivityDeltaEvent(
                message_id=self.id,
                activity_type=self.type,
                patch=[read_operation(each) for each in operations],
                subagent_run_id=self._owner,
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
