"""Text from elsewhere, made safe to print: a terminal obeys control characters, and none of them may come from a peer.

Control characters (C0, DEL, C1), the bidirectional overrides, line separators and lone surrogates become escapes such
as `\\x1b`. Line feeds and tabs stay in text that may have lines.
"""

from __future__ import annotations

import re
from typing import Final

from rich.cells import cell_len, set_cell_size

_BIDI: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_UNSAFE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff{_BIDI}\ud800-\udfff]")
_NOT_ONE_LINE = re.compile(f"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff{_BIDI}\ud800-\udfff]")
_NAMED: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str) -> str:
    """`text` with its lines, and everything else that a terminal would act on shown as an escape."""
    return _UNSAFE.sub(_escape, text.replace("\r\n", "\n"))


def one_line(text: str, limit: int | None = None) -> str:
    """`text` in one line: line ends escaped as well, cut with an ellipsis beyond `limit` terminal cells."""
    shown = _NOT_ONE_LINE.sub(_escape, text if limit is None else text[: limit + 1])
    if limit is not None and cell_len(shown) > limit:
        return set_cell_size(shown, max(limit - 1, 0)).rstrip() + "…"
    return shown


class VisibleStream:
    """`visible` for text that arrives in pieces: what a piece cuts in two is held back until it is whole."""

    _UNFINISHED = re.compile("[\r\ud800-\udbff]\\Z")

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """The text that can be shown by now."""
        text = self._held + piece
        cut = self._UNFINISHED.search(text)
        self._held = text[cut.start() :] if cut else ""
        return visible(_joined(text[: len(text) - len(self._held)]))

    def end(self) -> str:
        """What was held back, which nothing follows."""
        text, self._held = self._held, ""
        return visible(text)


def _joined(text: str) -> str:
    """The two halves of a surrogate pair as the character that they are."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
