"""Asking a person before a tool runs, and carrying out the answers (rules section 7).

What is asked and what may be done with the answer is the server's record alone: a resume names an interrupt, and the
recorded call runs with the recorded arguments, or with the edited ones the person sent back, once.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET

from accord.agents import (
    Agent,
    FunctionApprovalRequestContent,
    FunctionApprovalResponseContent,
    FunctionCallContent,
    FunctionResultContent,
    FunctionTool,
    Message,
    Role,
)
from accord.agui.confirmation import ConfirmationStrategy
from accord.agui.threads import CarriedOut, InterruptedTurn, PendingCall
from accord.producer import Run
from accord.protocol import Interrupt, JSONObject, ResumeEntry

_logger = logging.getLogger("accord")

FUNCTION_APPROVAL_REQUEST = "function_approval_request"
TOOL_CALL_REASON = "tool_call"
#: The result of a call whose run was cut off.
NOT_KNOWN = "The run was cut off; whether this call took effect is not known."


def response_schema(tool: FunctionTool[..., Any] | None) -> JSONObject:
    """The JSON Schema of an answer to a call of `tool`."""
    edited: JSONObject = {"type": "object"} if tool is None else dict(tool.definition.parameters)
    definitions = edited.pop("$defs", None)
    schema: JSONObject = {
        "type": "object",
        "properties": {
            "approved": {"type": "boolean"},
            "editedArgs": {**edited, "description": "Replaces all arguments of the call."},
            "reason": {"type": "string", "description": "Why it is refused, for the model to read."},
            "always": {"type": "boolean", "description": "Approve every later call of this tool in the thread."},
        },
        "required": ["approved"],
    }
    return schema if definitions is None else {**schema, "$defs": definitions}


@dataclass(frozen=True, slots=True)
class Answer:
    """What the person said to one pending call."""

    pending: PendingCall
    approved: bool
    arguments: Mapping[str, Any] | None = None
    reason: str | None = None
    always: bool = False

    def as_content(self, refusal: str) -> FunctionApprovalResponseContent:
        """The answer for the agent; `refusal` is what the model is told of a refusal."""
        reason = f"{refusal} {self.reason}" if self.reason else refusal
        request = FunctionApprovalRequestContent(self.pending.request_id, self.pending.call)
        return request.answer(self.approved, arguments=self.arguments, reason=None if self.approved else reason)


def ask(
    run: Run,
    agent: Agent,
    requests: Sequence[FunctionApprovalRequestContent],
    strategy: ConfirmationStrategy,
    earlier: Mapping[str, PendingCall],
) -> tuple[PendingCall, ...]:
    """Makes the run end with a question for each request; one that was asked `earlier`, by call id, keeps its id."""
    pending = tuple(
        earlier.get(each.call.call_id) or PendingCall(str(uuid.uuid4()), each.call, each.id) for each in requests
    )
    ask_again(run, agent, pending, strategy)
    return pending


def ask_again(run: Run, agent: Agent, pending: Sequence[PendingCall], strategy: ConfirmationStrategy) -> None:
    """Makes the run end with these questions."""
    for each in pending:
        _ask(run, agent, each, strategy)


def _ask(run: Run, agent: Agent, pending: PendingCall, strategy: ConfirmationStrategy) -> None:
    call = pending.call
    arguments = arguments_of(call)
    request = {"call_id": call.call_id, "name": call.name, "arguments": arguments}
    run.custom(FUNCTION_APPROVAL_REQUEST, {"id": pending.interrupt_id, "function_call": request})
    tool = next((tool for tool in agent.tools if tool.name == call.name), None)
    run.interrupt(
        Interrupt(
            id=pending.interrupt_id,
            reason=TOOL_CALL_REASON,
            message=strategy.on_approval_requested(call.name, arguments),
            tool_call_id=call.call_id,
            response_schema=response_schema(tool if isinstance(tool, FunctionTool) else None),
        )
    )


def read_answers(turn: InterruptedTurn, resume: Sequence[ResumeEntry], agent: Agent) -> list[Answer]:
    """The answers in a resume to the calls of `turn`, the first to each.

    What does not fit the schema of the answer is a refusal. An entry that answers nothing here is left out with a
    warning: nothing is ever done that no entry came for.
    """
    pending = {each.interrupt_id: each for each in turn.pending}
    answers: dict[str, Answer] = {}
    for entry in resume:
        waiting = pending.get(entry.interrupt_id)
        if waiting is None:
            _logger.warning("a resume entry names no open interrupt: %r", entry.interrupt_id)
        elif entry.interrupt_id in answers:
            _logger.warning("interrupt %r is answered twice; the first answer counts", entry.interrupt_id)
        else:
            answers[entry.interrupt_id] = _read(waiting, entry, agent)
    return list(answers.values())


def _read(pending: PendingCall, entry: ResumeEntry, agent: Agent) -> Answer:
    if entry.status == "cancelled":
        return Answer(pending, approved=False)
    payload = {} if entry.payload is UNSET else entry.payload
    if isinstance(payload, dict) and "approved" not in payload and "accepted" in payload:
        payload = {**payload, "approved": payload["accepted"]}
    tool = next((tool for tool in agent.tools if tool.name == pending.call.name), None)
    if not _fits(payload, response_schema(tool if isinstance(tool, FunctionTool) else None)):
        _logger.warning("the answer to interrupt %r does not fit its schema and is a refusal", entry.interrupt_id)
        return Answer(pending, approved=False)
    assert isinstance(payload, dict)
    return Answer(
        pending,
        approved=payload["approved"],
        arguments=payload.get("editedArgs"),
        reason=payload.get("reason"),
        always=payload.get("always", False),
    )


def _fits(payload: object, schema: JSONObject) -> bool:
    from jsonschema_rs import validator_for

    return validator_for(schema).is_valid(payload)


def steps_of(answer: Answer) -> list[Mapping[str, Any]]:
    """The steps that were asked about, as the person left them; none for a call that has no list of steps."""
    arguments = arguments_of(answer.pending.call) if answer.arguments is None else answer.arguments
    steps = arguments.get("steps")
    if not isinstance(steps, list):
        return []
    return [step if isinstance(step, Mapping) else {"description": str(step)} for step in steps]


def arguments_of(call: FunctionCallContent) -> JSONObject:
    """A call's arguments as an object; `{}` for text that is none."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        return {}
    return arguments if isinstance(arguments, dict) else {}


