"""`accord serve`: what may be named, what is said when it may not, and a real process that serves."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from typer.testing import CliRunner

from accord.agents import Agent, ScriptedChatClient
from accord.agui import AGUIAgent
from accord.cli import app
from accord.cli.failure import CommandFailed
from accord.cli.serve import application, find
from accord.cli.serving import listen, listen_near, url_of
from accord.producer import Run
from support.serving import serve

MODULE = """
import asyncio
import sys

from accord import Agent, ScriptedChatClient
from accord.agui import AGUIAgent

agent = Agent(ScriptedChatClient(["Hello."]))
served = AGUIAgent(agent)

class Holder:
    inner = served

async def producer(run):
    with run.text() as text:
        text.write("Hello.")

async def long(run):
    try:
        run.text().write("Hello.")
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0.05)
        print("cleaned up", file=sys.stderr, flush=True)

class Callable:
    async def __call__(self, run):
        await producer(run)

callable_object = Callable()
number = 7
def two(a, b): ...
"""
INPUT = {"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "Hi"}]}
#: Without it, an HTTP client that accepts anything is served the binary wire.
TEXT = {"Accept": "text/event-stream"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with modules of its own."""
    (tmp_path / "served_here.py").write_text(MODULE)
    (tmp_path / "broken_here.py").write_text("import missing_there\n")
    (tmp_path / "failing_here.py").write_text("def f():\n    raise RuntimeError('at import')\nf()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    for name in ("served_here", "broken_here", "failing_here"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


async def producer(run: Run) -> None:
    with run.text() as text:
        text.write("Hello.")


async def asgi(scope: Any, receive: Any, send: Any) -> None: ...


AGENT = Agent(ScriptedChatClient(["Hello."]))


@pytest.mark.parametrize("found", [AGENT, AGUIAgent(AGENT), producer], ids=["agent", "agui-agent", "producer"])
@pytest.mark.parametrize("path", [None, "/", "/agent", "agent"])
async def test_what_is_no_application_gets_one(found: Any, path: str | None) -> None:
    async with serve(application(found, "x:y", path)) as url, httpx.AsyncClient() as client:
        answer = await client.post(f"{url}/{(path or '').lstrip('/')}", json=INPUT, headers=TEXT)
    assert answer.status_code == 200
    assert '"type":"RUN_FINISHED"' in answer.text


def test_an_application_is_served_as_it_is() -> None:
    for found in (asgi, FastAPI()):
        assert application(found, "x:y", None) is found
        with pytest.raises(CommandFailed, match="paths of its own"):
            application(found, "x:y", "/agent")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("nonsense", "MODULE:ATTRIBUTE is due"),
        (":x", "MODULE:ATTRIBUTE is due"),
        ("x:", "MODULE:ATTRIBUTE is due"),
        ("served_here.py:agent", "name the module, not its file: served_here:agent"),
        ("nowhere_here:agent", "there is no module 'nowhere_here'"),
        ("served_here.inner:agent", "there is no module 'served_here.inner'"),
        ("served_here:nothing", "has no attribute 'nothing'"),
        ("served_here:agent.nothing", "has no attribute 'nothing'"),
        ("served_here:Callable", "is a class"),
        ("served_here:number", "is int"),
        ("served_here:two", "takes other parameters"),
        ("broken_here:agent", "No module named 'missing_there'"),
        ("failing_here:agent", "RuntimeError: at import"),
    ],
)
def test_what_cannot_be_served_is_said(here: Path, target: str, said: str) -> None:
    result = CliRunner().invoke(app, ["serve", target])
    assert result.exit_code in (1, 2)
    assert result.stdout == ""
    assert result.stderr.startswith("accord: ")
    assert said in result.stderr


def test_what_a_module_holds_is_found(here: Path) -> None:
    for attribute in ("agent", "served", "producer", "callable_object", "Holder.inner"):
        assert application(find(f"served_here:{attribute}"), "x:y", None) is not None


def test_a_port_in_use_is_said(here: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(app, ["serve", "served_here:agent", "--port", str(port)])
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr == f"accord: port {port} of 127.0.0.1 is in use; choose another with --port\n"
        with listen_near("127.0.0.1", port) as other:
            assert other.getsockname()[1] > port


@pytest.mark.parametrize("host", ["no such host", "203.0.113.1", "x" * 70])
def test_an_address_that_is_not_ours_is_said(host: str) -> None:
    with pytest.raises(CommandFailed, match="cannot listen on "):
        listen(host, 0)


def test_the_url_can_be_opened() -> None:
    with listen("0.0.0.0", 0) as listener:
        assert url_of(listener, "/a") == f"http://127.0.0.1:{listener.getsockname()[1]}/a"


def test_a_process_that_serves(here: Path) -> None:
    arguments = [sys.executable, "-m", "accord", "serve", "served_here:producer", "--port", "0", "--path", "/agent"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("Serving served_here:producer on http://127.0.0.1:")
            url = line.split(" on ")[1].split(" ")[0]
            assert url.endswith("/agent")
            assert '"type":"RUN_FINISHED"' in httpx.post(url, json=INPUT, headers=TEXT).text
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=30)
            assert "Traceback" not in errors
        finally:
            process.kill()


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_process_that_is_stopped_ends_its_runs(here: Path, by: signal.Signals) -> None:
    arguments = [sys.executable, "-m", "accord", "serve", "served_here:long", "--port", "0"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split(" on ")[1].split(" ")[0]
            with httpx.stream("POST", url, json=INPUT, headers=TEXT, timeout=30) as response:
                lines = (line for line in response.iter_lines() if line.startswith("data:"))
                for line in lines:
                    if "TEXT_MESSAGE_CONTENT" in line:
                        process.send_signal(by)
                assert '"outcome":{"type":"cancelled"}' in line
            _, errors = process.communicate(timeout=30)
            assert process.returncode == 0, errors
            assert "cleaned up" in errors
            assert "Traceback" not in errors
        finally:
            process.kill()
