"""An agent as an AG-UI producer: where the agent runtime and the protocol meet.

`AGUIAgent` is what is served: an agent, and how it shares its state. It holds nothing of a run, so any number may run
at once; `agent_run` does one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Iterable, Mapping

from accord.agents import Agent
from accord.agui.agent_run import AgentRun
from accord.agui.committed import committed_state
from accord.agui.confirmation import ConfirmationStrategy, DefaultConfirmationStrategy
from accord.agui.messages import read_messages
from accord.agui.predictive import PredictStateConfig
from accord.agui.shared_state import Showing
from accord.agui.state_schema import StateRejected, StateSchema, StateSchemaLike
from accord.agui.threads import InMemoryThreadStore, ThreadStore
from accord.errors import InputRejected
from accord.producer import Run
from accord.protocol import UNSET, RunAgentInput


class AGUIAgent:
    """Serves an `Agent` over AG-UI: give it to `add_agui_endpoint`, or call it with a `Run` as any producer.

    - `state_schema`: what the state must look like; a Pydantic model, dataclass or msgspec struct, a JSON Schema, or
      `{member: {"type", "description"}}`. `private_state` names members that never leave the server, `read_only_state`
      members that the client cannot change.
    - `predict_state_config`: which tool argument predicts which member while the model writes it, `{"recipe": {"tool":
      "update_recipe", "tool_argument": "recipe"}}`; `"*"` for all arguments.
    - `require_confirmation`: whether the tools that predict need a person's approval, as those with
      `approval_mode="always_require"` always do; `confirmation_strategy` says what people are told.
    - `session_state`: keys of the agent session's state that are members of the shared state as well.
    - `showing`: how the state and the context are shown to the model. With `trust_instructions`, system messages of
      the client keep their role.
    - `threads`: where the server keeps what it knows of a thread between runs.

    Raises `AgentSetupError` for parts that do not fit together.
    """

    def __init__(
        self,
        agent: Agent,
        name: str | None = None,
        description: str | None = None,
        state_schema: StateSchemaLike | StateSchema | None = None,
        predict_state_config: Mapping[str, Mapping[str, str]] | None = None,
        require_confirmation: bool = False,
        confirmation_strategy: ConfirmationStrategy | None = None,
        *,
        private_state: Iterable[str] = (),
        read_only_state: Iterable[str] = (),
        session_state: Iterable[str] = (),
        showing: Showing | None = None,
        trust_instructions: bool = False,
        threads: ThreadStore | None = None,
    ) -> None:
        self.agent = agent
        self.name = name or agent.name
        self.description = description or agent.description
        if state_schema is None or isinstance(state_schema, StateSchema):
            self.state_schema = state_schema
        else:
            self.state_schema = StateSchema(state_schema, private=private_state, read_only=read_only_state)
        members: Collection[str] | None = None
        if self.state_schema is not None and self.state_schema.members:
            members = self.state_schema.members
        private = frozenset[str]() if self.state_schema is None else self.state_schema.private
        self.predicting = PredictStateConfig(predict_state_config or {}, agent.tools, members, private)
        self.confirmed_tools = frozenset(self.predicting.tools) if require_confirmation else frozenset()
        self.strategy = confirmation_strategy or DefaultConfirmationStrategy()
        self.session_state = tuple(session_state)
        self.showing = showing or Showing()
        self.trust_instructions = trust_instructions
        self.threads: ThreadStore = threads or InMemoryThreadStore()

    def __call__(self, run: Run) -> Awaitable[None]:
        """Answers the run's input."""
        return AgentRun(self, run).go()

    async def check_input(self, run_input: RunAgentInput, *, scope: str = "") -> None:
        """Refuses, before anything streams, an input that is well-formed but not for this agent.

        Raises `InputRejected` with the path: a state that the schema does not allow, data that is not Base64. What the
        client holds of a prediction is not judged: a cut-off one need not fit.
        """
        read_messages(run_input.messages)
        if self.state_schema is None or run_input.state is UNSET:
            return
        record = await self.threads.load(scope, run_input.thread_id)
        state = committed_state(run_input, record, self.predicting)
        if isinstance(state, dict):
            ignored = self.state_schema.private | self.state_schema.read_only
            state = {name: member for name, member in state.items() if name not in ignored}
        try:
            self.state_schema.check(state)
        except StateRejected as rejected:
            raise InputRejected(f"/state{rejected}", path=f"/state{rejected.path}") from None
