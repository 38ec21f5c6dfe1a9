from __future__ import annotations

import pytest

from accord.wire import PROTOBUF_MEDIA_TYPE as MT
from accord.wire import admits_protobuf, media_type


@pytest.mark.parametrize(
    "accept",
    [
        MT,
        MT.upper(),
        "*/*",
        "application/*",
        "*/vnd.ag-ui.event+proto",
        f"text/event-stream, {MT};q=0.1",
        f"text/event-stream,{MT}",
        f"{MT};q=0.001",
        f"{MT} ; Q=1",
        f'{MT};q="0.5"',
        f"application/*;q=0, {MT}",
        f"{MT}, application/*;q=0, */*;q=0",
        f"{MT};q=5",
        f"{MT};q=.5",
        f"{MT};q=0.5x",
        f"{MT};charset=*",
        f"{MT};q=0, {MT};q=1",
        f"{MT};q=1, {MT};q=0",
        f"{MT};q=1;charset=utf-8",
        f'text/html;x="a,b;q=0", {MT}',
        f"nonsense, {MT}",
        f"{MT};q=abc, {MT}",
        f"{MT};charset=utf-8, */*;q=0.1",
        f",,{MT},",
    ],
)
def test_admitted(accept: str) -> None:
    assert admits_protobuf(accept) is True


@pytest.mark.parametrize(
    "accept",
    [
        None,
        "",
        " ",
        ",",
        "text/*",
        "text/event-stream",
        "application/json",
        f"{MT};q=0",
        f"{MT};q=0.000",
        "*/*;q=0",
        f"*/*, {MT};q=0",
        f"application/*, {MT};q=0",
        "*/*;q=1, application/*;q=0",
        f"{MT};q=abc",
        f"{MT};q",
        f"{MT};q=",
        f"{MT};q=-1",
        f"{MT};charset=utf-8",
        f"{MT};charset=*;q=0, {MT};q=1",
        f"{MT}x",
        "*",
        "*/",
        "/*",
        "application / *",
        "application",
        "application/;q=1",
        f'text/html;x=", {MT}',
        ";;;",
        f";{MT}",
        '"',
        "\x00/\x00",
    ],
)
def test_not_admitted(accept: str | None) -> None:
    assert admits_protobuf(accept) is False


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("application/json", "application/json"),
        ("Text/Event-Stream; charset=UTF-8", "text/event-stream"),
        (f" {MT.upper()} ;x=1", MT),
        ("", ""),
        (None, ""),
    ],
)
def test_media_type(header: str | None, expected: str) -> None:
    assert media_type(header) == expected
