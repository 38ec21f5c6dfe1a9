"""`accord chat` through pipes, against real servers: what is shown, what is answered, what goes wrong."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from typer.testing import CliRunner, Result

from accord.agui import add_agui_endpoint
from accord.cli import app
from accord.errors import RunFailed
from accord.producer import Run
from accord.protocol import (
    Interrupt,
    RemoveOperation,
    RunAgentInput,
    StateDeltaEvent,
    TextMessageChunkEvent,
    UserMessage,
)
from support.serving import serve_in_thread

QUESTION = "User (:q to quit, :state to show state): "
RULE = "=" * 60
EVIL = "[red]x[/red] \x1b[2J\x07 :smile: \ud83d"
INPUTS: list[RunAgentInput] = []
HEADERS: list[dict[str, str]] = []


async def everything(run: Run) -> None:
    with run.step("look"), run.reasoning() as thought:
        thought.write("Hm.")
    with run.tool_call("find", "c1") as call:
        call.write("{}")
    run.state.set({"a": 1})
    run.state.set({"a": 2})
    run.tool_result("c1", "found")
    run.activity("search", {"query": "x"})
    with run.subagent("helper"):
        pass
    run.custom("signal", None)
    run.custom("PredictState", [])
    for delta in ("Hel", "lo\nthere", " 😀"):
        run.emit(TextMessageChunkEvent(message_id="m1", delta=delta))
    with run.text(role="developer") as note:
        note.write("aside")
    run.messages_snapshot([UserMessage(id="u", content="x")])


async def evil(run: Run) -> None:
    safe = EVIL.replace("\ud83d", "")
    with run.tool_call(safe) as call:
        call.write("{}")
    run.tool_result(call.id, f"{safe}\nline")
    with run.step(safe), run.text() as text:
        text.write(safe)
    run.state.set({safe: safe})
    raise RunFailed(safe, code=safe)


async def asks(run: Run) -> None:
    if run.input.resume:
        with run.text() as text:
            text.write(
                json.dumps([[each.interrupt_id, each.status, each.payload or None] for each in run.input.resume])
            )
        return
    with run.tool_call("delete", "c1") as call:
        call.write('{"path": "/"}')
    schema = {"type": "object", "properties": {"approved": {"type": "boolean"}}}
    run.interrupt(Interrupt(id="i1", reason="x", message="Delete it?", tool_call_id="c1", response_schema=schema))
    run.interrupt(Interrupt(id="i2", reason="Why?"))


async def scripted(run: Run) -> None:
    INPUTS.append(run.input)
    said = [message.content for message in run.input.messages if isinstance(message, UserMessage)][-1]
    match said:
        case "everything":
            await everything(run)
        case "evil":
            await evil(run)
        case "warn":
            run.emit(StateDeltaEvent(delta=[RemoveOperation(path="/none")]))
        case "fail":
            raise RuntimeError("a secret")
        case _ if run.input.resume or said == "ask":
            await asks(run)
        case _:
            with run.text() as text:
                text.write(f"You said {said}")


async def cut(request: Request) -> Response:
    HEADERS.append(dict(request.headers))
    body = b'data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}\n\n'
    body += b'data: {"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"half"}\n\n'
    return Response(body, media_type="text/event-stream")


async def broken(request: Request) -> Response:
    body = b'data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}\n\ndata: {"type":"TEXT_MESSAGE_END"}\n\n'
    return Response(body, media_type="text/event-stream")


async def page(request: Request) -> Response:
    return HTMLResponse("<html>\x1b[2JWelcome</html>")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    application = Starlette(
        routes=[
            Route(path, handler, methods=["POST"])
            for path, handler in (("/cut", cut), ("/broken", broken), ("/page", page))
        ]
    )
    add_agui_endpoint(application, scripted)
    with serve_in_thread(application) as base:
        yield base


def chat(*arguments: str, lines: str = "") -> Result:
    return CliRunner().invoke(app, ["chat", *arguments], input=lines)


def test_every_kind_of_event_has_its_line(url: str) -> None:
    result = chat(url, "--once", "everything")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        f"{QUESTION}everything",
        "",
        "[Run Started]",
        "[Step Started: look]",
        "[Thinking]",
        "Hm.",
        "[Step Finished: look]",
        "[Calling Tool: find]",
        "[State Updated]",
        "[State Updated]",
        "[Tool Result: found]",
        "[Activity: search]",
        "[Subagent Started: helper]",
        "[Subagent Finished]",
        "[Custom: signal]",
        "Hello",
        "there 😀",
        "[Message: developer]",
        "aside",
        "[Messages Updated]",
        "[Run Finished]",
        "",
        RULE,
        "CURRENT STATE",
        RULE,
        "",
        "a: 2",
        "",
        RULE,
    ]


def test_nothing_that_comes_from_the_server_is_obeyed(url: str) -> None:
    result = chat(url, "--once", "evil")
    shown = "[red]x[/red] \\x1b[2J\\x07 :smile: "
    assert result.exit_code == 1
    assert not any(character in result.output for character in "\x1b\x07")
    for line in (
        f"[Calling Tool: {shown}]",
        f"[Tool Result: {shown}\\nline]",
        f"[Step Started: {shown}]",
        shown,
        f"{shown}: {shown}",
        f"[Run Failed: {shown} ({shown})]",
    ):
        assert line in result.stdout.splitlines(), line
    assert result.stderr == f"accord: run failed: {shown} ({shown})\n"


def test_a_conversation_through_a_pipe(url: str) -> None:
    INPUTS.clear()
    result = chat(url, lines="Hello\n\n  \n:state\n:help\n:what\neverything\n:state\n:q\nnever\n")
    assert result.exit_code == 0, result.output
    assert [each.messages[-1].content for each in INPUTS] == ["Hello", "everything"]
    assert INPUTS[0].thread_id == INPUTS[1].thread_id
    assert len(INPUTS[1].messages) == 3  # what was said, the answer, and what is said now
    assert f"{QUESTION}Hello\n\n[Run Started]\nYou said Hello\n[Run Finished]\n" in result.stdout
    assert f"{QUESTION}:state\n{RULE}\nCURRENT STATE\n{RULE}\n\n{{}}\n" in result.stdout
    assert result.stdout.count("a: 2\n") == 2  # after the run that changed it, and when asked for
    assert "There is no command ':what'." in result.stdout
    assert result.stdout.count(":help   show this") == 2
    assert result.stdout.endswith(f"{QUESTION}:q\n")


def test_the_end_of_input_ends_the_conversation(url: str) -> None:
    result = chat(url, lines="quit")
    assert (result.exit_code, result.stdout) == (0, f"\n{QUESTION}quit\n")
    result = chat(url, lines="Hello")
    assert result.exit_code == 0
    assert result.stdout.endswith(f"[Run Finished]\n\n{QUESTION}\n")


def test_questions_are_asked_and_answered(url: str) -> None:
    result = chat(url, lines="ask\nperhaps\n\ny\nbecause\n")
    assert result.exit_code == 0, result.output
    assert result.stdout == (
        f"\n{QUESTION}ask\n\n[Run Started]\n[Calling Tool: delete]\n[Run Interrupted]\n"
        '[Question: Delete it?]\n  delete({"path": "/"})\n'
        "Answer (y, n, JSON or :cancel): perhaps\nSorry, that is not JSON; answer y, n, :cancel or JSON.\n"
        "Answer (y, n, JSON or :cancel): \nAnswer (y, n, JSON or :cancel): y\n"
        "[Question: Why?]\nAnswer (y, n, JSON or :cancel): because\n"
        '[Run Started]\n[["i1", "resolved", {"approved": true}], ["i2", "resolved", "because"]]\n[Run Finished]\n'
        f"\n{QUESTION}\n"
    )


def test_a_question_may_be_cancelled_or_left(url: str) -> None:
    result = chat(url, lines="ask\n:cancel\n7\n")
    assert '[["i1", "cancelled", null], ["i2", "resolved", 7]]' in result.stdout
    for lines in ("ask\n:q\n", "ask\n", "ask\ny\n:q\n"):
        result = chat(url, lines=lines)
        assert result.exit_code == 0
        assert "[Run Started]" not in result.stdout.split("[Question: Delete it?]")[1]


def test_in_one_exchange_a_question_stays_open(url: str) -> None:
    result = chat(url, "--once", "ask")
    assert result.exit_code == 0
    assert "[Run Interrupted]\n[Question: Delete it?]" in result.stdout


def test_state_and_headers_go_along(url: str, tmp_path: Path) -> None:
    INPUTS.clear()
    HEADERS.clear()
    state = tmp_path / "state.json"
    state.write_text('{"recipe": null}')
    assert chat(url, "--once", "Hello", "--state", str(state)).exit_code == 0
    assert INPUTS[0].state == {"recipe": None}
    chat(f"{url}/cut", "--once", "Hello", "--header", "Authorization: Bearer x:y", "--header", "X-Team:blue")
    assert (HEADERS[0]["authorization"], HEADERS[0]["x-team"]) == ("Bearer x:y", "blue")


def test_a_patch_that_is_skipped_is_a_warning_and_no_update(url: str) -> None:
    result = chat(url, "--once", "warn")
    assert result.exit_code == 0
    assert "[Warning: application STATE_DELTA /delta/0: " in result.stdout
    assert "[State Updated]" not in result.stdout


# What goes wrong


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/cut", "Run Truncated: the stream ended before the run did"),
        ("/broken", "Stream Rejected: enforcement: TEXT_MESSAGE_END /messageId: "),
        ("/page", "No Run: what answered is not an AG-UI producer: HTTP 200, text/html"),
        ("/nowhere", "No Run: HTTP 404 Not Found from http://127.0.0.1:"),
        ("", "Run Failed: The agent could not finish this run. (internal_error)"),
    ],
)
def test_what_went_wrong_is_one_line(url: str, path: str, shown: str) -> None:
    result = chat(url + path, "--once", "fail")
    assert result.exit_code == 1
    assert [line for line in result.stdout.splitlines() if line.startswith(f"[{shown}")]
    assert result.stderr.startswith(f"accord: {shown[0].lower()}")
    assert result.stderr.count("\n") == 1
    assert "\x1b" not in result.output
    assert "secret" not in result.output
    if path == "/cut":
        assert "\nhalf\n[Run Truncated" in result.stdout


def test_a_dead_server_and_a_wrong_url() -> None:
    for url in (f"http://127.0.0.1:{free_port()}/", "http://", "nonsense", "ftp://x/"):
        result = chat(url, "--once", "Hello")
        assert (result.exit_code, result.stderr.count("\n")) == (1, 1), url
        assert result.stderr.startswith("accord: no run: no answer from "), url


def test_a_conversation_goes_on_after_a_failure(url: str) -> None:
    result = chat(url, lines="fail\nHello\n")
    assert "[Run Failed: The agent could not finish this run. (internal_error)]" in result.stdout
    assert "You said Hello" in result.stdout
    assert result.exit_code == 1
    assert result.stderr == "accord: run failed: The agent could not finish this run. (internal_error)\n"


def test_arguments_that_cannot_be_used(url: str, tmp_path: Path) -> None:
    bad: list[tuple[Any, ...]] = [
        ("--state", tmp_path / "none.json"),
        ("--header", "nonsense"),
        ("--header", ": x"),
        ("--header", "X-Name: a\nb"),
        ("--header", "X-Name: é"),
    ]
    for option, value in bad:
        result = chat(url, "--once", "Hello", option, str(value))
        assert (result.exit_code, result.stdout) == (2, ""), value
        assert result.stderr.startswith("accord: ")
