"""Lines that somebody types, or that are piped in: read in the main thread, never on the event loop."""

from __future__ import annotations

import sys
from contextlib import suppress

from accord.cli.visible import visible


class Prompt:
    """Asks for lines on standard input; with line editing on a terminal, echoed into the transcript elsewhere."""

    def __init__(self) -> None:
        self.interactive = sys.stdin.isatty() and sys.stdout.isatty()
        with suppress(AttributeError):  # a stand-in for standard input has no encoding to be wrong in
            sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
        if self.interactive:
            with suppress(ImportError):  # not on every system; then lines are edited as the terminal does it
                import readline  # noqa: F401

    def ask(self, question: str) -> str | None:
        """The next line without its end, None when there are no more."""
        try:
            line: str | None = input(question)
        except EOFError:
            line = None
        if line is None or not self.interactive:
            sys.stdout.write(f"{visible(line or '')}\n")
            sys.stdout.flush()
        return line
