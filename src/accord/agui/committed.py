"""What the state is where the client shows what was only predicted.

A member that waits for an answer, whose answer the client has not heard of, or that a run which was cut off could not
take back, is on the client's screen with its predicted value and comes in with it; what is so stands in the record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import UNSET, UnsetType

from accord.agui.predictive import PredictStateConfig, is_stage
from accord.agui.threads import CarriedOut, Shown, ThreadRecord
from accord.protocol import JSON, JSONObject, RunAgentInput


def committed_state(run_input: RunAgentInput, record: ThreadRecord, predicting: PredictStateConfig) -> JSON:
    """The state of a thread whose client has sent `run_input`; `{}` where it has sent none and none is recorded."""
    state = _without_shown(run_input.state, record.shown)
    if record.turn is None:
        for done in lost_results(run_input, record):
            state = _as_recorded(state, done.state, predicting.members_of(done.result.name or ""))
        return {} if state is UNSET else state
    if state is UNSET:
        return record.turn.state
    waiting = {name for each in record.turn.pending for name in predicting.members_of(each.call.name)}
    return _as_recorded(state, record.turn.state, waiting)


def lost_results(run_input: RunAgentInput, record: ThreadRecord) -> list[CarriedOut]:
    """What was carried out of answers that come again, from a client that has not got the results."""
    received = {message.id for message in run_input.messages}
    again = (record.carried_out.get(entry.interrupt_id) for entry in run_input.resume or ())
    return [done for done in again if done is not None and done.message_id not in received]


def _as_recorded(state: JSON | UnsetType, recorded: JSON, members: Iterable[str]) -> JSON | UnsetType:
    """`state` with these members as they are in `recorded`, or absent where it has none."""
    members = set(members)
    if not members or state is UNSET:
        return state
    if not isinstance(state, dict) or not isinstance(recorded, dict):
        return recorded
    kept: JSONObject = {name: member for name, member in state.items() if name not in members}
    return {**kept, **{name: recorded[name] for name in members if name in recorded}}


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
