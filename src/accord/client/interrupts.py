"""Answers to a run's questions, as the resume entries of the next input (rules section 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

from msgspec import UNSET

from accord.protocol import Interrupt, ResumeEntry


@final
class Cancelled:
    """The answer to an interrupt of somebody who does not want to answer it; the class itself will do as well."""


def resume_entries(answers: Mapping[str, Any], pending: Sequence[Interrupt]) -> list[ResumeEntry]:
    """One entry for each answer, by the interrupt's id, in the order they were asked.

    An answer is the payload, any JSON value, None for no payload; or `Cancelled`.
    """
    asked = [interrupt.id for interrupt in pending if interrupt.id in answers]
    unknown = [identifier for identifier in answers if identifier not in asked]
    return [_entry(identifier, answers[identifier]) for identifier in (*asked, *unknown)]


def _entry(interrupt_id: str, answer: Any) -> ResumeEntry:
    if answer is Cancelled or isinstance(answer, Cancelled):
        return ResumeEntry(interrupt_id=interrupt_id, status="cancelled")
    return ResumeEntry(interrupt_id=interrupt_id, status="resolved", payload=UNSET if answer is None else answer)
