"""Approvals: calls that wait for a person, and the answers that the next run begins with.

A run that meets such a call ends with a `FunctionApprovalRequestContent` for each; a run whose messages hold
`FunctionApprovalResponseContent`s first runs or refuses those calls, exactly once each, and then goes on as ever.
Neither content reaches a model. An answer about a call that does not run here is left for the chat client: its
service asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

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
    place: int
    """Where in the conversation the results belong: behind the message that calls, and results that are there."""

    @property
    def given(self) -> bool:
        return bool(self.approved or self.refused)


def take_answers(messages: Sequence[Message], runs_here: Callable[[str], bool]) -> Answers:
    """Reads the approvals out of a conversation; `runs_here` tells it of a tool's name.

    The first answer to a call counts; one to no open call does not.
    """
    answers: dict[str, FunctionApprovalResponseContent] = {}
    conversation: list[Message] = []
    for message in messages:
        kept = []
        for content in message.contents:
            if isinstance(content, FunctionApprovalResponseContent) and runs_here(content.call.name):
                answers.setdefault(content.call.call_id, content)
            elif not isinstance(content, FunctionApprovalRequestContent):
                kept.append(content)
        if len(kept) == len(message.contents):
            conversation.append(message)
        elif kept:
            conversation.append(_with_contents(message, kept))
    open_calls = _open_calls(conversation)
    approved = [answers[call.call_id].call for call in open_calls if _says(answers, call, approved=True)]
    refused = [
        (call, answers[call.call_id].reason or REFUSED) for call in open_calls if _says(answers, call, approved=False)
    ]
    unanswered = [call for call in open_calls if call.call_id not in answers]
    return Answers(conversation, approved, refused, unanswered, _place_of_results(conversation))


def _says(answers: dict[str, FunctionApprovalResponseContent], call: FunctionCallContent, *, approved: bool) -> bool:
    return call.call_id in answers and answers[call.call_id].approved is approved


def _open_calls(conversation: Sequence[Message]) -> list[FunctionCallContent]:
    done = {
        content.call_id
        for message in conversation
        for content in message.contents
        if isinstance(content, FunctionResultContent)
    }
    return [call for message in conversation for call in message.function_calls if call.call_id not in done]


def _place_of_results(conversation: Sequence[Message]) -> int:
    place = len(conversation)
    while place and not conversation[place - 1].function_calls:
        place -= 1
    while place < len(conversation) and conversation[place].role is Role.TOOL:
        place += 1
    return place


def _with_contents(message: Message, contents: Sequence[object]) -> Message:
    return Message(
        message.role,
        contents,  # type: ignore[arg-type]
        message_id=message.message_id,
        author_name=message.author_name,
        metadata=message.metadata,
    )
