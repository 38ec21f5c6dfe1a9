"""What the tests of the consumer share: raw events, and a stream taken through the whole of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from accord.consumer import Conversation, Deviation, Pipeline, admit_input
from accord.errors import ProtocolViolation, TruncatedRun
from accord.protocol import EVENT_TYPES, Event

Raw = dict[str, Any]

STARTED: Raw = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
INPUT: Raw = {"threadId": "t", "runId": "r", "messages": []}
FINISHED: Raw = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}


def raw(event_type: str, identifier: str | None = None, **members: Any) -> Raw:
    """A raw event; `identifier` goes under the name its type has for it, `tag` is the owning subagent."""
    event: Raw = {"type": event_type}
    if identifier is not None:
        event[_identifier_of(event_type)] = identifier
    if "tag" in members:
        event["subagentRunId"] = members.pop("tag")
    return {**event, **members}


def _identifier_of(event_type: str) -> str:
    if event_type.startswith("TOOL_CALL_") and event_type != "TOOL_CALL_RESULT":
        return "toolCallId"
    if event_type.startswith("STEP_"):
        return "stepName"
    if event_type.startswith("SUBAGENT_"):
        return "subagentRunId"
    return "messageId"


def text(identifier: str, *deltas: str, **members: Any) -> list[Raw]:
    """A whole text message."""
    return [
        raw("TEXT_MESSAGE_START", identifier, **members),
        *(raw("TEXT_MESSAGE_CONTENT", identifier, delta=delta) for delta in deltas),
        raw("TEXT_MESSAGE_END", identifier),
    ]


def call(identifier: str, *deltas: str, name: str = "find", **members: Any) -> list[Raw]:
    """A whole tool call."""
    return [
        raw("TOOL_CALL_START", identifier, toolCallName=name, **members),
        *(raw("TOOL_CALL_ARGS", identifier, delta=delta) for delta in deltas),
        raw("TOOL_CALL_END", identifier),
    ]


def result(identifier: str, call_id: str, content: Any = "done", **members: Any) -> Raw:
    return raw("TOOL_CALL_RESULT", identifier, toolCallId=call_id, content=content, **members)


def reasoning(identifier: str, *deltas: str, **members: Any) -> list[Raw]:
    """A whole reasoning message."""
    return [
        raw("REASONING_MESSAGE_START", identifier, role="reasoning", **members),
        *(raw("REASONING_MESSAGE_CONTENT", identifier, delta=delta) for delta in deltas),
        raw("REASONING_MESSAGE_END", identifier),
    ]


def typed(event: Raw) -> Event:
    """The event of a well-formed raw one."""
    return msgspec.convert(event, EVENT_TYPES[event["type"]])


def payload(event: Raw) -> bytes:
    return json.dumps(event).encode()


@dataclass
class Consumed:
    """What became of a stream."""

    conversation: Conversation
    events: list[Event] = field(default_factory=list)
    deviations: list[Deviation] = field(default_factory=list)
    violation: ProtocolViolation | None = None
    truncated: bool = False

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]

    @property
    def warnings(self) -> list[str]:
        return [str(deviation) for deviation in self.deviations]

    @property
    def messages(self) -> list[Raw]:
        messages: list[Raw] = msgspec.to_builtins(self.conversation.messages)
        return messages

    @property
    def state(self) -> Any:
        return self.conversation.state

    @property
    def rule(self) -> str | None:
        return None if self.violation is None else self.violation.rule


def consume(
    payloads: Iterable[Raw | bytes],
    *,
    given: Raw | None = None,
    whole: bool = False,
    limits: Mapping[str, int] | None = None,
    **options: Any,
) -> Consumed:
    """Takes a stream through a pipeline (with `options`) and a conversation (with `limits`) that starts from `given`.

    `whole` puts the run's start and end around the events.
    """
    deviations: list[Deviation] = []
    run_input = None if given is None else admit_input({**INPUT, **given})
    conversation = Conversation(run_input, on_deviation=deviations.append, **(limits or {}))
    found = Consumed(conversation, deviations=deviations)
    pipeline = Pipeline(on_deviation=deviations.append, **options)
    try:
        for each in [STARTED, *payloads, FINISHED] if whole else payloads:
            for event in pipeline.feed(each):
                found.events.append(event)
                conversation.apply(event)
        pipeline.finish()
    except ProtocolViolation as violation:
        for event in violation.delivered:
            found.events.append(event)
            conversation.apply(event)
        found.violation = violation
    except TruncatedRun:
        found.truncated = True
    conversation.end_of_stream()
    return found
