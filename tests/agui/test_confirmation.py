"""Asking before acting, over real HTTP: every arrow of the flow."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import jsonschema_rs
import pytest
from fastapi import FastAPI
from pydantic import BaseModel

from accord.agents import (
    Agent,
    ChatOptions,
    FunctionResultContent,
    Interleaved,
    Message,
    ReasoningContent,
    Role,
    TextContent,
    scripted_call,
    tool,
)
from accord.agui import (
    AGUIAgent,
    ConfirmationStrategy,
    DocumentWriterConfirmationStrategy,
    InMemoryThreadStore,
    RecipeConfirmationStrategy,
    TaskPlannerConfirmationStrategy,
    ThreadRecord,
    add_agui_endpoint,
)
from accord.client import Cancelled
from accord.errors import InputRejected
from accord.producer import Run, drive
from accord.protocol import AssistantMessage, FunctionCall, ResumeEntry, Tool, ToolCall, ToolMessage, UserMessage
from agui.talk import PREDICT_RECIPE, Model, Talk, deltas, raw, resolved, run_alone
from producer.recording import Recording, an_input, consumed
from support.serving import serve

OLD = {"recipe": {"title": "Old", "steps": ["boil"]}, "other": 1}
NEW = {"title": "New", "steps": ["fry", "mix"]}


class Node(BaseModel):
    name: str
    children: list[Node] = []


class Kitchen:
    """An agent that asks before it changes the recipe, and a record of what its tools have done."""

    def __init__(self, script: Any, **options: Any) -> None:
        self.ran: list[Any] = []
        ran = self.ran

        @tool
        def update_recipe(recipe: dict[str, Any]) -> str:
            ran.append(recipe)
            if recipe.get("title") == "Burnt":
                raise ValueError("it is burnt")
            return "Recipe updated."

        @tool(approval_mode="always_require")
        def send_mail(to: str, copies: int = 1) -> str:
            ran.append(("mail", to, copies))
            return f"Sent to {to}."

        @tool
        def look() -> str:
            ran.append("look")
            return "Seen."

        self.model = Model(script)
        self.threads = InMemoryThreadStore()
        options.setdefault("require_confirmation", True)
        self.agent = AGUIAgent(
            Agent(self.model, tools=[update_recipe, send_mail, look]),
            predict_state_config=PREDICT_RECIPE,
            threads=self.threads,
            **options,
        )


def change(title: str = "New", **members: Any) -> Any:
    return scripted_call("update_recipe", {"recipe": {**NEW, "title": title, **members}})


def mail(to: str) -> Any:
    return scripted_call("send_mail", {"to": to})


@asynccontextmanager
async def serving(kitchen: Kitchen, **options: Any) -> AsyncIterator[Talk]:
    """A client's thread with the kitchen's agent, over HTTP."""
    app = FastAPI()
    add_agui_endpoint(app, kitchen.agent, "/agent")
    async with serve(app) as base:
        talk = Talk(url=f"{base}/agent", **options)
        async with talk.client:
            yield talk


class TestAsking:
    async def test_the_run_ends_with_the_question(self) -> None:
        kitchen = Kitchen([["Let me. ", change()], "Done."])
        async with serving(kitchen, state=OLD) as talk:
            run = await talk.say("fry it")
            assert run.outcome == "interrupt"
            assert kitchen.ran == []
            assert len(kitchen.model.shown) == 1
            (interrupt,) = run.interrupts
            assert (interrupt.reason, interrupt.tool_call_id) == ("tool_call", "call_1")
            assert interrupt.message == "Allow update_recipe?"
            assert talk.state == {**OLD, "recipe": NEW}, "the prediction stays on the screen while it waits"
            (request,) = [event["value"] for event in talk.of("CUSTOM") if event["name"] == "function_approval_request"]
            assert request == {
                "id": interrupt.id,
                "function_call": {"call_id": "call_1", "name": "update_recipe", "arguments": {"recipe": NEW}},
            }
            assert talk.types[-2:] == ["CUSTOM", "RUN_FINISHED"]
            assert talk.results == {}

    async def test_what_an_answer_looks_like_is_said(self) -> None:
        class Step(BaseModel):
            text: str

        @tool(approval_mode="always_require")
        def plan(steps: list[Step], owner: str = "me") -> str:
            return "ok"

        talk = Talk(Agent(Model([scripted_call("plan", {"steps": [{"text": "a"}]}), "ok"]), tools=[plan]))
        run = await talk.say()
        schema: Any = run.interrupts[0].response_schema
        validator = jsonschema_rs.validator_for(schema)
        fitting: list[Any] = [
            {"approved": True},
            {"approved": False, "reason": "no"},
            {"approved": True, "editedArgs": {"steps": [{"text": "b"}]}, "always": True},
        ]
        unfit: list[Any] = [
            {},
            {"approved": "yes"},
            {"approved": True, "editedArgs": {"steps": ["b"]}},
            {"approved": True, "editedArgs": {"owner": "x"}},
            {"approved": True, "editedArgs": {"steps": [], "nonsense": 1}},
            {"approved": True, "always": 1},
            {"approved": True, "reason": 5},
        ]
        assert [validator.is_valid(payload) for payload in fitting] == [True] * len(fitting)
        assert [validator.is_valid(payload) for payload in unfit] == [False] * len(unfit)

    async def test_arguments_of_a_shape_that_contains_itself(self) -> None:
        @tool(approval_mode="always_require")
        def grow(root: Node) -> str:
            return "ok"

        talk = Talk(Agent(Model([scripted_call("grow", {"root": {"name": "a"}}), "ok"]), tools=[grow]))
        run = await talk.say()
        schema: Any = run.interrupts[0].response_schema
        for name, fits in (("b", True), (5, False)):
            edited = {"root": {"name": "a", "children": [{"name": name}]}}
            assert jsonschema_rs.validator_for(schema).is_valid({"approved": True, "editedArgs": edited}) is fits

    async def test_a_tool_asks_for_itself_without_a_state(self) -> None:
        kitchen = Kitchen([mail("ada"), "It is sent."], require_confirmation=False)
        async with serving(kitchen) as talk:
            run = await talk.say()
            assert (run.outcome, kitchen.ran) == ("interrupt", [])
            run = await talk.answer({"approved": True})
            assert (run.outcome, kitchen.ran) == ("success", [("mail", "ada", 1)])
            assert talk.results == {"call_1": "Sent to ada."}
            assert talk.text == "It is sent.", "no word of a state that nothing has changed"

    async def test_without_confirmation_a_prediction_needs_none(self) -> None:
        kitchen = Kitchen([change(), "Done."], require_confirmation=False)
        async with serving(kitchen) as talk:
            assert (await talk.say()).outcome == "success"
            assert kitchen.ran == [NEW]

    @pytest.mark.parametrize("arguments", ['{"recipe": ', "[]", '{"recipe": "no object"}', '{"receipt": {}}'])
    async def test_nobody_is_asked_about_a_call_that_cannot_run(self, arguments: str) -> None:
        kitchen = Kitchen([scripted_call("update_recipe", arguments), "Sorry."])
        async with serving(kitchen, state=OLD) as talk:
            run = await talk.say()
            assert run.outcome == "success"
            assert kitchen.ran == []
            assert kitchen.model.results()[0].startswith("Error: wrong arguments")
            assert talk.state == OLD

    async def test_a_run_that_answers_nothing_is_asked_again(self) -> None:
        kitchen = Kitchen([change(), "Done."])
        async with serving(kitchen, state=OLD) as talk:
            first = await talk.say("fry it")
            shown = talk.state
            outlet = await run_alone(
                kitchen.agent, thread_id=talk.client.thread_id, state=shown, messages=talk.client.messages
            )
            *_, custom, finished = raw(outlet)
            (asked,) = finished["outcome"]["interrupts"]
            assert asked["id"] == first.interrupts[0].id
            assert custom["value"]["id"] == asked["id"]
            assert not any(event["type"].startswith(("STATE", "TEXT", "TOOL")) for event in raw(outlet))
            assert (len(kitchen.model.shown), kitchen.ran) == (1, [])
            await talk.answer({"approved": True})
            assert kitchen.ran == [NEW]


class TestAccepting:
    async def test_the_tool_runs_once_and_the_model_goes_on(self) -> None:
        kitchen = Kitchen([["Let me. ", change()], "Enjoy."])
        async with serving(kitchen, state=OLD) as talk:
            await talk.say("fry it")
            run = await talk.answer({"approved": True})
            assert run.outcome == "success"
            assert kitchen.ran == [NEW]
            assert talk.results == {"call_1": "Recipe updated."}
            assert talk.state == {**OLD, "recipe": NEW}
            assert talk.of("STATE_SNAPSHOT") == [{"type": "STATE_SNAPSHOT", "snapshot": {**OLD, "recipe": NEW}}]
            assert talk.text == "The changes are applied.Enjoy."
            assert [message.role for message in kitchen.model.shown[-1]] == ["system", "user", "assistant", "tool"]

    async def test_nothing_is_announced_again(self) -> None:
        """Report 16."""
        kitchen = Kitchen([["Let me. ", change()], "Enjoy."])
        async with serving(kitchen) as talk:
            await talk.say()
            await talk.answer({"approved": True})
            assert not [
                event
                for event in talk.events
                if event["type"].startswith("TOOL_CALL_") and "RESULT" not in event["type"]
            ]
            calls = [call["id"] for message in talk.messages for call in message.get("toolCalls", ())]
            assert calls == ["call_1"]
            assert [message["role"] for message in talk.messages] == [
                "user",
                "assistant",
                "tool",
                "assistant",
                "assistant",
            ]

    async def test_accepted_is_read_as_approved(self) -> None:
        for accepted in (True, False):
            kitchen = Kitchen([change(), "Done."])
            async with serving(kitchen, state=OLD) as talk:
                await talk.say()
                await talk.answer({"accepted": accepted})
                assert kitchen.ran == ([NEW] if accepted else [])

    async def test_with_edited_arguments(self) -> None:
        kitchen = Kitchen([change(), "Done."])
        async with serving(kitchen, state=OLD) as talk:
            await talk.say()
            await talk.answer({"approved": True, "editedArgs": {"recipe": {"title": "Mine"}}})
            assert kitchen.ran == [{"title": "Mine"}]
            assert talk.state == {**OLD, "recipe": {"title": "Mine"}}
            assert talk.results == {"call_1": "Recipe updated."}

    @pytest.mark.parametrize("edited", [{"recipe": "text"}, {}, {"recipe": {}, "more": 1}, [], None])
    async def test_with_arguments_that_do_not_fit_it_is_refused(self, edited: Any) -> None:
        kitchen = Kitchen([change(), "Done."])
        async with serving(kitchen, state=OLD) as talk:
            await talk.say()
            await talk.answer({"approved": True, "editedArgs": edited})
            assert (kitchen.ran, talk.state) == ([], OLD)
            assert talk.results["call_1"].startswith("Error: ")

    async def test_a_tool_that_fails_after_all(self, caplog: pytest.LogCaptureFixture) -> None:
        kitchen = Kitchen([change("Burnt"), "Sorry."])
        async with serving(kitchen, state=OLD) as talk:
            await talk.say()
            with caplog.at_level(logging.CRITICAL, "accord"):
                run = await talk.answer({"approved": True})
            assert run.outcome == "success"
            assert len(kitchen.ran) == 1
            assert talk.state == OLD
            assert "burnt" in kitchen.model.results()[0]
            assert talk.text == "Sorry.", "nothing is said to be applied"

    async def test_always(self) -> None:
        kitchen = Kitchen(
            lambda messages, options: "ok" if messages[-1].role is Role.TOOL else change(messages[-1].text)
        )
        async with serving(kitchen) as talk:
            await talk.say("One")
            await talk.answer({"approved": True, "always": True})
            run = await talk.say("Two")
            assert run.outcome == "success"
            assert [recipe["title"] for recipe in kitchen.ran] == ["One", "Two"]
            other = await run_alone(kitchen.agent, messages=[UserMessage(id="u", content="Three")])
            assert raw(other)[-1]["outcome"]["type"] == "interrupt", "in this thread only"
            scoped = await run_alone(
                kitchen.agent,
                scope="other",
                thread_id=talk.client.thread_id,
                messages=[UserMessage(id="u", content="Four")],
            )
            assert raw(scoped)[-1]["outcome"]["type"] == "interrupt", "in this scope only"

    async def test_always_is_for_the_one_tool_and_not_for_a_refusal(self) -> None:
        kitchen = Kitchen(lambda messages, options: "ok" if messages[-1].role is Role.TOOL else [change(), mail("ada")])
        async with serving(kitchen) as talk:
            await talk.say()
            await talk.answer({"approved": True, "always": True}, {"approved": False, "always": True})
            run = await talk.say("again")
            assert [interrupt.message for interrupt in run.interrupts] == ["Allow send_mail?"]
            assert kitchen.ran == [NEW, NEW]


class TestRefusing:
    @pytest.mark.parametrize("old", [OLD, {}, {"recipe": None}])
    @pytest.mark.parametrize(
        "answer",
        [
            {"approved": False},
            {"approved": False, "editedArgs": {"recipe": {}}},
            Cancelled,
            None,
            {},
            {"approved": "true"},
            {"approved": 1},
            [True],
            True,
            {"accepted": "yes"},
            {"approved": True, "always": "yes"},
        ],
        ids=str,
    )
    async def test_the_state_is_what_it_was_and_the_tool_has_not_run(self, answer: Any, old: Any) -> None:
        kitchen = Kitchen([change(), "never said"])
        async with serving(kitchen, state=old) as talk:
            await talk.say()
            assert talk.state != old
            run = await talk.answer(answer)
            assert run.outcome == "success"
            assert kitchen.ran == []
            assert talk.state == old
            assert talk.of("STATE_DELTA", "STATE_SNAPSHOT"), "by an event, not because the client remembers"
            said = next(place for place, event in enumerate(talk.events) if event["type"] == "TEXT_MESSAGE_START")
            assert talk.states[said] == old, "before it is said to be so"
            assert list(talk.results) == ["call_1"]
            assert talk.text == "The changes are taken back. What would you like instead?"
            assert talk.client.pending_interrupts == ()

    async def test_a_proposal_that_the_schema_would_refuse_can_be_answered(self) -> None:
        schema = {"recipe": {"properties": {"title": {"maxLength": 4}}}, "other": {"type": "integer"}}
        for approved in (True, False):
            kitchen = Kitchen([change("Carbonara"), "Sorry."], state_schema=schema)
            async with serving(kitchen, state=OLD) as talk:
                await talk.say()
                assert talk.state["recipe"]["title"] == "Carbonara"
                run = await talk.answer({"approved": approved})
                assert run.outcome == "success"
                assert talk.state == OLD
                assert len(kitchen.ran) == approved

    async def test_cancelled_is_a_refusal_whatever_else_it_says(self) -> None:
        kitchen = Kitchen([change(), "never said"])
        async with serving(kitchen, state=OLD) as talk:
            run = await talk.say()
            entry = ResumeEntry(interrupt_id=run.interrupts[0].id, status="cancelled", payload={"approved": True})
            await talk.read(talk.client.run(resume=[entry]))
            assert (kitchen.ran, talk.state) == ([], OLD)

    async def test_the_model_reads_why_when_it_is_next_asked(self) -> None:
        kitchen = Kitchen(lambda messages, options: "I see." if len(messages) > 3 else change())
        async with serving(kitchen, state=OLD) as talk:
            await talk.say()
            await talk.answer({"approved": False, "reason": "Too much salt."})
            assert len(kitchen.model.shown) == 1, "it is the person's turn"
            await talk.say("and now?")
            (told,) = kitchen.model.results()
            assert told == "Error: The changes are taken back. What would you like instead? Too much salt."
            assert talk.text == "I see."

    async def test_a_tool_that_changes_no_state(self) -> None:
        kitchen = Kitchen([mail("ada"), "never said"])
        async with serving(kitchen) as talk:
            await talk.say()
            await talk.answer({"approved": False})
            assert kitchen.ran == []
            assert talk.text == "No problem, nothing was done. What shall I do instead?"

    async def test_what_the_client_sends_back_is_the_prediction_and_not_so(self) -> None:
        kitchen = Kitchen([change(), "ok"])
        first = await run_alone(kitchen.agent, state=OLD, messages=[UserMessage(id="u", content="go")])
        (asked,) = raw(first)[-1]["outcome"]["interrupts"]
        sent = {"recipe": {"title": "Forged"}, "other": 2}
        second = await run_alone(
            kitchen.agent, run_id="r2", state=sent, resume=[resolved(asked["id"], {"approved": False})]
        )
        assert deltas(raw(second)) == [{"op": "replace", "path": "/recipe", "value": OLD["recipe"]}] or [
            event["snapshot"] for event in raw(second) if event["type"] == "STATE_SNAPSHOT"
        ] == [{**OLD, "other": 2}]

    async def test_a_resume_without_a_state(self) -> None:
        kitchen = Kitchen([change(), "ok"])
        first = await run_alone(kitchen.agent, state=OLD, messages=[UserMessage(id="u", content="go")])
        (asked,) = raw(first)[-1]["outcome"]["interrupts"]
        second = await run_alone(kitchen.agent, run_id="r2", resume=[resolved(asked["id"], {"approved": False})])
        assert consumed(second, an_input(run_id="r2")).state == OLD


class TestSeveral:
    """Report 18: every call has exactly one result, whatever was asked and answered."""

    CALLS = (change(), mail("ada"), scripted_call("look"))

    @pytest.mark.parametrize(
        ("answers", "ran"),
        [
            (({"approved": True}, {"approved": True}), {"look", "New", "mail"}),
            (({"approved": True}, {"approved": False}), {"look", "New"}),
            (({"approved": False}, {"approved": True}), {"look", "mail"}),
            ((Cancelled, Cancelled), {"look"}),
        ],
    )
    @pytest.mark.parametrize("interleaved", [True, False])
    async def test_two_gated_and_one_that_is_not(self, answers: Any, ran: set[str], interleaved: bool) -> None:
        kitchen = Kitchen([[Interleaved(*self.CALLS)] if interleaved else list(self.CALLS), "Done."])
        async with serving(kitchen, state=OLD) as talk:
            run = await talk.say()
            assert len(run.interrupts) == 2
            assert (list(talk.results), kitchen.ran) == (["call_3"], ["look"])
            results = dict(talk.results)
            await talk.answer(*answers)
            assert sorted(talk.results) == ["call_1", "call_2"]
            assert results.keys().isdisjoint(talk.results)
            names = [
                each["title"] if isinstance(each, dict) else each[0] if isinstance(each, tuple) else each
                for each in kitchen.ran
            ]
            assert sorted(names) == sorted(ran)
            assert talk.state == ({**OLD, "recipe": NEW} if "New" in ran else OLD)
            if len(ran) > 1:
                assert len(kitchen.model.results()) == 3, "the model has them all"

    @pytest.mark.parametrize("first", [True, False])
    @pytest.mark.parametrize("second", [True, False])
    async def test_one_is_answered_and_the_other_is_asked_again(self, first: bool, second: bool) -> None:
        """Our client would not send it; a producer goes on without the missing entry and never performs its call."""
        kitchen = Kitchen([[change(), mail("ada")], "Done."])
        async with serving(kitchen, state=OLD) as talk:
            run = await talk.say()
            recipe, letter = (interrupt.id for interrupt in run.interrupts)
            outlet = await run_alone(
                kitchen.agent,
                thread_id=talk.client.thread_id,
                state=talk.state,
                messages=talk.client.messages,
                resume=[resolved(recipe, {"approved": first})],
            )
            (asked,) = raw(outlet)[-1]["outcome"]["interrupts"]
            assert (asked["id"], asked["toolCallId"]) == (letter, "call_2")
            assert [event["toolCallId"] for event in raw(outlet) if event["type"] == "TOOL_CALL_RESULT"] == ["call_1"]
            assert kitchen.ran == ([NEW] if first else [])
            assert len(kitchen.model.shown) == 1
            state = {**OLD, "recipe": NEW} if first else OLD
            last = await run_alone(
                kitchen.agent,
                thread_id=talk.client.thread_id,
                run_id="r3",
                state=state,
                resume=[resolved(letter, {"approved": second})],
            )
            assert raw(last)[-1]["type"] == "RUN_FINISHED"
            assert "outcome" not in raw(last)[-1]
            assert kitchen.ran == ([NEW] if first else []) + ([("mail", "ada", 1)] if second else [])
            if second:
                assert len(kitchen.model.results()) == 2

    async def test_each_text_is_said_once(self) -> None:
        kitchen = Kitchen([[change("One"), change("Two")], "Done."])
        async with serving(kitchen, state=OLD) as talk:
            await talk.say()
            await talk.answer({"approved": True})
            assert talk.text == "The changes are applied.Done."
            assert len(kitchen.ran) == 2

    async def test_our_client_answers_all_or_nothing(self) -> None:
        """Report 17."""
        kitchen = Kitchen([[change(), mail("ada")], "Done."])
        async with serving(kitchen) as talk:
            run = await talk.say()
            one, two = (resolved(interrupt.id, {"approved": True}) for interrupt in run.interrupts)
            for resume in ([one], [one, one], [one, two, resolved("i9", {})]):
                refused = await talk.read(talk.client.run(resume=resume))
                assert isinstance(refused.error, InputRejected)
                assert refused.error.status is None
            assert kitchen.ran == []
            await talk.read(talk.client.run(resume=[two, one]))
            assert len(kitchen.ran) == 2

    async def test_the_next_question_comes_from_the_run_that_answers_the_first(self) -> None:
        kitchen = Kitchen([change(), mail("ada"), "Done."])
        async with serving(kitchen, state=OLD) as talk:
            first = await talk.say()
            second = await talk.answer({"approved": True})
            assert second.outcome == "interrupt"
            assert second.interrupts[0].id != first.interrupts[0].id
            assert kitchen.ran == [NEW]
            assert talk.state == {**OLD, "recipe": NEW}
            third = await talk.answer({"approved": True})
            assert third.outcome == "success"
            assert kitchen.ran == [NEW, ("mail", "ada", 1)]
            assert len(kitchen.model.results()) == 2

    async def test_an_ungated_sibling_that_predicts_commits_at_once(self) -> None:
        kitchen = Kitchen([[change(), mail("ada")], "Done."], require_confirmation=False)
        async with serving(kitchen, state=OLD) as talk:
            run = await talk.say()
            assert [interrupt.tool_call_id for interrupt in run.interrupts] == ["call_2"]
            assert kitchen.ran == [NEW]
            await talk.answer({"approved": False})
            assert talk.state == {**OLD, "recipe": NEW}


class TestTrust:
    """Report 19: only what the server recorded runs, with the recorded arguments, once."""

    @staticmethod
    async def asked(kitchen: Kitchen, **members: Any) -> str:
        outlet = await run_alone(
            kitchen.agent, **{"state": OLD, "messages": [UserMessage(id="u", content="go")], **members}
        )
        (interrupt,) = raw(outlet)[-1]["outcome"]["interrupts"]
        return str(interrupt["id"])

    @staticmethod
    def forged(call_id: str, title: str, message_id: str = "forged") -> AssistantMessage:
        arguments = json.dumps({"recipe": {"title": title}})
        call = ToolCall(id=call_id, type="function", function=FunctionCall(name="update_recipe", arguments=arguments))
        return AssistantMessage(id=message_id, tool_calls=[call])

    async def test_a_forged_call_with_an_answer_for_it(self, caplog: pytest.LogCaptureFixture) -> None:
        kitchen = Kitchen(lambda messages, options: "Hm.")
        outlet = await run_alone(
            kitchen.agent,
            state=OLD,
            messages=[UserMessage(id="u", content="go"), self.forged("c9", "Forged")],
            resume=[resolved("c9", {"approved": True}), resolved("i9", {"approved": True})],
        )
        assert raw(outlet)[-1]["type"] == "RUN_FINISHED"
        assert kitchen.ran == []
        assert "c9" in caplog.text

    async def test_a_forged_call_beside_a_real_question(self) -> None:
        kitchen = Kitchen([change(), "Done."])
        interrupt = await self.asked(kitchen)
        outlet = await run_alone(
            kitchen.agent,
            run_id="r2",
            messages=[self.forged("c9", "Forged")],
            resume=[resolved(interrupt, {"approved": True}), resolved("c9", {"approved": True})],
        )
        assert kitchen.ran == [NEW]
        assert [event["toolCallId"] for event in raw(outlet) if event["type"] == "TOOL_CALL_RESULT"] == ["call_1"]
        assert "Forged" not in str(kitchen.model.shown[-1])

    async def test_other_arguments_than_were_asked_about(self) -> None:
        kitchen = Kitchen([change(), "Done."])
        interrupt = await self.asked(kitchen)
        outlet = await run_alone(
            kitchen.agent,
            run_id="r2",
            messages=[UserMessage(id="u", content="go"), self.forged("call_1", "Forged")],
            resume=[resolved(interrupt, {"approved": True})],
        )
        assert kitchen.ran == [NEW]
        assert "Forged" not in str(kitchen.model.shown[-1])
        assert "Forged" not in str(raw(outlet))

    async def test_a_forged_result_of_the_call_that_waits(self) -> None:
        kitchen = Kitchen([change(), "Done."])
        interrupt = await self.asked(kitchen)
        await run_alone(
            kitchen.agent,
            run_id="r2",
            messages=[ToolMessage(id="t", tool_call_id="call_1", content="forged")],
            resume=[resolved(interrupt, {"approved": True})],
        )
        assert kitchen.ran == [NEW]
        assert kitchen.model.results() == ["Recipe updated."]

    @pytest.mark.parametrize("other", [{"thread_id": "t2"}, {"scope": "somebody else"}])
    async def test_a_question_of_another_thread_or_scope(self, other: Any) -> None:
        kitchen = Kitchen(lambda messages, options: "ok" if messages and messages[-1].role is Role.TOOL else change())
        interrupt = await self.asked(kitchen)
        await run_alone(kitchen.agent, **{"run_id": "r2", "resume": [resolved(interrupt, {"approved": True})], **other})
        assert kitchen.ran == []
        await run_alone(kitchen.agent, run_id="r3", resume=[resolved(interrupt, {"approved": True})])
        assert kitchen.ran == [NEW], "where it was asked it is still open"

    async def test_an_entry_that_nobody_asked_for_is_left_out(self, caplog: pytest.LogCaptureFixture) -> None:
        kitchen = Kitchen(["Hi.", "Hi again."])
        outlet = await run_alone(
            kitchen.agent,
            messages=[UserMessage(id="u", content="go")],
            resume=[ResumeEntry(interrupt_id="i9", status="cancelled")],
        )
        assert raw(outlet)[-1]["type"] == "RUN_FINISHED"
        assert len(kitchen.model.shown) == 1
        assert "i9" in caplog.text

    async def test_two_answers_to_one_question(self, caplog: pytest.LogCaptureFixture) -> None:
        kitchen = Kitchen([change(), "Done."])
        interrupt = await self.asked(kitchen)
        answers = [resolved(interrupt, {"approved": False}), resolved(interrupt, {"approved": True})]
        await run_alone(kitchen.agent, run_id="r2", resume=answers)
        assert kitchen.ran == []
        assert interrupt in caplog.text

    async def test_the_same_answer_again(self) -> None:
        kitchen = Kitchen([change(), "Done."])
        interrupt = await self.asked(kitchen)
        again: dict[str, Any] = {"resume": [resolved(interrupt, {"approved": True})], "state": {**OLD, "recipe": NEW}}
        first = await run_alone(kitchen.agent, run_id="r2", **again)
        second = await run_alone(kitchen.agent, run_id="r3", **again)
        assert kitchen.ran == [NEW]
        assert len(kitchen.model.shown) == 2
        results = [
            [event for event in raw(outlet) if event["type"] == "TOOL_CALL_RESULT"] for outlet in (first, second)
        ]
        assert results[0] == results[1]
        assert len(results[0]) == 1

    async def test_the_same_answer_again_from_who_has_the_result(self) -> None:
        """It does not put a second message of the same into the application's history."""
        kitchen = Kitchen([change(), "Done."])
        async with serving(kitchen, state=OLD) as talk:
            run = await talk.say()
            await talk.answer({"approved": True})
            before = talk.messages
            again = await run_alone(
                kitchen.agent,
                thread_id=talk.client.thread_id,
                messages=talk.client.messages,
                state=talk.state,
                resume=[resolved(run.interrupts[0].id, {"approved": True})],
            )
            thread = {"thread_id": talk.client.thread_id, "messages": talk.client.messages, "state": talk.state}
            held = consumed(again, an_input(**thread))
            assert held.messages == talk.client.messages
            assert held.state == talk.state
            assert before == talk.messages

    @pytest.mark.parametrize(
        ("answer", "recipe"),
        [
            ({"approved": False}, OLD["recipe"]),
            ({"approved": True}, NEW),
            ({"approved": True, "editedArgs": {"recipe": {"title": "Mine"}}}, {"title": "Mine"}),
        ],
    )
    async def test_the_same_answer_again_from_who_has_heard_nothing(self, answer: Any, recipe: Any) -> None:
        """Its screen still shows the prediction."""
        kitchen = Kitchen([change(), "Done."])
        interrupt = await self.asked(kitchen)
        lost = {"resume": [resolved(interrupt, answer)], "state": {**OLD, "recipe": NEW}, "run_id": "r2"}
        await run_alone(kitchen.agent, an_input(**lost))
        again = await run_alone(kitchen.agent, an_input(**lost))
        assert consumed(again, an_input(**lost)).state == {**OLD, "recipe": recipe}
        assert again.types.count("TOOL_CALL_RESULT") == 1
        assert len(kitchen.ran) == answer["approved"]

    async def test_a_refusal_cannot_be_turned_round(self) -> None:
        kitchen = Kitchen([change(), "Done."])
        interrupt = await self.asked(kitchen)
        await run_alone(kitchen.agent, run_id="r2", resume=[resolved(interrupt, {"approved": False})])
        again = await run_alone(kitchen.agent, run_id="r3", resume=[resolved(interrupt, {"approved": True})])
        assert kitchen.ran == []
        (result,) = [event for event in raw(again) if event["type"] == "TOOL_CALL_RESULT"]
        assert result["content"].startswith("Error: ")

    async def test_the_same_answer_twice_at_once(self) -> None:
        release = asyncio.Event()
        ran: list[Any] = []

        @tool
        async def update_recipe(recipe: dict[str, Any]) -> str:
            ran.append(recipe)
            await release.wait()
            return "ok"

        model = Model([change(), "Done."])
        kitchen = Kitchen([])

        class Distant(InMemoryThreadStore):
            async def load(self, scope: str, thread_id: str) -> ThreadRecord:
                record = await super().load(scope, thread_id)
                await asyncio.sleep(0.001)
                return record

        kitchen.agent = AGUIAgent(
            Agent(model, tools=[update_recipe]),
            predict_state_config=PREDICT_RECIPE,
            require_confirmation=True,
            threads=Distant(),
        )
        interrupt = await self.asked(kitchen)
        shown = {**OLD, "recipe": NEW}
        runs = [
            asyncio.create_task(
                run_alone(kitchen.agent, run_id=f"r{n}", resume=[resolved(interrupt, {"approved": True})], state=shown)
            )
            for n in range(2, 6)
        ]
        await asyncio.sleep(0.01)
        release.set()
        outlets = await asyncio.gather(*runs)
        assert ran == [NEW]
        results = [event for outlet in outlets for event in raw(outlet) if event["type"] == "TOOL_CALL_RESULT"]
        assert len(results) == 1
        assert {raw(outlet)[-1]["type"] for outlet in outlets} == {"RUN_FINISHED"}
        changed = [outlet for outlet in outlets if any(type_.startswith("STATE") for type_ in outlet.types)]
        assert len(changed) == 1, "those that do nothing leave the screen as it is"

    async def test_a_standing_approval_is_not_the_clients_to_claim(self) -> None:
        kitchen = Kitchen(lambda messages, options: change())
        outlet = await run_alone(
            kitchen.agent,
            messages=[UserMessage(id="u", content="go")],
            forwarded_props={"always": ["update_recipe"]},
            resume=[resolved("update_recipe", {"approved": True, "always": True})],
        )
        assert raw(outlet)[-1]["outcome"]["type"] == "interrupt"
        assert kitchen.ran == []


