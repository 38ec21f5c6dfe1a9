from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.cli.json_text import json_text, shape_text
from accord.consumer import Pipeline
from accord.errors import ProtocolViolation
from accord.protocol import ActivityMessage, to_wire
from support.corpus import corpus_files

TEXT = st.text(st.characters(exclude_categories=()) | st.sampled_from("\ud83d\ude00"), max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)


def joined(value: Any) -> Any:
    """The value as a reader of its JSON has it: two halves of a surrogate pair side by side are one character."""
    return json.loads(json.dumps(value))


@given(JSON)
def test_any_value_is_read_back(value: Any) -> None:
    assert json.loads(json_text(value)) == joined(value)
    shape = ActivityMessage(id="a", activity_type="x", content={"value": value, "lone": "\ud83d"})
    wire = {"role": "activity", "id": "a", "activityType": "x", "content": {"value": value, "lone": "\ud83d"}}
    assert json.loads(shape_text(shape)) == joined(wire)


def test_any_nesting_is_written() -> None:
    value: Any = []
    for _ in range(5_000):
        value = [{"a": value}]
    text = json_text(value)
    assert text == b'[{"a":' * 5_000 + b"[]" + b"}]" * 5_000
    assert text in shape_text(ActivityMessage(id="a", activity_type="x", content={"deep": value}))


@pytest.mark.parametrize("case_file", corpus_files("streams/*.json"), ids=lambda path: path.stem)
def test_every_shape_is_written_in_its_wire_form(case_file: Path) -> None:
    pipeline = Pipeline()
    for raw in json.loads(case_file.read_bytes())["stream"]:
        try:
            events = pipeline.feed(raw)
        except ProtocolViolation:
            break
        for event in events:
            assert json.loads(shape_text(event)) == to_wire(event)
            marked = msgspec.structs.replace(event, metadata={"lone": "\ud83d"})  # which the codec does not write
            assert json.loads(shape_text(marked)) == {**to_wire(event), "metadata": {"lone": "\ud83d"}}
