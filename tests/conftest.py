from __future__ import annotations

from pathlib import Path

import pytest

from support import node
from support.corpus import corpus_dir


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
