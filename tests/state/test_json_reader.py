from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.errors import AccordError, LimitExceeded
from accord.state import IncompleteJSON, MalformedJSON, identical
from accord.state.json_reader import JSONReader
from state.values import json_values, lines_run


def read(text: str, step: int | None = None, **limits: int) -> Any:
    """What a reader makes of `text`, given whole or `step` characters at a time."""
    reader = JSONReader(watch_root=False, **limits)
    for start in range(0, len(text), step or max(1, len(text))):
        reader.feed(text[start : start + step] if step else text)
    reader.close()
    assert reader.length == len(text)
    return reader.root


@given(
    json_values(),
    st.booleans(),
    st.sampled_from([None, 0, 1, "\t"]),
    st.lists(st.integers(1, 9), min_size=1, max_size=9),
)
def test_any_document_in_any_pieces(value: Any, ascii_only: bool, indent: Any, sizes: list[int]) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert identical(read(text), value)
    assert identical(read(text, 1), value)
    reader = JSONReader(watch_root=False)
    start, turn = 0, 0
    while start < len(text):
        size = sizes[turn % len(sizes)]
        reader.feed(text[start : start + size])
        start, turn = start + size, turn + 1
    reader.close()
    assert identical(reader.root, value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" \t\r\n[ 1 ,\n2 ] ", [1, 2]),
        ('{"a":1,"a":2}', {"a": 2}),
        (r'"\"\\\/\b\f\n\r\té😀\u0041"', '"\\/\b\f\n\r\té😀A'),
        ("-0", 0),
        ("-0.0", -0.0),
        ("1E5", 1e5),
        ("1e-5", 1e-5),
        ("0.10", 0.1),
        ("12345678901234567890123", 12345678901234567890123),
        ("[1.0,1]", [1.0, 1]),
        ('"\x7f\u2028"', "\x7f\u2028"),
        ("[[[]],{}]", [[[]], {}]),
        ('{"":{"":""}}', {"": {"": ""}}),
    ],
)
@pytest.mark.parametrize("step", [None, 1, 2, 3, 5])
def test_what_the_grammar_allows(text: str, value: Any, step: int | None) -> None:
    assert identical(read(text, step), value)


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("x", 0),
        ("[1,]", 3),
        ("[,1]", 1),
        ("[1 2]", 3),
        ("[1}", 2),
        ("{]", 1),
        ('{"a":1]', 6),
        ('{"a":1,}', 7),
        ('{"a" 1}', 5),
        ('{"a":}', 5),
        ("{a:1}", 1),
        ("{'a':1}", 1),
        ("{1:1}", 1),
        ("[1] 2", 4),
        ("[]]", 2),
        ("nul]", 0),
        ("[truf", 1),
        ("[True]", 1),
        ("[NaN]", 1),
        ("[Infinity]", 1),
        ("[-Infinity]", 2),
        ("[01]", 2),
        ("[+1]", 1),
        ("[.5]", 1),
        ("[1.]", 3),
        ("[1.e5]", 3),
        ("[1e]", 3),
        ("[1e+]", 4),
        ("[--1]", 2),
        ("[1x]", 2),
        ("[٣]", 1),
        ("[1٣]", 2),
        ('["\t"]', 2),
        ('["a\n"]', 3),
        ('["\x00"]', 2),
        (r'["\x"]', 2),
        (r'["a\u12g4"]', 3),
        (r'["\u 123"]', 2),
        ('{"a\n":1}', 3),
        ("\ufeff[]", 0),
        ("[1]\x00", 3),
        ("\u00a0[]", 0),
        ("[1]/* */", 3),
        ("[1e999]", 1),
        ("[-1e999]", 1),
    ],
)
@pytest.mark.parametrize("step", [None, 1, 2])
def test_what_is_not_json_is_refused_at_its_place(text: str, offset: int, step: int | None) -> None:
    with pytest.raises(MalformedJSON, match=f"at character {offset}$") as caught:
        read(text, step)
    assert caught.value.offset == offset
    assert not isinstance(caught.value, IncompleteJSON)


