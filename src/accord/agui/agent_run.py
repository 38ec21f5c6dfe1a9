"""One run of an agent over AG-UI:

    input ─▶ conversation ─▶ agent.run ─▶ updates ─▶ events
                ▲                ▲                     │
                └── thread ──────┴── shared state ◀────┘

A run that meets calls which need approval ends with an interrupt for each; the run that resumes it begins with what
the server has recorded of the thread.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from accord.agents import (
    AgentResponseUpdate,
    AgentRunStream,
    ChatOptions,
    Content,
    DataContent,
    FunctionApprovalRequestContent,
    FunctionApprovalResponseContent,
    FunctionCall,
    FunctionCallContent,
    FunctionNext,
    FunctionResultContent,
    FunctionTool,
    Message,
    Role,
    TextContent,
    ToolDefinition,
    function_middleware,
)
from accord.agui.committed import committed_state, lost_results
from accord.agui.emission import JSON_MEDIA_TYPE, Emission, result_for_interface
from accord.agui.interrupts import Answer, ask, ask_again, conversation_of, read_answers, steps_of
from accord.agui.messages import answered, read_messages
from accord.agui.predictive import Predictor
from accord.agui.session_mirror import SessionMirror
from accord.agui.shared_state import state_middleware
from accord.agui.state_schema import StateRejected
from accord.agui.state_update import StateUpdate
from accord.agui.threads import CarriedOut, InterruptedTurn, Shown, ThreadRecord
from accord.errors import EncodingError, LimitExceeded, PatchError
from accord.producer import Run, plain
from accord.protocol import JSON, JSONObject, ResumeEntry
from accord.protocol.conform import escape_token
from accord.sessions import AgentSession
from accord.state import identical

if TYPE_CHECKING:
    from accord.agui.agent import AGUIAgent

_logger = logging.getLogger("accord")

_current_run: ContextVar[Run] = ContextVar("accord_current_run")

_APPROVALS = (FunctionApprovalRequestContent, FunctionApprovalResponseContent)
#: How often a record is saved again when another run of the thread has saved one in between.
_SAVE_ATTEMPTS = 5


def current_run() -> Run:
    """The run that a tool, a middleware or a chat client works for: its state, its events. Any thread of it may ask.

    Raises `LookupError` outside a run of an `AGUIAgent`.
    """
    return _current_run.get()


class AgentRun:
    """One run of what is served."""

    def __init__(self, served: AGUIAgent, run: Run) -> None:
        self._served = served
        self._run = run
        self._record = ThreadRecord()
        self._predictor = Predictor(run, served.predicting, time.monotonic)
        self._emission = Emission(run)
        self._answers: dict[str, Answer] = {}
        self._carried_out: dict[str, CarriedOut] = {}
        self._asked: list[FunctionApprovalRequestContent] = []
        self._begun = False
        self._session = AgentSession(run.thread_id)
        self._mirror = SessionMirror(run, self._session, served.session_state)

    async def go(self) -> None:
        """Runs it, from what the client sent and what the server knows."""
        try:
            await self._go()
        except BaseException:
            await self._keep_what_happened()
            raise

    async def _go(self) -> None:
        run = self._run
        self._record = await self._served.threads.load(run.scope, run.thread_id)
        self._session.state.update(AgentSession.from_dict(self._record.session).state if self._record.session else {})
        self._served.predicting.announce(run)
        resume: Sequence[ResumeEntry] = run.input.resume or ()
        turn = self._record.turn
        if turn is not None:
            await self._resume(turn, resume)
        elif any(entry.interrupt_id in self._record.carried_out for entry in resume):
            await self._replay()
        else:
            for entry in resume:
                _logger.warning("a resume entry names no open interrupt: %r", entry.interrupt_id)
            self._begin_state(self._committed_state())
            run.state.settle()
            await self._converse(answered(self._received()))

    # Resuming

    async def _resume(self, turn: InterruptedTurn, resume: Sequence[ResumeEntry]) -> None:
        """Carries out the answers to a turn's questions, and goes on or asks again."""
        served = self._served
        answers = read_answers(turn, resume, served.agent)
        self._begin_state(self._committed_state())
        for waiting in turn.pending:
            self._predictor.adopt(waiting.call.call_id, waiting.call.name)
        if not answers:
            ask_again(self._run, served.agent, turn.pending, served.strategy)
            return
        settled = {answer.pending.interrupt_id for answer in answers}
        left = tuple(each for each in turn.pending if each.interrupt_id not in settled)
        ours = {tool.name for tool in served.agent.tools if isinstance(tool, FunctionTool)}
        of_service = any(each.call.name not in ours for each in turn.pending)
        if left and of_service:  # it goes on as soon as it is answered, which no other question may be left open at
            ask_again(self._run, served.agent, turn.pending, served.strategy)
            return
        always = {each.pending.call.name for each in answers if each.approved and each.always}
        self._record = replace(
            self._record,
            version=self._record.version + 1,
            turn=replace(turn, pending=left) if left else None,
            always=self._record.always | always,
            unfinished=True,
        )
        if not await served.threads.save(self._run.scope, self._run.thread_id, self._record):
            # The same answers came twice at once. The other run carries them out; this one has nothing to add.
            _logger.warning("run %r: another run of the thread carries out its answers", self._run.run_id)
            self._run.state.keep_prediction()
            return
        self._answers = {answer.pending.call.call_id: answer for answer in answers}
        conversation = conversation_of(turn, self._received(), self._record.carried_out, served.agent)
        said = [answer.as_content(self._refusal(answer)) for answer in answers]
        heard = any(message.role is Role.USER for message in conversation[len(turn.conversation) :])
        # Nothing is left to say of a refusal; but one of what the model's own service asked is for the service to hear.
        go_on = heard or bool(left) or of_service or any(answer.approved for answer in answers)
        await self._converse([*conversation, Message(Role.USER, said)], go_on=go_on)

    async def _replay(self) -> None:
        """The same answers again: what came of them again, where the client has not got it, and no tool runs.

        The agent goes on where it did not get to the end, or where something new is said with the answers.
        """
        self._begin_state(self._committed_state())
        self._run.state.settle()
        for done in lost_results(self._run.input, self._record):
            content = result_for_interface(done.result)
            self._run.tool_result(done.result.call_id, content, message_id=done.message_id)
        received = self._received()
        said = [message.role is Role.USER for message in received]
        if any(said) and (self._record.unfinished or said[-1]):
            results = [
                Message(Role.TOOL, done.result, message_id=done.message_id)
                for done in self._record.carried_out.values()
            ]
            await self._converse(answered([*results, *received]))  # of two results of one call the first counts

    def _refusal(self, answer: Answer) -> str:
        steps, strategy = steps_of(answer), self._served.strategy
        if steps or not self._served.predicting.of_tool(answer.pending.call.name):
            return strategy.on_approval_rejected(steps)
        return strategy.on_state_rejected()

    def _confirmation(self, answer: Answer) -> str | None:
        """What is said of a call that was approved and has run; nothing where the model will say it all."""
        if self._carried_out[answer.pending.interrupt_id].result.error is not None:
            return None
        steps, strategy = steps_of(answer), self._served.strategy
        if steps:
            return strategy.on_approval_accepted(steps)
        return strategy.on_state_confirmed() if self._served.predicting.of_tool(answer.pending.call.name) else None

    def _tell_once_carried_out(self) -> bool:
        """Tells the person what became of the answers, once all are carried out; whether that was now."""
        if not self._answers or len(self._carried_out) != len(self._answers):
            return False
        answers = self._answers.values()
        said = [self._confirmation(answer) if answer.approved else self._refusal(answer) for answer in answers]
        for text in dict.fromkeys(each for each in said if each):
            with self._run.text() as message:
                message.write(text)
        self._answers = {}
        return True

    # State

    def _committed_state(self) -> JSON:
        return committed_state(self._run.input, self._record, self._served.predicting)

    def _client_state(self) -> JSON:
        return {} if self._run.input.state is UNSET else self._run.input.state

    def _begin_state(self, state: JSON) -> None:
        """Commits what the run starts from: what the client may set, the server's own members, the defaults."""
        schema = self._served.state_schema
        if schema is not None and isinstance(state, dict):
            own = schema.private | schema.read_only
            theirs = {name: member for name, member in state.items() if name not in own}
            ours = {name: member for name, member in self._record.owned.items() if name in own}
            state = schema.completed({**theirs, **ours})
        self._run.state.begin(state, schema)
        self._begun = True
        self._mirror.begin()

    def _predicted_by(self, tool: str) -> JSONObject:
        """Of what a tool predicts, what is committed."""
        state, members = self._run.state.value, self._served.predicting.members_of(tool)
        return {name: state[name] for name in members if name in state} if isinstance(state, dict) else {}

    def _shown_state(self) -> JSON:
        """The state as the model may see it."""
        self._mirror.settle()
        state = self._run.state.committed
        schema = self._served.state_schema
        if schema is None or not isinstance(state, dict):
            return state
        return {name: member for name, member in state.items() if name not in schema.private}

    # The conversation

    def _received(self) -> list[Message]:
        return read_messages(self._run.input.messages, trust_instructions=self._served.trust_instructions)

    async def _converse(self, conversation: list[Message], *, go_on: bool = True) -> None:
        """Lets the agent answer; without `go_on`, only carries out the answers that the conversation ends with."""
        async with self._answer(conversation) as answer:
            async for update in answer.updates:
                self._take(update)
                await self._run.drain()
                if self._tell_once_carried_out() and not go_on:
                    break
        self._emission.end_answer()
        await self._keep([*conversation, *answer.so_far().messages])

    @asynccontextmanager
    async def _answer(
        self, conversation: list[Message], options: ChatOptions | None = None
    ) -> AsyncGenerator[AgentRunStream, None]:
        """What the agent answers. It sees the shared state and the session as they are at each call of the model."""
        served, run = self._served, self._run
        schema = None if served.state_schema is None else served.state_schema.shown
        token = _current_run.set(run)
        try:
            async with served.agent.run(
                conversation,
                stream=True,
                session=self._session,
                tools=self._frontend_tools(),
                approval=self._needs_approval,
                options=options,
                middleware=[
                    state_middleware(self._shown_state, run.input.context or (), schema, served.showing),
                    function_middleware(self._run_tool),
                ],
            ) as updates:
                yield updates
        finally:
            _current_run.reset(token)

    def _take(self, update: AgentResponseUpdate) -> None:
        for content in update.contents:
            if isinstance(content, TextContent):  # nearly all that there is, and nothing to it
                self._emission.content(update, content)
                continue
            if isinstance(content, FunctionApprovalRequestContent):
                self._asked.append(content)
                continue
            if not self._sets_state(update, content):
                self._emission.content(update, content)
            if isinstance(content, FunctionCallContent):
                self._predictor.feed(content.call_id, content.name, content.arguments)
            elif isinstance(content, FunctionResultContent):
                if content.error is not None:
                    self._predictor.fail(content.call_id)
                answer = self._answers.get(content.call_id)
                if answer is not None:
                    state = self._predicted_by(content.name or "")
                    done = CarriedOut(update.message_id or content.call_id, content, state)
                    self._carried_out[answer.pending.interrupt_id] = done
        if update.finish_reason is not None and update.role is Role.ASSISTANT:
            self._emission.end_answer()

    def _sets_state(self, update: AgentResponseUpdate, content: Content) -> bool:
        """An agent says what the state is by JSON data in its answer."""
        if not isinstance(content, DataContent) or content.media_type != JSON_MEDIA_TYPE:
            return False
        if update.role is not Role.ASSISTANT:
            return False
        self._run.state.set(json.loads(content.data))
        return True

    def _frontend_tools(self) -> list[ToolDefinition]:
        """The application's own tools; where the agent has one of the same name, that one is meant."""
        own = {tool.name for tool in self._served.agent.tools}
        definitions: list[ToolDefinition] = []
        for tool in self._run.input.tools or ():
            if tool.name not in own:
                own.add(tool.name)
                parameters = tool.parameters if isinstance(tool.parameters, dict) else {"type": "object"}
                definitions.append(ToolDefinition(tool.name, tool.description, parameters))
        return definitions

    # Tools

    def _needs_approval(self, call: FunctionCallContent, required: bool) -> bool:
        return call.name not in self._record.always and (required or call.name in self._served.confirmed_tools)

    async def _run_tool(self, call: FunctionCall, call_next: FunctionNext) -> Any:
        """Runs a tool and commits what its success means for the state; what is refused of that is an error."""
        before = self._run.state.committed
        try:
            value = await call_next(call)
            if isinstance(value, StateUpdate):
                value = self._update_state(call, value)
            if not isinstance(value, FunctionResultContent) or value.error is None:
                self._predictor.succeed(call.call_id, call.tool.name, dict(call.arguments), before)
            self._mirror.settle()
        except (StateRejected, PatchError, EncodingError, LimitExceeded) as error:
            self._emission.interface_results.pop(call.call_id, None)
            return FunctionResultContent(call.call_id, error=f"the state was not changed: {error}")
        return value

    def _update_state(self, call: FunctionCall, update: StateUpdate) -> str:
        channel = self._run.state
        members = update.state or {}
        operations = [
            {"op": "add", "path": f"/{escape_token(name)}", "value": value} for name, value in members.items()
        ]
        shown = None if update.tool_result is None else json.dumps(plain(update.tool_result), ensure_ascii=False)
        if operations and not isinstance(channel.committed, dict):
            channel.set({})
        channel.patch([*operations, *update.patch])
        if shown is not None:
            self._emission.interface_results[call.call_id] = shown
        return update.text

    # What the server keeps

    async def _keep(self, conversation: list[Message]) -> None:
        """Asks what has to be asked, and records what the next run of the thread has to know."""
        served, run = self._served, self._run
        earlier = {} if self._record.turn is None else {each.call.call_id: each for each in self._record.turn.pending}
        self._name_frontend_calls(conversation)
        turn: InterruptedTurn | None = None
        if self._asked:
            pending = ask(run, served.agent, self._asked, served.strategy, earlier)
            turn = InterruptedTurn(
                tuple(answered(_without_approvals(conversation), fill=False)), pending, run.state.committed
            )
        self._mirror.settle()
        session = self._session.to_dict() if self._session.state else {}
        changes: dict[str, Any] = {
            "turn": turn,
            "owned": self._owned(),
            "shown": {},
            "session": session,
            "unfinished": False,
        }
        if self._carried_out:
            changes["carried_out"] = self._carried_out
        await self._save(changes)

    def _name_frontend_calls(self, conversation: Sequence[Message]) -> None:
        """The application's calls of an earlier run that nobody has answered are still the application's."""
        done = {
            part.call_id for each in conversation for part in each.contents if isinstance(part, FunctionResultContent)
        }
        frontend = {tool.name for tool in self._frontend_tools()}
        for message in conversation:
            for call in message.function_calls:
                if call.name in frontend and call.call_id not in done:
                    self._run.await_frontend_call(call.call_id)

    async def _keep_what_happened(self) -> None:
        """The run did not come to its end. If the stream is gone as well, what was shown cannot be taken back: the next
        run is told."""
        if not self._begun:  # what the state holds is the client's alone
            return
        committed = self._run.state.committed
        held = committed if isinstance(committed, dict) else {}
        shown = {
            name: Shown(value, (held[name],) if name in held else ())
            for name, value in self._run.state.shown(self._predictor.open_members).items()
            if name not in held or not identical(value, held[name])
        }
        changes: dict[str, Any] = {"shown": shown, "owned": self._owned()}
        if self._record.turn is not None:
            changes["turn"] = replace(self._record.turn, state=committed)
        if self._carried_out:
            changes["carried_out"] = self._carried_out
        await self._save(changes)

    def _owned(self) -> JSONObject:
        schema = self._served.state_schema
        state = self._run.state.committed
        if schema is None or not isinstance(state, dict):
            return {}
        return {name: state[name] for name in schema.private | schema.read_only if name in state}

    async def _save(self, changes: dict[str, Any]) -> None:
        """Saves the record with `changes`, on top of what another run may have saved meanwhile."""
        run, threads = self._run, self._served.threads
        record = self._record
        changes = {name: value for name, value in changes.items() if getattr(record, name) != value}
        if not changes:
            return
        for _ in range(_SAVE_ATTEMPTS):
            changed = replace(record, version=record.version + 1, **changes)
            if await threads.save(run.scope, run.thread_id, changed):
                self._record = changed
                return
            record = await threads.load(run.scope, run.thread_id)
        _logger.error("run %r: the record of its thread could not be saved", run.run_id)


def _without_approvals(conversation: Sequence[Message]) -> Iterator[Message]:
    """The conversation without questions and answers about calls."""
    for message in conversation:
        kept = tuple(content for content in message.contents if not isinstance(content, _APPROVALS))
        if len(kept) == len(message.contents):
            yield message
        elif kept:
            yield replace(message, contents=kept)