def conversation_of(
    turn: InterruptedTurn, received: Sequence[Message], carried_out: Mapping[str, CarriedOut], agent: Agent
) -> list[Message]:
    """The recorded conversation, and behind it what has been added since.

    Told by id: what the record holds counts, whatever the client says of it. A tool message of the client's counts
    where it answers a call that the record leaves to the application, and nothing an assistant is said to have said.
    A call that a run was to carry out which was then cut off has the result that is recorded, or none that is known;
    it is not made again.
    """
    known = {message.message_id for message in turn.conversation}
    results = _results(turn.conversation)
    waiting = {each.call.call_id for each in turn.pending}
    claimed = {call_id: message for message in received for call_id in _results([message])}
    done = {each.result.call_id: each for each in carried_out.values()}
    ours = {tool.name for tool in agent.tools if isinstance(tool, FunctionTool)}
    conversation = list(turn.conversation)
    for call in (call for message in turn.conversation for call in message.function_calls):
        if call.call_id in results or call.call_id in waiting:
            continue
        if call.call_id in done:
            carried = done[call.call_id]
            conversation.append(Message(Role.TOOL, carried.result, message_id=carried.message_id))
        elif call.name in ours:
            conversation.append(
                Message(Role.TOOL, FunctionResultContent(call.call_id, error=NOT_KNOWN, name=call.name))
            )
        elif call.call_id in claimed:
            conversation.append(claimed[call.call_id])
    said = (message for message in received if message.role not in (Role.ASSISTANT, Role.TOOL))
    return conversation + [message for message in said if message.message_id not in known]


def _results(messages: Iterable[Message]) -> set[str]:
    """The ids of the calls that have a result."""
    contents = (content for message in messages for content in message.contents)
    return {content.call_id for content in contents if isinstance(content, FunctionResultContent)}
