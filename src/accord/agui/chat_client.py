"""An AG-UI server as the model of a local agent.

    agent = Agent(client=AGUIChatClient(server_url="http://127.0.0.1:8888/"))
    async for update in agent.run("Create a carbonara", session=session, stream=True): ...

What the server streams comes out as updates; nothing is dropped. The thread goes on with the agent's session. Tools of
the local agent are offered to the server and run by the local agent's loop; what the server asks a person comes out as
approval requests, which the next run answers.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Self, get_args
from weakref import WeakKeyDictionary

from msgspec import UNSET, Struct, UnsetType, to_builtins

from accord.agents import (
    AgentResponseUpdate,
    ChatClientError,
    ChatOptions,
    Content,
    DataContent,
    FunctionApprovalRequestContent,
    FunctionApprovalResponseContent,
    FunctionCallContent,
    FunctionResultContent,
    Message,
    ReasoningContent,
    Role,
    TextContent,
    UriContent,
    Usage,
    UsageContent,
)
from accord.agents.surrogates import SurrogateJoiner, whole
from accord.agui.emission import JSON_MEDIA_TYPE, content_part, result_for_interface
from accord.agui.event_content import AGUIEventContent, StateDeltaContent
from accord.agui.interrupts import arguments_of
from accord.agui.messages import read_part
from accord.client import AGUIClient, Transport, resume_entries
from accord.client.http_types import Auth, HTTPClient
from accord.consumer import OnDeviation
from accord.errors import AccordError, EncodingError, RunFailed
from accord.protocol import (
    JSON,
    AssistantMessage,
    Event,
    FunctionCall,
    Interrupt,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ResumeEntry,
    RunFinishedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    SystemMessage,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TextPart,
    TokenUsage,
    Tool,
    ToolCall,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    ToolMessage,
    UserMessage,
    conform,
    to_wire,
)
from accord.protocol import Message as ProtocolMessage
from accord.sessions import AgentSession, SessionError

if TYPE_CHECKING:
    from accord.client import HTTPTransport

__all__ = ["SOURCE_ID", "AGUIChatClient", "AGUIEventContent", "StateDeltaContent"]

#: The key of an agent session's state under which the thread is kept.
SOURCE_ID = "agui"


class AGUIChatClient:
    """A chat client whose model is an AG-UI server, by `server_url` or by `transport`.

    A session's thread (id, messages, state, open questions) is kept in the session's state under `agui`, so a saved
    and restored session goes on where it was. `state` begins a new thread's shared state. The other arguments are
    `AGUIClient`'s.
    """

    def __init__(
        self,
        server_url: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        auth: Auth | None = None,
        http_client: HTTPClient | None = None,
        transport: Transport | None = None,
        state: JSON | UnsetType = UNSET,
        on_deviation: OnDeviation | None = None,
    ) -> None:
        if (server_url is None) == (transport is None):
            raise ValueError("AGUIChatClient takes exactly one of server_url and transport=")
        self._own: HTTPTransport | None = None
        if server_url is not None:
            from accord.client import HTTPTransport  # a server that asks no other server does without HTTP's client

            self._own = HTTPTransport(server_url, headers=headers, auth=auth, http_client=http_client)
        self._transport: Transport | None = transport or self._own
        self._first_state = state
        self._on_deviation = on_deviation
        self._threads: WeakKeyDictionary[AgentSession, AGUIClient] = WeakKeyDictionary()
        self._latest: AGUIClient | None = None

    @property
    def state(self) -> JSON:
        """The shared state of the thread that ran last; `{}` before any has."""
        return {} if self._latest is None else self._latest.state

    def state_of(self, session: AgentSession) -> JSON:
        """The shared state of a session's thread."""
        return self._thread(session).state

    def set_state(self, session: AgentSession, state: JSON) -> None:
        """Changes the shared state of a session's thread; its next run carries it."""
        self._thread(session).state = state

    async def stream(self, messages: Sequence[Message], options: ChatOptions) -> AsyncIterator[AgentResponseUpdate]:
        """One run of the server; what is new in `messages` is added to the thread.

        A question of the server's that nothing in `messages` answers is asked again, and no run begins.
        """
        session = options.session or AgentSession()
        client = self._latest = self._thread(session)
        pending = client.pending_interrupts
        resume = _answers(messages, pending, client.messages) if pending else None
        answered = {entry.interrupt_id for entry in resume or ()}
        unanswered = [each for each in pending if each.id not in answered]
        translation = _Translation()
        if unanswered:
            yield translation.last(unanswered, client.messages)
            return
        run = client.run(
            _new_messages(messages, client.messages),
            tools=[
                Tool(name=each.name, description=each.description, parameters=each.parameters) for each in options.tools
            ],
            resume=resume,
        )
        try:
            async with aclosing(run):
                async for event in run:
                    for update in translation.updates(event):
                        yield update
        except RunFailed as failed:
            raise ChatClientError(failed.message, code=failed.code or "failed") from failed
        except AccordError as error:
            raise ChatClientError(str(error), code=run.outcome or "truncated") from error
        finally:
            session.service_session_id = client.thread_id
            session.state[SOURCE_ID] = {
                "thread_id": client.thread_id,
                "state": client.state,
                "messages": [_wire(message) for message in client.messages],
                "interrupts": [to_wire(interrupt) for interrupt in client.pending_interrupts],
            }
        yield translation.last(run.interrupts, client.messages)

    async def aclose(self) -> None:
        """Frees the connections."""
        for client in list(self._threads.values()):
            await client.aclose()
        if self._own is not None:
            await self._own.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _thread(self, session: AgentSession) -> AGUIClient:
        client = self._threads.get(session)
        if client is None:
            saved = session.state.get(SOURCE_ID, {})
            state = saved.get("state", self._first_state)
            client = self._threads[session] = AGUIClient(
                transport=self._transport,
                thread_id=saved.get("thread_id") or session.service_session_id,
                state=state,
                messages=[_message(raw) for raw in saved.get("messages", ())],
                on_deviation=self._on_deviation,
            )
            interrupts = [conform(raw, Interrupt)[0] for raw in saved.get("interrupts", ())]
            client.conversation.set_pending_interrupts(each for each in interrupts if each is not None)
        return client


