"""A run being emitted: what leaves is what a consumer accepts. Sans I/O; whoever serves a run gives it an outlet."""

from accord.producer.draft import DraftArray, DraftObject
from accord.producer.emitters import Activity, Reasoning, Step, Subagent, TextMessage, ToolCallItem
from accord.producer.incoming import ChoosyProducer, NotJSON, check_input, receive_input
from accord.producer.outlet import CAUGHT_UP, Outlet, OutletOverflow
from accord.producer.plain import plain
from accord.producer.run import Producer, Run, drive
from accord.producer.state_channel import Prediction, StateChannel, StateGuard
from accord.producer.typed import TypedState

__all__ = [
    "CAUGHT_UP",
    "Activity",
    "ChoosyProducer",
    "DraftArray",
    "DraftObject",
    "NotJSON",
    "Outlet",
    "OutletOverflow",
    "Prediction",
    "Producer",
    "Reasoning",
    "Run",
    "StateChannel",
    "StateGuard",
    "Step",
    "Subagent",
    "TextMessage",
    "ToolCallItem",
    "TypedState",
    "check_input",
    "drive",
    "plain",
    "receive_input",
]
