"""Approvals: calls that wait for a person, and the answers that the next run begins with.

A run that meets such a call ends with a `FunctionApprovalRequestContent` for each; a run whose messages hold
`FunctionApprovalResponseContent`s first runs or refuses those calls, exactly once each, and then goes on as ever.
Neither content reaches a model. An answer about a call that does not run here is left for the chat client: its
service asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import msgspec

from accord.agents.content import (
    FunctionApprovalRequestContent,
    FunctionApprovalResponseContent,
    FunctionCallContent,
    FunctionResultContent,
)
from accord.agents.message import Message, Role

#: Says whether a call needs approval, given the call and what its tool's `approval_mode` says.
ApprovalPolicy: TypeAlias = Callable[[FunctionCallContent, bool], bool]

REFUSED = "the user refused this call"


@dataclass(frozen=True, slots=True)
class Answers:
    """A conversation without its approvals, and what they say of its unanswered calls."""

    conversation: list[Message]
    approved: list[FunctionCallContent]
    refused: list[tuple[FunctionCallContent, str]]
    unanswered: list[FunctionCallContent]

    @property
    def given(self) -> bool:
        return bool(self.approved or self.refused)


def take_answers(messages: Sequence[Message], runs_here: Callable[[str], bool]) -> Answers:
    """Reads the approvals out of a conversation; `runs_here` tells it of a tool's name.

    The first answer to a call counts, and of it the arguments; one to no open call does not.
    """
    answers: dict[str, FunctionApprovalResponseContent] = {}
    answered_elsewhere: set[str] = set()
    conversation: list[Message] = []
    for message in messages:
        kept = []
        for content in message.contents:
            if isinstance(content, FunctionApprovalResponseContent) and runs_here(content.call.name):
                answers.setdefault(content.call.call_id, content)
            elif not isinstance(content, FunctionApprovalRequestContent):
                kept.append(content)
                if isinstance(content, FunctionApprovalResponseContent):
                    answered_elsewhere.add(content.call.call_id)
        if len(kept) == len(message.contents):
            conversation.append(message)
        elif kept:
            conversation.append(replace(message, contents=tuple(kept)))
    taken = Answers(conversation, [], [], [])
    for call in _open_calls(conversation):
        answer = answers.get(call.call_id)
        if answer is None:
            if call.call_id not in answered_elsewhere:
                taken.unanswered.append(call)
        elif answer.approved:
            taken.approved.append(msgspec.structs.replace(call, arguments=answer.call.arguments))
        else:
            taken.refused.append((call, answer.reason or REFUSED))
    return taken


def place_of_result(conversation: Sequence[Message], call_id: str) -> int:
    """Where the result of a call belongs: behind the message that calls, and results that are there."""
    place = 0
    while all(call.call_id != call_id for call in conversation[place].function_calls):
        place += 1
    place += 1
    while place < len(conversation) and conversation[place].role is Role.TOOL:
        place += 1
    return place


def _open_calls(conversation: Sequence[Message]) -> list[FunctionCallContent]:
    done = {
        content.call_id
        for message in conversation
        for content in message.contents
        if isinstance(content, FunctionResultContent)
    }
    calls: dict[str, FunctionCallContent] = {}
    for message in conversation:
        for call in message.function_calls:
            calls.setdefault(call.call_id, call)  # a history may hold it twice
    return [call for call_id, call in calls.items() if call_id not in done]
