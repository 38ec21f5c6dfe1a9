from __future__ import annotations

import pytest

from accord.protocol import (
    AddOperation,
    CopyOperation,
    JSONObject,
    MoveOperation,
    RemoveOperation,
    ReplaceOperation,
    TestOperation,
    read_operation,
)


@pytest.mark.parametrize(
    ("raw", "operation"),
    [
        ({"op": "add", "path": "/a", "value": None}, AddOperation(path="/a", value=None)),
        ({"op": "remove", "path": ""}, RemoveOperation(path="")),
        ({"op": "replace", "path": "/a", "value": 1}, ReplaceOperation(path="/a", value=1)),
        ({"op": "move", "path": "/a", "from": "/b"}, MoveOperation(path="/a", from_="/b")),
        ({"op": "copy", "path": "/a", "from": "/b"}, CopyOperation(path="/a", from_="/b")),
        ({"op": "test", "path": "/a", "value": []}, TestOperation(path="/a", value=[])),
    ],
)
def test_reads_each_operation(raw: JSONObject, operation: AddOperation) -> None:
    assert read_operation(raw) == operation
    assert read_operation(operation) is operation
    assert operation.op == raw["op"]
