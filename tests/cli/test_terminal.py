"""The chat and the demo on a terminal: a real process on a pseudo-terminal, typed at as a person types."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import pytest
from starlette.applications import Starlette

from accord.agui import add_agui_endpoint
from accord.producer import Run
from accord.protocol import UserMessage
from support.serving import serve_in_thread

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")

PROMPT = ":state to show state): "
PATIENCE = 30.0  # seconds until what is expected counts as missing
SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")


class Terminal:
    """A process of `python -m accord` whose terminal this is."""

    def __init__(self, *arguments: str, columns: int = 80, rows: int = 24) -> None:
        self._master, terminal = os.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        environment = {**os.environ, "TERM": "xterm", "PYTHONWARNINGS": "error"}
        for name in ("NO_COLOR", "COLUMNS", "LINES"):
            environment.pop(name, None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "accord", *arguments],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env=environment,
            start_new_session=True,
        )
        os.close(terminal)
        self.raw = ""
        self._seen = 0

    @property
    def text(self) -> str:
        """Everything that was written, without control sequences."""
        return SEQUENCE.sub("", self.raw)

    def enter(self, text: str) -> None:
        os.write(self._master, text.encode())

    def expect(self, text: str) -> str:
        """Waits until `text` has come, behind what was expected before; returns what came up to it."""
        deadline = time.monotonic() + PATIENCE
        while (found := self.text.find(text, self._seen)) < 0:
            if not self._read(deadline):
                pytest.fail(f"{text!r} did not come:\n{self.text[self._seen :]}")
        before, self._seen = self.text[self._seen : found], found + len(text)
        return before

    def end(self) -> int:
        """Waits for the end of the process; its exit code."""
        while self._read(time.monotonic() + PATIENCE):
            pass
        return self.process.wait(PATIENCE)

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(deadline - time.monotonic(), 0))
        try:
            data = os.read(self._master, 65536) if ready else b""
        except OSError:  # the other side is closed
            data = b""
        self.raw += data.decode(errors="replace")
        return bool(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)


async def producer(run: Run) -> None:
    said = [message.content for message in run.input.messages if isinstance(message, UserMessage)][-1]
    if said == "hang":
        run.state.set({"waiting": True})
        await asyncio.Event().wait()
    if said == "fail":
        raise RuntimeError("a secret")
    for number in range(40):
        run.state.set({"items": [f"\x1b[2J item number {each}" for each in range(number)]})
        await run.drain()
    with run.text() as text:
        text.write("Done [b]now[/b] \x07\x1b[2J.")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    application = Starlette()
    add_agui_endpoint(application, producer)
    with serve_in_thread(application) as base:
        yield base


def test_a_conversation_in_a_terminal(url: str) -> None:
    with Terminal("chat", url) as terminal:
        terminal.expect(PROMPT)
        terminal.enter("Hello\n")
        live = terminal.expect("Done [b]now[/b] \\x07\\x1b[2J.")
        assert "[Run Started]" in live
        assert "[State Updated] ×40" in live
        terminal.expect("[Run Finished]")
        terminal.expect("CURRENT STATE")
        assert terminal.expect(PROMPT).count("\\x1b[2J item number") == 39
        terminal.enter(":state\n")
        terminal.expect("CURRENT STATE")
        assert terminal.expect(PROMPT).count("item number") == 39
        terminal.enter(":help\n")
        terminal.expect(":q      quit")
        terminal.expect(PROMPT)
        terminal.enter("fail\n")
        terminal.expect("[Run Failed: The agent could not finish this run. (internal_error)]")
        terminal.expect(PROMPT)
        terminal.enter(":q\n")
        assert terminal.end() == 0
    assert "\x1b[2J" not in terminal.raw
    assert "\x07" not in terminal.raw
    assert "\x1b[1A" in terminal.raw  # the outline was redrawn in its place
    assert terminal.raw.rfind("\x1b[?25h") > terminal.raw.rfind("\x1b[?25l")  # the cursor is shown again


def test_ctrl_c_stops_a_run_and_then_the_chat(url: str) -> None:
    with Terminal("chat", url) as terminal:
        terminal.expect(PROMPT)
        terminal.enter("hang\n")
        terminal.expect("waiting: true")
        terminal.process.send_signal(signal.SIGINT)
        terminal.expect("[Run Stopped]")
        terminal.expect(PROMPT)
        terminal.enter("Hello\n")
        terminal.expect("[Run Finished]")
        terminal.expect(PROMPT)
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 0
    assert "Traceback" not in terminal.text


def test_ctrl_d_ends_the_chat_and_a_dead_server_does_not(url: str) -> None:
    with Terminal("chat", "http://127.0.0.1:1/") as terminal:
        terminal.expect(PROMPT)
        terminal.enter("Hello\n")
        terminal.expect("[No Run: no answer from http://127.0.0.1:1/")
        terminal.expect(PROMPT)
        terminal.enter("\x04")
        assert terminal.end() == 0


def test_the_demo_in_a_narrow_terminal() -> None:
    with Terminal("demo", "--port", "0", columns=24, rows=12) as terminal:
        terminal.expect("User (:q")
        terminal.enter("carbonara for 8\n")
        live = terminal.expect("[Tool Result: ")
        for part in ("[Calling Tool: ", "recipe:", "title: ", "ingredients:", "Guanciale"):
            assert part in live
        terminal.expect("CURRENT STATE")
        assert "Spaghetti: 800g" in " ".join(terminal.expect("User (:q").split())
        terminal.enter(":state\n")
        terminal.expect("800g")
        terminal.expect("User (:q")
        terminal.enter(":q\n")
        assert terminal.end() == 0
    assert "Traceback" not in terminal.text
