from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.cli.json_list import JSONListReader

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('"\\[]{},: é\ud83d'), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.sampled_from('"\\]}a'), max_size=2), inner),
    max_leaves=8,
)


def read(text: bytes, cuts: list[int]) -> list[bytes]:
    reader = JSONListReader()
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    pieces = [text[start:end] for start, end in pairwise(places)]
    found = [element for piece in pieces for element in reader.feed(piece)]
    reader.close()
    return found


@given(st.lists(JSON, max_size=4), st.sampled_from([None, 1]), st.lists(st.integers(0, 10_000), max_size=6))
def test_the_elements_of_any_list_at_any_split(elements: list[Any], indent: int | None, cuts: list[int]) -> None:
    text = json.dumps(elements, indent=indent).encode()
    assert [json.loads(element) for element in read(text, cuts)] == elements


def test_what_an_element_holds_is_not_judged() -> None:
    assert read(b' [ nonsense , {"a": \xff} , [01]\t]\n', []) == [b"nonsense", b'{"a": \xff}', b"[01]"]


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"x", b"[", b"[1", b'["', b"[1,]", b"[,1]", b"[1]]", b"[1] x", b"[}", b'["\\"]']
)
def test_what_is_no_list(text: bytes) -> None:
    for cuts in ([], list(range(len(text)))):
        with pytest.raises(ValueError, match=r"it |the list|element"):
            read(text, cuts)


def test_a_long_element_is_read_once() -> None:
    text = json.dumps(["x" * 100_000, {"a": ["\\" * 50_000]}]).encode()
    assert [json.loads(element) for element in read(text, list(range(0, len(text), 997)))] == json.loads(text)
