"""Standard output as something that can fail: closed from the start, or on a disk that is full.

A reader that leaves early, as `head` does, is no failure and stays a `BrokenPipeError`, which ends the command quietly.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from accord.cli.failure import CommandFailed


def write_line(line: str) -> None:
    """Writes a line of text that is seen at once; raises `CommandFailed` when it cannot be written."""
    with output_failure_told():
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


@contextmanager
def output_failure_told() -> Iterator[None]:
    """What goes wrong in the block, which does nothing but write to standard output, as `CommandFailed`."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        _give_up()
        raise CommandFailed(f"cannot write to standard output: {error.strerror}", exit_code=2) from None


def _give_up() -> None:
    """Sends what is still in buffers nowhere: the interpreter would try to write it when it ends, and fail again."""
    with suppress(io.UnsupportedOperation):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