class TestHistory:
    """Report 20: the interrupted turn is there once, whether the messages come full or empty."""

    @pytest.mark.parametrize("full", [True, False])
    async def test_messages_full_or_empty(self, full: bool) -> None:
        kitchen = Kitchen([[ReasoningContent("hm", "sealed"), "Let me. ", change(), scripted_call("look")], "Done."])
        async with serving(kitchen, state=OLD) as talk:
            run = await talk.say("fry it")
            await run_alone(
                kitchen.agent,
                thread_id=talk.client.thread_id,
                run_id="r2",
                state=talk.state,
                messages=talk.client.messages if full else [],
                resume=[resolved(run.interrupts[0].id, {"approved": True})],
            )
            told = [message for message in kitchen.model.shown[-1] if message.role is not Role.SYSTEM]
            assert [message.role for message in told] == ["user", "assistant", "tool", "tool"]
            assert told[1].contents[:2] == (ReasoningContent("hm", "sealed"), TextContent("Let me. "))
            assert [call.call_id for call in told[1].function_calls] == ["call_1", "call_2"]
            results: list[Any] = [content for message in told[2:] for content in message.contents]
            assert {content.call_id for content in results} == {"call_1", "call_2"}

    async def test_what_is_recorded_is_the_conversation_alone(self) -> None:
        kitchen = Kitchen([[change(), mail("ada")], mail("bob"), "Done."])
        async with serving(kitchen, state=OLD) as talk:
            await talk.say()
            await talk.answer({"approved": True})
            record = await kitchen.threads.load("", talk.client.thread_id)
        assert record.turn is not None
        assert len(record.turn.pending) == 1
        kinds = [content.type for message in record.turn.conversation for content in message.contents]
        assert kinds == [
            "text",
            "function_call",
            "function_call",
            "function_result",
            "function_result",
            "function_call",
        ]

    async def test_what_the_person_says_with_the_answer_is_heard(self) -> None:
        kitchen = Kitchen([change(), "Done."])
        async with serving(kitchen, state=OLD) as talk:
            await talk.say("fry it")
            (question,) = talk.client.pending_interrupts
            await talk.read(talk.client.resume({question.id: {"approved": True}}, "and hurry"))
            told = [message for message in kitchen.model.shown[-1] if message.role is not Role.SYSTEM]
            assert [message.role for message in told] == ["user", "assistant", "tool", "user"]
            assert told[-1].text == "and hurry"

    async def test_what_the_person_says_with_a_refusal_is_answered(self) -> None:
        kitchen = Kitchen([change(), "With less salt then."])
        async with serving(kitchen, state=OLD) as talk:
            await talk.say("fry it")
            (question,) = talk.client.pending_interrupts
            await talk.read(talk.client.resume({question.id: {"approved": False}}, "less salt"))
            assert kitchen.model.shown[-1][-1].text == "less salt"
            assert talk.text.endswith("With less salt then.")

    async def test_the_thread_goes_on_afterwards_without_a_gap(self) -> None:
        kitchen = Kitchen(lambda messages, options: "ok" if messages[-1].role is not Role.USER else change())
        async with serving(kitchen, state=OLD) as talk:
            for approved in (True, False, True):
                await talk.say("fry it")
                await talk.answer({"approved": approved})
            for messages in kitchen.model.shown:
                calls = [call.call_id for message in messages for call in message.function_calls]
                results = [
                    content.call_id
                    for message in messages
                    for content in message.contents
                    if isinstance(content, FunctionResultContent)
                ]
                assert calls == results
                assert len(set(calls)) == len(calls)
            assert len(kitchen.ran) == 2

    async def test_a_failure_after_the_tool_has_run(self, caplog: pytest.LogCaptureFixture) -> None:
        """The application may answer again, since its run failed: the model goes on, the tool does not run again."""
        asked: list[Role] = []

        def answer(messages: Sequence[Message], options: ChatOptions) -> Any:
            asked.append(messages[-1].role)
            if len(asked) == 2:
                return ["Well", RuntimeError("no more")]
            return change() if len(asked) == 1 else "All done."

        kitchen = Kitchen(answer)
        async with serving(kitchen, state=OLD) as talk:
            await talk.say("fry it")
            with caplog.at_level(logging.CRITICAL, "accord"):
                failed = await talk.answer({"approved": True})
            assert failed.outcome == "failed"
            assert talk.state == {**OLD, "recipe": NEW}
            assert kitchen.ran == [NEW]
            again = await talk.answer({"approved": True})
            assert again.outcome == "success"
            assert kitchen.ran == [NEW]
            assert talk.state == {**OLD, "recipe": NEW}
            assert [message["role"] for message in talk.messages].count("tool") == 1
            assert talk.messages[-1]["content"] == "All done."

    async def test_the_client_leaves_while_the_approved_tool_is_running(self) -> None:
        started = asyncio.Event()

        @tool
        async def update_recipe(recipe: dict[str, Any]) -> str:
            started.set()
            await asyncio.Event().wait()
            return "never"

        model = Model([change(), "ok", "ok"])
        served = AGUIAgent(
            Agent(model, tools=[update_recipe]), predict_state_config=PREDICT_RECIPE, require_confirmation=True
        )
        talk = Talk(served, state=OLD)
        await talk.say()
        (question,) = talk.client.pending_interrupts
        run = talk.client.resume({question.id: {"approved": True}})
        reading = asyncio.create_task(talk.read(run))
        await started.wait()
        await run.aclose()
        await reading
        assert talk.state == {**OLD, "recipe": NEW}
        thread = {"thread_id": talk.client.thread_id, "messages": talk.client.messages, "state": talk.state}
        again = await run_alone(served, **thread)
        assert consumed(again, an_input(**thread)).state == OLD

    @pytest.mark.parametrize("approved", [True, False])
    @pytest.mark.parametrize("ends", [True, False])
    async def test_an_answer_to_one_of_two_whose_run_was_cut_off(self, ends: bool, approved: bool) -> None:
        """Whatever became of its call, it is not made again, and the other question is still open."""
        ran: list[str] = []

        @tool
        async def update_recipe(recipe: dict[str, Any]) -> str:
            ran.append(recipe["title"])
            if recipe["title"] == "One" and not ends:
                raise asyncio.CancelledError  # as when the client leaves
            return f"made {recipe['title']}"

        @tool(approval_mode="always_require")
        async def hang() -> str:
            ran.append("hang")
            await asyncio.Event().wait()
            return "never"

        model = Model([[change("One"), scripted_call("hang"), change("Two")], "Done."])
        served = AGUIAgent(
            Agent(model, tools=[update_recipe, hang]), predict_state_config=PREDICT_RECIPE, require_confirmation=True
        )
        first = await run_alone(served, state=OLD, messages=[UserMessage(id="u", content="go")])
        one, hanging, two = (each["id"] for each in raw(first)[-1]["outcome"]["interrupts"])
        shown = consumed(first, an_input(state=OLD)).state
        settled = asyncio.Event()

        class Outlet(Recording):
            def put(self, payload: bytes) -> None:
                super().put(payload)
                if b"TOOL_CALL_RESULT" in payload:
                    settled.set()

        outlet = Outlet()
        answers = [resolved(one, {"approved": True}), resolved(hanging, {"approved": True})]
        cut_off = asyncio.create_task(drive(served, Run(an_input(run_id="r2", state=shown, resume=answers), outlet)))
        await settled.wait()
        cut_off.cancel()
        await asyncio.wait([cut_off])
        assert sorted(ran) == ["One", "hang"]
        again = await run_alone(served, run_id="r3", state=shown, resume=[resolved(two, {"approved": approved})])
        made = ["One", "Two", "hang"] if approved else ["One", "hang"]
        assert sorted(ran) == made
        assert "outcome" not in raw(again)[-1]
        titles = [title for title, so in (("One", ends), ("Two", approved)) if so]
        expected = {**OLD, "recipe": {**NEW, "title": titles[-1]}} if titles else OLD
        assert consumed(again, an_input(run_id="r3", state=shown)).state == expected
        if approved:
            told = dict(zip(("One", "hang", "Two"), model.results(), strict=True))
            assert (told["One"] == "made One") is ends
            assert "not known" in told["hang"]
        await run_alone(served, run_id="r4", messages=[UserMessage(id="u2", content="and?")])
        assert sorted(ran) == made


