"""State: patches applied, differences found, growing JSON read."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from accord.state import PartialJSON, SharedValue, apply_patch, diff
from benchmarks.workers.rounds import Round, serve, timed


def apply(state: str, patches: str, operations: int, *, read: bool = False, passes: int = 1) -> Callable[[], Round]:
    """Patches on a shared value; with `read`, somebody takes the value after each."""
    document = json.loads(Path(state).read_bytes())
    all_patches = json.loads(Path(patches).read_bytes())[:operations]

    def work() -> None:
        for _ in range(passes):
            held = SharedValue(document)
            for patch in all_patches:
                held.apply(patch)
                if read:
                    assert held.value
            assert held.value

    return lambda: timed(work, len(all_patches) * passes)


def pure(state: str, patches: str, operations: int, passes: int = 1) -> Callable[[], Round]:
    """The function: a new document from each patch, the old one unchanged."""
    document = json.loads(Path(state).read_bytes())
    all_patches = json.loads(Path(patches).read_bytes())[:operations]

    def work() -> None:
        for _ in range(passes):
            held = document
            for patch in all_patches:
                held = apply_patch(held, patch)

    return lambda: timed(work, len(all_patches) * passes)


def difference(old: str, new: str, passes: int = 1) -> Callable[[], Round]:
    """Two documents that share nothing: they were read from two files."""
    before, after = json.loads(Path(old).read_bytes()), json.loads(Path(new).read_bytes())

    def work() -> None:
        for _ in range(passes):
            assert len(diff(before, after)) == 1

    return lambda: timed(work, passes)


def edited(old: str, index: int, passes: int = 1) -> Callable[[], Round]:
    """A document and what an edit made of it: everything but the way to the edit is shared."""
    before = json.loads(Path(old).read_bytes())
    after = apply_patch(before, [{"op": "replace", "path": f"/items/{index}/quantity", "value": -1}])

    def work() -> None:
        for _ in range(passes):
            assert len(diff(before, after)) == 1

    return lambda: timed(work, passes)


def parse(text: str, piece: int, *, read: bool = False, passes: int = 1) -> Callable[[], Round]:
    """Growing text to operations, the clock passed in as a server does; with `read`, the value taken at each piece."""
    whole = Path(text).read_text()
    pieces = [whole[start : start + piece] for start in range(0, len(whole), piece)]
    clock = time.monotonic

    def work() -> None:
        for _ in range(passes):
            parser = PartialJSON("/recipe")
            for each in pieces:
                parser.feed(each, clock())
                if read:
                    assert parser.value is not None
            parser.close()

    return lambda: timed(work, len(pieces) * passes, passes=passes)


if __name__ == "__main__":
    serve({"apply": apply, "pure": pure, "difference": difference, "edited": edited, "parse": parse})
