"""A session of tests, each of which fails where the product goes on."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from xml.etree import ElementTree

import pytest

TESTS = Path(__file__).resolve().parents[1]

BEGINNING = """
import asyncio, logging, threading
import httpx, pytest
from accord.agents import Agent, ScriptedChatClient, scripted_call, tool
from accord.agui import as_producer
from accord.client import AGUIClient, InProcessTransport
from accord.consumer import Conversation
from accord.hosting import AGUIEndpoint
from accord.producer import drive
from accord.protocol import RunStartedEvent, TextMessageStartEvent, UserMessage
from client.test_frontend_tools import answer_of
from producer.recording import a_run
from support.serving import serve

async def no(run):
    assert not "in a producer"
"""

LOST = {
    "in_a_block": """
        def test():
            with a_run()[0]:
                assert not "in a block"
    """,
    "in_a_producer": """
        async def test():
            await drive(no, a_run()[0])
    """,
    "whose_log_is_quiet": """
        async def test(caplog):
            with caplog.at_level(logging.CRITICAL, "accord"):
                await drive(no, a_run()[0])
    """,
    "whose_log_is_off": """
        async def test():
            logging.disable(logging.CRITICAL)
            try:
                await drive(no, a_run()[0])
            finally:
                logging.disable(logging.NOTSET)
    """,
    "in_process": """
        async def test():
            async with AGUIClient(transport=InProcessTransport(no)) as client:
                with pytest.raises(Exception, match="could not finish"):
                    await client.run("hi")
    """,
    "over_http": """
        async def test():
            async with serve(AGUIEndpoint(no)) as url, httpx.AsyncClient() as client:
                await client.post(url, json={"threadId": "t", "runId": "r", "messages": []})
    """,
    "in_a_thread": """
        def test():
            thread = threading.Thread(target=lambda: asyncio.run(drive(no, a_run()[0])))
            thread.start()
            thread.join()
    """,
    "in_the_thread_of_a_tool": """
        async def test(caplog):
            @tool
            def f() -> None:
                assert not "in a tool"

            with caplog.at_level(logging.CRITICAL, "accord"):
                await Agent(ScriptedChatClient([scripted_call("f"), "ok"]), tools=[f]).run("go")
    """,
    "in_a_tool_of_a_served_agent": """
        async def test():
            @tool
            async def f() -> None:
                assert not "in a tool"

            agent = Agent(ScriptedChatClient([scripted_call("f"), "ok"]), tools=[f])
            await drive(as_producer(agent), a_run()[0])
    """,
    "in_a_tool_of_the_application": """
        async def test():
            def f() -> None:
                assert not "in a tool"

            message = await answer_of(f)
            assert "in a tool" in message.error
    """,
    "in_an_observer": """
        def test():
            def observe(messages):
                assert not "in an observer"

            conversation = Conversation()
            conversation.subscribe(on_messages=observe)
            conversation.add_message(UserMessage(id="u", content="hi"))
            conversation.apply(RunStartedEvent(thread_id="t", run_id="r"))
            conversation.apply(TextMessageStartEvent(message_id="m"))
    """,
    "in_a_server": """
        async def test():
            async def app(scope, receive, send):
                assert scope["type"] != "http", "in a server"

            async with serve(app) as url, httpx.AsyncClient() as client:
                assert (await client.get(url)).status_code == 500
    """,
    "before_another_error": """
        def test():
            with a_run()[0]:
                try:
                    assert not "in a block"
                finally:
                    raise KeyError
    """,
    "in_a_group": """
        async def test():
            async def produce(run):
                async with asyncio.TaskGroup() as group:
                    group.create_task(no(run))
            await drive(produce, a_run()[0])
    """,
    "in_a_model_whose_script_has_ended": """
        async def test():
            await drive(as_producer(Agent(ScriptedChatClient([]))), a_run()[0])
    """,
    "in_a_mistake": """
        async def test():
            async def produce(run):
                getattr(run, "in a producer")
            await drive(produce, a_run()[0])
    """,
    "that_is_no_assert": """
        async def test():
            async def produce(run):
                try:
                    pytest.fail("in a producer")
                finally:
                    raise KeyError
            await drive(produce, a_run()[0])
    """,
}

FINE = {
    "another_error": """
        async def test():
            async def produce(run):
                raise ValueError
            await drive(produce, a_run()[0])
    """,
    "an_assertion_that_holds": """
        async def test():
            async def produce(run):
                assert run
            await drive(produce, a_run()[0])
    """,
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What a session with the conftest of this one has against each of the tests."""
    here = tmp_path_factory.mktemp("session")
    shutil.copy(TESTS / "conftest.py", here)
    for name, source in (LOST | FINE).items():
        (here / f"test_{name}.py").write_text(BEGINNING + dedent(source))
    config = ["-c", str(TESTS.parent / "pyproject.toml"), "--rootdir", str(here), "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *config, "--junit-xml", "report.xml", "."],
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: dict[str, list[str]] = {}
    for case in ElementTree.parse(here / "report.xml").iter("testcase"):
        name = case.attrib["classname"].removeprefix("test_")
        found.setdefault(name, []).extend(each.attrib["message"] for each in case)
    return found


@pytest.mark.parametrize("name", LOST)
def test_a_failed_assertion_fails_the_test(reports: dict[str, list[str]], name: str) -> None:
    (said,) = reports[name]
    assert said.startswith('failed on teardown with "')  # the test itself has seen nothing
    assert "in a" in said or "asked for turn" in said


@pytest.mark.parametrize("name", FINE)
def test_nothing_else_does(reports: dict[str, list[str]], name: str) -> None:
    assert reports[name] == []
