"""What the tests of the binary wire share: golden envelopes, envelopes made by hand, and what the wire cannot say."""

from __future__ import annotations

import copy
from typing import Any

from accord.protocol import EVENT_TYPES, Event, conform
from accord.wire import agui_pb2 as pb
from accord.wire import encode_protobuf

Raw = dict[str, Any]


def exact(value: Any) -> Any:
    """A value whose integers are those of doubles: others the wire refuses to carry."""
    if isinstance(value, dict):
        return {name: exact(member) for name, member in value.items()}
    if isinstance(value, list):
        return [exact(element) for element in value]
    return int(float(value)) if type(value) is int else value


T_R: Raw = {"threadId": "t", "runId": "r"}

#: Events and their envelopes as `@ag-ui/proto` 1.0.0 writes them.
GOLDEN: list[tuple[Raw, str]] = [
    ({"type": "RUN_STARTED", **T_R}, "620a0a02080b1201741a0172"),
    (
        {"type": "RUN_STARTED", **T_R, "protocolVersion": "1.0", "parentRunId": "p"},
        "62120a02080b1201741a01722201703203312e30",
    ),
    ({"type": "RUN_FINISHED", **T_R}, "6a0a0a02080c1201741a0172"),
    (
        {
            "type": "RUN_FINISHED",
            **T_R,
            "result": {"a": 1},
            "outcome": {"type": "success", "pendingToolCallIds": ["c1"]},
        },
        "6a2b0a02080c1201741a017222122a100a0e0a0161120911000000000000f03f2a077375636365737342026331",
    ),
    (
        {
            "type": "RUN_FINISHED",
            **T_R,
            "outcome": {"type": "interrupt", "interrupts": [{"id": "i", "reason": "r", "metadata": {"k": None}}]},
        },
        "6a2a0a02080c1201741a01722a09696e7465727275707432130a01691201723a0b2a090a070a016b12020800",
    ),
    (
        {
            "type": "RUN_FINISHED",
            **T_R,
            "outcome": {"type": "cancelled"},
            "usage": [{"model": "m", "inputTokens": 3, "outputTokens": 0}],
        },
        "6a1e0a02080c1201741a01722a0963616e63656c6c65643a0712016d18032000",
    ),
    ({"type": "RUN_ERROR", "message": "x", "code": "c"}, "720a0a02080d1201631a0178"),
    (
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant", "timestamp": 1700000000000},
        "0a170a071080d095ffbc3112016d1a09617373697374616e74",
    ),
    ({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": ""}, "12070a02080112016d"),
    (
        {
            "type": "TEXT_MESSAGE_CHUNK",
            "messageId": "m",
            "delta": "hi",
            "rawEvent": {"z": [1, True, None, "s"]},
            "metadata": {"a": {}},
        },
        "8a013b0a3208131a232a210a1f0a017a121a32180a0911000000000000f03f0a0220010a0208000a031a0173"
        "22090a070a016112022a0012016d22026869",
    ),
    ({"type": "STATE_SNAPSHOT", "snapshot": None}, "3a080a02080612020800"),
    ({"type": "STATE_SNAPSHOT", "snapshot": {"n": 1.5}}, "3a180a02080612122a100a0e0a016e120911000000000000f83f"),
    (
        {
            "type": "STATE_DELTA",
            "delta": [
                {"op": "add", "path": "/a", "value": None},
                {"op": "remove", "path": "/b"},
                {"op": "move", "path": "/c", "from": "/a"},
            ],
        },
        "42220a020807120812022f61220208001206080112022f62120a080312022f631a022f61",
    ),
    (
        {
            "type": "MESSAGES_SNAPSHOT",
            "messages": [
                {
                    "id": "1",
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "t"},
                        {"type": "image", "source": {"type": "url", "value": "u"}},
                    ],
                },
                {
                    "id": "2",
                    "role": "assistant",
                    "toolCalls": [{"id": "t", "type": "function", "function": {"name": "n", "arguments": "{}"}}],
                },
                {"id": "3", "role": "activity", "activityType": "x", "content": {}},
            ],
        },
        "4a5d0a020808121b0a013112047573657242050a030a0174420912070a0512030a017512260a0132120961737369"
        "7374616e742a160a0174120866756e6374696f6e1a070a016e12027b7d12120a0133120861637469766974796201786a00",
    ),
    (
        {"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "t", "content": "x"},
        "b2010d0a0208151a016d2201742a0178",
    ),
    ({"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "t", "content": []}, "b2010a0a0208151a016d220174"),
    (
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "x", "content": {}, "replace": False},
        "ba010e0a0208161a01612201782a003000",
    ),
    ({"type": "CUSTOM", "name": "n", "value": 0}, "5a120a02080a12016e1a09110000000000000000"),
    (
        {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "e", "encryptedValue": "v"},
        "fa01130a02081e1a076d6573736167652201652a0176",
    ),
    (
        {
            "type": "SUBAGENT_FINISHED",
            "subagentRunId": "s",
            "outcome": {"type": "suspended", "interruptIds": ["i"]},
        },
        "a201150a020811120173220973757370656e6465642a0169",
    ),
]


def event(raw: Raw) -> Event:
    """The event of a well-formed raw one."""
    made, stripped = conform(raw, EVENT_TYPES[raw["type"]])
    assert made is not None
    assert stripped == []
    return made


def encoded(raw: Raw) -> bytes:
    """The envelope of a well-formed raw event."""
    return encode_protobuf(event(raw))


def field(number: int, body: bytes) -> bytes:
    """One short length-delimited field."""
    assert number < 16
    assert len(body) < 128
    return bytes([number << 3 | 2, len(body)]) + body


def base(event_type: str, **members: Any) -> Any:
    """A base event of the generated module."""
    return pb.BaseEvent(type=event_type, **members)


def carried(raw: Raw) -> Raw:
    """A raw event as it comes out of the binary wire: what that cannot say is gone.

    Lists that are empty are absent there, those of a run's input that are absent are empty, and undescribed members of
    operations are lost.
    """
    raw = copy.deepcopy(raw)
    for holder, name in (
        (raw, "usage"),
        (raw.get("outcome", {}), "pendingToolCallIds"),
        (raw.get("outcome", {}), "interruptIds"),
        *((message, "toolCalls") for message in raw.get("messages", ())),
    ):
        if holder.get(name) == []:
            del holder[name]
    if "input" in raw:
        raw["input"] = {"tools": [], "context": [], "resume": [], **carried(raw["input"])}
    for operations in (raw.get("delta"), raw.get("patch")):
        if isinstance(operations, list):
            for operation in operations:
                for name in set(operation) - {"op", "path", "from", "value"}:
                    del operation[name]
    return raw