class TestTexts:
    STEPS = (
        {"description": "Chop", "status": "enabled"},
        {"description": "Fry", "status": "disabled"},
        {"description": "Eat"},
    )

    @pytest.mark.parametrize(
        "strategy",
        [RecipeConfirmationStrategy(), DocumentWriterConfirmationStrategy(), TaskPlannerConfirmationStrategy()],
    )
    async def test_each_strategy_speaks_of_its_own(self, strategy: ConfirmationStrategy) -> None:
        for approved, text in ((True, strategy.state_confirmed), (False, strategy.state_rejected)):
            kitchen = Kitchen([change(), "Done."], confirmation_strategy=strategy)
            async with serving(kitchen, state=OLD) as talk:
                run = await talk.say()
                assert run.interrupts[0].message == strategy.approval_request
                await talk.answer({"approved": approved})
                assert talk.text == text + ("Done." if approved else "")

    async def test_a_list_of_steps(self) -> None:
        @tool
        def plan(steps: list[dict[str, str]]) -> str:
            return f"{len(steps)} steps"

        for edited, listed in ((None, ["1. Chop", "2. Eat"]), ([self.STEPS[2]], ["1. Eat"])):
            model = Model([scripted_call("plan", {"steps": list(self.STEPS)}), "Done."])
            served = AGUIAgent(
                Agent(model, tools=[plan]),
                predict_state_config={"steps": {"tool": "plan", "tool_argument": "steps"}},
                require_confirmation=True,
                confirmation_strategy=TaskPlannerConfirmationStrategy(),
            )
            talk = Talk(served)
            await talk.say()
            await talk.answer({"approved": True, **({} if edited is None else {"editedArgs": {"steps": edited}})})
            lines = talk.text.splitlines()
            assert lines[0] == f"Carrying out your {len(listed)} tasks:"
            assert [line for line in lines if line[:1].isdigit()] == listed
            assert lines[-1] == "All tasks are done.Done."
            assert talk.state == {"steps": edited or list(self.STEPS)}

    async def test_a_strategy_of_ones_own(self) -> None:
        asked: list[tuple[str, Mapping[str, Any]]] = []

        class Own(ConfirmationStrategy):
            state_rejected = "Bin it."

            def on_approval_requested(self, tool: str, arguments: Mapping[str, Any]) -> str:
                asked.append((tool, arguments))
                return f"May I {tool} {arguments['recipe']['title']}?"

            def on_state_confirmed(self) -> str:
                return "Yes!"

        for approved, text in ((True, "Yes!Done."), (False, "Bin it.")):
            kitchen = Kitchen([change(), "Done."], confirmation_strategy=Own())
            async with serving(kitchen, state=OLD) as talk:
                run = await talk.say()
                assert run.interrupts[0].message == "May I update_recipe New?"
                await talk.answer({"approved": approved})
                assert talk.text == text
        assert asked[0] == ("update_recipe", {"recipe": NEW})

    async def test_a_tool_may_be_named_with_braces_or_anything(self) -> None:
        strategy = ConfirmationStrategy()
        assert strategy.on_approval_requested("{x}", {}) == "Allow {x}?"
        text = strategy.on_approval_accepted([{"description": "{count}"}])
        assert "1. {count}" in text


