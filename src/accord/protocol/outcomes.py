"""How a run or a subagent ends, what a run that stops may ask, and how it is answered."""

from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, UnsetType

from accord.protocol.values import Identified, JSONObject, Metadata, NonNull, Shape


class Interrupt(Identified, frozen=True, kw_only=True):
    """A question that keeps a run from going on until the next input answers it (rules section 7)."""

    id: str
    reason: str
    message: str | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET
    response_schema: JSONObject | UnsetType = UNSET
    expires_at: str | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class ResumeEntry(Shape, frozen=True, kw_only=True):
    """The answer to one interrupt: `resolved` with a payload, or `cancelled`."""

    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    payload: NonNull | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class RunFinishedSuccessOutcome(Shape, frozen=True, kw_only=True, tag_field="type", tag="success"):
    """The run did what it was asked; the named frontend calls are the application's to run."""

    pending_tool_call_ids: list[str] | UnsetType = UNSET


class RunFinishedInterruptOutcome(Shape, frozen=True, kw_only=True, tag_field="type", tag="interrupt"):
    """The run waits for answers, one for each interrupt."""

    interrupts: Annotated[list[Interrupt], Meta(min_length=1)]


class RunFinishedCancelledOutcome(Shape, frozen=True, kw_only=True, tag_field="type", tag="cancelled"):
    """The run was stopped: neither success nor failure."""


RunFinishedOutcome: TypeAlias = RunFinishedSuccessOutcome | RunFinishedInterruptOutcome | RunFinishedCancelledOutcome


class SubagentFinishedSuccessOutcome(Shape, frozen=True, kw_only=True, tag_field="type", tag="success"):
    """The subagent did what it was asked."""


class SubagentFinishedSuspendedOutcome(Shape, frozen=True, kw_only=True, tag_field="type", tag="suspended"):
    """The subagent waits for the named interrupts of the run."""

    interrupt_ids: list[str] | UnsetType = UNSET


SubagentFinishedOutcome: TypeAlias = SubagentFinishedSuccessOutcome | SubagentFinishedSuspendedOutcome
