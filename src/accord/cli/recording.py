"""Recordings of a stream, as payloads in their order: event streams, frames of the binary wire, JSON lines, lists of
events and corpus cases.

A recording is read as it comes and nothing of it is judged here, except that it is a recording: bytes that belong to
no format are refused with the line they stand in (`CommandFailed`, exit code 2) before any of them is taken for events.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from accord.cli.failure import CommandFailed
from accord.cli.json_list import JSONListReader
from accord.cli.visible import one_line
from accord.errors import ProtocolViolation
from accord.protocol import JSON, MAX_DEPTH, JSONObject
from accord.protocol.codec import decode_json
from accord.wire import MAX_FRAME_BYTES, PROTOBUF_MEDIA_TYPE, SSE_MEDIA_TYPE, ProtobufReader, SSEReader

_READ_BYTES: Final = 65536
_BOM: Final = b"\xef\xbb\xbf"
_BLANK: Final = b" \t\r\n"
#: Formats by the ending of the name; any other name, and standard input, are told by how they begin.
_FORMATS: Final = {".sse": "sse", ".pb": "protobuf", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json"}
#: How each frame begins: the length it leads with may not fill its highest byte (`MAX_FRAME_BYTES`). Text never does.
_FRAME_START: Final = b"\0"
_HEADER_BYTES: Final = 4
_TEXT: Final = re.compile(rb"[\t\n\r -~]{%d}" % _HEADER_BYTES)
#: What lies around an event in a case: the case and its stream.
_CASE_LEVELS: Final = 2


class Payload(NamedTuple):
    """One event, raw or as JSON text; `place` says where it stands when that helps to find it (`line 3`), else `""`."""

    data: bytes | JSONObject
    place: str = ""


@dataclass(frozen=True, slots=True)
class Recording:
    """What is played. `payloads` raises as it is read: `CommandFailed` for what is no recording, `TruncatedRun` and
    `ProtocolViolation` as a wire reader does. `input` and `peer_version` come with a corpus case, else None."""

    payloads: Iterator[Payload]
    input: JSON | None = None
    peer_version: str | None = None


@contextmanager
def open_recording(name: str) -> Iterator[Recording]:
    """The recording in the file `name`, `-` for standard input; read it within the block."""
    if name == "-":
        yield read_recording(sys.stdin.buffer, "standard input")
        return
    try:
        source = Path(name).open("rb")  # noqa: SIM115  (what goes wrong while it is read says so itself)
    except OSError as error:
        raise CommandFailed(f"cannot read {name}: {error.strerror}", exit_code=2) from None
    with source:
        yield read_recording(source, name, _FORMATS.get(Path(name).suffix.lower()))


def read_json_file(name: str) -> JSON:
    """The JSON value in the file `name`."""
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        raise CommandFailed(f"cannot read {name}: {error.strerror}", exit_code=2) from None
    return _document(data, name, max_depth=MAX_DEPTH)


def read_recording(source: BinaryIO, name: str, kind: str | None = None) -> Recording:
    """The recording in `source`. Without `kind` (`sse`, `protobuf`, `jsonl`, `json`), the beginning tells it."""
    chunks = _chunks(source, name)
    if kind == "sse":
        return Recording(_event_stream(chunks, name))
    if kind == "protobuf":
        return Recording(_frames(chunks, name))
    start = _beginning(chunks)
    data = chain([start], chunks)
    text = start.lstrip(_BLANK)
    kind = kind or ("protobuf" if start.startswith(_FRAME_START) else _kind_of(text))
    if kind == "sse":
        return Recording(_event_stream(data, name))
    if kind == "protobuf":
        return Recording(_frames(data, name))
    if kind == "jsonl":
        return Recording(_json_lines(data))
    if text.startswith(b"["):
        return Recording(_json_list(data, name))
    return _case(b"".join(data), name)


def _chunks(source: BinaryIO, name: str) -> Iterator[bytes]:
    read = source.read1 if isinstance(source, io.BufferedReader) else source.read
    while True:
        try:
            chunk = read(_READ_BYTES)
        except OSError as error:
            raise CommandFailed(f"cannot read {name}: {error.strerror}", exit_code=2) from None
        if not chunk:
            return
        yield chunk


def _beginning(chunks: Iterator[bytes]) -> bytes:
    """As much as tells the format, without a BOM: something that is not blank, of an object its first line."""
    start = bytearray()
    for chunk in chunks:
        start += chunk
        if start.startswith(_BOM):
            del start[: len(_BOM)]
        text = start.lstrip(_BLANK)
        if text and (not text.startswith(b"{") or b"\n" in text or len(text) > MAX_FRAME_BYTES):
            break
    return bytes(start)


def _kind_of(text: bytes) -> str:
    """`json` for a list and for an object that is a case, `jsonl` for an object that is an event, else `sse`."""
    if not text.startswith((b"[", b"{")):
        return "sse"
    if text.startswith(b"["):
        return "json"
    first_line = text.split(b"\n", 1)[0]
    try:
        first = json.loads(first_line)
    except (ValueError, RecursionError):
        return "jsonl" if b'"type"' in first_line else "json"
    return "jsonl" if "type" in first or "stream" not in first else "json"


# The formats


def _event_stream(data: Iterable[bytes], name: str) -> Iterator[Payload]:
    reader, opening = SSEReader(), _Opening(name)
    for chunk in data:
        opening.check(chunk)
        yield from map(Payload, reader.feed(chunk))
    opening.end()
    reader.close()


class _Opening:
    """The lines before the first event: fields of an event stream and comments, or it is no event stream.

    A reader passes over fields it does not know, so headers and whatever else a tool wrote before the body would be
    taken for nothing; here they mean that the file is not what was sent.
    """

    _MEANT = re.compile(rb"(?:data|event|id|retry)?(?::|\Z)")
    _KEPT = 200  # bytes of a line, enough to judge and to show it

    def __init__(self, name: str) -> None:
        self._name = name
        self._line = bytearray()
        self._number = 1
        self._after_cr = False
        self._over = False

    def check(self, chunk: bytes) -> None:
        if self._over:
            return
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        for line in chunk.splitlines(keepends=True):  # of bytes: at LF, CR and CRLF only
            self._line += line[: self._KEPT]
            if line[-1:] in (b"\n", b"\r"):
                self._judge(bytes(self._line).rstrip(b"\r\n"))
                if self._over:
                    return
                self._line.clear()
                self._number += 1

    def end(self) -> None:
        if not self._over and self._line:
            self._judge(bytes(self._line))

    def _judge(self, line: bytes) -> None:
        if self._number == 1:
            line = line.removeprefix(_BOM)
        if not self._MEANT.match(line):
            shown = one_line(line.decode("utf-8", "replace"), 60)
            raise CommandFailed(
                f"{self._name}: line {self._number} is no part of an event stream: {shown!r} "
                f"(record the body alone, as `curl -sN -H 'Accept: {SSE_MEDIA_TYPE}'` writes it)",
                exit_code=2,
            )
        self._over = line.startswith(b"data")


def _frames(data: Iterable[bytes], name: str) -> Iterator[Payload]:
    reader, opening = ProtobufReader(), bytearray()
    for chunk in data:
        if len(opening) < _HEADER_BYTES:
            opening += chunk[:_HEADER_BYTES]
            _refuse_text(bytes(opening[:_HEADER_BYTES]), name)
        yield from map(Payload, reader.feed(chunk))
    reader.close()


def _refuse_text(opening: bytes, name: str) -> None:
    """Headers, an event stream or JSON in the place of frames; read as a length, they are beyond any limit."""
    if _TEXT.fullmatch(opening):
        shown = one_line(opening.decode(), 60)
        raise CommandFailed(
            f"{name}: it begins with text, not with a frame of the binary wire: {shown!r} "
            f"(record the body alone, as `curl -sN -H 'Accept: {PROTOBUF_MEDIA_TYPE}'` writes it)",
            exit_code=2,
        )


def _json_lines(data: Iterable[bytes]) -> Iterator[Payload]:
    for number, line in enumerate(_lines(data), 1):
        if len(line) > MAX_FRAME_BYTES:
            message = f"line {number} is longer than {MAX_FRAME_BYTES} bytes"
            raise ProtocolViolation(message, stage="wire", rule="frame-limit")
        if line.strip():
            yield Payload(line.strip(), f"line {number}")


def _lines(data: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of `data`; one that passes the limit comes as far as it has been read."""
    unfinished = bytearray()
    for chunk in data:
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            yield bytes(unfinished) + line
            unfinished.clear()
        unfinished += rest
        if len(unfinished) > MAX_FRAME_BYTES:
            break
    if unfinished:
        yield bytes(unfinished)


