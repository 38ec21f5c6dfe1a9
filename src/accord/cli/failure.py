"""A command that cannot go on says so in one line on standard error and ends with an exit code; never a traceback."""

from __future__ import annotations

from accord.errors import AccordError


class CommandFailed(AccordError):
    """What the person at the terminal is told; `exit_code` is 2 for what they gave us and 1 for what happened."""

    def __init__(self, message: str, *, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code