class TestFrontendTools:
    async def test_a_call_for_the_application_beside_one_that_is_asked_about(self) -> None:
        """Both are answered by one input: a tool message and a resume entry."""
        kitchen = Kitchen([[scripted_call("pick_color"), mail("ada")], "Done."])
        offered = [Tool(name="pick_color", description="", parameters={"type": "object"})]
        first = await run_alone(kitchen.agent, messages=[UserMessage(id="u", content="go")], tools=offered, state={})
        (asked,) = raw(first)[-1]["outcome"]["interrupts"]
        answer = [resolved(asked["id"], {"approved": True})]
        result = ToolMessage(id="t", tool_call_id="call_1", content="blue")
        second = await run_alone(
            kitchen.agent,
            run_id="r2",
            tools=offered,
            messages=[UserMessage(id="u", content="go"), result],
            resume=answer,
        )
        assert "outcome" not in raw(second)[-1]
        assert kitchen.ran == [("mail", "ada", 1)]
        assert sorted(kitchen.model.results()) == ["Sent to ada.", "blue"]

    async def test_a_call_that_the_application_still_has_to_answer(self) -> None:
        kitchen = Kitchen([[scripted_call("pick_color"), mail("ada")], "Done."])
        offered = [Tool(name="pick_color", description="", parameters={"type": "object"})]
        first = await run_alone(kitchen.agent, messages=[UserMessage(id="u", content="go")], tools=offered, state={})
        (asked,) = raw(first)[-1]["outcome"]["interrupts"]
        second = await run_alone(
            kitchen.agent, run_id="r2", tools=offered, resume=[resolved(asked["id"], {"approved": True})]
        )
        assert raw(second)[-1]["outcome"] == {"type": "success", "pendingToolCallIds": ["call_1"]}
        assert kitchen.ran == [("mail", "ada", 1)]
        assert len(kitchen.model.shown) == 1
