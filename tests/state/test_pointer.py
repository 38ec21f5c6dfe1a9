from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.errors import AccordError
from accord.state import PointerError, array_index, escape_token, format_pointer, parse_pointer
from accord.state.pointer import insertion_index


@pytest.mark.parametrize(
    ("pointer", "tokens"),
    [
        # The examples of RFC 6901 section 5.
        ("", ()),
        ("/foo", ("foo",)),
        ("/foo/0", ("foo", "0")),
        ("/", ("",)),
        ("/a~1b", ("a/b",)),
        ("/c%d", ("c%d",)),
        ("/i\\j", ("i\\j",)),
        ("/ ", (" ",)),
        ("/m~0n", ("m~n",)),
        # What decoding in the wrong order, or stripping, would get wrong.
        ("/~01", ("~1",)),
        ("//", ("", "")),
        ("/a/", ("a", "")),
        ("/-", ("-",)),
        ("/é😀", ("é😀",)),
    ],
)
def test_a_pointer_and_its_tokens_are_the_same_thing(pointer: str, tokens: tuple[str, ...]) -> None:
    assert parse_pointer(pointer) == tokens
    assert format_pointer(tokens) == pointer


@given(st.lists(st.text()))
def test_any_names_survive_the_way_there_and_back(tokens: list[str]) -> None:
    assert parse_pointer(format_pointer(tokens)) == tuple(tokens)


def test_an_index_is_written_as_its_digits() -> None:
    assert format_pointer(["a", 0, 12]) == "/a/0/12"
    assert escape_token("~/") == "~0~1"


@pytest.mark.parametrize("pointer", ["a", "a/b", "#/a", " /a", "/~", "/~2", "/a~", "/a/~b/c", None, 0, ["a"], True])
def test_what_is_no_pointer_is_refused(pointer: Any) -> None:
    with pytest.raises(PointerError):
        parse_pointer(pointer)
    with pytest.raises(AccordError):
        parse_pointer(pointer)


@pytest.mark.parametrize("length", [10, 1_000])
def test_a_pointer_has_a_greatest_length(length: int) -> None:
    assert parse_pointer("/" + "a" * (length - 1), max_pointer_length=length) == ("a" * (length - 1),)
    with pytest.raises(PointerError, match=f"max_pointer_length={length}"):
        parse_pointer("/" + "a" * length, max_pointer_length=length)


@pytest.mark.parametrize(
    "token", ["", "01", "00", "-1", "+1", "1e0", "1.0", " 1", "1 ", "٣", "²", "x", "-", "0x1", "1_0", "9" * 5_000]
)
def test_only_plain_digits_are_an_index(token: str) -> None:
    with pytest.raises(PointerError):
        array_index(token, 100)


def test_an_index_lies_inside_its_array() -> None:
    assert [array_index(token, 11) for token in ("0", "9", "10")] == [0, 9, 10]
    with pytest.raises(PointerError, match="outside the array of 11"):
        array_index("11", 11)
    with pytest.raises(PointerError):
        array_index("0", 0)


def test_only_an_insertion_reaches_the_end() -> None:
    assert [insertion_index(token, 2) for token in ("0", "2", "-")] == [0, 2, 2]
    for token in ("3", "-1", "02"):
        with pytest.raises(PointerError):
            insertion_index(token, 2)
