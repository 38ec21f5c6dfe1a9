"""Conversations with an agent as its application has them: the real client, the real producer, and bytes in between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from accord.agents import (
    Agent,
    AgentResponseUpdate,
    ChatOptions,
    FunctionResultContent,
    Message,
    ScriptedChatClient,
    tool,
)
from accord.agents.scripted import Script
from accord.agui import AGUIAgent, as_producer
from accord.client import AGUIClient, ClientRun, InProcessTransport
from accord.errors import InputRejected, RunFailed
from accord.producer import Run, drive
from accord.protocol import JSON, ResumeEntry, RunAgentInput, to_wire
from producer.recording import Recording, an_input

Raw = dict[str, Any]


class Model(ScriptedChatClient):
    """A scripted model that remembers what it was shown, call by call."""

    def __init__(self, script: Script, **options: Any) -> None:
        super().__init__(script, **options)
        self.shown: list[list[Message]] = []
        self.options: list[ChatOptions] = []

    def stream(self, messages: Sequence[Message], options: ChatOptions) -> AsyncIterator[AgentResponseUpdate]:
        self.shown.append(list(messages))
        self.options.append(options)
        return super().stream(messages, options)

    def results(self, call: int = -1) -> list[str]:
        """The tool results in what it was shown, as text."""
        return [
            content.text
            for message in self.shown[call]
            for content in message.contents
            if isinstance(content, FunctionResultContent)
        ]


class Talk:
    """One thread with a served agent, over `url` or in this process.

    Any warning of the client's is a failure, and so is a stream that it rejects or that is cut short.
    """

    def __init__(self, served: Agent | AGUIAgent | None = None, url: str | None = None, **options: Any) -> None:
        way = {"url": url} if served is None else {"transport": InProcessTransport(as_producer(served))}
        self.warnings: list[object] = []
        self.client = AGUIClient(**way, on_deviation=self.warnings.append, **options)
        #: The events of the last run, as they were on the wire.
        self.events: list[Raw] = []
        #: The state after each event of the last run.
        self.states: list[JSON] = []

    async def say(self, said: Any = "go", **options: Any) -> ClientRun:
        """One run, read to its end, which may be a failure of the agent's or a refusal of the input."""
        return await self.read(self.client.run(said, **options))

    async def answer(self, *payloads: Any, **options: Any) -> ClientRun:
        """The run that answers the open questions, each with the next payload, the last one for all that are left."""
        asked = [interrupt.id for interrupt in self.client.pending_interrupts]
        given = {each: payloads[min(place, len(payloads) - 1)] for place, each in enumerate(asked)}
        return await self.read(self.client.resume(given, **options))

    async def read(self, run: ClientRun) -> ClientRun:
        self.events, self.states = [], []
        try:
            async for event in run:
                self.events.append(to_wire(event))
                self.states.append(self.client.state)
        except (InputRejected, RunFailed):
            assert run.error is not None
        assert self.warnings == []
        return run

    @property
    def state(self) -> Any:
        return self.client.state

    @property
    def messages(self) -> list[Raw]:
        """The application's messages, in wire form."""
        return [to_wire(message) for message in self.client.messages]

    @property
    def types(self) -> list[str]:
        return types(self.events)

    @property
    def text(self) -> str:
        """All text of the last run."""
        return "".join(event["delta"] for event in self.events if event["type"] == "TEXT_MESSAGE_CONTENT")

    @property
    def results(self) -> dict[str, Any]:
        """The result of each call of the last run, by its id; one each."""
        found = [event for event in self.events if event["type"] == "TOOL_CALL_RESULT"]
        assert len({event["toolCallId"] for event in found}) == len(found)
        return {event["toolCallId"]: event["content"] for event in found}

    def of(self, *kinds: str) -> list[Raw]:
        """The events of these types, in order."""
        return [event for event in self.events if event["type"] in kinds]


def types(events: Sequence[Raw]) -> list[str]:
    """The types in order, one for several of the same in a row."""
    found: list[str] = []
    for event in events:
        if not found or found[-1] != event["type"]:
            found.append(event["type"])
    return found


def deltas(events: Sequence[Raw]) -> list[Raw]:
    """The operations of all state deltas, in order."""
    return [operation for event in events if event["type"] == "STATE_DELTA" for operation in event["delta"]]


async def run_alone(
    served: Agent | AGUIAgent, run_input: RunAgentInput | None = None, *, scope: str = "", **members: Any
) -> Recording:
    """One run without a client, for inputs that no client of ours would send."""
    outlet = Recording()
    await drive(as_producer(served), Run(run_input or an_input(**members), outlet, scope=scope))
    return outlet


def raw(outlet: Recording) -> list[Raw]:
    """What was recorded, in wire form."""
    return [to_wire(event) for event in outlet.events]


def resolved(interrupt_id: str, payload: Any) -> ResumeEntry:
    return ResumeEntry(interrupt_id=interrupt_id, status="resolved", payload=payload)


# A recipe and the tool that writes it


@tool
def update_recipe(recipe: dict[str, Any]) -> str:
    """Show a recipe."""
    return "Recipe updated."


PREDICT_RECIPE: Mapping[str, Mapping[str, str]] = {"recipe": {"tool": "update_recipe", "tool_argument": "recipe"}}


def recipe_agent(script: Script, *, tools: Sequence[Any] = (update_recipe,), **options: Any) -> tuple[AGUIAgent, Model]:
    """An agent whose `update_recipe` predicts the state's `recipe`, and its model."""
    model = Model(script)
    options.setdefault("predict_state_config", PREDICT_RECIPE)
    return AGUIAgent(Agent(model, tools=list(tools)), **options), model
