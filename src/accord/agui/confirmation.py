"""What people are told when an agent asks before it acts, and when they have answered.

A strategy is five texts and the methods that say them; subclass one and override either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class ConfirmationStrategy:
    """The texts of confirmation. `{count}` in `approval_header` is the number of accepted steps.

    A step is an object with a `description` and perhaps a `status`; one whose status is anything but `enabled` was
    not accepted and is not listed.
    """

    approval_request: ClassVar[str] = "Allow {tool}?"
    approval_header: ClassVar[str] = "Executing {count} approved steps:"
    approval_footer: ClassVar[str] = "All steps are done."
    rejection: ClassVar[str] = "No problem, nothing was done. What shall I do instead?"
    state_confirmed: ClassVar[str] = "The changes are applied."
    state_rejected: ClassVar[str] = "The changes are taken back. What would you like instead?"

    def on_approval_requested(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """The question put to the person before `tool` runs with `arguments`."""
        return self.approval_request.format(tool=tool)

    def on_approval_accepted(self, steps: Sequence[Mapping[str, Any]]) -> str:
        """Said when steps were accepted: how many, which, numbered, and that they are done."""
        accepted = [step for step in steps if step.get("status", "enabled") == "enabled"]
        listed = [f"{number}. {step.get('description', '')}" for number, step in enumerate(accepted, 1)]
        return "\n".join([self.approval_header.format(count=len(accepted)), "", *listed, "", self.approval_footer])

    def on_approval_rejected(self, steps: Sequence[Mapping[str, Any]]) -> str:
        """Said when steps were refused."""
        return self.rejection

    def on_state_confirmed(self) -> str:
        """Said when a change of the state was accepted."""
        return self.state_confirmed

    def on_state_rejected(self) -> str:
        """Said when a change of the state was refused and the state is as before."""
        return self.state_rejected


class DefaultConfirmationStrategy(ConfirmationStrategy):
    """Texts that fit any agent."""


class RecipeConfirmationStrategy(ConfirmationStrategy):
    """Texts for an agent that writes recipes."""

    approval_request = "Shall I change the recipe?"
    approval_header = "Changing the recipe in {count} steps:"
    approval_footer = "The recipe is up to date."
    rejection = "The recipe stays as it was. Which ingredients or steps shall I change instead?"
    state_confirmed = "The recipe is updated."
    state_rejected = "The recipe stays as it was. What would you like to change?"


class DocumentWriterConfirmationStrategy(ConfirmationStrategy):
    """Texts for an agent that writes documents."""

    approval_request = "Shall I make these edits to the document?"
    approval_header = "Making {count} edits:"
    approval_footer = "The document is up to date."
    rejection = "The document stays as it was. Which parts shall I write differently?"
    state_confirmed = "The edits are in the document."
    state_rejected = "The edits are discarded and the document is as before. How shall I change it?"


class TaskPlannerConfirmationStrategy(ConfirmationStrategy):
    """Texts for an agent that plans tasks."""

    approval_request = "Shall I carry out this plan?"
    approval_header = "Carrying out your {count} tasks:"
    approval_footer = "All tasks are done."
    rejection = "The plan is dropped. How shall I change it?"
    state_confirmed = "The plan is saved."
    state_rejected = "The plan is as before. What would you like to change?"
