"""The official Python SDK, and the libraries that stand where ours does: jsonpatch, jiter."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path

import jiter
import jsonpatch
from ag_ui.core import Event
from ag_ui.encoder import EventEncoder
from pydantic import TypeAdapter

from benchmarks.workers.rounds import Round, serve, timed


def payloads_of(stream: str) -> list[bytes]:
    """The payload of each frame; the streams here have one data line in each."""
    return [frame.removeprefix(b"data: ") for frame in Path(stream).read_bytes().split(b"\n\n") if frame]


def decode(stream: str, operations: int, passes: int = 1) -> Callable[[], Round]:
    """JSON to the SDK's models, without a protocol check behind it: there is none in the SDK."""
    payloads = payloads_of(stream)
    validate = TypeAdapter(Event).validate_json

    def work() -> None:
        for _ in range(passes):
            for payload in payloads:
                validate(payload)

    return lambda: timed(work, operations * passes)


def encode(stream: str, operations: int, passes: int = 1) -> Callable[[], Round]:
    """The SDK's models to frames."""
    validate = TypeAdapter(Event).validate_json
    events = [validate(payload) for payload in payloads_of(stream)]

    def work() -> None:
        for _ in range(passes):
            encoder = EventEncoder()
            for event in events:
                encoder.encode(event)

    return lambda: timed(work, operations * passes)


def apply_patch(state: str, patches: str, operations: int, *, in_place: bool = False) -> Callable[[], Round]:
    """Patches one after the other: on a copy each, as `apply_patch` does unless told otherwise, or in place."""
    document = json.loads(Path(state).read_bytes())
    all_patches = json.loads(Path(patches).read_bytes())[:operations]

    def take() -> Round:
        begun = copy.deepcopy(document)

        def work() -> None:
            held = begun
            for patch in all_patches:
                held = jsonpatch.apply_patch(held, patch, in_place=in_place)

        return timed(work, len(all_patches))

    return take


def diff(old: str, new: str) -> Callable[[], Round]:
    """The patch between two documents."""
    before, after = json.loads(Path(old).read_bytes()), json.loads(Path(new).read_bytes())

    def work() -> None:
        assert len(list(jsonpatch.make_patch(before, after))) == 1

    return lambda: timed(work, 1)


def parse(text: str, piece: int) -> Callable[[], Round]:
    """All the text so far parsed anew with each piece: what a partial parser that keeps nothing has to do."""
    whole = Path(text).read_bytes()
    ends = range(piece, len(whole) + piece, piece)

    def work() -> None:
        for end in ends:
            jiter.from_json(whole[:end], partial_mode="trailing-strings")

    return lambda: timed(work, len(ends))


if __name__ == "__main__":
    serve({"decode": decode, "encode": encode, "apply_patch": apply_patch, "diff": diff, "parse": parse})