@pytest.mark.parametrize(
    "text",
    ["", " ", "[", "[1", "[1,", '{"a', '{"a"', '{"a":', '{"a":1', '"abc', '"a\\', '"a\\u00', '"\\ud83d', "tru", "-"],
)
def test_a_text_that_ends_early_says_so(text: str) -> None:
    with pytest.raises(IncompleteJSON, match=f"at character {len(text)}$"):
        read(text)


@pytest.mark.parametrize("text", ["12", "-1.5e3", "0", "true", "null", '"x"'])
def test_a_scalar_is_a_document(text: str) -> None:
    assert identical(read(text, 1), json.loads(text))


def test_a_number_ends_with_what_follows_it() -> None:
    reader = JSONReader(watch_root=False)
    reader.feed("1")
    assert (reader.complete, reader.root) == (False, None)
    reader.feed("2")
    reader.feed(" ")
    assert (reader.complete, reader.root) == (True, 12)


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (['"a\\ud83d', '\\ude00b"'], "a😀b"),
        (['"a\\ud8', "3d\\u", 'de00b"'], "a😀b"),
        (['"a\ud83d', '\ude00b"'], "a😀b"),
        (['"a\ud83d\ude00b"'], "a😀b"),
        (['"\\ud83d', '\ude00"'], "😀"),
        (['"\ud83d', '\\ude00"'], "😀"),
        # JSON permits a half; nothing could carry it on.
        (['"a\\ud83d"'], "a\ufffd"),
        (['"a\ud83d', '"'], "a\ufffd"),
        (['"\\ud83dx"'], "\ufffdx"),
        (['"\\ud83d', '\\n"'], "\ufffd\n"),
        (['"\\ude00\\ud83d"'], "\ufffd\ufffd"),
        (['"\\ud83d\\ud83d', '\\ude00"'], "\ufffd😀"),
    ],
)
@pytest.mark.parametrize("one_by_one", [False, True])
def test_surrogates(pieces: list[str], text: str, one_by_one: bool) -> None:
    for form in ("{}", '{{"{}":1}}', "[{}]"):
        head, tail = form.format("\0").split("\0")
        inner = [piece.replace('"', "") for piece in pieces] if '"' in form else pieces
        whole = [head, *inner, tail]
        reader = JSONReader(watch_root=False)
        for piece in "".join(whole) if one_by_one else whole:
            reader.feed(piece)
            assert "\ud800" not in reader.text
            reader.text.encode()
        expected = json.loads(form.format(json.dumps(text).strip('"') if '"' in form else json.dumps(text)))
        assert identical(reader.root, expected)


@pytest.mark.parametrize(
    ("text", "limit", "value"),
    [
        ("[1, 2]", "max_length", 5),
        ("[[[1]]]", "max_depth", 2),
        ('{"a":{"b":{}}}', "max_depth", 2),
        ("[12345]", "max_number_length", 4),
        ("[1.345", "max_number_length", 4),
        ('{"abcde":1}', "max_key_length", 4),
        ('{"abc\\n\\n":1}', "max_key_length", 4),
    ],
)
@pytest.mark.parametrize("step", [None, 1])
def test_limits(text: str, limit: str, value: int, step: int | None) -> None:
    with pytest.raises(LimitExceeded, match=f"{limit}={value}"):
        read(text, step, **{limit: value})
    with pytest.raises(AccordError):
        read(text, step, **{limit: value})


def test_limits_are_reached_before_they_are_passed() -> None:
    text = '[[{"abcd":1234}]]'
    limits = {"max_length": len(text), "max_depth": 3, "max_number_length": 4, "max_key_length": 4}
    assert read(text, 1, **limits) == json.loads(text)


def test_each_character_is_read_once_or_nearly() -> None:
    document = json.dumps({"text": "x\n" * 2_000, "items": [{"n": n, "t": "é"} for n in range(400)]})

    def work(text: str) -> int:
        return lines_run(lambda: read(text, 1))

    assert work(f"[{document},{document},{document},{document}]") < 4.1 * work(f"[{document}]")
