"""Text whose pieces were cut in the middle of a character, as producers that count in UTF-16 cut them."""

from __future__ import annotations


def whole(text: str) -> str:
    """`text` with every surrogate pair as the character that it is, and U+FFFD for each half that stays alone."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class SurrogateJoiner:
    """Takes pieces, gives pieces that concatenate to the same text with every surrogate pair whole.

    The first half of a pair waits for the second; a half that stays alone becomes U+FFFD, since nothing could
    encode it.
    """

    def __init__(self) -> None:
        self._half = ""

    def feed(self, piece: str) -> str:
        if not self._half and piece.isascii():
            return piece
        text = self._half + piece
        self._half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        text = text[:-1] if self._half else text
        return whole(text)

    def close(self) -> str:
        """What is left to say at the end of the text."""
        half, self._half = self._half, ""
        return "\ufffd" if half else ""
