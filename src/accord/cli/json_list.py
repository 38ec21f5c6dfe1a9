"""The elements of one JSON list, each as its own text, while the text arrives.

Only the list is read (RFC 8259 section 5): where an element begins and ends. What an element holds is its reader's to
judge, so that a bad one is met in its place and not before the first.
"""

from __future__ import annotations

import re
from typing import Final

_SPACE: Final = b" \t\r\n"
#: All that matters outside a string; inside one, its end and what an escape hides.
_OUTSIDE = re.compile(rb'["\[\]{},]')
_INSIDE = re.compile(rb'["\\]')


class JSONListReader:
    """`feed` text, get the elements it completes; `close` at the end. Both raise ValueError for what is no list."""

    def __init__(self) -> None:
        self._element = bytearray()  # what has come of the element being read
        self._depth = 0  # 0 before the list, 1 in it, more within an element
        self._in_string = False
        self._escaped = False  # the next byte belongs to an escape
        self._elements = 0
        self._closed = False

    def feed(self, data: bytes) -> list[bytes]:
        """The elements that `data` completes, without the space around them."""
        found: list[bytes] = []
        position = self._open(data)
        while position < len(data):
            if self._closed:
                if data[position:].strip(_SPACE):
                    raise ValueError("something follows the list")
                break
            position = self._within_string(data, position) if self._in_string else self._outside(data, position, found)
        return found

    def close(self) -> None:
        """The text has ended."""
        if not self._closed:
            raise ValueError(f"it ends after {self._elements} elements, before its closing bracket")

    def _open(self, data: bytes) -> int:
        if self._depth or self._closed:
            return 0
        start = len(data) - len(data.lstrip(_SPACE))
        if start < len(data):
            if data[start : start + 1] != b"[":
                raise ValueError("it does not begin with a bracket")
            self._depth = 1
            start += 1
        return start

    def _within_string(self, data: bytes, position: int) -> int:
        if self._escaped:
            self._escaped = False
            self._element += data[position : position + 1]
            return position + 1
        match = _INSIDE.search(data, position)
        end = len(data) if match is None else match.end()
        self._element += data[position:end]
        if match is not None:
            self._escaped = match[0] == b"\\"
            self._in_string = self._escaped
        return end

    def _outside(self, data: bytes, position: int, found: list[bytes]) -> int:
        match = _OUTSIDE.search(data, position)
        if match is None:
            self._element += data[position:]
            return len(data)
        mark, at = match[0], match.start()
        if self._depth == 1 and mark in (b",", b"]", b"}"):
            self._element += data[position:at]
            self._complete(mark, found)
            return at + 1
        self._element += data[position : at + 1]
        if mark == b'"':
            self._in_string = True
        elif mark in (b"[", b"{"):
            self._depth += 1
        elif mark in (b"]", b"}"):
            self._depth -= 1
        return at + 1

    def _complete(self, mark: bytes, found: list[bytes]) -> None:
        element = bytes(self._element).strip(_SPACE)
        self._element.clear()
        if mark == b"}":
            raise ValueError(f"a brace closes nothing after {self._elements} elements")
        if element:
            found.append(element)
            self._elements += 1
        elif mark == b"," or self._elements:
            raise ValueError(f"an element is missing after {self._elements} elements")
        if mark == b"]":
            self._closed = True
