"""The function-calling loop: ask the model, run the tools it calls, tell it the results, until it calls none.

    messages ─▶ model ─▶ calls ─▶ tools, all at once ─▶ results ─▶ model ─▶ ... ─▶ answer

- Every call gets exactly one result, or stays pending for the caller (a tool that is only declared, or that must not
  run without approval, which is asked for); pending calls end the loop once the others of their turn have run.
- Approvals in the messages are carried out before the model is asked.
- What is wrong with a call (no such tool, malformed arguments, an exception in the tool) is a result for the model to
  read, never an error of the run.
- After `max_rounds` rounds of calls the model is asked once more, with tools disabled, so that there is an answer.
- Updates pass as they come. Closing the generator cancels the tools that run, and the model's stream.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import msgspec

from accord.agents.approvals import Answers, ApprovalPolicy, place_of_result, take_answers
from accord.agents.chat import ChatClient, ChatOptions
from accord.agents.content import (
    Content,
    FunctionApprovalRequestContent,
    FunctionCallContent,
    FunctionResultContent,
)
from accord.agents.errors import ToolArgumentsError
from accord.agents.json_value import parse_json
from accord.agents.message import Message, Role
from accord.agents.middleware import ChatRequest, FunctionCall, MiddlewareChain
from accord.agents.response import AgentResponse, ResponseBuilder
from accord.agents.result import as_error, as_result
from accord.agents.tools import FunctionTool, ToolContext, ToolDefinition
from accord.agents.update import AgentResponseUpdate
from accord.errors import EncodingError
from accord.sessions import AgentSession

logger = logging.getLogger(__name__)

_WITH_CALL_ID = (FunctionCallContent, FunctionResultContent, FunctionApprovalRequestContent)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionLoop:
    """What one run works with. `tools` are those the model may call, by name; `options.tools` describe them."""

    client: ChatClient
    middleware: MiddlewareChain
    options: ChatOptions
    tools: Mapping[str, FunctionTool[..., Any] | ToolDefinition]
    max_rounds: int
    detailed_errors: bool
    instructions: str | None = None
    author_name: str | None = None
    session: AgentSession | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)
    executor: Executor | None = None
    approval: ApprovalPolicy | None = None

    async def run(
        self, messages: Sequence[Message], response: ResponseBuilder
    ) -> AsyncGenerator[AgentResponseUpdate, None]:
        """The updates of the run, each of which `response` has when it comes."""

        def told(result: FunctionResultContent, place: int | None = None) -> AgentResponseUpdate:
            """The update with a result, which is in the conversation from here on."""
            message_id = _new_message_id()
            place = len(conversation) if place is None else place
            conversation.insert(place, Message(Role.TOOL, result, message_id=message_id))
            return kept(AgentResponseUpdate(result, Role.TOOL, message_id))

        def kept(update: AgentResponseUpdate) -> AgentResponseUpdate:
            response.add(update)
            return update

        answers = take_answers(messages, self._runs_here)
        conversation = answers.conversation
        ids = _Ids(conversation)
        options = self.options
        if answers.given:
            async with aclosing(self._carry_out(answers)) as results:
                async for result in results:
                    yield told(result, place_of_result(conversation, result.call_id))
            if answers.unanswered:
                yield kept(self._approval_request(answers.unanswered))
                return
        for rounds in range(self.max_rounds + 1):
            tools_disabled = rounds == self.max_rounds
            if tools_disabled:
                options = replace(options, tool_choice="none")
            ids.begin_answer()
            response.begin_answer()
            async with self.middleware.stream(self.client, self._request_for(conversation, options)) as updates:
                async for update in updates:
                    labelled = self._labelled(update, ids)
                    response.add(labelled)
                    yield labelled
            answer = response.answer()
            conversation.extend(answer.messages)
            elsewhere = _asked_elsewhere(answer)
            calls = [call for call in answer.pending_calls if call.call_id not in elsewhere]
            held = {} if tools_disabled else {call.call_id: call for call in calls if self._is_held(call)}
            ready = [call for call in calls if call.call_id not in held]
            for wrong in [error for call in held.values() if (error := self._wrong_arguments(call))]:
                del held[wrong.call_id]
                yield told(wrong)
            async with aclosing(self._settle(ready, tools_disabled=tools_disabled)) as results:
                async for result in results:
                    yield told(result)
            if any(self._runs_here(call.name) for call in held.values()):
                yield kept(self._approval_request(list(held.values())))
            if not calls or held or elsewhere:
                return
            if options.tool_choice not in (None, "auto", "none"):
                # The call that had to be made is made; required again, there would never be an answer.
                options = replace(options, tool_choice="auto")

    async def _carry_out(self, answers: Answers) -> AsyncGenerator[FunctionResultContent, None]:
        """The result of each call that was approved or refused."""
        for call, reason in answers.refused:
            yield as_error(reason, call)
        async with aclosing(self._settle(answers.approved, tools_disabled=False)) as results:
            async for result in results:
                yield result

    def _approval_request(self, calls: Sequence[FunctionCallContent]) -> AgentResponseUpdate:
        """Asks for approval of those of the calls that would run here."""
        asked = [call for call in calls if self._runs_here(call.name)]
        requests = [FunctionApprovalRequestContent(call.call_id, call) for call in asked]
        return AgentResponseUpdate(requests, Role.ASSISTANT, _new_message_id())

    def _request_for(self, conversation: Sequence[Message], options: ChatOptions) -> ChatRequest:
        messages = [Message(Role.SYSTEM, self.instructions)] if self.instructions else []
        messages.extend(conversation)
        return ChatRequest(messages, options, self.session)

    def _labelled(self, update: AgentResponseUpdate, ids: _Ids) -> AgentResponseUpdate:
        """The update with what the model need not say: the ids of its message and calls, who the author is."""
        role = update.role
        return AgentResponseUpdate(
            ids.made_unique(update.contents),
            role,
            ids.of_message(role, update.message_id),
            update.author_name or (self.author_name if role is Role.ASSISTANT else None),
            update.finish_reason,
            update.response_id,
        )

    def _runs_here(self, name: str) -> bool:
        return isinstance(self.tools.get(name), FunctionTool)

    def _is_held(self, call: FunctionCallContent) -> bool:
        """Whether the call is not to be run here, but left to the caller of the run."""
        tool = self.tools.get(call.name)
        if isinstance(tool, FunctionTool):
            required = tool.approval_mode == "always_require"
            return required if self.approval is None else self.approval(call, required)
        return tool is not None

    def _wrong_arguments(self, call: FunctionCallContent) -> FunctionResultContent | None:
        """The error of a call that no approval could make run: nobody is asked about it."""
        tool = self.tools.get(call.name)
        if isinstance(tool, FunctionTool):
            try:
                tool.signature.validate(_parse_arguments(call.arguments))
            except ToolArgumentsError as error:
                return _as_wrong(error, call)
        return None

    async def _settle(
        self, calls: Sequence[FunctionCallContent], *, tools_disabled: bool
    ) -> AsyncGenerator[FunctionResultContent, None]:
        """The result of each call, as it is there. All run at once."""
        if tools_disabled:
            for call in calls:
                yield as_error("not run: the limit of tool rounds is reached", call)
            return
        finished: asyncio.Queue[asyncio.Task[FunctionResultContent]] = asyncio.Queue()
        tasks = {asyncio.create_task(self._answer(call)): call for call in calls}
        try:
            for task in tasks:
                task.add_done_callback(finished.put_nowait)
            for _ in tasks:
                task = await finished.get()
                # A tool may be cancelled by something of its own; the run is not.
                yield as_error("the tool was cancelled", tasks[task]) if task.cancelled() else task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, call: FunctionCallContent) -> FunctionResultContent:
        tool = self.tools.get(call.name)
        if not isinstance(tool, FunctionTool):
            return as_error(f"there is no tool called {call.name!r}", call)
        try:
            arguments = _parse_arguments(call.arguments)
            context = ToolContext(call.call_id, tool.name, arguments, self.session, dict(self.extras))
            value = await self.middleware.invoke(FunctionCall(tool, call.call_id, arguments, context), self._run_tool)
        except ToolArgumentsError as error:
            return _as_wrong(error, call)
        except (Exception, SystemExit) as error:  # a tool that exits, as argparse does, must not end the server
            logger.warning("tool %r failed", tool.name, exc_info=True)
            return as_error("the tool failed", call, _described(error) if self.detailed_errors else None)
        try:
            return as_result(value, call)
        except EncodingError as error:
            return as_error(f"the tool's result cannot be given to you: {error}", call)

    async def _run_tool(self, call: FunctionCall) -> Any:
        context = replace(call.context, arguments=call.arguments)
        return await call.tool.invoke(call.arguments, context, executor=self.executor)


def _as_wrong(error: ToolArgumentsError, call: FunctionCallContent) -> FunctionResultContent:
    return as_error(f"wrong arguments: {error}", call)


def _described(error: BaseException) -> str:
    """What an exception says, even one that fails to say it."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001  whatever it is, it is about an error that is being told
        return type(error).__name__


