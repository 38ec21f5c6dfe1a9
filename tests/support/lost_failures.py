"""Failed assertions and mistakes in a test's own producer, tool or observer: the product goes on, the test must not.

What is tested takes whatever such a function raises in its stride and tells the log, with the exception. So the calls
of every logger are watched, before levels, filters and handlers have a say in what becomes of them.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

#: What an `assert`, `pytest.fail` and an unmet `pytest.raises` raise, and code that is wrong. A test in which something
#: is to fail raises another error.
FAILURES = (AssertionError, pytest.fail.Exception, AttributeError, IndexError, NameError, TypeError)


class LostFailures:
    """The failures that have gone to the log and not to a test."""

    def __init__(self) -> None:
        self._found: list[BaseException] = []

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While the block runs they are remembered, from whatever thread."""
        with pytest.MonkeyPatch.context() as patch:
            for name in ("warning", "error"):  # which `exception` calls
                patch.setattr(logging.Logger, name, self._watching(getattr(logging.Logger, name)))
            yield

    def raise_first(self) -> None:
        """Raises the first of those since the last time, if there are any."""
        found, self._found = self._found, []
        if found:
            raise found[0]

    def _watching(self, log: Callable[..., None]) -> Callable[..., None]:
        def watching(logger: logging.Logger, *args: Any, stacklevel: int = 1, **options: Any) -> None:
            error = options.get("exc_info")
            if isinstance(error, tuple):
                error = error[1]
            elif error and not isinstance(error, BaseException):
                error = sys.exception()
            self._found += _failures(error or None)
            log(logger, *args, stacklevel=stacklevel + 1, **options)

        return watching


def _failures(error: BaseException | None) -> Iterator[BaseException]:
    """The failures in `error`: it, what it was raised for or after, and the members of a group."""
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        script_ended = getattr(each, "code", None) == "script_ended"  # of a model, which was given too few turns
        if isinstance(each, FAILURES) or script_ended:
            yield each
        waiting += [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
