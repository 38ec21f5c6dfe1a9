from __future__ import annotations

import asyncio
from typing import Any

from accord.agents import Agent, scripted_call
from accord.agui import AGUIAgent, InMemoryThreadStore, ThreadRecord, current_run
from accord.protocol import UserMessage
from agui.talk import PREDICT_RECIPE, Model, raw, resolved, run_alone, update_recipe
from producer.recording import an_input, consumed


async def test_a_thread_that_is_not_known_has_an_empty_record() -> None:
    assert await InMemoryThreadStore().load("", "t") == ThreadRecord()


async def test_only_who_has_seen_the_last_record_may_save() -> None:
    store = InMemoryThreadStore()
    assert await store.save("", "t", ThreadRecord(version=1))
    assert not await store.save("", "t", ThreadRecord(version=1))
    assert not await store.save("", "t", ThreadRecord(version=3))
    assert await store.save("", "t", ThreadRecord(version=2, always=frozenset({"x"})))
    assert (await store.load("", "t")).always == {"x"}


async def test_scopes_and_threads_are_apart() -> None:
    store = InMemoryThreadStore()
    await store.save("a", "t", ThreadRecord(version=1))
    for scope, thread in (("", "t"), ("a", ""), ("t", "a"), ("a", "t2")):
        assert (await store.load(scope, thread)).version == 0
    assert (await store.load("a", "t")).version == 1


async def test_the_least_recently_used_is_forgotten_first() -> None:
    store = InMemoryThreadStore(max_threads=2)
    for thread in "ab":
        await store.save("", thread, ThreadRecord(version=1))
    await store.load("", "a")
    await store.save("", "c", ThreadRecord(version=1))
    assert [(await store.load("", thread)).version for thread in "abc"] == [1, 0, 1]


async def test_a_run_beside_does_not_lose_the_question_of_another() -> None:
    """A run that began before the question was asked ends after it, and leaves it open."""
    go_on, waits = asyncio.Event(), asyncio.Event()

    async def answer(messages: Any, options: Any) -> Any:
        if messages[-1].text == "slow":
            waits.set()
            await go_on.wait()
            with current_run().state.edit() as draft:
                draft["version"] = 2
            return "There."
        return "ok" if messages[-1].role == "tool" else scripted_call("update_recipe", {"recipe": {"title": "A"}})

    served = AGUIAgent(
        Agent(Model(answer), tools=[update_recipe]),
        state_schema={"recipe": {}, "version": {"default": 1}},
        predict_state_config=PREDICT_RECIPE,
        read_only_state=["version"],
        require_confirmation=True,
    )
    slow = asyncio.create_task(run_alone(served, run_id="r1", messages=[UserMessage(id="u", content="slow")]))
    await waits.wait()
    asking = await run_alone(served, run_id="r2", messages=[UserMessage(id="u", content="go")])
    (question,) = raw(asking)[-1]["outcome"]["interrupts"]
    go_on.set()
    await slow
    answered = await run_alone(served, run_id="r3", resume=[resolved(question["id"], {"approved": True})])
    assert [event["content"] for event in raw(answered) if event["type"] == "TOOL_CALL_RESULT"] == ["Recipe updated."]
    assert consumed(answered, an_input(run_id="r3")).state == {"recipe": {"title": "A"}, "version": 2}


async def test_a_store_that_is_always_ahead_does_not_hold_a_run_for_ever() -> None:
    class Busy(InMemoryThreadStore):
        attempts = 0

        async def save(self, scope: str, thread_id: str, record: ThreadRecord) -> bool:
            self.attempts += 1
            return False

    store = Busy()
    served = AGUIAgent(Agent(Model(["ok"])), state_schema={"n": {"default": 1}}, read_only_state=["n"], threads=store)
    outlet = await run_alone(served)
    assert outlet.types[-1] == "RUN_FINISHED"
    assert 1 < store.attempts < 20
