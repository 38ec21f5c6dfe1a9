"""State, patches and what limits them."""

from __future__ import annotations

from typing import Any

import pytest

from accord.protocol import RunAgentInput, decode_input, encode_input
from consumer.feeding import FINISHED, STARTED, Consumed, Raw, consume, raw


def snapshot(value: Any, **members: Any) -> Raw:
    return raw("STATE_SNAPSHOT", snapshot=value, **members)


def delta(*operations: Raw, **members: Any) -> Raw:
    return raw("STATE_DELTA", delta=list(operations), **members)


def add(path: str, value: Any = 1) -> Raw:
    return {"op": "add", "path": path, "value": value}


def after(*events: Raw, **given: Any) -> Any:
    found = consume(events, whole=True, given=given or None)
    assert found.violation is None
    return found.state


def test_the_state_begins_as_the_input_s_or_empty() -> None:
    assert after() == {}
    assert after(state={"a": 1}) == {"a": 1}
    assert after(state=None) is None
    assert after(delta(add("/b")), state={"a": 1}) == {"a": 1, "b": 1}


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}, "text", [1], {"b": 2}])
def test_a_snapshot_replaces_the_state_whole(value: Any) -> None:
    found = after(snapshot(value), state={"a": 1})
    assert found == value
    assert type(found) is type(value)


def test_nulls_in_the_state_are_kept_at_every_depth() -> None:
    state = {"fb": {"q": None, "rows": [None, {"x": None}]}}
    assert after(snapshot(state)) == state
    assert after(delta(add("/fb", state["fb"]))) == state


def test_operations_apply_in_order() -> None:
    assert after(delta(add("/a", [1]), add("/a/-", 2), {"op": "copy", "from": "/a/0", "path": "/b"})) == {
        "a": [1, 2],
        "b": 1,
    }


def test_a_patch_applies_whole_or_not_at_all() -> None:
    found = consume([delta(add("/a"), add("/b/c"), add("/d")), delta(add("/e"))], whole=True, given={"state": {"x": 0}})
    assert found.state == {"x": 0, "e": 1}
    (warning,) = found.deviations
    assert (warning.stage, warning.event_type, warning.path) == ("application", "STATE_DELTA", "/delta/1")
    assert "Failed to apply state patch, all of it: operation 1 at /b/c" in warning.detail


def test_a_first_write_by_replace_is_skipped_and_the_run_goes_on() -> None:
    found = consume([delta({"op": "replace", "path": "/steps", "value": ["a"]})], whole=True)
    assert found.state == {}
    assert len(found.warnings) == 1
    assert found.conversation.runs[0].status == "success"


def test_a_failed_test_holds_the_patch_back() -> None:
    test = {"op": "test", "path": "/a", "value": True}
    found = consume([delta(test, add("/b"))], whole=True, given={"state": {"a": 1}})
    assert found.state == {"a": 1}
    assert after(delta({**test, "value": 1.0}, add("/b")), state={"a": 1}) == {"a": 1, "b": 1}


def test_a_malformed_operation_is_fatal() -> None:
    for operation in ({"op": "add", "path": "/a"}, {"op": "add", "path": "a", "value": 1}, {"path": "/a"}, None):
        assert consume([STARTED, raw("STATE_DELTA", delta=[operation])]).rule == "malformed"
    assert consume([STARTED, raw("STATE_DELTA", delta=add("/a"))]).rule == "malformed"


def test_the_next_snapshot_is_adopted_whatever_was_skipped() -> None:
    assert after(delta(add("/no/where")), snapshot({"n": 1}), delta(add("/m"))) == {"n": 1, "m": 1}


def test_a_patch_on_null_does_not_apply_below_it() -> None:
    found = consume([snapshot(None), delta(add("/a")), delta(add("", {"b": 1}), add("/c"))], whole=True)
    assert found.state == {"b": 1, "c": 1}
    assert len(found.warnings) == 1


