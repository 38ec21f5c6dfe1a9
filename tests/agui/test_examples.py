"""The programs in `examples/`, with a scripted model in the place of the real one."""

from __future__ import annotations

import asyncio
import json
import runpy
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from accord.agents import Interleaved, scripted_call
from accord.errors import InputRejected
from agui.talk import Model, Talk, deltas
from support.serving import serve, serve_in_thread

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SERVERS = ["recipe_server.py", "planner_server.py", "document_server.py"]

RECIPE = {
    "title": "Carbonara",
    "effort": "high",
    "ingredients": [{"name": "egg", "amount": "4"}, {"name": "guanciale", "amount": "150 g"}],
    "steps": ["Fry the guanciale.", "Stir in the eggs."],
    "note": None,
}


def app_of(name: str) -> Callable[..., Any]:
    """The `create_app` of an example."""
    made: Callable[..., Any] = runpy.run_path(str(EXAMPLES / name))["create_app"]
    return made


@asynccontextmanager
async def talking(name: str, *turns: Any, **options: Any) -> AsyncIterator[tuple[Talk, Model]]:
    model = Model(list(turns))
    async with serve(app_of(name)(model, **options)) as base:
        talk = Talk(url=f"{base}/")
        async with talk.client:
            yield talk, model


def test_every_example_is_here() -> None:
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted([*SERVERS, "recipe_client.py"])


async def test_the_recipe_is_seen_while_it_is_written() -> None:
    async with talking("recipe_server.py", scripted_call("write_recipe", {"recipe": RECIPE}), "Enjoy.") as (
        talk,
        model,
    ):
        await talk.say("carbonara")
        assert talk.state == {"recipe": RECIPE}
        assert {"op": "add", "path": "/recipe/ingredients/1", "value": {}} in [
            {**operation, "value": {}} if operation["path"] == "/recipe/ingredients/1" else operation
            for operation in deltas(talk.events)
        ]
        assert talk.results == {"call_1": "The user now sees Carbonara."}
        assert talk.text == "Enjoy."
        assert any("Carbonara" in message.text for message in model.shown[-1] if message.role == "system")


async def test_a_state_that_is_no_recipe_is_refused() -> None:
    async with talking("recipe_server.py", "never") as (talk, model):
        talk.client.state = {"recipe": {"title": "No ingredients"}}
        run = await talk.say("hi")
        assert isinstance(run.error, InputRejected)
        assert (run.error.status, run.error.path[:13]) == (422, "/state/recipe")
        assert model.shown == []


@pytest.mark.parametrize("approved", [True, False])
async def test_the_recipe_waits_for_the_user(approved: bool) -> None:
    call = scripted_call("write_recipe", {"recipe": RECIPE})
    async with talking("recipe_server.py", call, "Enjoy.", confirm=True) as (talk, _):
        run = await talk.say("carbonara")
        assert run.outcome == "interrupt"
        assert talk.state == {"recipe": RECIPE}
        await talk.answer({"approved": approved})
        assert talk.state == {"recipe": RECIPE if approved else None}
        assert talk.text == (
            "The recipe is updated.Enjoy." if approved else "The recipe stays as it was. What would you like to change?"
        )


async def test_several_fields_and_tools() -> None:
    steps = [{"description": "Write", "minutes": 20}, {"description": "Rest", "status": "disabled", "minutes": 5}]
    calls = [
        scripted_call("plan_tasks", {"steps": steps, "summary": "Write, then rest."}),
        scripted_call("remember_preferences", {"preferences": {"quiet": True}}),
    ]
    async with talking("planner_server.py", [Interleaved(*calls)], "There.") as (talk, model):
        await talk.say("plan my day")
        assert talk.state == {
            "steps": steps,
            "summary": "Write, then rest.",
            "minutes": 25,
            "preferences": {"quiet": True},
        }
        assert json.loads(talk.results["call_1"]) == {"minutes": 25}
        assert sorted(model.results()) == ["Planned 2 tasks.", "Remembered."]
        seen = [state["summary"] for state in talk.states if isinstance(state, dict) and "summary" in state]
        assert any(text not in ("", "Write, then rest.") for text in seen), "it was on its way"


async def test_all_arguments_of_a_call() -> None:
    document = {"title": "Notes", "body": "One two three", "metadata": {"author": None}}
    async with talking("document_server.py", scripted_call("write_document", document), "There.") as (talk, _):
        await talk.say("write")
        assert talk.state == {"document": document}
        paths = [operation["path"] for operation in deltas(talk.events)]
        assert list(dict.fromkeys(paths)) == [
            "/document",
            "/document/title",
            "/document/body",
            "/document/metadata",
            "/document/metadata/author",
        ]


@pytest.mark.parametrize("approved", [True, False])
def test_the_client(approved: bool) -> None:
    model = Model([scripted_call("write_recipe", {"recipe": RECIPE}), "Enjoy."])
    with serve_in_thread(app_of("recipe_server.py")(model, confirm=True)) as base:
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / "recipe_client.py"), f"{base}/"],
            input=f"carbonara\n{'y' if approved else 'n'}\n\n",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            encoding="utf-8",
        )
    assert done.returncode == 0, done.stderr
    assert "Allow write_recipe? [y/n]" in done.stdout
    assert done.stdout.count("·") > 5, "patches came while it was written"
    _, _, last = done.stdout.rpartition("\n{")
    state = json.loads("{" + last[: last.rindex("}") + 1])
    assert state == {"recipe": RECIPE if approved else None}
    assert ("Enjoy." in done.stdout) is approved


def test_it_says_what_it_lacks() -> None:
    """Without a key there is no model, and that is said in a sentence, not by a stranger's stack of calls."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / SERVERS[0])],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PATH": ""},
    )
    assert done.returncode == 1
    assert "AgentSetupError" in done.stderr
    assert "OPENAI_API_KEY" in done.stderr


async def test_two_at_once_do_not_meet() -> None:
    create_app = app_of("document_server.py")
    turns: list[Any] = [scripted_call("write_document", {"title": "A", "body": "b", "metadata": {}}), "ok"]
    async with serve(create_app(Model(turns))) as base:
        talks = [Talk(url=f"{base}/") for _ in range(5)]
        await asyncio.gather(*(talk.say() for talk in talks))
        assert all(talk.state["document"]["title"] == "A" for talk in talks)
        for talk in talks:
            await talk.client.aclose()
