from __future__ import annotations

import asyncio
import dataclasses
import itertools
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from accord.errors import AccordError, EncodingError, PatchError
from accord.producer import Run, drive
from accord.protocol import JSON, JSONObject, to_wire
from accord.state import PointerError
from producer.recording import Recording, a_run, an_input, consumed


def states(outlet: Recording) -> list[dict[str, Any]]:
    return [to_wire(event) for event in outlet.events if event.type.startswith("STATE_")]


def run_with(state: JSON, work: Callable[[Run], Any], *, failed: bool = False) -> Recording:
    """What a run emits whose producer does `work`; its consumer ends in the state the producer holds."""
    run_input = an_input(state=state)
    run, outlet = a_run(run_input)
    with run:
        work(run)
    conversation = consumed(outlet, run_input, failed=failed)
    assert conversation.state == run.state.value
    return outlet


def test_nothing_changed_says_nothing() -> None:
    def work(run: Run) -> None:
        run.state.set({"a": [1, {"b": None}]})
        with run.state.edit() as draft:
            draft["a"][1]["b"] = None
        run.state.patch([])

    assert states(run_with({"a": [1, {"b": None}]}, work)) == []


def test_the_first_write_is_an_add() -> None:
    def work(run: Run) -> None:
        with run.state.edit() as draft:
            draft["team/name"] = "blue"

    outlet = run_with({"kept": "x" * 200}, work)
    assert states(outlet) == [{"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/team~1name", "value": "blue"}]}]


def test_a_whole_new_state_is_a_snapshot() -> None:
    outlet = run_with({"a": 1}, lambda run: run.state.set([1, 2]))
    assert states(outlet) == [{"type": "STATE_SNAPSHOT", "snapshot": [1, 2]}]


def test_a_draft_changes_only_what_it_touches() -> None:
    steps = [{"n": 1, "text": "x" * 90}, {"n": 2, "text": "y" * 90}]
    state = {"recipe": {"title": "a", "steps": steps}, "other": {"x": "y"}}

    def work(run: Run) -> None:
        with run.state.edit() as draft:
            draft["recipe"]["title"] = "Carbonara"
            draft["recipe"]["steps"].append({"n": 3})
            draft["recipe"]["steps"][0]["n"] = 10
            assert draft["recipe"]["steps"][1] == steps[1]
            assert "title" in draft["recipe"]
            assert draft["recipe"]["steps"] == [{**steps[0], "n": 10}, steps[1], {"n": 3}]

    (event,) = states(run_with(state, work))
    assert sorted(operation["path"] for operation in event["delta"]) == [
        "/recipe/steps/0/n",
        "/recipe/steps/2",
        "/recipe/title",
    ]


def test_an_error_in_the_block_commits_nothing() -> None:
    def work(run: Run) -> None:
        with pytest.raises(KeyError), run.state.edit() as draft:
            draft["a"] = 2
            raise KeyError
        assert run.state.value == {"a": 1}

    assert states(run_with({"a": 1}, work)) == []


def test_what_came_out_is_the_callers_own() -> None:
    def work(run: Run) -> None:
        value = run.state.value
        value["a"].append(2)
        assert run.state.value == {"a": [1]}
        run.state.set(value)
        value["a"].append(3)
        assert run.state.value == {"a": [1, 2]}

    assert len(states(run_with({"a": [1]}, work))) == 1


def test_a_value_that_is_no_json_changes_nothing() -> None:
    def work(run: Run) -> None:
        changes: list[Callable[[], None]] = [
            lambda: run.state.set({"a": {1}}),
            lambda: run.state.patch([{"op": "add", "path": "/b", "value": float("nan")}]),
            lambda: run.state.set({"a": "\ud800"}),
        ]
        for change in changes:
            with pytest.raises(EncodingError):
                change()
        assert run.state.value == {"a": 1}

    assert states(run_with({"a": 1}, work)) == []


def test_a_patch_that_does_not_apply_changes_nothing() -> None:
    def work(run: Run) -> None:
        with pytest.raises(PatchError):
            run.state.patch([{"op": "add", "path": "/b", "value": 1}, {"op": "replace", "path": "/no", "value": 1}])

    assert states(run_with({}, work)) == []


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
async def test_parallel_writers_lose_nothing(order: tuple[int, ...]) -> None:
    gates = [asyncio.Event() for _ in range(3)]

    async def producer(run: Run) -> None:
        async def write(name: int) -> None:
            with run.state.edit() as draft:
                draft["results"].append(name)
                await gates[name].wait()

        writers = [asyncio.create_task(write(name)) for name in range(3)]
        await asyncio.sleep(0)
        for name in order:
            gates[name].set()
            await asyncio.sleep(0)
        await asyncio.gather(*writers)

    run_input = an_input(state={"results": []})
    run, outlet = a_run(run_input)
    await drive(producer, run)
    assert sorted(consumed(outlet, run_input).state["results"]) == [0, 1, 2]


