"""`accord replay`: every corpus stream in every format, and the recordings that people really have."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from accord.cli import app
from accord.cli.failure import CommandFailed
from accord.cli.recording import read_recording
from support.corpus import corpus_files

RUN = [
    {"type": "RUN_STARTED", "threadId": "t1", "runId": "r1"},
    {"type": "TEXT_MESSAGE_START", "messageId": "m1"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "Hello"},
    {"type": "TEXT_MESSAGE_END", "messageId": "m1"},
    {"type": "RUN_FINISHED", "threadId": "t1", "runId": "r1"},
]
STARTED, TEXT_STARTED, CONTENT, TEXT_ENDED, FINISHED = RUN
EVENT = json.dumps(STARTED).encode()
MISSING = object()


def sse(events: list[Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def json_lines(events: list[Any]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def run(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["replay", *arguments], input=stdin)


def played(path: Path | str, *options: str, stdin: bytes | None = None) -> dict[str, Any]:
    result = run(str(path), "--format", "json", *options, stdin=stdin)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout_bytes)
    assert list(report) == ["outcome", "error", "runError", "events", "warnings", "messages", "state", "request"]
    assert isinstance(report, dict)
    return report


def written(tmp_path: Path, name: str, data: bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


# The corpus


def at(value: Any, path: str) -> Any:
    for key in path.split("."):
        try:
            value = value[int(key) if isinstance(value, list) else key]
        except (LookupError, TypeError):
            return MISSING
    return value


def fits(actual: Any, expected: Any) -> bool:
    """Subset match: what is expected is there, lists have the same length."""
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(key in actual and fits(actual[key], expected[key]) for key in expected)
    if isinstance(expected, list):
        return (
            isinstance(actual, list)
            and len(actual) == len(expected)
            and all(fits(*pair) for pair in zip(actual, expected, strict=True))
        )
    return bool(actual == expected) and isinstance(actual, bool) == isinstance(expected, bool)


def assert_as_expected(report: dict[str, Any], expect: dict[str, Any]) -> None:
    # `errorContains` hints at the reason, the wording is ours.
    known = {"outcome", "errorContains", "runError", "eventTypes", "eventTypesAbsent", "eventPaths", "eventAbsentPaths"}
    known |= {"warnings", "noWarnings", "messages", "messageCount", "state", "request", "requestAbsentPaths"}
    assert set(expect) <= known
    types = [event["type"] for event in report["events"]]
    accepted = report["outcome"] not in ("rejected", "truncated")
    assert expect["outcome"] == (
        "completed" if accepted else {"rejected": "failed"}.get(report["outcome"], "truncated")
    )
    assert (report["error"] is None) == accepted
    if "runError" in expect:
        assert expect["runError"] in report["runError"]
    assert types == expect.get("eventTypes", types)
    assert not set(types) & set(expect.get("eventTypesAbsent", ()))
    for path, value in expect.get("eventPaths", {}).items():
        assert at(report["events"], path) == value, path
    for path in expect.get("eventAbsentPaths", ()):
        assert at(report["events"], path) is MISSING, path
    for text in expect.get("warnings", ()):
        assert any(text in warning for warning in report["warnings"]), text
    if expect.get("noWarnings"):
        assert report["warnings"] == []
    for part in ("messages", "state", "request"):
        assert part not in expect or fits(report[part], expect[part]), part
    assert len(report["messages"]) == expect.get("messageCount", len(report["messages"]))
    for path in expect.get("requestAbsentPaths", ()):
        assert at(report["request"], path) is MISSING, path


def same_ids(report: dict[str, Any]) -> Any:
    """The report with ids that the consumer made up numbered in their order."""
    text = json.dumps(report)
    for number, made_up in enumerate(dict.fromkeys(re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", text))):
        text = text.replace(made_up, f"made-up-{number}")
    return json.loads(text)


@pytest.mark.parametrize("case_file", corpus_files("streams/*.json"), ids=lambda path: path.stem)
def test_every_corpus_stream_in_every_format(case_file: Path, tmp_path: Path) -> None:
    case = json.loads(case_file.read_bytes())
    report = played(case_file)
    assert_as_expected(report, case["expect"])

    options = []
    if "input" in case:
        options += ["--input", str(written(tmp_path, "input.json", json.dumps(case["input"]).encode()))]
    if "client" in case:
        options += ["--peer-version", case["client"]["maxProtocolVersion"]]
    recordings = {
        "stream.sse": sse(case["stream"]),
        "stream.jsonl": json_lines(case["stream"]),
        "list.json": json.dumps(case["stream"], indent=1).encode(),
    }
    for name, data in recordings.items():
        for source, stdin in ((written(tmp_path, name, data), None), ("-", data)):
            other = played(source, *options, stdin=stdin)
            if name == "stream.jsonl" and other["error"] and "event" in other["error"]:
                place, _, other["error"] = other["error"].partition(": ")
                assert place.startswith("line ")
            assert same_ids(other) == same_ids(report), (name, source)


# Outcomes


@pytest.mark.parametrize(
    ("ending", "outcome", "run_error"),
    [
        ([FINISHED], "success", None),
        ([{**FINISHED, "outcome": {"type": "cancelled"}}], "cancelled", None),
        (
            [{**FINISHED, "outcome": {"type": "interrupt", "interrupts": [{"id": "i1", "reason": "x"}]}}],
            "interrupt",
            None,
        ),
        ([{"type": "RUN_ERROR", "message": "No more."}], "failed", "No more."),
        ([FINISHED, {"type": "RUN_ERROR", "message": "Late."}], "failed", "Late."),
        ([{"type": "RUN_ERROR", "message": "One."}, STARTED, FINISHED], "success", "One."),
        ([FINISHED, {**STARTED, "runId": "r2"}], "truncated", None),
        ([], "truncated", None),
    ],
)
def test_the_outcome_is_that_of_the_last_run(
    tmp_path: Path, ending: list[Any], outcome: str, run_error: str | None
) -> None:
    report = played(written(tmp_path, "run.jsonl", json_lines([*RUN[:-1], *ending])))
    assert (report["outcome"], report["runError"]) == (outcome, run_error)
    assert (report["error"] is None) == (outcome != "truncated")
    assert report["messages"] == [{"role": "assistant", "id": "m1", "content": "Hello"}]


def test_an_empty_recording_is_truncated(tmp_path: Path) -> None:
    for name in ("empty.sse", "empty.jsonl", "empty"):
        assert played(written(tmp_path, name, b""))["outcome"] == "truncated"
    assert played("-", stdin=b"")["outcome"] == "truncated"
    assert played(written(tmp_path, "none.json", b"[]"))["outcome"] == "truncated"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("cut.sse", sse(RUN[:3]) + b'data: {"type": "TEXT_M'),
        ("bad.sse", sse(RUN[:3]) + b'data: {"type": nonsense}\n\n' + sse(RUN[3:])),
        ("bytes.sse", sse(RUN[:3]) + b'data: {"type": "\xff"}\n\n' + sse(RUN[3:])),
        ("bad.jsonl", json_lines(RUN[:3]) + b"\n}\n" + json_lines(RUN[3:])),
        ("cut.jsonl", json_lines(RUN[:3]) + b'\n{"type": "TEXT_'),
        ("number.jsonl", json_lines(RUN[:3]) + b"\n7\n" + json_lines(RUN[3:])),
        ("bad.json", json.dumps(RUN[:3])[:-1].encode() + b', {"type": nonsense}]'),
    ],
)
def test_what_came_before_a_bad_event_stays(tmp_path: Path, name: str, data: bytes) -> None:
    report = played(written(tmp_path, name, data))
    assert report["outcome"] == ("truncated" if name == "cut.sse" else "rejected")
    assert report["events"] == RUN[:3]
    assert report["messages"][0]["content"] == "Hello"
    if name.endswith(".jsonl"):
        assert report["error"].startswith("line 5: ")


def test_events_of_the_payload_that_breaks_the_stream_are_delivered(tmp_path: Path) -> None:
    # The step's end ends the message that the chunk began, which is delivered, and is itself refused.
    chunk = {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m1", "delta": "a"}
    events = [STARTED, chunk, {"type": "STEP_FINISHED", "stepName": "x"}]
    report = played(written(tmp_path, "run.jsonl", json_lines(events)))
    assert report["outcome"] == "rejected"
    assert [event["type"] for event in report["events"]] == [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
    ]


def test_a_line_without_end_is_refused_by_its_own_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.cli.recording.MAX_FRAME_BYTES", 1_000)
    for line in (b'{"type": "' + b"x" * 2_000 + b'"}\n', b"x" * 200_000):
        report = played(written(tmp_path, "run.jsonl", json_lines(RUN[:3]) + line))
        assert (report["outcome"], report["events"]) == ("rejected", RUN[:3])
        assert report["error"] == "wire: line 4 is longer than 1000 bytes"


def test_the_json_is_json_whatever_the_strings_hold(tmp_path: Path) -> None:
    value = '"\\ud83d and \\u0000"'
    lines = [
        json.dumps(STARTED),
        '{"type":"CUSTOM","name":"x","value":[' + value + "]}",
        '{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":' + value + ',"why":' + value + "}]}",
        '{"type":"TEXT_MESSAGE_CHUNK","messageId":"m\\ud83d","delta":"\\ud83d"}',
        '{"type":"TEXT_MESSAGE_CHUNK","delta":"\\ude00"}',
        '{"type":"RUN_ERROR","message":' + value + "}",
    ]
    report = played(written(tmp_path, "run.jsonl", "\n".join(lines).encode()))
    lone = "\ud83d and \0"
    assert report["events"][1]["value"] == [lone]
    assert report["events"][2]["delta"] == [{"op": "add", "path": "/a", "value": lone, "why": lone}]
    assert report["state"] == {"a": lone}
    assert report["messages"] == [{"role": "assistant", "id": "m\ud83d", "content": "😀"}]
    assert report["runError"] == lone


# The request


def test_the_input_takes_its_ids_from_the_recording(tmp_path: Path) -> None:
    run_file = written(tmp_path, "run.sse", sse(RUN))
    assert played(run_file)["request"] == {"threadId": "t1", "runId": "r1", "protocolVersion": "1.0", "messages": []}
    two_runs = written(tmp_path, "two.sse", sse([*RUN, {**STARTED, "runId": "r2"}, {**FINISHED, "runId": "r2"}]))
    assert played(two_runs)["request"]["runId"] == "r1"
    partial = {"runId": "mine", "state": {"a": None}, "messages": [{"id": "u1", "role": "user", "content": "Hi"}]}
    report = played(run_file, "--input", str(written(tmp_path, "in.json", json.dumps(partial).encode())))
    assert report["request"] == {"threadId": "t1", "protocolVersion": "1.0", **partial}
    assert report["state"] == {"a": None}
    assert [message["id"] for message in report["messages"]] == ["u1", "m1"]


def test_an_input_that_no_client_would_send_plays_nothing(tmp_path: Path) -> None:
    run_file = written(tmp_path, "run.sse", sse(RUN))
    bad_inputs = [
        b'{"messages": [{"role": "user"}], "future": 1}',
        b'{"threadId": 7}',
        b"[]",
    ]
    for bad in bad_inputs:
        report = played(run_file, "--input", str(written(tmp_path, "in.json", bad)))
        assert (report["outcome"], report["request"], report["events"]) == ("rejected", None, []), bad
        assert report["error"]


def test_an_input_with_half_a_character_is_sent_with_its_replacement(tmp_path: Path) -> None:
    run_file = written(tmp_path, "run.sse", sse(RUN))
    half = written(tmp_path, "in.json", b'{"state": {"a": "\\ud83d"}}')
    report = played(run_file, "--input", str(half))
    assert report["outcome"] == "success"
    assert report["request"]["state"] == {"a": "\ufffd"}


def test_options_win_over_the_case(tmp_path: Path) -> None:
    case = {"stream": RUN, "input": {"runId": "case"}, "client": {"maxProtocolVersion": "0.0.39"}}
    case_file = written(tmp_path, "case.json", json.dumps(case).encode())
    assert "protocolVersion" not in played(case_file)["request"]
    assert played(case_file)["request"]["runId"] == "case"
    other = written(tmp_path, "in.json", b'{"runId": "option"}')
    request = played(case_file, "--input", str(other), "--peer-version", "1.0")["request"]
    assert (request["runId"], request["protocolVersion"]) == ("option", "1.0")


# What is no recording


NOISE = {
    "curl -i": (b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n", 1),
    "headers alone": (b"\n: hello\n\ncontent-type: text/event-stream\n\n", 4),
    "curl -v": (b"* Connected to 127.0.0.1\r\n> POST / HTTP/1.1\r\n", 1),
    "progress": (b"  % Total    % Received % Xferd  Average Speed\n", 1),
    "chunked": (b"\r\n2f\r\n", 2),
    "page": (b"<!DOCTYPE html>\n<html>", 1),
    "json": (b'{"detail":"Not Found"}', 1),
    "after fields": (b"event: message\nid: 1\nretry: 5\ndate\n", 4),
    "lone cr": (b":\r\rdate: x\r", 3),
}


@pytest.mark.parametrize(("noise", "line"), NOISE.values(), ids=NOISE.keys())
@pytest.mark.parametrize("form", ["human", "json"])
def test_noise_before_the_stream_is_refused_by_line(tmp_path: Path, noise: bytes, line: int, form: str) -> None:
    for data in (noise + sse(RUN), noise):
        result = run(str(written(tmp_path, "run.sse", data)), "--format", form)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"line {line} is no part of an event stream" in result.stderr


@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"])
def test_lines_are_counted_however_they_end_and_come(line_end: bytes) -> None:
    class Trickle(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(1)

    opening = line_end.join([b": hello", b"", b"event: x", b"date: today", b""])
    with pytest.raises(CommandFailed, match="line 4 is no part"):
        list(read_recording(Trickle(opening + sse(RUN)), "x", "sse").payloads)


def test_what_an_event_stream_may_open_with(tmp_path: Path) -> None:
    opening = b"\xef\xbb\xbf: hello\r\n\r\nevent: message\r\nid: 7\r\nretry: 10\r\nid\r\n:\r\n"
    assert played(written(tmp_path, "run.sse", opening + sse(RUN)))["outcome"] == "success"
    assert played("-", stdin=b"\n\n" + opening[3:] + sse(RUN))["outcome"] == "success"


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.json", b"", "not JSON"),
        ("a.json", b"{", "not JSON"),
        ("a.json", b"nonsense", "not JSON"),
        ("a.json", b'{"type": "RUN_STARTED"}', "neither a list of events nor a case"),
        ("a.json", b'{"stream": {}}', "neither a list of events nor a case"),
        ("a.json", b'{"stream": [], "client": {"maxProtocolVersion": 1}}', "/client/maxProtocolVersion"),
        ("a.json", b'{"stream": [], "client": {"maxProtocolVersion": "x"}}', "not a version"),
        ("a.json", b'[{"type": "RUN_STARTED"}', "it ends after 0 elements"),
        ("a.json", b"[%b, {" % EVENT, "it ends after 1 elements"),
        ("a.json", b"[%b] 2" % EVENT, "something follows the list"),
        ("a.json", b"[%b,,2]" % EVENT, "an element is missing"),
        ("a.json", b"[%b,]" % EVENT, "an element is missing"),
        ("a.json", b"[}]", "a brace closes nothing"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    result = run(str(written(tmp_path, name, data)), "--format", "json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for arguments in (
        [str(tmp_path / "none.sse")],
        [str(tmp_path)],
        [str(written(tmp_path, "run.sse", sse(RUN))), "--input", str(tmp_path / "none.json")],
        [str(written(tmp_path, "run.sse", sse(RUN))), "--input", str(written(tmp_path, "in.json", b"{nonsense"))],
        [str(written(tmp_path, "run.sse", sse(RUN))), "--peer-version", "new"],
    ):
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (2, ""), arguments
        assert result.stderr.startswith("accord: ")
        assert result.stderr.count("\n") == 1


def test_standard_input_is_told_by_how_it_begins() -> None:
    case = {"name": "x", "stream": RUN, "client": {"maxProtocolVersion": "0.0.57"}}
    started = {**STARTED, "input": {"threadId": "t1", "runId": "r1", "messages": [], "forwardedProps": {"stream": []}}}
    forms = [
        (sse(RUN), 5),
        (json_lines(RUN), 5),
        (json_lines([started, *RUN[1:]]), 5),
        (b"\n\n" + json_lines(RUN).replace(b"\n", b"\r\n\r\n"), 5),
        (json.dumps(RUN).encode(), 5),
        (json.dumps(case).encode(), 5),
        (b"\xef\xbb\xbf" + json.dumps(case, indent=2).encode(), 5),
        (json.dumps(STARTED).encode(), 1),
        (b'{"type": nonsense}\n', 0),
    ]
    for data, count in forms:
        assert len(played("-", stdin=data)["events"]) == count, data[:60]


# For people


def test_the_human_form(tmp_path: Path) -> None:
    events = [
        STARTED,
        {"type": "FUTURE"},
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m1", "delta": "a [red]b[/red]\x1b[2J\nc"},
        {"type": "STATE_SNAPSHOT", "snapshot": {"a": {"b": "\x1b[31m"}}},
        {"type": "STATE_DELTA", "delta": [{"op": "move", "from": "/a", "path": "/x"}, {"op": "remove", "path": "/a"}]},
        {"type": "TOOL_CALL_CHUNK", "toolCallId": "c1", "toolCallName": "look", "delta": "{}"},
        {"type": "TOOL_CALL_RESULT", "messageId": "r", "toolCallId": "c1", "content": "found"},
        {"type": "RUN_ERROR", "message": "No \x07 more."},
        {"type": "STEP_FINISHED", "stepName": "x"},
    ]
    result = run(str(written(tmp_path, "run.jsonl", json_lines(events))))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    warning, rejection = lines.pop(7), lines.pop(12)
    assert warning.startswith("        warning: application STATE_DELTA /delta/1: ")
    assert rejection.startswith("        rejected: line 9: verification: STEP_FINISHED")
    assert lines == [
        "     0  RUN_STARTED                 threadId=t1 runId=r1",
        "        warning: enforcement FUTURE: unknown event type, dropped",
        "     2  TEXT_MESSAGE_START          messageId=m1 role=assistant",
        '     2  TEXT_MESSAGE_CONTENT        messageId=m1 delta="a [red]b[/red]\\u001b[2J\\nc"',
        "     3  TEXT_MESSAGE_END            messageId=m1",
        '     3  STATE_SNAPSHOT              snapshot={"a": {"b": "\\u001b[31m"}}',
        "     4  STATE_DELTA                 delta=[move /x from /a; remove /a]",
        "     5  TOOL_CALL_START             toolCallId=c1 toolCallName=look",
        '     5  TOOL_CALL_ARGS              toolCallId=c1 delta="{}"',
        "     6  TOOL_CALL_END               toolCallId=c1",
        '     6  TOOL_CALL_RESULT            messageId=r toolCallId=c1 content="found"',
        '     7  RUN_ERROR                   message="No \\u0007 more."',
        "",
        "Messages",
        "  assistant: a [red]b[/red]\\x1b[2J",
        "    c",
        "  assistant:",
        "    calls look({})",
        "  tool (c1): found",
        "",
        "State",
        "  a:",
        "    b: \\x1b[31m",
        "",
        "Outcome: rejected",
        "The run reported: No \\x07 more.",
    ]


# As a process


def accord(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "accord", *arguments], stdout=subprocess.PIPE, **options)


def test_events_are_shown_while_the_recording_grows() -> None:
    with accord("replay", "-", stdin=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1"}) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for event in RUN:
            process.stdin.write(sse([event]))
            process.stdin.flush()
            assert event["type"].encode() in process.stdout.readline()
        process.stdin.close()
        assert b"Outcome: success" in process.stdout.read()
    assert process.returncode == 0


def test_an_output_that_cannot_show_everything_gets_escapes(tmp_path: Path) -> None:
    recording = written(
        tmp_path, "run.jsonl", json_lines([STARTED, {**CONTENT, "type": "CUSTOM", "value": "é", "name": "🍝"}])
    )
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    with accord("replay", str(recording), env=environment) as process:
        assert process.stdout is not None
        assert b"name=\\U0001f35d" in process.stdout.read()
    with accord("replay", str(recording), "--format", "json", env=environment) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.read())["events"][1]["name"] == "🍝"


def test_a_reader_that_leaves_early_is_no_failure(tmp_path: Path) -> None:
    events = [STARTED, *[{"type": "CUSTOM", "name": "x" * 200, "value": None}] * 20_000]
    with accord("replay", str(written(tmp_path, "run.jsonl", json_lines(events))), stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a system without /dev/full")
@pytest.mark.parametrize("form", ["human", "json"])
def test_a_full_disk_is_told_in_a_line(tmp_path: Path, form: str) -> None:
    recording = written(tmp_path, "run.jsonl", json_lines(RUN))
    arguments = [sys.executable, "-m", "accord", "replay", str(recording), "--format", form]
    # What waits in a buffer is written once more when the interpreter ends.
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, env=buffered, check=False)
    assert ended.stderr == b"accord: cannot write to standard output: No space left on device\n"
    assert ended.returncode == 2


@pytest.mark.skipif(os.name != "posix", reason="closes a file descriptor as a shell does")
def test_a_closed_output_is_told_in_a_line(tmp_path: Path) -> None:
    recording = written(tmp_path, "run.jsonl", json_lines(RUN))
    command = f'exec "{sys.executable}" -m accord replay "{recording}" >&-'
    ended = subprocess.run(["/bin/sh", "-c", command], stderr=subprocess.PIPE, check=False)
    assert ended.stderr.startswith(b"accord: standard output is closed")
    assert ended.stderr.count(b"\n") == 1
    assert ended.returncode == 2
