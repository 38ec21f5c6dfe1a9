"""Predictive state: what is on the screen while a tool's arguments are being written, and what becomes of it."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, ClassVar

import pytest
from fastapi import FastAPI
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from accord.agents import (
    Agent,
    AgentResponseUpdate,
    AgentSetupError,
    ChatOptions,
    Content,
    FunctionCallContent,
    FunctionResultContent,
    Interleaved,
    Message,
    TextContent,
    ToolDefinition,
    function_middleware,
    scripted_call,
    tool,
)
from accord.agui import AGUIAgent, InMemoryThreadStore, ThreadRecord, add_agui_endpoint, current_run
from accord.agui.predictive import Predictor, PredictStateConfig, is_stage
from accord.client import AGUIClient, InProcessTransport
from accord.errors import InputRejected, TruncatedRun
from accord.protocol import StateDeltaEvent
from agui.talk import PREDICT_RECIPE, Model, Raw, Talk, deltas, recipe_agent, update_recipe
from producer.recording import a_run, an_input, consumed
from support.serving import serve as serve_app

OLD = {"recipe": {"title": "Old", "steps": ["boil"]}, "other": [1, None]}
NEW = {"title": "Carbonara", "steps": ["fry", "mix"], "fat": None, "n": 1.5}


def indices(events: Sequence[Raw], *kinds: str) -> list[int]:
    return [place for place, event in enumerate(events) if event["type"] in kinds]


class TestShowing:
    async def test_members_appear_as_they_are_written(self) -> None:
        served, _ = recipe_agent([scripted_call("update_recipe", {"recipe": NEW}), "Done."])
        talk = Talk(served)
        await talk.say()
        assert talk.state == {"recipe": NEW}
        first, *_, last = indices(talk.events, "STATE_DELTA")
        assert first < indices(talk.events, "TOOL_CALL_ARGS")[6]
        assert last < indices(talk.events, "TOOL_CALL_RESULT")[0]
        assert deltas(talk.events)[0] == {"op": "add", "path": "/recipe", "value": {}}
        assert {"op": "add", "path": "/recipe/steps/1", "value": "mix"} in deltas(talk.events)
        # The tool has run: from here it is so, whatever a front end made of the predictions.
        assert talk.of("STATE_SNAPSHOT") == [{"type": "STATE_SNAPSHOT", "snapshot": {"recipe": NEW}}]

    async def test_over_a_value_that_is_there(self) -> None:
        served, _ = recipe_agent([scripted_call("update_recipe", {"recipe": NEW}), "Done."])
        talk = Talk(served, state=OLD)
        await talk.say()
        assert talk.state == {"recipe": NEW, "other": [1, None]}

    async def test_front_ends_that_predict_by_themselves_are_told_how(self) -> None:
        served, _ = recipe_agent(["Hi"])
        talk = Talk(served)
        await talk.say()
        (announced,) = talk.of("CUSTOM")
        assert announced == {
            "type": "CUSTOM",
            "name": "PredictState",
            "value": [{"state_key": "recipe", "tool": "update_recipe", "tool_argument": "recipe"}],
        }
        assert talk.events.index(announced) == 1

    async def test_nothing_is_announced_where_nothing_is_predicted(self) -> None:
        talk = Talk(AGUIAgent(Agent(Model(["Hi"]))))
        await talk.say()
        assert talk.of("CUSTOM") == []

    async def test_all_arguments_of_a_tool(self) -> None:
        @tool
        def create_document(title: str, content: str, metadata: dict[str, Any]) -> str:
            return "Document created."

        arguments = {"title": "A", "content": "B" * 30, "metadata": {"n": None}}
        served, _ = recipe_agent(
            [scripted_call("create_document", arguments), "Done."],
            tools=[create_document],
            predict_state_config={"document": {"tool": "create_document", "tool_argument": "*"}},
        )
        talk = Talk(served)
        await talk.say()
        assert talk.state == {"document": arguments}
        assert {"op": "add", "path": "/document/title", "value": "A"} in deltas(talk.events)

    async def test_several_fields_of_one_tool_and_several_tools(self) -> None:
        @tool
        def plan(steps: list[str], owner: str, note: str = "") -> str:
            return "ok"

        @tool
        def prefer(preferences: dict[str, Any]) -> str:
            return "ok"

        calls = [
            scripted_call("plan", {"note": "hidden", "steps": ["a", "b"], "owner": "Ada"}),
            scripted_call("prefer", {"preferences": {"fast": True}}),
        ]
        served, _ = recipe_agent(
            [[Interleaved(*calls)], "Done."],
            tools=[plan, prefer],
            predict_state_config={
                "steps": {"tool": "plan", "tool_argument": "steps"},
                "owner": {"tool": "plan", "tool_argument": "owner"},
                "who": {"tool": "plan", "tool_argument": "owner"},
                "all": {"tool": "plan", "tool_argument": "*"},
                "preferences": {"tool": "prefer", "tool_argument": "preferences"},
            },
        )
        talk = Talk(served)
        await talk.say()
        assert talk.state == {
            "steps": ["a", "b"],
            "owner": "Ada",
            "who": "Ada",
            "all": {"note": "hidden", "steps": ["a", "b"], "owner": "Ada"},
            "preferences": {"fast": True},
        }
        before_results = talk.states[indices(talk.events, "TOOL_CALL_END")[-1]]
        assert before_results == talk.state, "all of it was on the screen before a tool had run"

    async def test_only_the_argument_itself_not_what_is_called_so_elsewhere(self) -> None:
        @tool
        def update_recipe(note: dict[str, Any], recipe: dict[str, Any]) -> str:
            return "ok"

        arguments = {"note": {"recipe": {"title": "wrong"}, "text": '"recipe": {"title": "wrong"}'}, "recipe": NEW}
        served, _ = recipe_agent([scripted_call("update_recipe", arguments), "ok"], tools=[update_recipe])
        talk = Talk(served)
        await talk.say()
        assert talk.state == {"recipe": NEW}
        assert "wrong" not in str([event for event in talk.events if event["type"].startswith("STATE_")])

    async def test_members_named_like_pointers(self) -> None:
        served, _ = recipe_agent(
            [scripted_call("update_recipe", {"recipe": {"a/b~c": {"": 1}, "~1": [{"/": None}]}}), "ok"],
            predict_state_config={"team/~name": {"tool": "update_recipe", "tool_argument": "recipe"}},
        )
        talk = Talk(served)
        await talk.say()
        assert talk.state == {"team/~name": {"a/b~c": {"": 1}, "~1": [{"/": None}]}}

    async def test_an_argument_that_was_not_sent_changes_nothing(self) -> None:
        @tool
        def update_recipe(recipe: dict[str, Any] | None = None) -> str:
            return "ok"

        served, _ = recipe_agent([scripted_call("update_recipe", {}), "ok"], tools=[update_recipe])
        talk = Talk(served, state=OLD)
        await talk.say()
        assert talk.state == OLD
        assert talk.results == {"call_1": "ok"}
        assert talk.of("STATE_DELTA", "STATE_SNAPSHOT") == []

    async def test_arguments_that_middleware_changed_are_what_is_so(self) -> None:
        @function_middleware
        async def salt(call: Any, call_next: Any) -> Any:
            call.arguments = {"recipe": {**call.arguments["recipe"], "salt": True}}
            return await call_next(call)

        model = Model([scripted_call("update_recipe", {"recipe": {"title": "A"}}), "ok"])
        served = AGUIAgent(Agent(model, tools=[update_recipe], middleware=[salt]), predict_state_config=PREDICT_RECIPE)
        talk = Talk(served)
        await talk.say()
        assert talk.state == {"recipe": {"title": "A", "salt": True}}

    async def test_a_tool_that_also_writes_the_state_itself(self) -> None:
        @tool
        def update_recipe(recipe: dict[str, Any]) -> str:
            with current_run().state.edit() as draft:
                draft["log"] = ["written"]
            return "ok"

        served, _ = recipe_agent([scripted_call("update_recipe", {"recipe": NEW}), "ok"], tools=[update_recipe])
        talk = Talk(served, state=OLD)
        await talk.say()
        assert talk.state == {"recipe": NEW, "other": [1, None], "log": ["written"]}

    async def test_no_snapshot_while_another_prediction_is_open(self) -> None:
        """Report 12: what is being typed is not wiped."""
        go_on = asyncio.Event()

        @tool
        async def update_recipe(recipe: dict[str, Any]) -> str:
            await go_on.wait()
            return "ok"

        @tool
        async def note(text: str) -> str:
            with current_run().state.edit() as draft:
                draft["log"] = text
            asyncio.get_running_loop().call_soon(go_on.set)
            return "ok"

        calls = [scripted_call("update_recipe", {"recipe": NEW}), scripted_call("note", {"text": "hm"})]
        served, _ = recipe_agent(
            [[Interleaved(*calls)], "ok"],
            tools=[update_recipe, note],
            predict_state_config={**PREDICT_RECIPE, "note": {"tool": "note", "tool_argument": "text"}},
        )
        talk = Talk(served)
        await talk.say()
        seen = list(itertools.dropwhile(lambda state: "recipe" not in state, talk.states))
        assert len(seen) > 10
        lengths = [len(json.dumps(state.get("recipe"))) for state in seen]
        assert lengths == sorted(lengths), "it only grows"
        assert talk.state == {"recipe": NEW, "note": "hm", "log": "hm"}

    @pytest.mark.parametrize("filler", [{}, {"filler": "x" * 500}])
    @pytest.mark.parametrize("private", [False, True])
    async def test_whoever_writes_beside_it_wipes_nothing(self, private: bool, filler: dict[str, Any]) -> None:
        """However small the state is, so that the whole of it would be the smallest event."""
        go_on = asyncio.Event()

        @tool
        async def update_recipe(recipe: dict[str, Any]) -> str:
            await go_on.wait()
            return "ok"

        @tool
        async def note() -> str:
            with current_run().state.edit() as draft:
                draft["a"], draft["b"] = 1, 2
                del draft["c"]
            asyncio.get_running_loop().call_soon(go_on.set)
            return "ok"

        members: dict[str, Any] = {name: {} for name in ("recipe", "a", "b", "c", "filler")}
        served, _ = recipe_agent(
            [[scripted_call("update_recipe", {"recipe": NEW}), scripted_call("note")], "ok"],
            tools=[update_recipe, note],
            state_schema=members,
            private_state=["b"] if private else [],
        )
        talk = Talk(served, state={"c": 3, **filler})
        await talk.say()
        shown = {**filler, **({} if private else {"b": 2})}
        ended = indices(talk.events, "TOOL_CALL_END")[-1]
        noted = next(place for place in indices(talk.events, "STATE_DELTA", "STATE_SNAPSHOT") if place > ended)
        assert talk.events[noted]["type"] == "STATE_DELTA"
        assert talk.states[noted] == {"recipe": NEW, "a": 1, **shown}
        assert talk.state == {"recipe": NEW, "a": 1, **shown}


class TestAmount:
    """How much goes over the wire, counted; the clock stands still unless it is part of the question."""

    @staticmethod
    def predict(text: str, clock: Callable[[], float] = lambda: 0.0, size: int = 4) -> list[tuple[int, bytes]]:
        """Each state delta with the number of the piece it came after."""
        run, outlet = a_run(an_input(state={"recipe": "old"}))
        config = PredictStateConfig(PREDICT_RECIPE, [update_recipe])
        found: list[tuple[int, bytes]] = []
        with run:
            predictor = Predictor(run, config, clock)
            for number, start in enumerate(range(0, len(text), size)):
                before = len(outlet.payloads)
                predictor.feed("c1", "update_recipe" if start == 0 else "", text[start : start + size])
                found += [(number, payload) for payload in outlet.payloads[before:]]
            predictor.succeed("c1", "update_recipe", json.loads(text), run.state.committed)
        assert consumed(outlet, an_input(state={"recipe": "old"})).state == json.loads(text)
        return found

    def test_a_large_object(self) -> None:
        recipe = {
            "title": "Carbonara",
            "ingredients": [
                {"icon": "🥚", "name": f"ingredient {n}", "amount": f"{n} g", "note": None} for n in range(120)
            ],
            "instructions": [f"Step {n}: stir until it is thick and glossy, then rest it." for n in range(160)],
        }
        text = json.dumps({"recipe": recipe}, ensure_ascii=False)
        assert 18_000 < len(text) < 22_000
        found = self.predict(text)
        title = next(number for number, payload in found if b"Carbonara" in payload)
        assert title <= 0.01 * len(text) / 4
        assert sum(len(payload) for _, payload in found) <= 3 * len(text)
        assert len(found) > 100

    @pytest.mark.parametrize("length", [20_000, 200_000])
    def test_a_large_text(self, length: int) -> None:
        text = json.dumps({"recipe": "All work and no play. " * (length // 22)})
        found = self.predict(text)
        assert sum(len(payload) for _, payload in found) <= 10 * len(text)
        assert len(found) > 10

    def test_a_slow_text_is_seen_to_move(self) -> None:
        now = 0.0

        def clock() -> float:
            nonlocal now
            now += 4 / 160
            return now

        text = json.dumps({"recipe": "All work and no play. " * 300})
        found = self.predict(text, clock)
        places = [0, *(number for number, _ in found), len(text) // 4]
        assert max(after - before for before, after in itertools.pairwise(places)) * 4 / 160 <= 0.3

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=12) | st.just('"\\\t😀\u2028'),
            lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
            max_leaves=12,
        ),
        st.integers(1, 9),
        st.booleans(),
    )
    @settings(max_examples=60, deadline=None)
    def test_any_json_exact(self, value: Any, size: int, ascii_only: bool) -> None:
        text = json.dumps({"x": 1, "recipe": value}, ensure_ascii=ascii_only)
        run, outlet = a_run()
        with run:
            predictor = Predictor(run, PredictStateConfig(PREDICT_RECIPE, [update_recipe]), lambda: 0.0)
            for start in range(0, len(text), size):
                predictor.feed("c1", "update_recipe", text[start : start + size])
            assert run.state.shown(["recipe"]) == {"recipe": value}
            predictor.fail("c1")
            assert run.state.shown(["recipe"]) == {}
        assert all(isinstance(event, StateDeltaEvent) for event in outlet.events[1:-1])


class Writing:
    """A model that writes these pieces of calls, then does something, and answers with text the next time."""

    def __init__(self, *pieces: Content, then: Callable[[], Any] | None = None) -> None:
        self._pieces = pieces
        self._then = then
        self.shown: list[list[Message]] = []

    async def stream(self, messages: Sequence[Message], options: ChatOptions) -> AsyncIterator[AgentResponseUpdate]:
        self.shown.append(list(messages))
        if len(self.shown) > 1:
            yield AgentResponseUpdate(TextContent("ok"), finish_reason="stop")
            return
        for piece in self._pieces:
            await asyncio.sleep(0)
            yield AgentResponseUpdate(piece)
        if self._then is not None:
            await self._then()
        yield AgentResponseUpdate(finish_reason="tool_calls")


def half_a_call(name: str = "update_recipe") -> list[Content]:
    text = json.dumps({"recipe": NEW})[:-6]
    return [FunctionCallContent("c1", name), *(FunctionCallContent("c1", "", text[n : n + 4]) for n in range(0, 60, 4))]


def serve(model: Any, *tools: Any, **options: Any) -> AGUIAgent:
    return AGUIAgent(Agent(model, tools=tools or [update_recipe]), predict_state_config=PREDICT_RECIPE, **options)


async def fail() -> None:
    raise RuntimeError("gone")


async def cancel() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(1)


async def wait() -> None:
    await asyncio.Event().wait()


class TestTakingBack:
    """Committed on the tool's success only; otherwise what is committed comes back by event, before the run ends."""

    @staticmethod
    def assert_shown_and_taken_back(talk: Talk, old: Any = OLD) -> None:
        assert any(state != old for state in talk.states), "it was on the screen"
        assert talk.state == old
        assert talk.events[-1]["type"] in ("RUN_FINISHED", "RUN_ERROR")
        assert talk.states[-2] == old, "it came back by an event before the end"

    @pytest.mark.parametrize("old", [OLD, {}, {"recipe": None}, {"recipe": {"title": "Carbonara"}}])
    async def test_a_tool_that_fails(self, old: Any, caplog: pytest.LogCaptureFixture) -> None:
        @tool
        def update_recipe(recipe: dict[str, Any]) -> str:
            raise ValueError("no")

        served, _ = recipe_agent([scripted_call("update_recipe", {"recipe": NEW}), "Sorry."], tools=[update_recipe])
        talk = Talk(served, state=old)
        with caplog.at_level(logging.CRITICAL, "accord"):
            await talk.say()
        self.assert_shown_and_taken_back(talk, old)
        # Not only at the end of the run: as soon as the tool has failed.
        assert talk.states[indices(talk.events, "TEXT_MESSAGE_START")[0]] == old
        assert talk.of("STATE_SNAPSHOT") == []

    async def test_a_tool_that_says_it_failed(self) -> None:
        @tool
        def update_recipe(recipe: dict[str, Any]) -> FunctionResultContent:
            return FunctionResultContent("", error="the oven is broken")

        served, _ = recipe_agent([scripted_call("update_recipe", {"recipe": NEW}), "ok"], tools=[update_recipe])
        talk = Talk(served, state=OLD)
        await talk.say()
        self.assert_shown_and_taken_back(talk)

    async def test_a_tool_that_was_denied(self) -> None:
        @function_middleware
        async def deny(call: Any, call_next: Any) -> Any:
            return FunctionResultContent(call.call_id, error="not today")

        model = Model([scripted_call("update_recipe", {"recipe": NEW}), "ok"])
        served = AGUIAgent(Agent(model, tools=[update_recipe], middleware=[deny]), predict_state_config=PREDICT_RECIPE)
        talk = Talk(served, state=OLD)
        await talk.say()
        self.assert_shown_and_taken_back(talk)

    @pytest.mark.parametrize(
        "arguments",
        ['{"recipe": {"title": "Carb', '{"recipe": {"title": "Carb"}, oops', '{"recipe": {"title": "Carb"}} more'],
    )
    async def test_malformed_arguments(self, arguments: str) -> None:
        served, model = recipe_agent([scripted_call("update_recipe", arguments), "ok"])
        talk = Talk(served, state=OLD)
        await talk.say()
        self.assert_shown_and_taken_back(talk)
        assert model.results()[0].startswith("Error: wrong arguments")

    async def test_arguments_that_the_tool_does_not_take(self) -> None:
        class Recipe(BaseModel):
            title: str
            servings: int

        @tool
        def update_recipe(recipe: Recipe) -> str:
            return "ok"

        served, model = recipe_agent([scripted_call("update_recipe", {"recipe": NEW}), "ok"], tools=[update_recipe])
        talk = Talk(served, state=OLD)
        await talk.say()
        self.assert_shown_and_taken_back(talk)
        assert "/recipe/servings" in model.results()[0]

    async def test_a_tool_that_does_not_exist_predicts_nothing(self) -> None:
        served, model = recipe_agent([scripted_call("update_recipes", {"recipe": NEW}), "ok"])
        talk = Talk(served, state=OLD)
        await talk.say()
        assert talk.of("STATE_DELTA", "STATE_SNAPSHOT") == []
        assert "no tool" in model.results()[0]

    async def test_a_model_that_fails(self, caplog: pytest.LogCaptureFixture) -> None:
        talk = Talk(serve(Writing(*half_a_call(), then=fail)), state=OLD)
        with caplog.at_level(logging.CRITICAL, "accord"):
            run = await talk.say()
        assert run.outcome == "failed"
        self.assert_shown_and_taken_back(talk)

    async def test_an_answer_that_ends_in_the_middle_of_a_call(self) -> None:
        talk = Talk(serve(Writing(*half_a_call())), state=OLD)
        run = await talk.say()
        assert run.outcome == "success"
        self.assert_shown_and_taken_back(talk)

    async def test_a_run_that_is_cancelled(self) -> None:
        talk = Talk(serve(Writing(*half_a_call(), then=cancel)), state=OLD)
        run = await talk.say()
        assert run.outcome == "cancelled"
        self.assert_shown_and_taken_back(talk)

    async def test_a_value_that_the_schema_refuses(self) -> None:
        schema = {"recipe": {"type": "object", "properties": {"title": {"type": "string", "maxLength": 5}}}}
        served, model = recipe_agent([scripted_call("update_recipe", {"recipe": NEW}), "Sorry."], state_schema=schema)
        old = {"recipe": {"title": "Old"}}
        talk = Talk(served, state=old)
        await talk.say()
        self.assert_shown_and_taken_back(talk, old)
        assert "/recipe/title" in model.results()[0]
        assert talk.states[indices(talk.events, "TEXT_MESSAGE_START")[0]] == old, "before the model goes on"

    async def test_the_last_round_is_over(self) -> None:
        model = Model(lambda messages, options: scripted_call("update_recipe", {"recipe": NEW}))
        served = AGUIAgent(Agent(model, tools=[update_recipe], max_rounds=0), predict_state_config=PREDICT_RECIPE)
        talk = Talk(served, state=OLD)
        await talk.say()
        self.assert_shown_and_taken_back(talk)

    async def test_a_tool_that_the_application_runs(self) -> None:
        """It has not run when the run ends, so what it would write is not so."""
        model = Model([scripted_call("update_recipe", {"recipe": NEW}), "ok"])
        declared = ToolDefinition("update_recipe", "", {"type": "object", "properties": {"recipe": {}}})
        served = AGUIAgent(Agent(model, tools=[declared]), predict_state_config=PREDICT_RECIPE)
        talk = Talk(served, state=OLD, tools=[update_recipe_here])
        await talk.say()
        assert talk.state == OLD