def test_edits_that_no_longer_fit_are_refused() -> None:
    def work(run: Run) -> None:
        with pytest.raises(PatchError), run.state.edit() as draft:
            draft["a"]["b"]["c"] = 1
            run.state.set({"a": 5})
        assert run.state.value == {"a": 5}

    run_with({"a": {"b": {"x": "y" * 50}}}, work)


# Predictions


def test_a_prediction_is_shown_and_confirmed() -> None:
    def work(run: Run) -> None:
        prediction = run.state.predict(["recipe"])
        prediction.show([{"op": "add", "path": "/recipe", "value": {}}])
        prediction.show([{"op": "add", "path": "/recipe/title", "value": "Carb"}])
        assert run.state.value == {}
        prediction.confirm({"recipe": {"title": "Carbonara"}})
        assert not run.state.predicting

    assert states(run_with({}, work))[-1] == {
        "type": "STATE_SNAPSHOT",
        "snapshot": {"recipe": {"title": "Carbonara"}},
    }


def test_a_large_state_is_confirmed_by_the_member() -> None:
    def work(run: Run) -> None:
        prediction = run.state.predict(["note"])
        prediction.show([{"op": "add", "path": "/note", "value": "a"}])
        prediction.confirm({"note": "ab"})

    (*_, confirmed) = states(run_with({"large": "x" * 100_000}, work))
    assert confirmed == {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/note", "value": "ab"}]}


@pytest.mark.parametrize("state", [{}, {"recipe": {"title": "old"}}, {"recipe": None, "other": 1}])
def test_a_refused_prediction_leaves_the_state_before(state: JSON) -> None:
    def work(run: Run) -> None:
        prediction = run.state.predict(["recipe"])
        prediction.show([{"op": "add", "path": "/recipe", "value": {"title": "new"}}])
        prediction.take_back()
        prediction.take_back()

    assert consumed(run_with(state, work), an_input(state=state)).state == state


def test_an_open_prediction_is_taken_back_at_the_end() -> None:
    def work(run: Run) -> None:
        run.state.predict(["a"]).show([{"op": "add", "path": "/a", "value": 1}])
        raise ValueError

    outlet = run_with({"b": 2}, work, failed=True)
    assert outlet.types[-2:] == ["STATE_DELTA", "RUN_ERROR"]


def test_one_prediction_is_taken_back_and_the_other_stays() -> None:
    def work(run: Run) -> None:
        first, second = run.state.predict(["a"]), run.state.predict(["b"])
        first.show([{"op": "add", "path": "/a", "value": 1}])
        second.show([{"op": "add", "path": "/b", "value": [1]}])
        first.take_back()
        second.show([{"op": "add", "path": "/b/1", "value": 2}])
        second.confirm({"b": [1, 2]})

    assert consumed(run_with({"x": "y" * 50}, work), an_input(state={"x": "y" * 50})).state == {
        "x": "y" * 50,
        "b": [1, 2],
    }


def test_a_commit_beside_a_prediction_leaves_it_open() -> None:
    def work(run: Run) -> None:
        prediction = run.state.predict(["a"])
        prediction.show([{"op": "add", "path": "/a", "value": [1]}])
        run.state.patch([{"op": "add", "path": "/b", "value": 2}])
        prediction.show([{"op": "add", "path": "/a/1", "value": 2}])
        prediction.take_back()

    outlet = run_with({"x": "y" * 50}, work)
    assert not any(event["type"] == "STATE_SNAPSHOT" for event in states(outlet))


def test_a_prediction_that_does_not_fit_is_refused() -> None:
    def work(run: Run) -> None:
        with pytest.raises(PatchError):
            run.state.predict(["a"]).show([{"op": "add", "path": "/a/b", "value": 1}])

    assert states(run_with({}, work)) == []


def test_an_interrupted_run_keeps_what_is_shown() -> None:
    from accord.protocol import Interrupt

    run, outlet = a_run()
    with run:
        run.state.predict(["a"]).show([{"op": "add", "path": "/a", "value": 1}])
        run.interrupt(Interrupt(id="i", reason="tool_call"))
    assert consumed(outlet).state == {"a": 1}
    assert run.state.value == {}


# Private members and guards


class Guard:
    private = ("secret",)

    def check(self, state: JSON) -> None:
        if not isinstance(state, dict) or not isinstance(state.get("n", 0), int):
            raise AccordError("n must be a number")


def test_private_members_never_leave() -> None:
    run, outlet = a_run(an_input(state={"x": 1}))
    with run:
        run.state.begin({"x": 1, "secret": "hush"}, Guard())
        with run.state.edit() as draft:
            draft["secret"] = "hush hush"
            draft["x"] = 2
        run.state.patch([{"op": "copy", "from": "/x", "path": "/secret"}])
        run.state.set({"x": 3, "secret": "hush!"})
        run.state.snapshot()
    assert b"hush" not in b"".join(outlet.payloads)
    assert consumed(outlet, an_input(state={"x": 1})).state == {"x": 3}
    assert run.state.value == {"x": 3, "secret": "hush!"}


def test_a_change_the_guard_refuses_is_not_made() -> None:
    run, outlet = a_run(an_input(state={"n": 1}))
    with run:
        run.state.begin({"n": 1}, Guard())
        changes: list[Callable[[], None]] = [
            lambda: run.state.set({"n": "one"}),
            lambda: run.state.patch([{"op": "replace", "path": "/n", "value": "one"}]),
            lambda: run.state.predict(["n"]).confirm({"n": "one"}),
        ]
        for change in changes:
            with pytest.raises(AccordError):
                change()
        assert run.state.value == {"n": 1}
    assert states(outlet) == []


def test_what_the_consumer_lacks_is_sent_when_it_settles() -> None:
    """Report 2: defaults of the server's model that the client never saw."""
    run, outlet = a_run(an_input(state={}))
    with run:
        run.state.begin({"fb": {"q": None, "rows": None}})
        with run.state.edit() as draft:
            draft["fb"]["rows"] = [1]
    assert consumed(outlet, an_input(state={})).state == {"fb": {"q": None, "rows": [1]}}


# Laws

KEYS = st.sampled_from(["a", "b", "c/d", "~", ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([1.0, "x", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)


@given(st.one_of(OBJECTS, VALUES), st.lists(st.one_of(VALUES, OBJECTS), max_size=6))
def test_the_consumer_always_holds_what_the_producer_holds(first: JSON, changes: list[JSON]) -> None:
    run_input = an_input(state=first)
    run, outlet = a_run(run_input)
    with run:
        for number, change in enumerate(changes):
            if number % 3 == 0 or not isinstance(run.state.value, dict):
                run.state.set(change)
            elif number % 3 == 1:
                with run.state.edit() as draft:
                    draft["a"] = change
            else:
                prediction = run.state.predict(["b"])
                prediction.show([{"op": "add", "path": "/b", "value": change}])
                if number % 2:
                    prediction.confirm({"b": change})
                else:
                    prediction.take_back()
            held = Recording()
            held.payloads = [*outlet.payloads]
            assert _equal(_state_of(held, first), run.state.value)
    assert _equal(consumed(outlet, run_input).state, run.state.value)


def _state_of(outlet: Recording, first: JSON) -> JSON:
    from accord.consumer import Conversation

    conversation = Conversation(an_input(state=first))
    for event in outlet.events:
        conversation.apply(event)
    return conversation.state


def _equal(left: JSON, right: JSON) -> bool:
    """Equal as JSON text: `1`, `1.0` and `true` are told apart."""
    import json

    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


# Typed access


class Ingredient(BaseModel):
    name: str
    amount: str | None = None


class RecipeModel(BaseModel):
    title: str
    ingredients: list[Ingredient] = []


class RecipeStruct(msgspec.Struct):
    title: str
    ingredients: list[dict[str, Any]]


@dataclasses.dataclass
class RecipeData:
    title: str
    ingredients: list[dict[str, Any]]


@pytest.mark.parametrize("model", [RecipeModel, RecipeStruct, RecipeData])
def test_the_state_as_a_model(model: Any) -> None:
    recipe = {"title": "Carbonara", "ingredients": [{"name": "Eggs", "amount": None}]}

    def work(run: Run) -> None:
        typed = run.state.typed(model, "/recipe")
        assert typed.get().title == "Carbonara"
        with typed.edit() as draft:
            draft.title = "Cacio e pepe"
        changed = typed.get()
        changed.title = "Gricia"
        assert typed.get().title == "Cacio e pepe"
        typed.set(changed)

    outlet = run_with({"recipe": recipe, "other": "x" * 200}, work)
    assert [event["delta"][0]["path"] for event in states(outlet)] == ["/recipe/title", "/recipe/title"]
    held = consumed(outlet, an_input(state={"recipe": recipe, "other": "x" * 200})).state
    assert held["recipe"] == {"title": "Gricia", "ingredients": [{"name": "Eggs", "amount": None}]}


@pytest.mark.parametrize("path", ["/recipe", "/items/1", "/items/-", "/items/x", "/items/0/name/first", "/none/x"])
def test_a_place_the_state_does_not_have(path: str) -> None:
    run, _ = a_run(an_input(state={"items": [{"name": "a"}], "none": None}))
    place = run.state.typed(Item, path)
    with pytest.raises(LookupError, match=f"nothing at '{path}'"):
        place.get()
    with pytest.raises(LookupError, match=f"nothing at '{path}'"), place.edit():
        raise AssertionError("there is nothing to edit")


def test_what_is_no_pointer_is_no_place() -> None:
    run, _ = a_run(an_input(state={"items": []}))
    place = run.state.typed(Item, "items")
    with pytest.raises(PointerError, match="does not begin with '/'"):
        place.get()
    with pytest.raises(PointerError, match="does not begin with '/'"):
        place.set(Item(name="a"))


@pytest.mark.parametrize("path", ["/items/1", "/items/-"])
def test_a_typed_value_may_be_a_new_element(path: str) -> None:
    outlet = run_with({"items": [{"name": "a"}]}, lambda run: run.state.typed(Item, path).set(Item(name="b")))
    (event,) = states(outlet)
    assert event["delta"] == [{"op": "add", "path": path, "value": {"name": "b", "done": False}}]


def test_a_typed_value_leaves_no_gap() -> None:
    run, _ = a_run(an_input(state={"items": []}))
    with pytest.raises(PatchError, match="/items/1"):
        run.state.typed(Item, "/items/1").set(Item(name="b"))


class Item(BaseModel):
    name: str
    done: bool = False


class Todo(BaseModel):
    items: list[Item] = []


def test_a_typed_edit_means_the_element_it_saw() -> None:
    def work(run: Run) -> None:
        run.state.set(Todo(items=[Item(name="a"), Item(name="b"), Item(name="c")]))
        with run.state.typed(Todo).edit() as todo:
            todo.items[1].done = True
            with run.state.edit() as draft:
                del draft["items"][0]
        assert run.state.value == {"items": [{"name": "b", "done": True}, {"name": "c", "done": False}]}

    run_with({}, work)


class Feedback(BaseModel):
    q: str | None = None
    rows: list[int] | None = None


class Defaults(BaseModel):
    fb: Feedback = Feedback()


def test_a_typed_edit_of_defaults_the_client_never_saw() -> None:
    """Report 2."""

    def work(run: Run) -> None:
        with run.state.typed(Defaults).edit() as defaults:
            pass
        with run.state.typed(Defaults).edit() as defaults:
            defaults.fb.rows = [1]

    (event,) = states(run_with({}, work))
    assert event["delta"] == [{"op": "add", "path": "/fb", "value": {"q": None, "rows": [1]}}]


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("change", ["patch", "edit", "typed", "activity"])
@pytest.mark.parametrize(("levels", "fits"), [(11, True), (12, False)])
def test_what_patches_make_is_no_deeper_than_the_run_allows(change: str, levels: int, fits: bool) -> None:
    """The consumer takes as much: a state of one level fewer than an event has."""
    run_input = an_input(state={"a": nested(levels - 3)})
    outlet = Recording()
    with Run(run_input, outlet, max_depth=12) as run:
        deeper = [{"op": "add", "path": "/b", "value": [[]]}, {"op": "move", "from": "/a", "path": "/b/0/0"}]
        with nullcontext() if fits else pytest.raises(AccordError, match="deep"):
            if change == "patch":
                run.state.patch(deeper)
            elif change == "edit":
                with run.state.edit() as draft:
                    draft["b"] = [[draft.pop("a")]]
            elif change == "typed":
                run.state.typed(Nest).set(Nest(a=nested(levels - 1)))
            else:
                run.activity("progress", {"a": nested(levels - 3)}, message_id="p").patch(deeper)
    held = consumed(outlet, run_input)
    if change != "activity":
        assert held.state == run.state.value


class Nest(msgspec.Struct):
    a: Any


def test_what_is_shown_is_read_under_the_lock_of_its_run() -> None:
    run, _ = a_run(an_input(state={"a": 1}))
    with run:
        seen: list[JSONObject] = []
        reading = threading.Thread(target=lambda: seen.append(run.state.shown(["a"])))
        with run.lock:
            reading.start()
            reading.join(0.05)
            assert seen == []
        reading.join(10)
        assert seen == [{"a": 1}]


def test_what_is_too_deep_for_an_operation_is_sent_with_the_whole_state() -> None:
    run_input = an_input(state={"a": nested(10), "b": 1})
    outlet = Recording()
    with Run(run_input, outlet, max_depth=12) as run:
        prediction = run.state.predict(["a"])
        prediction.show([{"op": "replace", "path": "/a", "value": 0}])
        prediction.take_back()
        run.state.set({"b": nested(10)})
    assert outlet.types[-3:] == ["STATE_SNAPSHOT", "STATE_SNAPSHOT", "RUN_FINISHED"]
    assert consumed(outlet, run_input).state == {"b": nested(10)}
