"""Where the case corpus is: `ACCORD_CORPUS`, else `../shared/corpus` beside the checkout, else nowhere."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def corpus_dir() -> Path | None:
    """The corpus, or None where there is none. A path that `ACCORD_CORPUS` names must exist."""
    named = os.environ.get("ACCORD_CORPUS")
    if named:
        return Path(named).resolve(strict=True)
    beside = ROOT.parent / "shared" / "corpus"
    return beside if beside.is_dir() else None


def corpus_files(pattern: str) -> list[Path]:
    """The files of the corpus that match, sorted. Empty without a corpus, so a test parametrised with it is skipped."""
    corpus = corpus_dir()
    if corpus is None:
        return []
    found = sorted(corpus.glob(pattern))
    assert found, f"nothing in {corpus} matches {pattern}"
    return found
