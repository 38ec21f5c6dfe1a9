from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from accord.cli.visible import VisibleStream, one_line, visible

DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
ANYTHING = st.text(st.characters(exclude_categories=()), max_size=60)


def obeyed(text: str) -> list[str]:
    """The characters that a terminal would act on."""
    return [each for each in text if unicodedata.category(each) in ("Cc", "Cs", "Zl", "Zp") or each in DIRECTIONS]


def test_what_a_terminal_would_obey_is_an_escape() -> None:
    assert visible("\x1b[31mred\x07 \x9b1m \u202e \ud83d\r") == "\\x1b[31mred\\x07 \\x9b1m \\u202e \\ud83d\\r"
    assert obeyed(visible(DIRECTIONS)) == []
    assert visible("one\r\ntwo\nthree\tfour 🍝 [b]x[/b]") == "one\ntwo\nthree\tfour 🍝 [b]x[/b]"
    assert one_line("one\r\ntwo\tthree\u2028") == "one\\r\\ntwo\\tthree\\u2028"


@given(ANYTHING)
def test_nothing_is_left_to_obey(text: str) -> None:
    assert set(obeyed(visible(text))) <= {"\n", "\t"}
    assert obeyed(one_line(text)) == []
    one_line(text).encode()


@given(ANYTHING, st.integers(1, 20))
def test_a_limit_is_in_terminal_cells(text: str, limit: int) -> None:
    assert cell_len(one_line(text, limit)) <= limit


@given(st.lists(st.text(st.sampled_from("a\r\n\ud83d\ude00é🍝\x1b"), max_size=4), max_size=8))
def test_pieces_show_what_the_whole_shows(pieces: list[str]) -> None:
    stream = VisibleStream()
    shown = "".join([*(stream.feed(piece) for piece in pieces), stream.end()])
    whole = "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert shown == visible(whole)
