"""`accord replay` of the binary wire: a recorded body through the same consumer, told by its name or its beginning."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from accord.cli import app
from accord.cli.recording import read_recording
from accord.protocol import decode_event, encode_event
from accord.wire import encode_frame, encode_protobuf, frame
from support.corpus import corpus_files
from wire.envelopes import carried
from wire.test_protobuf_verdict import LATER, NOT_SAID, framed

RUN: list[Any] = [
    {"type": "RUN_STARTED", "threadId": "t1", "runId": "r1"},
    {"type": "STATE_SNAPSHOT", "snapshot": {"é": [None, 1, 1.5, True], "large": "x" * 200_000}},
    {"type": "TEXT_MESSAGE_START", "messageId": "m1"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "Zürich"},
    {"type": "TEXT_MESSAGE_END", "messageId": "m1"},
    {"type": "RUN_FINISHED", "threadId": "t1", "runId": "r1", "result": {"n": None}},
]


def frames(events: list[Any]) -> bytes:
    return b"".join(frame(encode_protobuf(decode_event(json.dumps(event)))) for event in events)


def sse(events: list[Any]) -> bytes:
    return b"".join(encode_frame(encode_event(decode_event(json.dumps(event)))) for event in events)


BODY = frames(RUN)


def run(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["replay", *arguments], input=stdin)


def played(path: Path | str, *options: str, stdin: bytes | None = None) -> dict[str, Any]:
    result = run(str(path), "--format", "json", *options, stdin=stdin)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout_bytes)
    assert isinstance(report, dict)
    return report


def written(tmp_path: Path, name: str, data: bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


# Whole bodies


@pytest.mark.parametrize("name", ["run.pb", "RUN.PB", "run.bin", "run", "-"])
def test_it_is_told_by_its_name_or_its_beginning(tmp_path: Path, name: str) -> None:
    report = played("-", stdin=BODY) if name == "-" else played(written(tmp_path, name, BODY))
    assert report["outcome"] == "success"
    assert report["events"] == RUN
    assert report["state"] == RUN[1]["snapshot"]
    assert report == played(written(tmp_path, "run.sse", sse(RUN)))


def test_the_beginning_may_come_byte_by_byte() -> None:
    class Trickle(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(1)

    small = [event for event in RUN if event["type"] != "STATE_SNAPSHOT"]
    for kind in (None, "protobuf"):
        payloads = read_recording(Trickle(frames(small)), "x", kind).payloads
        events = [payload.data if isinstance(payload.data, dict) else json.loads(payload.data) for payload in payloads]
        assert events == small


def test_people_see_what_they_see_of_an_event_stream(tmp_path: Path) -> None:
    binary = run(str(written(tmp_path, "run.pb", BODY)))
    text = run(str(written(tmp_path, "run.sse", sse(RUN))))
    assert binary.exit_code == 0
    assert binary.stdout == text.stdout
    assert "Outcome: success" in binary.stdout


SAID = [file for file in corpus_files("streams/*.json") if file.stem not in NOT_SAID]


@pytest.mark.parametrize("file", SAID, ids=lambda file: file.stem)
def test_corpus(file: Path, tmp_path: Path) -> None:
    case = json.loads(file.read_bytes())
    options = []
    if "input" in case:
        options += ["--input", str(written(tmp_path, "input.json", json.dumps(case["input"]).encode()))]
    if "client" in case:
        options += ["--peer-version", case["client"]["maxProtocolVersion"]]
    report = played(file)
    binary = played(written(tmp_path, "run.pb", b"".join(map(framed, case["stream"]))), *options)
    for name in ("outcome", "runError", "error", "state", "request"):
        assert binary[name] == report[name], name
    assert binary["events"] == [carried(event) for event in report["events"]]
    assert [carried({"messages": [each]}) for each in report["messages"]] == [
        {"messages": [each]} for each in binary["messages"]
    ]


def test_an_event_of_a_later_version_is_a_warning(tmp_path: Path) -> None:
    report = played(written(tmp_path, "run.pb", frames(RUN[:1]) + frame(LATER) + frames(RUN[1:])))
    assert (report["outcome"], report["events"]) == ("success", RUN)
    assert report["warnings"] == ["enforcement (envelope arm 99): unknown event type, dropped"]


# Bodies that end badly


def test_a_body_cut_anywhere(tmp_path: Path) -> None:
    ends = [len(frames(RUN[:count])) for count in range(len(RUN) + 1)]
    for cut in sorted({*(end + step for end in ends for step in (-1, 0, 1, 2, 3, 4, 5)), 100_000} - {-1}):
        if cut > len(BODY):
            continue
        report = played(written(tmp_path, "run.pb", BODY[:cut]))
        assert report["outcome"] == ("success" if cut == len(BODY) else "truncated"), cut
        assert report["events"] == RUN[: sum(end <= cut for end in ends[1:])], cut
        assert ("inside a frame" in (report["error"] or "")) is (cut not in ends), cut
    assert played("-", stdin=BODY[:-1])["outcome"] == "truncated"
    assert played("-", stdin=BODY[:3])["outcome"] == "truncated"
    assert played(written(tmp_path, "run.pb", BODY + b"\0"))["outcome"] == "truncated"
    human = run(str(written(tmp_path, "run.pb", BODY[:-1])))
    assert (human.exit_code, "Outcome: truncated" in human.stdout) == (0, True)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (b"\0\0\0\1\xff", "not a Protocol Buffers message"),
        (b"\0\0\0\0", "holds no event"),
        (b"\0\xff\xff\xff", "max_frame_bytes"),
        (b"\xff\xff\xff\xff", "max_frame_bytes"),
        (frame(encode_protobuf(decode_event(json.dumps(RUN[0])))), "RUN_STARTED"),
    ],
)
def test_what_came_before_a_bad_frame_stays(tmp_path: Path, bad: bytes, said: str) -> None:
    report = played(written(tmp_path, "run.pb", frames(RUN[:4]) + bad + frames(RUN[4:])))
    assert (report["outcome"], report["events"]) == ("rejected", RUN[:4])
    assert said in report["error"]
    assert "(event 4)" in report["error"]
    if bad[0] == 255:
        assert played(written(tmp_path, "run.pb", bad))["outcome"] == "rejected"


# What is no such body


@pytest.mark.parametrize("form", ["human", "json"])
@pytest.mark.parametrize(
    "noise", [b"HTTP/1.1 200 OK\r\n\r\n", b"data: {}\n\n", b'{"detail":"Not Found"}', b"\r\n2f\r\n"]
)
def test_text_is_not_taken_for_frames(tmp_path: Path, noise: bytes, form: str) -> None:
    for data in (noise, noise + BODY):
        result = run(str(written(tmp_path, "run.pb", data)), "--format", form)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "it begins with text, not with a frame of the binary wire" in result.stderr
        assert "Accept: application/vnd.ag-ui.event+proto" in result.stderr
        assert result.stderr.count("\n") == 1


def test_frames_are_not_taken_for_an_event_stream(tmp_path: Path) -> None:
    result = run(str(written(tmp_path, "run.sse", BODY)))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "line 1 is no part of an event stream" in result.stderr
    assert "Accept: text/event-stream" in result.stderr


def test_an_empty_recording_is_truncated(tmp_path: Path) -> None:
    assert played(written(tmp_path, "run.pb", b""))["outcome"] == "truncated"