class _Translation:
    """A run's events as updates. Where a server cuts a character in two, its first half waits for the second."""

    def __init__(self) -> None:
        self._message_of_call: dict[str, str] = {}
        self._usage: list[TokenUsage] = []
        self._joiners: dict[tuple[str, str], SurrogateJoiner] = {}

    def updates(self, event: Event) -> Iterator[AgentResponseUpdate]:
        """The updates that an event makes; none for one that only frames others."""
        match event:
            case TextMessageContentEvent(message_id=message_id, delta=delta):
                yield from _said(TextContent, message_id, self._feed("text", message_id, delta))
            case TextMessageEndEvent(message_id=message_id):
                yield from _said(TextContent, message_id, self._close("text", message_id))
            case ReasoningMessageContentEvent(message_id=message_id, delta=delta):
                yield from _said(ReasoningContent, message_id, self._feed("reasoning", message_id, delta))
            case ReasoningMessageEndEvent(message_id=message_id):
                yield from _said(ReasoningContent, message_id, self._close("reasoning", message_id))
                yield AgentResponseUpdate(AGUIEventContent(_wire(event)))
            case ToolCallStartEvent(tool_call_id=call_id, tool_call_name=name, parent_message_id=parent):
                self._message_of_call[call_id] = call_id if parent is UNSET else parent
                yield self._call(call_id, FunctionCallContent(call_id, whole(name)))
            case ToolCallArgsEvent(tool_call_id=call_id, delta=delta):
                if arguments := self._feed("call", call_id, delta):
                    yield self._call(call_id, FunctionCallContent(call_id, "", arguments))
            case ToolCallEndEvent(tool_call_id=call_id):
                if arguments := self._close("call", call_id):
                    yield self._call(call_id, FunctionCallContent(call_id, "", arguments))
            case ToolCallResultEvent(message_id=message_id, tool_call_id=call_id, content=content):
                result: Any = whole(content) if isinstance(content, str) else [read_part(part) for part in content]
                yield AgentResponseUpdate(FunctionResultContent(call_id, result), Role.TOOL, message_id)
            case StateSnapshotEvent(snapshot=snapshot):
                data = whole(json.dumps(snapshot, ensure_ascii=False)).encode()
                yield AgentResponseUpdate(DataContent(data, JSON_MEDIA_TYPE))
            case StateDeltaEvent():
                yield AgentResponseUpdate(StateDeltaContent(_wire(event)["delta"]))
            case RunFinishedEvent(usage=usage):
                self._usage = list(usage or ())
            case TextMessageStartEvent():
                pass
            case _:
                yield AgentResponseUpdate(AGUIEventContent(_wire(event)))

    def last(self, interrupts: Iterable[Interrupt], messages: Sequence[ProtocolMessage]) -> AgentResponseUpdate:
        """How the run ended: usage, what the server asks, and why it stopped."""
        contents: list[Content] = [UsageContent(_usage(usage)) for usage in self._usage]
        requests = [FunctionApprovalRequestContent(each.id, _asked(each, messages)) for each in interrupts]
        return AgentResponseUpdate([*contents, *requests], finish_reason="tool_calls" if requests else "stop")

    def _call(self, call_id: str, content: FunctionCallContent) -> AgentResponseUpdate:
        return AgentResponseUpdate(content, Role.ASSISTANT, self._message_of_call.get(call_id, call_id))

    def _feed(self, kind: str, identifier: str, delta: str) -> str:
        return self._joiners.setdefault((kind, identifier), SurrogateJoiner()).feed(delta)

    def _close(self, kind: str, identifier: str) -> str:
        joiner = self._joiners.pop((kind, identifier), None)
        return "" if joiner is None else joiner.close()


