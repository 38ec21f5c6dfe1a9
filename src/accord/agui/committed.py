"""What the state is where the client shows what was only predicted.

A member that waits for an answer, or that a run which was cut off could not take back, is on the client's screen with
its predicted value and comes in with it; what is so stands in the thread's record.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, UnsetType

from accord.agui.predictive import PredictStateConfig, is_stage
from accord.agui.threads import Shown, ThreadRecord
from accord.protocol import JSON


def committed_state(sent: JSON | UnsetType, record: ThreadRecord, predicting: PredictStateConfig) -> JSON:
    """The state of a thread whose client has sent `sent`; `{}` where it has sent none and none is recorded."""
    state = _without_shown(sent, record.shown)
    turn = record.turn
    if turn is None:
        return {} if state is UNSET else state
    if state is UNSET:
        return turn.state
    waiting = {each.member for pending in turn.pending for each in predicting.of_tool(pending.call.name)}
    if not waiting:
        return state
    if not isinstance(state, dict) or not isinstance(turn.state, dict):
        return turn.state
    kept = {name: member for name, member in state.items() if name not in waiting}
    return {**kept, **{name: turn.state[name] for name in waiting if name in turn.state}}


def _without_shown(state: JSON | UnsetType, shown: Mapping[str, Shown]) -> JSON | UnsetType:
    if not isinstance(state, dict):
        return state
    state = dict(state)
    for name, each in shown.items():
        if name in state and is_stage(state[name], each.value):
            del state[name]
            if each.committed:
                (state[name],) = each.committed
    return state
