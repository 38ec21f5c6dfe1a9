"""Where agents meet the protocol: an agent as a producer, its state shared, predicted, confirmed and refused."""

from accord.agui.agent import AGUIAgent
from accord.agui.agent_run import current_run
from accord.agui.chat_client import AGUIChatClient, AGUIEventContent, StateDeltaContent
from accord.agui.confirmation import (
    ConfirmationStrategy,
    DefaultConfirmationStrategy,
    DocumentWriterConfirmationStrategy,
    RecipeConfirmationStrategy,
    TaskPlannerConfirmationStrategy,
)
from accord.agui.endpoint import add_agui_endpoint, as_producer
from accord.agui.shared_state import Showing
from accord.agui.shared_state_agent import SharedStateAgent
from accord.agui.state_schema import StateRejected, StateSchema
from accord.agui.state_update import StateUpdate, state_update
from accord.agui.threads import InMemoryThreadStore, ThreadRecord, ThreadStore

__all__ = [
    "AGUIAgent",
    "AGUIChatClient",
    "AGUIEventContent",
    "ConfirmationStrategy",
    "DefaultConfirmationStrategy",
    "DocumentWriterConfirmationStrategy",
    "InMemoryThreadStore",
    "RecipeConfirmationStrategy",
    "SharedStateAgent",
    "Showing",
    "StateDeltaContent",
    "StateRejected",
    "StateSchema",
    "StateUpdate",
    "TaskPlannerConfirmationStrategy",
    "ThreadRecord",
    "ThreadStore",
    "add_agui_endpoint",
    "as_producer",
    "current_run",
    "state_update",
]
