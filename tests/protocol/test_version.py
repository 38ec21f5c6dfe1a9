from __future__ import annotations

import pytest

from accord.protocol import PROTOCOL_VERSION, parse_declared, parse_peer, unlike_ours


@pytest.mark.parametrize(("text", "version"), [("1.0", (1, 0)), ("1.10", (1, 10)), ("01.0", (1, 0)), ("0.9", (0, 9))])
def test_declared(text: str, version: tuple[int, int]) -> None:
    assert parse_declared(text) == version


@pytest.mark.parametrize("text", ["", "1", "1.0.0", "draft", "1.0\n", "-1.0", "１.0", "1." + "0" * 5000])
def test_unreadable_declared(text: str) -> None:
    assert parse_declared(text) is None


def test_components_are_compared_as_numbers() -> None:
    older, newer = parse_declared("1.9"), parse_declared("1.10")
    assert older is not None
    assert newer is not None
    assert older < newer
    assert parse_peer("0.0.9") < parse_peer("0.0.39") < parse_peer("0.0.57") < parse_peer(PROTOCOL_VERSION)


@pytest.mark.parametrize(
    ("declared", "warning"),
    [
        *(("1.0", None), ("01.0", None), ("1.00", None), ("0.9", None), ("0.99", None)),
        *(("1.1", "newer"), ("01.1", "newer"), ("1.10", "newer"), ("2.0", "newer"), ("10.0", "newer")),
        *(("", "cannot be read"), ("draft", "cannot be read"), ("1.0.0", "cannot be read")),
    ],
)
def test_unlike_ours(declared: str, warning: str | None) -> None:
    said = unlike_ours(declared)
    assert said is None if warning is None else said is not None and warning in said


@pytest.mark.parametrize(("text", "version"), [("0.0.39", (0, 0, 39)), ("1.0", (1, 0, 0))])
def test_peer(text: str, version: tuple[int, int, int]) -> None:
    assert parse_peer(text) == version


@pytest.mark.parametrize("text", ["", "1", "v1.0", "1.0.0.0", "0.0.x"])
def test_a_peer_version_must_be_one(text: str) -> None:
    with pytest.raises(ValueError, match="not a version"):
        parse_peer(text)
