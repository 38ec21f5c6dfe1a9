"""`accord replay`: a recording and what the consumer makes of it, as lines for people or one object for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from typing import IO, BinaryIO, Final

from accord.cli.describe import describe_event, describe_message
from accord.cli.json_text import json_text, shape_text
from accord.cli.outline import outline
from accord.cli.output import output_failure_told, write_line
from accord.cli.playback import Delivered, Playback
from accord.cli.recording import Recording, open_recording, read_json_file
from accord.cli.visible import one_line, visible

_IN_MEMORY: Final = 8 * 1024 * 1024  # bytes of events and of warnings, each; beyond, they wait in a file
_COPY: Final = 1024 * 1024


def replay(name: str, *, as_json: bool, input_name: str | None, peer_version: str | None) -> None:
    """Plays the recording `name` and writes to standard output what came of it."""
    run_input = None if input_name is None else read_json_file(input_name)
    with open_recording(name) as recording:
        playback = Playback(
            recording.input if run_input is None else run_input,
            peer_version=recording.peer_version if peer_version is None else peer_version,
        )
        if as_json:
            _write_json(playback, recording)
        else:
            for line in _lines(playback, recording):
                write_line(line)


# For programs


def _write_json(playback: Playback, recording: Recording) -> None:
    """One object. How it ended comes first and is known last, so the events wait, and nothing is printed of a file
    that turns out to be none."""
    with SpooledTemporaryFile(_IN_MEMORY) as events, SpooledTemporaryFile(_IN_MEMORY) as warnings:
        for moment in playback.play(recording.payloads):
            if isinstance(moment, Delivered):
                _append(events, shape_text(moment.event))
            else:
                _append(warnings, json_text(str(moment)))
        with output_failure_told():
            _write_report(playback, events, warnings, sys.stdout.buffer)


def _write_report(playback: Playback, events: IO[bytes], warnings: IO[bytes], out: BinaryIO) -> None:
    out.write(b'{"outcome":%b' % json_text(playback.outcome))
    out.write(b',"error":%b,"runError":%b' % (json_text(playback.error), json_text(playback.run_error)))
    _write_list(b"events", events, out)
    _write_list(b"warnings", warnings, out)
    out.write(b',"messages":[%b]' % b",".join(map(shape_text, playback.messages)))
    out.write(b',"state":%b' % json_text(playback.state))
    out.write(b',"request":%b}\n' % (b"null" if playback.request is None else shape_text(playback.request)))
    out.flush()


def _append(spool: IO[bytes], element: bytes) -> None:
    if spool.tell():
        spool.write(b",")
    spool.write(element)


def _write_list(name: bytes, spool: IO[bytes], out: BinaryIO) -> None:
    out.write(b',"%b":[' % name)
    spool.seek(0)
    while piece := spool.read(_COPY):
        out.write(piece)
    out.write(b"]")


# For people


def _lines(playback: Playback, recording: Recording) -> Iterator[str]:
    for moment in playback.play(recording.payloads):
        if isinstance(moment, Delivered):
            yield f"{moment.index:>6}  {moment.event.type:<26}  {describe_event(moment.event)}".rstrip()
        else:
            yield f"        warning: {one_line(str(moment))}"
    if playback.error is not None:
        yield f"        {playback.outcome}: {one_line(playback.error)}"
    yield "\nMessages"
    for message in playback.messages:
        yield from (f"  {line}" for line in describe_message(message))
    yield "\nState"
    yield from (f"  {line}" for line in outline(playback.state))
    yield f"\nOutcome: {playback.outcome}"
    if playback.run_error is not None:
        yield f"The run reported: {visible(playback.run_error)}"