def update_recipe_here(recipe: dict[str, Any]) -> str:
    return "ok"


update_recipe_here.__name__ = "update_recipe"


class TestDisconnect:
    @staticmethod
    async def leave(talk: Talk, *, after: int = 1) -> None:
        """Leaves a run when so many deltas have been read; the agent had written all it would by then."""
        run = talk.client.run("go")
        seen = 0
        async for event in run:
            if event.type == "RUN_STARTED":
                await asyncio.sleep(0.03)
            seen += event.type == "STATE_DELTA"
            if seen == after:
                break
        await run.aclose()
        assert run.outcome == "truncated"

    @pytest.mark.parametrize("old", [OLD, {}, {"recipe": None}, {"recipe": {"title": "Carbo"}}])
    @pytest.mark.parametrize("after", [1, 2, 3, 5])
    async def test_the_next_run_begins_by_restoring_what_was_shown(self, old: Any, after: int) -> None:
        """Whatever part of it had arrived when the client left."""
        model = Writing(*half_a_call(), then=wait)
        talk = Talk(serve(model), state=old)
        await self.leave(talk, after=after)
        assert talk.state != old
        await talk.say("go on")
        assert talk.state == old
        restored = indices(talk.events, "STATE_DELTA", "STATE_SNAPSHOT")
        assert restored
        assert max(restored) < indices(talk.events, "TEXT_MESSAGE_START")[0]
        shown = [message.text for message in model.shown[-1] if "<shared_state>" in message.text]
        assert bool(shown) is bool(old)
        assert all("steps" not in text or "boil" in text for text in shown), "the model sees what is so"

    async def test_over_http(self) -> None:
        noticed = asyncio.Event()

        class Threads(InMemoryThreadStore):
            async def save(self, scope: str, thread_id: str, record: ThreadRecord) -> bool:
                noticed.set()
                return await super().save(scope, thread_id, record)

        model = Writing(*half_a_call(), then=wait)
        served = serve(model, threads=Threads())
        app = FastAPI()
        add_agui_endpoint(app, served, "/agent")
        async with serve_app(app) as base:
            talk = Talk(url=f"{base}/agent", state=OLD)
            async with talk.client:
                await self.leave(talk, after=3)
                assert talk.state != OLD
                await noticed.wait()  # in the server's own time
                await talk.say("go on")
                assert talk.state == OLD

    async def test_a_reader_that_fell_too_far_behind(self, caplog: pytest.LogCaptureFixture) -> None:
        """Its stream ends where it was, so nothing could be taken back either."""
        large = FunctionCallContent("c1", "", f'", "text": "{"x" * 100_000}"')
        served = serve(Writing(*half_a_call()[:8], large, then=wait))
        client = AGUIClient(transport=InProcessTransport(served, max_buffered_bytes=150_000), state=OLD)
        with caplog.at_level(logging.CRITICAL, "accord"), pytest.raises(TruncatedRun):
            await client.run("go")
        assert client.state != OLD
        await client.run("go on")
        assert client.state == OLD

    async def test_what_the_person_has_changed_since_stays(self) -> None:
        talk = Talk(serve(Writing(*half_a_call(), then=wait)), state=OLD)
        await self.leave(talk)
        talk.client.state = {"recipe": {"title": "Mine"}}
        await talk.say("go on")
        assert talk.state == {"recipe": {"title": "Mine"}}

    async def test_where_nothing_was_shown_yet_nothing_is_restored(self) -> None:
        old = {"recipe": {"title": "Old one"}}
        talk = Talk(serve(Writing(FunctionCallContent("c1", "update_recipe", '{"rec'), then=wait)), state=old)
        run = talk.client.run("go")
        async for event in run:
            if event.type == "TOOL_CALL_ARGS":
                break
        await run.aclose()
        talk.client.state = {"recipe": {"title": "Old"}}
        await talk.say("go on")
        assert talk.state == {"recipe": {"title": "Old"}}

    async def test_what_arrived_of_it_need_not_fit_the_schema(self) -> None:
        """The next run is not refused for a state that a run has left like that."""

        class Recipe(BaseModel):
            title: str
            steps: list[str]

        class State(BaseModel):
            recipe: Recipe | None = None

        talk = Talk(serve(Writing(*half_a_call(), then=wait), state_schema=State), state={"recipe": None})
        await self.leave(talk, after=1)
        assert talk.state == {"recipe": {}}
        run = await talk.say("go on")
        assert run.outcome == "success"
        assert talk.state == {"recipe": None}
        talk.client.state = {"recipe": {}}
        run = await talk.say("and on")
        assert isinstance(run.error, InputRejected), "what nobody has predicted is judged"

    async def test_a_later_run_is_not_restored_again(self) -> None:
        model = Writing(*half_a_call(), then=wait)
        talk = Talk(serve(model), state={})
        await self.leave(talk)
        await talk.say("go on")
        talk.client.state = {"recipe": {}}  # what had been shown, but this time the person means it
        await talk.say("and on")
        assert talk.state == {"recipe": {}}