def _said(kind: Callable[[str], Content], message_id: str, text: str) -> Iterator[AgentResponseUpdate]:
    if text:
        yield AgentResponseUpdate(kind(text), Role.ASSISTANT, message_id)


def _wire(shape: Struct) -> dict[str, Any]:
    """The object on the wire; a half of a character in it, which no encoding has, is U+FFFD."""
    try:
        return to_wire(shape)
    except EncodingError:
        found: dict[str, Any] = json.loads(whole(json.dumps(to_builtins(shape), ensure_ascii=False)))
        return found


def _asked(interrupt: Interrupt, messages: Sequence[ProtocolMessage]) -> FunctionCallContent:
    """The call an interrupt is about; one about something else is shown as a call named by its reason."""
    for message in messages:
        for call in (message.tool_calls or ()) if isinstance(message, AssistantMessage) else ():
            if call.id == interrupt.tool_call_id:
                return FunctionCallContent(call.id, call.function.name, call.function.arguments)
    question = {} if interrupt.message is UNSET else {"message": interrupt.message}
    return FunctionCallContent(interrupt.id, interrupt.reason, json.dumps(question, ensure_ascii=False))


def _answers(
    messages: Sequence[Message], pending: Sequence[Interrupt], held: Sequence[ProtocolMessage]
) -> list[ResumeEntry]:
    """The resume entries for the approvals in `messages`."""
    given: dict[str, Any] = {}
    asked = {interrupt.id: _asked(interrupt, held) for interrupt in pending}
    for message in messages:
        for content in message.contents:
            if isinstance(content, FunctionApprovalResponseContent) and content.id in asked:
                payload: dict[str, Any] = {"approved": content.approved}
                if content.approved and content.call.arguments != asked[content.id].arguments:
                    payload["editedArgs"] = arguments_of(content.call)
                if content.reason:
                    payload["reason"] = content.reason
                given[content.id] = payload
    return resume_entries(given, pending)


def _new_messages(messages: Sequence[Message], held: Sequence[ProtocolMessage]) -> list[ProtocolMessage]:
    """What of the agent's messages the thread does not hold yet."""
    known = {message.id for message in held}
    start = 0
    if held:  # what comes before the last answer is the thread's own past
        for position, message in enumerate(messages):
            if message.role is Role.ASSISTANT:
                start = position + 1
    answered = {message.tool_call_id for message in held if isinstance(message, ToolMessage)}
    made: list[ProtocolMessage] = []
    for position, message in enumerate(messages):
        instructs = message.role in (Role.SYSTEM, Role.DEVELOPER)
        if position < start and not instructs:
            continue
        identifier = message.message_id or (f"instructions-{position}" if instructs else None)
        if identifier is None or identifier not in known:
            made += _protocol_messages(message, identifier, answered)
    return made


def _protocol_messages(message: Message, identifier: str | None, answered: set[str]) -> list[ProtocolMessage]:
    made_id = identifier or str(uuid.uuid4())
    if message.role in (Role.SYSTEM, Role.DEVELOPER):
        return [SystemMessage(id=made_id, content=message.text)]
    if message.role is Role.TOOL:
        results = [content for content in message.contents if isinstance(content, FunctionResultContent)]
        return [
            ToolMessage(
                id=made_id if len(results) == 1 else str(uuid.uuid4()),
                tool_call_id=result.call_id,
                content=result_for_interface(result),
                error=UNSET if result.error is None else result.error,
            )
            for result in results
            if result.call_id not in answered
        ]
    if message.role is Role.ASSISTANT:
        calls = [
            ToolCall(id=each.call_id, type="function", function=FunctionCall(name=each.name, arguments=each.arguments))
            for each in message.function_calls
        ]
        return [AssistantMessage(id=made_id, content=message.text, tool_calls=calls or UNSET)]
    said = [content for content in message.contents if isinstance(content, TextContent | DataContent | UriContent)]
    parts = [content_part(content) for content in said]
    if not parts:
        return []
    name = UNSET if message.author_name is None else message.author_name
    if all(isinstance(part, TextPart) for part in parts):
        return [UserMessage(id=made_id, content=message.text, name=name)]
    return [UserMessage(id=made_id, content=parts, name=name)]


def _usage(usage: TokenUsage) -> Usage:
    counts = {name: getattr(usage, name) for name in TokenUsage.__struct_fields__}
    return Usage(**{name: None if count is UNSET else count for name, count in counts.items()})


def _message(raw: Any) -> ProtocolMessage:
    """A message of a saved session."""
    struct = _MESSAGE_TYPES.get(str(raw.get("role"))) if isinstance(raw, dict) else None
    message = None if struct is None else conform(raw, struct)[0]
    if message is None:
        raise SessionError(f"/state/{SOURCE_ID}/messages: no message: {raw!r:.100}")
    return message


_MESSAGE_TYPES: dict[str, type[ProtocolMessage]] = {
    str(struct.__struct_config__.tag): struct for struct in get_args(ProtocolMessage)
}
