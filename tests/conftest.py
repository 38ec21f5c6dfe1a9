from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import node
from support.corpus import corpus_dir
from support.lost_failures import LostFailures


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The case corpus; skips the test where there is none."""
    found = corpus_dir()
    if found is None:
        pytest.skip("no corpus: set ACCORD_CORPUS to its path")
    return found


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """`tests/node/node_modules` with the reference packages in it; skips the test without Node."""
    return node.node_modules()


@pytest.fixture(scope="session")
def lost_failures() -> Iterator[LostFailures]:
    """Watches for the whole session: what is logged between two tests, as a server stops, is not lost either."""
    lost = LostFailures()
    with lost.watched():
        yield lost
    lost.raise_first()


@pytest.fixture(autouse=True)
def no_failure_is_lost(lost_failures: LostFailures) -> Iterator[None]:
    """A test fails when an assertion has failed, or code was wrong, in what it had the product call."""
    yield
    lost_failures.raise_first()
