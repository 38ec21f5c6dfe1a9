"""`accord chat`: a conversation with any AG-UI server, in a terminal or through a pipe.

The main thread asks for lines, the background loop holds the client and runs what was asked. Whatever goes wrong with
a run is one line, and the conversation goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Final, Self

from msgspec import UNSET, UnsetType
from rich.console import Console

from accord.cli.answer import CANCEL, NotAnAnswer, read_answer
from accord.cli.background import BackgroundLoop
from accord.cli.failure import CommandFailed
from accord.cli.prompt import Prompt
from accord.cli.recording import read_json_file
from accord.cli.transcript import Transcript
from accord.cli.visible import one_line
from accord.client import AGUIClient, ClientRun
from accord.errors import (
    AccordError,
    InputRejected,
    LimitExceeded,
    ProtocolViolation,
    RunFailed,
    TransportError,
    TruncatedRun,
)
from accord.protocol import JSON, AssistantMessage, Interrupt

QUESTION: Final = "User (:q to quit, :state to show state): "
_ANSWER: Final = f"Answer (y, n, JSON or {CANCEL}): "
_QUIT: Final = frozenset({":q", ":quit", "quit"})
_HELP: Final = (
    ":state  show the state",
    ":help   show this",
    ":q      quit, as Ctrl+D does",
    "Ctrl+C stops a run. Everything else is said to the agent.",
)
_FAILURES: Final[dict[type[AccordError], str]] = {
    RunFailed: "Run Failed",
    TruncatedRun: "Run Truncated",
    InputRejected: "Input Rejected",
    ProtocolViolation: "Stream Rejected",
    TransportError: "No Run",
    LimitExceeded: "Run Stopped",
}


def chat(url: str, *, once: str | None, state_name: str | None, headers: Sequence[str]) -> None:
    """Talks to the server at `url`: one exchange with `once`, else until the person quits or the input ends."""
    state = UNSET if state_name is None else read_json_file(state_name)
    with BackgroundLoop() as loop, Chat(loop, url, state=state, headers=dict(map(_header, headers))) as conversation:
        if once is None:
            conversation.talk()
        else:
            conversation.exchange(once)


class Chat(AbstractContextManager["Chat"]):
    """One thread with one server, shown on standard output."""

    def __init__(
        self,
        loop: BackgroundLoop,
        url: str,
        *,
        state: JSON | UnsetType = UNSET,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._loop = loop
        self._client = AGUIClient(url, state=state, headers=headers, on_deviation=self._warn)
        self._transcript = Transcript(Console(highlight=False), self._client.conversation)

    def exchange(self, text: str) -> None:
        """Says one thing, shows what comes of it and the state; raises `CommandFailed` unless the run came to its
        end. A question that comes back stays open."""
        self._transcript.line(QUESTION + one_line(text))
        self._transcript.line("")
        failure = self._play(self._client.run(text))
        for interrupt in self._client.pending_interrupts:
            self._show_question(interrupt)
        self._transcript.line("")
        self._transcript.show_state()
        if failure is not None:
            raise CommandFailed(_said(failure))

    def talk(self) -> None:
        """Asks and answers until there is nothing more; through a pipe, raises `CommandFailed` if a run failed."""
        prompt = Prompt()
        failure: AccordError | None = None
        try:
            while (run := self._next_run(prompt)) is not None:
                failure = self._play(run) or failure
                if self._transcript.state_changed:
                    self._transcript.line("")
                    self._transcript.show_state()
        except KeyboardInterrupt:  # at a question: there is no run to stop
            self._transcript.line("")
        if failure is not None and not prompt.interactive:
            raise CommandFailed(_said(failure))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.run(self._client.aclose())

    # Asking the person

    def _next_run(self, prompt: Prompt) -> ClientRun | None:
        """What is to be run next, None for nothing more."""
        while self._client.pending_interrupts:
            answers = self._ask_answers(prompt)
            if answers is None:
                return None
            return self._client.resume(answers)
        while True:
            self._transcript.line("")
            line = prompt.ask(QUESTION)
            if line is None or line.strip().lower() in _QUIT:
                return None
            text = line.strip()
            if text == ":state":
                self._transcript.show_state()
            elif text.startswith(":"):
                for known in _HELP if text == ":help" else (f"There is no command {one_line(text)!r}.", *_HELP):
                    self._transcript.line(known)
            elif text:
                self._transcript.line("")
                return self._client.run(line)

    def _ask_answers(self, prompt: Prompt) -> dict[str, Any] | None:
        """An answer to each open question, None when the person leaves instead."""
        answers: dict[str, Any] = {}
        for interrupt in self._client.pending_interrupts:
            self._show_question(interrupt)
            while interrupt.id not in answers:
                line = prompt.ask(_ANSWER)
                if line is None or line.strip() in _QUIT:
                    return None
                if not line.strip():
                    continue
                try:
                    answers[interrupt.id] = read_answer(line, interrupt)
                except NotAnAnswer as error:
                    self._transcript.line(f"Sorry, {error}.")
        return answers

    def _show_question(self, interrupt: Interrupt) -> None:
        self._transcript.note("Question", interrupt.message or interrupt.reason, style="yellow")
        for message in self._client.messages:
            calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
            for call in calls or ():
                if call.id == interrupt.tool_call_id:
                    self._transcript.line(f"  {one_line(call.function.name)}({one_line(call.function.arguments)})")

    # Running

    def _play(self, run: ClientRun) -> AccordError | None:
        """Shows a run to its end; what kept it from one, None if nothing did."""
        try:
            self._loop.run(self._show(run))
        except KeyboardInterrupt:
            self._transcript.note("Run Stopped")
            return TruncatedRun("it was stopped")
        except AccordError as error:
            self._transcript.note(_label(error), _detail(error), style="red")
            return error
        return None

    async def _show(self, run: ClientRun) -> None:
        async with run:
            async for event in run:
                self._transcript.show(event)

    def _warn(self, deviation: object) -> None:
        self._transcript.note("Warning", str(deviation), style="yellow")


def _label(error: AccordError) -> str:
    return next((label for kind, label in _FAILURES.items() if isinstance(error, kind)), "Failed")


def _detail(error: AccordError) -> str:
    return f"{error} ({error.code})" if isinstance(error, RunFailed) and error.code else str(error)


def _said(error: AccordError) -> str:
    return one_line(f"{_label(error).lower()}: {_detail(error)}")


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    name, value = name.strip(), value.strip()
    if not (colon and name and text.isascii() and text.isprintable()):
        raise CommandFailed(f"--header {one_line(text)!r}: NAME:VALUE is due, in ASCII", exit_code=2)
    return name, value