def _json_list(data: Iterable[bytes], name: str) -> Iterator[Payload]:
    reader = JSONListReader()
    try:
        for chunk in data:
            yield from map(Payload, reader.feed(chunk))
        reader.close()
    except ValueError as error:
        raise CommandFailed(f"{name}: not a JSON list of events: {error}", exit_code=2) from None


def _case(data: bytes, name: str) -> Recording:
    case = _document(data, name, max_depth=MAX_DEPTH + _CASE_LEVELS)
    if not isinstance(case, dict) or not isinstance(case.get("stream"), list):
        raise CommandFailed(f"{name}: neither a list of events nor a case (an object with `stream`)", exit_code=2)
    client = case.get("client")
    version = client.get("maxProtocolVersion") if isinstance(client, dict) else None
    if version is not None and not isinstance(version, str):
        raise CommandFailed(f"{name}: /client/maxProtocolVersion is not a string", exit_code=2)
    return Recording(map(_payload_of, case["stream"]), case.get("input"), version)


def _payload_of(event: Any) -> Payload:
    return Payload(json.dumps(event).encode())


def _document(data: bytes, name: str, *, max_depth: int) -> JSON:
    text = data.removeprefix(_BOM)
    try:
        return decode_json(text, max_depth=max_depth)
    except ProtocolViolation as violation:
        raise CommandFailed(f"{name}: {violation.args[0]}", exit_code=2) from None