def _asked_elsewhere(response: AgentResponse) -> set[str]:
    """The calls that the model's own service asks approval for: they run there."""
    contents = [content for message in response.messages for content in message.contents]
    return {content.call.call_id for content in contents if isinstance(content, FunctionApprovalRequestContent)}


class _Ids:
    """Ids that are unique in a conversation. Some model servers give their messages none, or start to count anew with
    each answer."""

    def __init__(self, conversation: Sequence[Message]) -> None:
        self._calls = {call.call_id for message in conversation for call in message.function_calls}
        self._messages = {message.message_id for message in conversation}
        self.begin_answer()

    def begin_answer(self) -> None:
        """What is taken by now is not the model's to give once more."""
        self._call_ids: dict[str, str] = {}  # the id that stands for the one the model gives
        self._message_ids: dict[str, str] = {}
        self._nameless: dict[Role, str] = {}

    def of_message(self, role: Role, given: str | None) -> str:
        """The id of a message of the answer; all that the model gives none are one for each role."""
        message_id = self._nameless.get(role) if given is None else self._message_ids.get(given)
        if message_id is None:
            if given is None:
                message_id = self._nameless[role] = _new_message_id()
            else:
                message_id = self._message_ids[given] = _new_message_id() if given in self._messages else given
            self._messages.add(message_id)
        return message_id

    def made_unique(self, contents: tuple[Content, ...]) -> tuple[Content, ...]:
        for content in contents:
            if isinstance(content, _WITH_CALL_ID):
                return tuple(map(self._made_unique, contents))
        return contents

    def _made_unique(self, content: Content) -> Content:
        if isinstance(content, FunctionApprovalRequestContent):  # of the model's own service, about a call it made
            return msgspec.structs.replace(content, call=self._made_unique(content.call))
        if not isinstance(content, FunctionCallContent | FunctionResultContent):
            return content
        call_id = self._call_ids.get(content.call_id)
        if call_id is None:
            call_id = content.call_id
            if isinstance(content, FunctionCallContent):
                if call_id in self._calls:
                    call_id = f"call_{uuid4().hex}"
                self._calls.add(call_id)
                self._call_ids[content.call_id] = call_id
        return content if call_id == content.call_id else msgspec.structs.replace(content, call_id=call_id)


def _parse_arguments(text: str) -> dict[str, Any]:
    if not text.strip():
        return {}  # how many models write a call without arguments
    try:
        arguments = parse_json(text)
    except EncodingError as error:
        raise ToolArgumentsError(str(error), path=error.path) from error
    if not isinstance(arguments, dict):
        raise ToolArgumentsError(f"they are no JSON object, but {text[:1]}...")
    return arguments


def _new_message_id() -> str:
    return f"msg_{uuid4().hex}"
