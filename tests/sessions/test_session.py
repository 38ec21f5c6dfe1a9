from __future__ import annotations

import datetime
import json
import math
import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord import Agent, AgentSession, ScriptedChatClient
from accord.errors import EncodingError
from accord.sessions import SessionError

KEPT = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.binary()
    | st.datetimes(timezones=st.none() | st.just(datetime.UTC))
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.uuids()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.sets(st.integers())
    | st.frozensets(st.text())
)
KEYS = st.text() | st.sampled_from(["$accord", "value", "type"])
VALUES = st.recursive(
    KEPT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3) | st.tuples(inner, inner),
    max_leaves=6,
)


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_what_is_saved_is_restored(state: dict[str, Any]) -> None:
    session = AgentSession("s1", service_session_id="conv_1", state=state)
    restored = AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))
    assert restored.state == session.state
    assert _types(restored.state) == _types(session.state)
    assert (restored.session_id, restored.service_session_id) == ("s1", "conv_1")


def _types(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _types(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return (type(value), [_types(element) for element in value])
    return type(value)


def test_objects_that_look_like_tags_stay_objects() -> None:
    state = {"a": {"$accord": "datetime", "value": "2026-01-01"}, "b": {"type": "message"}}
    assert AgentSession.from_dict(AgentSession(state=state).to_dict()).state == state


@pytest.mark.parametrize(
    ("state", "path"),
    [
        ({"a": [object()]}, "/state/a/0"),
        ({"a": math.nan}, "/state/a"),
        ({"a": {1: 2}}, "/state/a"),
    ],
)
def test_what_cannot_be_kept_is_named(state: dict[str, Any], path: str) -> None:
    with pytest.raises(EncodingError) as refused:
        AgentSession(state=state).to_dict()
    assert refused.value.path == path


@pytest.mark.parametrize(
    "saved",
    [
        {},
        {"session_id": "s", "version": 99},
        {"session_id": "s", "version": "1"},
        {"session_id": "s", "state": []},
        {"session_id": "s", "state": {"a": {"$accord": "complex", "value": 1}}},
        {"session_id": "s", "state": {"a": {"$accord": "uuid", "value": "x"}}},
        {"session_id": "s", "state": {"a": {"$accord": "decimal", "value": "x"}}},
        {"session_id": "s", "state": {"a": {"$accord": "bytes", "value": "?"}}},
        {"session_id": "s", "state": {"a": {"$accord": []}}},
    ],
)
def test_what_is_no_saved_session_is_refused(saved: dict[str, Any]) -> None:
    with pytest.raises(SessionError):
        AgentSession.from_dict(saved)


def test_an_agent_makes_sessions() -> None:
    agent = Agent(ScriptedChatClient(["hi"]))
    assert agent.create_session().session_id != agent.create_session().session_id
    assert agent.create_session(session_id="mine").session_id == "mine"
    assert agent.get_session("conv_1").service_session_id == "conv_1"
    assert AgentSession(state={"u": uuid.UUID(int=1), "d": Decimal("1.10")}).to_dict()["version"] == 1
