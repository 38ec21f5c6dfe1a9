from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from accord.agents.surrogates import SurrogateJoiner, whole


def joined(pieces: list[str]) -> list[str]:
    joiner = SurrogateJoiner()
    return [*(joiner.feed(piece) for piece in pieces), joiner.close()]


def utf16_units(text: str) -> list[str]:
    data = text.encode("utf-16-le", "surrogatepass")
    return [chr(int.from_bytes(data[at : at + 2], "little")) for at in range(0, len(data), 2)]


def test_a_pair_cut_in_two_waits_for_its_half() -> None:
    assert joined(["a\ud83d", "\ude00b"]) == ["a", "😀b", ""]


def test_halves_alone_become_replacement_characters() -> None:
    assert joined(["a\ud83d", "b"]) == ["a", "\ufffdb", ""]
    assert joined(["\ude00"]) == ["\ufffd", ""]
    assert joined(["a\ud83d"]) == ["a", "\ufffd"]


@given(st.text(), st.data())
def test_any_cut_between_units_gives_the_same_text(text: str, data: st.DataObject) -> None:
    units = utf16_units(text)
    places = sorted(data.draw(st.lists(st.integers(0, len(units)), max_size=5)))
    pieces = ["".join(units[a:b]) for a, b in zip([0, *places], [*places, len(units)], strict=True)]
    result = joined(pieces)
    assert "".join(result) == text
    for piece in result:
        piece.encode()


@given(st.text(alphabet=st.characters() | st.sampled_from("\ud83d\ude00")))
def test_whole_text_can_be_encoded(text: str) -> None:
    joined_text = whole(text)
    joined_text.encode()
    if "\ufffd" not in joined_text:
        assert utf16_units(joined_text) == utf16_units(text)