class TestStages:
    """What a prediction may have looked like on its way."""

    WHOLE: ClassVar[Any] = {"title": "Carbonara", "steps": [{"text": "fry"}, "mix"], "n": 12, "none": None}

    @pytest.mark.parametrize(
        "value",
        [
            WHOLE,
            {},
            {"title": ""},
            {"title": "Carb"},
            {"title": "Carbonara", "steps": []},
            {"title": "Carbonara", "steps": [{}]},
            {"title": "Carbonara", "steps": [{"text": "fry"}, "m"], "n": 12},
        ],
    )
    def test_is_one(self, value: Any) -> None:
        assert is_stage(value, self.WHOLE)

    @pytest.mark.parametrize(
        "value",
        [
            None,
            [],
            "",
            {"title": "Mine"},
            {"title": "Carbonara!"},
            {"other": 1},
            {"n": 1},
            {"n": 12.0},
            {"none": False},
            {"steps": ["fry"]},
            {"steps": {}},
            {"title": "Carbonara", "steps": [{"text": "fry"}, "mix", "eat"]},
        ],
    )
    def test_is_none(self, value: Any) -> None:
        assert not is_stage(value, self.WHOLE)


class TestSeveralCalls:
    @staticmethod
    def gated(order: Sequence[str], outcomes: Mapping[str, bool]) -> tuple[Any, Any]:
        """Two tools that end in this order, each with success or not."""
        turn = {name: asyncio.Event() for name in order}
        turn[order[0]].set()

        async def end(name: str) -> str:
            await turn[name].wait()
            rest = order[order.index(name) + 1 :]
            if rest:
                asyncio.get_running_loop().call_later(0.001, turn[rest[0]].set)
            if not outcomes[name]:
                raise ValueError(name)
            return "ok"

        @tool
        async def first(recipe: dict[str, Any]) -> str:
            return await end("first")

        @tool
        async def second(recipe: dict[str, Any]) -> str:
            return await end("second")

        return first, second

    @pytest.mark.parametrize("order", [("first", "second"), ("second", "first")])
    @pytest.mark.parametrize("outcomes", list(itertools.product([True, False], repeat=2)))
    @pytest.mark.parametrize("same", [True, False])
    async def test_two_calls_that_predict(
        self, order: tuple[str, ...], outcomes: tuple[bool, bool], same: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        succeeds = dict(zip(("first", "second"), outcomes, strict=True))
        tools = self.gated(order, succeeds)
        values = {"first": {"title": "One", "steps": ["a"]}, "second": {"title": "Two", "fat": 1}}
        members = {"first": "recipe", "second": "recipe" if same else "menu"}
        config = {"recipe": {"tool": "first", "tool_argument": "recipe"}}
        if same:
            config["copy"] = {"tool": "second", "tool_argument": "recipe"}
            members = {"first": "recipe", "second": "copy"}
        else:
            config["menu"] = {"tool": "second", "tool_argument": "recipe"}
        calls = [scripted_call(name, {"recipe": values[name]}) for name in ("first", "second")]
        model = Model([[Interleaved(*calls)], "ok"])
        talk = Talk(AGUIAgent(Agent(model, tools=tools), predict_state_config=config), state=OLD)
        with caplog.at_level(logging.CRITICAL, "accord"):
            await talk.say()
        expected: dict[str, Any] = dict(OLD)
        for name in order:
            if succeeds[name]:
                expected[members[name]] = values[name]
        assert talk.state == expected

    @pytest.mark.parametrize("interleaved", [True, False])
    @pytest.mark.parametrize("outcomes", list(itertools.product([True, False], repeat=2)))
    async def test_two_calls_of_one_tool_for_one_member(
        self, outcomes: tuple[bool, bool], interleaved: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        ran: list[str] = []

        @tool
        async def update_recipe(recipe: dict[str, Any]) -> str:
            if recipe["title"] == "Two":
                await asyncio.sleep(0.005)
            ran.append(recipe["title"])
            if not outcomes[recipe["title"] == "Two"]:
                raise ValueError
            return "ok"

        values = [{"title": "One", "steps": ["a", "b"]}, {"title": "Two", "steps": ["c"], "fat": None}]
        calls = [scripted_call("update_recipe", {"recipe": value}) for value in values]
        served, _ = recipe_agent([[Interleaved(*calls)] if interleaved else calls, "ok"], tools=[update_recipe])
        talk = Talk(served, state=OLD)
        with caplog.at_level(logging.CRITICAL, "accord"):
            await talk.say()
        assert ran == ["One", "Two"]
        committed = [value for value, succeeded in zip(values, outcomes, strict=True) if succeeded]
        assert talk.state == {**OLD, **({"recipe": committed[-1]} if committed else {})}

    async def test_what_fails_takes_back_nothing_of_what_another_call_shows(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        failed = asyncio.Event()

        @tool
        async def update_recipe(recipe: dict[str, Any]) -> str:
            if recipe["title"] == "One":
                asyncio.get_running_loop().call_later(0.005, failed.set)
                raise ValueError
            await failed.wait()
            return "ok"

        calls = [scripted_call("update_recipe", {"recipe": {"title": name}}) for name in ("One", "Two")]
        served, _ = recipe_agent([calls, "ok"], tools=[update_recipe])
        talk = Talk(served, state=OLD)
        with caplog.at_level(logging.CRITICAL, "accord"):
            await talk.say()
        assert list(talk.results) == ["call_1", "call_2"]
        shown = [state["recipe"] for state in talk.states[indices(talk.events, "TOOL_CALL_RESULT")[0] :]]
        assert shown == [{"title": "Two"}] * len(shown)

    async def test_each_call_has_a_parser_of_its_own(self) -> None:
        @tool
        def write(name: str, text: str) -> str:
            return "ok"

        @tool
        def sketch(text: str) -> str:
            return "ok"

        calls = [
            scripted_call("write", {"name": "a", "text": "one two three"}),
            scripted_call("sketch", {"text": "vier fünf sechs"}),
        ]
        served, _ = recipe_agent(
            [[Interleaved(*calls)], "ok"],
            tools=[write, sketch],
            predict_state_config={
                "text": {"tool": "write", "tool_argument": "text"},
                "sketch": {"tool": "sketch", "tool_argument": "text"},
            },
        )
        talk = Talk(served)
        await talk.say()
        for name, text in (("text", "one two three"), ("sketch", "vier fünf sechs")):
            seen = [state[name] for state in talk.states if name in state]
            assert all(text.startswith(each) for each in seen)
            assert sorted(seen, key=len) == seen
        assert talk.state == {"text": "one two three", "sketch": "vier fünf sechs"}


class TestConfig:
    """What does not fit is an error when the agent is put together, and says what does not."""

    @pytest.mark.parametrize(
        ("config", "said"),
        [
            ({"recipe": {"tool": "update_recipes", "tool_argument": "recipe"}}, "update_recipes"),
            ({"recipe": {"tool": "update_recipe", "tool_argument": "recipes"}}, "recipes"),
            ({"recipe": {"tool_argument": "recipe"}}, "tool"),
            ({"recipe": {"tool": "update_recipe", "argument": "recipe"}}, "argument"),
            ({"menu": {"tool": "update_recipe", "tool_argument": "recipe"}}, "menu"),
        ],
    )
    def test_what_does_not_fit(self, config: Any, said: str) -> None:
        with pytest.raises(AgentSetupError, match=said) as refused:
            AGUIAgent(
                Agent(Model([]), tools=[update_recipe]),
                state_schema={"recipe": {"type": "object"}},
                predict_state_config=config,
            )
        assert f"predict_state_config[{next(iter(config))!r}]" in str(refused.value)

    def test_without_an_argument_all_are_meant(self) -> None:
        config = PredictStateConfig({"recipe": {"tool": "update_recipe"}}, [update_recipe])
        assert [each.argument for each in config.of_tool("update_recipe")] == ["*"]

    def test_a_schema_of_an_open_state_allows_any_member(self) -> None:
        AGUIAgent(
            Agent(Model([]), tools=[update_recipe]),
            state_schema={"type": "object"},
            predict_state_config=PREDICT_RECIPE,
        )
