"""`accord demo` without a terminal: one exchange over real HTTP, shown and ended."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from typer.testing import CliRunner

from accord.cli import app
from accord.client import AGUIClient
from accord.demo.model import WHAT_I_AM
from support.serving import serve_in_thread

QUESTION = "User (:q to quit, :state to show state): "


def demo(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["demo", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_one_exchange_as_a_process() -> None:
    process = subprocess.run(
        [sys.executable, "-m", "accord", "demo", "--port", "0"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert process.stderr == b""
    shown = process.stdout.decode()
    transcript, _, state = shown.partition("CURRENT STATE")
    assert f"{QUESTION}I want to make a classic Italian pasta carbonara\n\n[Run Started]\n" in transcript
    before, _, after = transcript.partition("[Tool Result: Recipe updated.]\n")
    assert before.count("[State Updated]\n") >= 5
    assert "[Calling Tool: update_recipe]\n[State Updated]\n" in before
    assert after.startswith("Here's your recipe!\n[Run Finished]\n")
    assert state.splitlines()[:7] == [
        "",
        "=" * 60,
        "",
        "recipe:",
        "  title: Pasta alla Carbonara",
        "  skill_level: Intermediate",
        "  special_preferences: ['Roman classic']",
    ]
    assert "    - 🍝 Spaghetti: 400g\n" in state
    assert "    7. Serve at once with more pepper.\n" in state


def test_an_exchange_of_ones_own() -> None:
    code, shown, errors = demo("--port", "0", "--once", "Tell me a joke")
    assert (code, errors) == (0, "")
    assert WHAT_I_AM in shown
    assert "[State Updated]" not in shown


def test_a_port_in_use_is_said_and_the_next_one_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, shown, _ = demo("--port", str(port), "--once", "a vegetarian curry for two")
    assert code == 0
    said, served = shown.splitlines()[:2]
    assert said == f"Port {port} is in use."
    assert f"http://127.0.0.1:{port}/" not in served
    assert "  title: Chickpea Curry\n" in shown
    assert "  special_preferences: ['Vegetarian', 'Serves 2']\n" in shown


async def state_after(url: str, text: str) -> Any:
    async with AGUIClient(url) as client:
        await client.run(text)
        return client.state


def test_it_can_be_served_without_a_chat() -> None:
    arguments = [sys.executable, "-m", "accord", "demo", "--port", "0", "--no-chat"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split(" is at ")[1].split(" ")[0]
            assert asyncio.run(state_after(url, "pancakes"))["recipe"]["title"] == "Fluffy Pancakes"
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()


# With a real model


def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def recipe_call() -> list[dict[str, Any]]:
    recipe = {
        "title": "Toast",
        "skill_level": "Beginner",
        "cooking_time": "5 min",
        "ingredients": [{"icon": "🍞", "name": "Bread", "amount": "2 slices"}],
        "instructions": ["Toast the bread until it is brown on both sides."],
    }
    text = json.dumps({"recipe": recipe})
    start = {"index": 0, "id": "call_a", "type": "function", "function": {"name": "update_recipe", "arguments": ""}}
    pieces = [text[at : at + 20] for at in range(0, len(text), 20)]
    return [
        chunk({"role": "assistant", "tool_calls": [start]}),
        *(chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}) for piece in pieces),
        chunk({}, "tool_calls"),
    ]


def test_a_real_model_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    async def completions(request: Request) -> Response:
        asked.append(await request.json())
        words = [chunk({"content": "Toast it is."}), chunk({}, "stop")]
        chunks = words if asked[-1]["messages"][-1]["role"] == "tool" else recipe_call()
        body = "".join(f"data: {json.dumps(each)}\n\n" for each in chunks) + "data: [DONE]\n\n"
        return Response(body, media_type="text/event-stream")

    for name in [name for name in os.environ if name.startswith(("OPENAI_", "AZURE_"))]:
        monkeypatch.delenv(name)
    code, shown, errors = demo("--model", "some-model", "--port", "0")
    assert (code, shown) == (1, "")
    assert errors.startswith("accord: --model some-model: ")

    with serve_in_thread(Starlette(routes=[Route("/chat/completions", completions, methods=["POST"])])) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server)
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        code, shown, errors = demo("--model", "some-model", "--port", "0", "--once", "Toast, please")
    assert (code, errors) == (0, "")
    assert "(model: some-model)" in shown
    assert "[Tool Result: Recipe updated.]\nToast it is.\n[Run Finished]" in shown
    assert "    - 🍞 Bread: 2 slices\n" in shown
    assert {each["model"] for each in asked} == {"some-model"}
    assert [tool["function"]["name"] for tool in asked[0]["tools"]] == ["update_recipe"]


def test_a_real_model_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuses(request: Request) -> Response:
        return Response('{"error": {"message": "the key is\\u001b[2J old"}}', 401, media_type="application/json")

    with serve_in_thread(Starlette(routes=[Route("/chat/completions", refuses, methods=["POST"])])) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server)
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        code, shown, errors = demo("--model", "some-model", "--port", "0", "--once", "Toast")
    assert code == 1
    assert "[Run Failed: " in shown
    assert "the key is" not in shown  # what a user of the agent sees
    assert "the key is" in errors  # what whoever runs it needs
    assert errors.splitlines()[-1].startswith("accord: run failed: ")
    assert "Traceback" not in errors
    assert "\x1b" not in errors