def test_the_owner_of_a_state_event_is_provenance_only() -> None:
    assert after(snapshot({"a": 1}, tag="s1"), delta(add("/b"), tag="s2")) == {"a": 1, "b": 1}


def test_the_state_carries_over_to_the_next_run() -> None:
    later = [{**STARTED, "runId": "r2"}, delta(add("/b")), {**FINISHED, "runId": "r2"}]
    assert consume([STARTED, snapshot({"a": 1}), FINISHED, *later]).state == {"a": 1, "b": 1}


def test_a_failed_run_keeps_what_it_said() -> None:
    assert consume([STARTED, delta(add("/a")), raw("RUN_ERROR", message="x")]).state == {"a": 1}
    assert consume([STARTED, delta(add("/a"))]).state == {"a": 1}
    assert consume([STARTED, delta(add("/a")), {"type": "CUSTOM"}]).state == {"a": 1}


# Limits, for the state and for activities


def limited(operations: list[Raw], what: str, **limits: int) -> Consumed:
    if what == "state":
        return consume([delta(*operations)], whole=True, limits=limits)
    made = raw("ACTIVITY_SNAPSHOT", "a", activityType="t", content={})
    patch = raw("ACTIVITY_DELTA", "a", activityType="t", patch=operations)
    return consume([made, patch], whole=True, limits=limits)


def value_of(found: Consumed, what: str) -> Any:
    return found.state if what == "state" else found.messages[0]["content"]


@pytest.mark.parametrize("what", ["state", "activity"])
@pytest.mark.parametrize("root", [[], [add("", {})]])
@pytest.mark.parametrize(
    ("limit", "within", "beyond"),
    [
        ("max_operations", [add("/a")] * 2, [add("/a")] * 4),
        ("max_pointer_length", [add("/aa")], [add("/aaa")]),
        ("max_copied_bytes", [add("/a", 1), {"op": "copy", "from": "/a", "path": "/b"}], None),
        ("max_depth", [add("/a", [[]])], [add("/a", [[[]]])]),
    ],
)
def test_a_patch_beyond_a_named_limit_does_not_apply(
    what: str, root: list[Raw], limit: str, within: list[Raw], beyond: list[Raw] | None
) -> None:
    beyond = beyond or [add("/a", "long"), {"op": "copy", "from": "/a", "path": "/b"}]
    bound = {limit: 3}
    assert limited(root + within, what, **bound).warnings == []
    found = limited(root + beyond, what, **bound)
    assert value_of(found, what) == {}
    assert limit in found.warnings[0]
    assert found.violation is None


@pytest.mark.parametrize("what", ["state", "activity"])
def test_a_patch_that_doubles_its_document_forty_times_is_refused(what: str) -> None:
    doubling = [add("/a", ["x" * 100])] + [{"op": "copy", "from": "/a", "path": "/a/-"}] * 40
    found = limited(doubling, what)
    assert value_of(found, what) == {}
    assert "max_copied_bytes" in found.warnings[0]


@pytest.mark.parametrize("what", ["state", "activity"])
def test_patches_do_not_nest_deeper_than_what_can_be_sent(what: str) -> None:
    wrap = [add("/y", {}), {"op": "move", "from": "/x", "path": "/y/x"}, {"op": "move", "from": "/y", "path": "/x"}]
    if what == "state":
        events = [snapshot({"x": 1}), *(delta(*wrap) for _ in range(300))]
    else:
        made = raw("ACTIVITY_SNAPSHOT", "a", activityType="t", content={"x": 1})
        events = [made, *(raw("ACTIVITY_DELTA", "a", activityType="t", patch=wrap) for _ in range(300))]
    found = consume(events, whole=True)
    assert found.violation is None
    assert len(found.warnings) == 300 - 254
    assert all("max_depth" in warning for warning in found.warnings)
    if what == "state":
        decode_input(encode_input(RunAgentInput(thread_id="t", run_id="r", messages=[], state=found.state)))
