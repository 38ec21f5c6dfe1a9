"""JSON text read as it grows (RFC 8259): each character once, whatever the pieces it comes in.

What has ended is in the containers; what is still open is the stack of containers and, perhaps, the text of one
string. Numbers and literals exist from their end on; a text never shows half an escape or half a surrogate pair.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

from accord.errors import AccordError, LimitExceeded
from accord.state.pointer import shorten

MAX_LENGTH = 16_777_216
MAX_DEPTH = 256
MAX_NUMBER_LENGTH = 1_000
MAX_KEY_LENGTH = 16_384
"""Default limits: characters of the whole text, containers inside one another, characters of one number (turning
digits into an integer costs more than their count) and of one member name (it is part of every pointer below it)."""

_SPACE = re.compile(r"[ \t\n\r]*+")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*+')
_WHOLE_TEXT = re.compile(r'"([^"\\\x00-\x1f\ud800-\udfff]*+)"')
_ESCAPED = re.compile(r'(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)++')
_ESCAPE_SO_FAR = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(\.[0-9]++)?([eE][-+]?[0-9]++)?(?=[ \t\n\r,\]}])")
_NUMBER_SO_FAR = re.compile(r"-?(?:(?:0|[1-9][0-9]*+)(?:\.(?:[0-9]++(?:[eE][-+]?[0-9]*+)?)?|[eE][-+]?[0-9]*+)?)?")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_LITERALS: dict[str, tuple[str, bool | None]] = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}

# What may come next.
_VALUE: Final = "a value"
_ITEM_OR_END: Final = "a value or ']'"
_KEY_OR_END: Final = "a member name or '}'"
_KEY: Final = "a member name"
_COLON: Final = "':'"
_COMMA_OR_END: Final = "',' or the end of the array or object"
_IN_KEY: Final = "the rest of a member name"
_IN_TEXT: Final = "the rest of a string"
_NOTHING: Final = "nothing more"


class MalformedJSON(AccordError):
    """Text that is not JSON; `offset` counts the characters before the place, over all pieces."""

    def __init__(self, message: str, *, offset: int) -> None:
        super().__init__(f"{message} at character {offset}")
        self.offset = offset


class IncompleteJSON(MalformedJSON):
    """Text that was JSON so far and ended too early."""


class Frame:
    """One open container: where its text began, and the member or element being read.

    A frame that is `watched` reports each of its values when the value ends; one that is not is reported as a
    whole by its own end. Only frames inside watched ones can be watched.
    """

    __slots__ = ("container", "key", "start", "watched")

    def __init__(self, container: dict[str, Any] | list[Any], start: int, *, watched: bool) -> None:
        self.container = container
        self.key = ""
        self.start = start
        self.watched = watched

    @property
    def place(self) -> str | int:
        """The member name or index of the value being read."""
        return self.key if isinstance(self.container, dict) else len(self.container)

    @property
    def taken(self) -> bool:
        """Whether an earlier value stands at `place`: a member of the same name came before."""
        return isinstance(self.container, dict) and self.key in self.container


class Ended(NamedTuple):
    """The end of a value inside the innermost watched frame, or of that frame itself (then `watched`).

    `length` is that of the value's text. `replaces` says that a member of the same name came before.
    """

    place: str | int
    value: Any
    length: int
    replaces: bool
    watched: bool


class JSONReader:
    """Reads growing text into `stack`, `text` and the list `ended`, which the caller empties.

    `watch_root` says whether the outermost container is watched from its opening on.
    """

    def __init__(
        self,
        *,
        watch_root: bool,
        max_length: int = MAX_LENGTH,
        max_depth: int = MAX_DEPTH,
        max_number_length: int = MAX_NUMBER_LENGTH,
        max_key_length: int = MAX_KEY_LENGTH,
    ) -> None:
        self.stack: list[Frame] = []
        self.ended: list[Ended] = []
        self.root: Any = None
        self.root_frame: Frame | None = None
        self.length = 0
        self.text_length = 0
        self._watch_root = watch_root
        self._max_length = max_length
        self._max_depth = max_depth
        self._max_number_length = max_number_length
        self._max_key_length = max_key_length
        self._expected = _VALUE
        self._unread = ""
        self._text: list[str] = []
        self._text_start = 0
        self._high_surrogate = ""

    @property
    def complete(self) -> bool:
        """Whether the document has ended. A number that is the whole document ends with the text (`close`)."""
        return self._expected is _NOTHING

    @property
    def in_text(self) -> bool:
        """Whether a string value is open; its text so far is `text`, in `text_length` characters."""
        return self._expected is _IN_TEXT

    @property
    def text(self) -> str:
        """The text of the open string so far."""
        if len(self._text) > 1:
            self._text = ["".join(self._text)]
        return self._text[0] if self._text else ""

    def close(self) -> None:
        """The text has ended; raises `IncompleteJSON` when the document has not."""
        if not self.stack and self._expected is _VALUE and self._unread[-1:].isdigit():
            self.feed(" ")  # a number ends only with what follows it
            self.length -= 1
        if not self.complete:
            raise IncompleteJSON(f"the text ends where {self._expected} is due", offset=self.length)

    def feed(self, piece: str) -> None:
        """Read the next `piece`; `MalformedJSON` names the place of what is not JSON."""
        self.length += len(piece)
        if self.length > self._max_length:
            raise LimitExceeded("the JSON text is too long", limit="max_length", value=self._max_length)
        buffer = self._unread + piece
        self._unread = ""
        base = self.length - len(buffer)
        position, end = 0, len(buffer)
        while position < end:
            expected = self._expected
            if expected is _IN_TEXT or expected is _IN_KEY:
                position = self._read_string(buffer, position, base)
                if self._unread:
                    return
                continue
            character = buffer[position]
            if character in " \t\n\r":
                position = _SPACE.match(buffer, position).end()  # type: ignore[union-attr]
            elif expected is _COMMA_OR_END:
                if character == ",":
                    self._expected = _KEY if type(self.stack[-1].container) is dict else _VALUE
                else:
                    self._close_container(character, base + position)
                position += 1
            elif expected is _COLON:
                if character != ":":
                    self._fail(base + position)
                self._expected = _VALUE
                position += 1
            elif expected is _KEY or expected is _KEY_OR_END:
                if character == '"':
                    whole = _WHOLE_TEXT.match(buffer, position)
                    if whole is not None:
                        self._end_key(whole[1], base + position)
                        position = whole.end()
                    else:
                        self._open_string(_IN_KEY, base + position)
                        position += 1
                elif expected is _KEY_OR_END:
                    self._close_container(character, base + position)
                    position += 1
                else:
                    self._fail(base + position)
            elif expected is _NOTHING:
                self._fail(base + position)
            elif character == '"':
                whole = _WHOLE_TEXT.match(buffer, position)
                if whole is not None:
                    self._end_value(whole[1], whole.end() - position)
                    position = whole.end()
                else:
                    self._open_string(_IN_TEXT, base + position)
                    position += 1
            elif character == "{" or character == "[":
                self._open_container(character, base + position)
                position += 1
            elif character == "]" and expected is _ITEM_OR_END:
                self._close_container(character, base + position)
                position += 1
            else:
                position = self._read_scalar(buffer, position, base)
                if self._unread:
                    return

    def _read_scalar(self, buffer: str, position: int, base: int) -> int:
        """A number or literal at `position`: its end, or `_unread` set when it may go on."""
        word, value = _LITERALS.get(buffer[position], ("", None))
        if word:
            if buffer.startswith(word, position):
                self._end_value(value, len(word))
                return position + len(word)
            if word.startswith(buffer[position:]):
                self._unread = buffer[position:]
                return position
            self._fail(base + position)
        number = _NUMBER.match(buffer, position)
        so_far = number or _NUMBER_SO_FAR.match(buffer, position)
        end = so_far.end() if so_far is not None else position
        if end - position > self._max_number_length:
            raise LimitExceeded(
                f"the number at character {base + position} is too long",
                limit="max_number_length",
                value=self._max_number_length,
            )
        if number is not None:
            digits = number[0]
            self._end_value(
                int(digits) if number.lastindex is None else self._double(digits, base + position), len(digits)
            )
        elif end == len(buffer):
            self._unread = buffer[position:]
        elif end > position:
            raise MalformedJSON("a number goes on as no number does", offset=base + end)
        else:
            self._fail(base + position)
        return end

    def _double(self, digits: str, offset: int) -> float:
        value = float(digits)
        if value in (float("inf"), float("-inf")):
            raise MalformedJSON(f"the number {shorten(digits)} is beyond any double", offset=offset)
        return value

    def _open_string(self, expected: str, start: int) -> None:
        self._expected = expected
        self._text = []
        self._text_start = start
        self.text_length = 0

    def _read_string(self, buffer: str, position: int, base: int) -> int:
        """The open string from `position` on: its end, or the end of what can be told yet."""
        stop = _PLAIN.match(buffer, position).end()  # type: ignore[union-attr]
        if stop > position:
            self._append(buffer[position:stop])
        if stop == len(buffer):
            return stop
        character = buffer[stop]
        if character == '"':
            self._close_string(base + stop + 1)
            return stop + 1
        if character != "\\":
            raise MalformedJSON("a control character stands unescaped in a string", offset=base + stop)
        escaped = _ESCAPED.match(buffer, stop)
        if escaped is not None:
            self._append(json.loads(f'"{escaped[0]}"'))
            return escaped.end()
        if _ESCAPE_SO_FAR.fullmatch(buffer, stop) is None:
            raise MalformedJSON("a string holds an escape that JSON does not have", offset=base + stop)
        self._unread = buffer[stop:]
        return stop

    def _append(self, text: str) -> None:
        if self._high_surrogate or (not text.isascii() and _SURROGATE.search(text)):
            text = self._pair(text)
        self._text.append(text)
        self.text_length += len(text)

    def _pair(self, text: str) -> str:
        """`text` with surrogate pairs joined; a half at its end waits for what comes, a lone one is U+FFFD."""
        text = self._high_surrogate + text
        self._high_surrogate = ""
        if "\ud800" <= text[-1] <= "\udbff":
            self._high_surrogate = text[-1]
            text = text[:-1]
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def _close_string(self, end: int) -> None:
        if self._high_surrogate:
            self._high_surrogate = ""
            self._text.append("\ufffd")
        text = self.text
        self._text = []
        if self._expected is _IN_KEY:
            self._end_key(text, self._text_start)
        else:
            self._end_value(text, end - self._text_start)

    def _end_key(self, key: str, start: int) -> None:
        if len(key) > self._max_key_length:
            raise LimitExceeded(
                f"the member name at character {start} is too long",
                limit="max_key_length",
                value=self._max_key_length,
            )
        self.stack[-1].key = key
        self._expected = _COLON

    def _open_container(self, bracket: str, start: int) -> None:
        if len(self.stack) >= self._max_depth:
            raise LimitExceeded(
                f"the JSON text is too deep at character {start}", limit="max_depth", value=self._max_depth
            )
        if bracket == "{":
            frame = Frame({}, start, watched=self._watch_root and not self.stack)
            self._expected = _KEY_OR_END
        else:
            frame = Frame([], start, watched=False)
            self._expected = _ITEM_OR_END
        if self.root_frame is None:
            self.root_frame = frame
        self.stack.append(frame)

    def _close_container(self, bracket: str, offset: int) -> None:
        frame = self.stack[-1]
        if bracket != ("}" if type(frame.container) is dict else "]"):
            self._fail(offset)
        self.stack.pop()
        self._end_value(frame.container, offset + 1 - frame.start, watched=frame.watched)

    def _end_value(self, value: Any, length: int, *, watched: bool = False) -> None:
        """Put a value that has ended where it belongs; `length` is that of its text."""
        if not self.stack:
            self.root = value
            self._expected = _NOTHING
            self.ended.append(Ended("", value, length, False, watched))
            return
        frame = self.stack[-1]
        container = frame.container
        if frame.watched:
            self.ended.append(Ended(frame.place, value, length, frame.taken, watched))
        if type(container) is dict:
            container[frame.key] = value
        else:
            container.append(value)  # type: ignore[union-attr]
        self._expected = _COMMA_OR_END

    def _fail(self, offset: int) -> None:
        raise MalformedJSON(f"{self._expected} is due", offset=offset)
