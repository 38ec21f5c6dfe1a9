"""The two-phase agent: first the new state, as structured output, then a few words about what has changed.

When the request carries a state, the model is asked for the whole new state as JSON; its text is withheld from the
conversation and becomes the shared state while it is still being written. Then it is asked for a summary. Without a
state the agent answers as ever.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from typing import Any

from accord.agents import Agent, AgentResponse, AgentResponseUpdate, ChatOptions, Message, Role, TextContent
from accord.agui.agent import AGUIAgent
from accord.agui.agent_run import AgentRun
from accord.agui.state_schema import StateRejected, StateSchema, StateSchemaLike
from accord.errors import AccordError, EncodingError, RunFailed
from accord.producer import Prediction, Run
from accord.protocol import JSON
from accord.protocol.conform import escape_token
from accord.state import PartialJSON

_logger = logging.getLogger("accord")

WRITE_STATE = (
    "Answer with the whole new state, and nothing else: one JSON object that fits its schema, with everything in it "
    "that is to stay."
)
SUMMARIZE = "The state has been updated. Say what has changed, in at most two sentences."
#: How often the state is asked for before the run has failed.
ATTEMPTS = 2


class SharedStateAgent(AGUIAgent):
    """Serves `inner` so that each answer to a request with a state is a new state and a summary of it.

    `schema` is what the state must look like, in any form `AGUIAgent` takes; `options` are `AGUIAgent`'s. Structured
    output that does not fit is asked for once more, with what is wrong, and is a failed run (code `invalid_state`)
    then.
    """

    def __init__(self, inner: Agent, schema: StateSchemaLike | StateSchema, **options: Any) -> None:
        super().__init__(inner, state_schema=schema, **options)

    async def __call__(self, run: Run) -> None:
        """Answers the run's input."""
        await _SharedStateRun(self, run).go()


class _SharedStateRun(AgentRun):
    """One run in two phases."""

    async def _converse(self, conversation: list[Message], *, go_on: bool = True) -> None:
        state = self._client_state()
        if go_on and isinstance(state, dict) and state:
            written, waiting = await self._write_state(conversation)
            if waiting:  # a call of the first phase is the person's or the application's; the next run begins anew
                await self._keep([*conversation, *written])
                return
            conversation = [*conversation, *written, Message(Role.SYSTEM, SUMMARIZE)]
        await super()._converse(conversation, go_on=go_on)

    async def _write_state(self, conversation: list[Message]) -> tuple[Sequence[Message], bool]:
        """The first phase: the messages it made, and whether a call of it waits for somebody, so that no state came.

        Raises `RunFailed` when no valid state came.
        """
        schema = self._served.state_schema
        assert schema is not None
        prompt = [Message(Role.SYSTEM, WRITE_STATE)]
        made: list[Message] = []
        for _ in range(ATTEMPTS):
            writing = _WritingState(self._run, schema)
            asked = [*conversation, *made, *prompt]
            async with self._answer(asked, ChatOptions(response_format=schema.shown)) as answer:
                async for update in answer.updates:
                    self._take(writing.withheld(update))
                    await self._run.drain()
                    self._tell_once_carried_out()
            self._emission.end_answer()
            made += answer.so_far().messages
            if self._asked or self._waits([*conversation, *made]):
                writing.prediction.take_back()
                return made, True
            try:
                self._run.state.set(writing.whole(self._run.state.committed))
            except (StateRejected, EncodingError, ValueError) as error:
                _logger.warning("run %r: no valid state was written: %s", self._run.run_id, error)
                writing.prediction.take_back()
                prompt = [Message(Role.SYSTEM, f"That is no valid state: {error}\n{WRITE_STATE}")]
            else:
                return made, False
        raise RunFailed("The agent could not produce a valid state.", code="invalid_state")

    def _waits(self, conversation: Sequence[Message]) -> bool:
        """Whether a call is the application's to answer; one of a tool that nobody knows is the model's service's."""
        known = {tool.name for tool in (*self._served.agent.tools, *self._frontend_tools())}
        return any(call.name in known for call in AgentResponse(tuple(conversation)).pending_calls)


class _WritingState:
    """The text of the first phase, on its way into the state."""

    def __init__(self, run: Run, schema: StateSchema) -> None:
        members = schema.members - schema.private - schema.read_only
        self._schema = schema
        self.prediction: Prediction = run.state.predict(members)
        self._select = {name: f"/{escape_token(name)}" for name in members}
        self._message_id: str | None = None
        self._pieces: list[str] = []
        self._parser: PartialJSON | None = None

    def withheld(self, update: AgentResponseUpdate) -> AgentResponseUpdate:
        """The update without its text, which is taken. Only the last message's text is the state's."""
        text = update.text
        if update.role is not Role.ASSISTANT or not text:
            return update
        if update.message_id != self._message_id:
            self._message_id, self._pieces = update.message_id, []
            self.prediction.take_back()
            self._parser = PartialJSON(select=self._select)
        self._pieces.append(text)
        self._show(text)
        contents = [content for content in update.contents if not isinstance(content, TextContent)]
        return AgentResponseUpdate(
            contents, update.role, update.message_id, update.author_name, update.finish_reason, update.response_id
        )

    def whole(self, committed: JSON) -> JSON:
        """The new state; members that are not the model's to write are kept. Raises what is wrong with the text."""
        written = json.loads("".join(self._pieces))
        if not isinstance(written, dict):
            raise StateRejected("an object is due", path="")
        own = self._schema.private | self._schema.read_only
        kept = {name: member for name, member in committed.items() if name in own}
        state = {**{name: member for name, member in written.items() if name not in own}, **kept}
        self._schema.check(state, partial=False)
        return state

    def _show(self, text: str) -> None:
        if self._parser is None:
            return
        try:
            self.prediction.show(self._parser.feed(text, time.monotonic()))
        except AccordError as error:
            _logger.info("a prediction was given up: %s", error)
            self._parser = None
            self.prediction.take_back()
