"""Server-Sent Events: bytes in, one payload per event out, whatever the split of the bytes; and the writer.

The grammar is the WHATWG's (HTML, "Interpreting an event stream"): lines end in LF, CR or CRLF; a `data` field adds a
line, other fields and comments are passed over; a blank line ends the event; what is not ended never happened.
Payloads stay bytes: UTF-8 is not decoded here, so no character but CR and LF can end a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from accord.errors import EncodingError, ProtocolViolation, TruncatedRun

SSE_MEDIA_TYPE: Final = "text/event-stream"
MAX_FRAME_BYTES: Final = 10 * 1024 * 1024

_LF: Final = 0x0A  # as a number: looking for one byte in bytes is then a bare memchr
_CR: Final = 0x0D
_BOM: Final = b"\xef\xbb\xbf"
_FIELD: Final = b"data:"
_OPENING: Final = b"data: "
_BETWEEN: Final = b"\n\ndata: "


class SSEReader:
    """Reads an event stream incrementally: `feed` what arrives, then `close` when it ends.

    Bytes are first brought to LF line ends. Whole frames of the usual shape (one `data: ` line, one blank line) are
    then cut out of a read in a few C calls; everything else goes line by line. Both ways give the same payloads.

    An event is as long as its `data` lines and the line being read. One longer than `max_frame_bytes` is a
    `ProtocolViolation` (rule `frame-limit`), as is a line of any kind that does not end within the limit. Lines that
    cannot be `data` are counted while they last and not kept. Payloads read before the offence are returned first;
    the violation is then raised by the next call, and by every one after it.
    """

    __slots__ = ("_after_cr", "_held", "_ignored", "_length", "_line", "_lines", "_max", "_start", "_violation")

    def __init__(self, *, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max = max_frame_bytes
        self._start: bytes | None = b""  # what may yet turn out to be a BOM; None once that is settled
        self._after_cr = False  # the last read ended in CR: an LF that opens the next one belongs to it
        self._lines: list[bytes] = []  # values of the data lines of the event being read
        self._held = 0  # bytes of those lines
        self._line = bytearray()  # the unfinished line, as long as it may be a data line
        self._length = 0  # its length, kept or not
        self._ignored = False  # it cannot be a data line
        self._violation: ProtocolViolation | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """The payload of each event that `data` completes: its data lines joined with LF.

        An event whose only data line is empty has the payload `b""`; one without data lines yields nothing.
        """
        if self._violation is not None:
            raise self._violation
        if self._start is not None:
            data = self._without_bom(data, self._start)
        if self._after_cr or _CR in data:
            data = self._with_lf(data)
        payloads: list[bytes] = []
        try:
            if self._length or self._lines:
                end = data.find(b"\n\n")
                end = len(data) if end < 0 else end + 2
                self._read_lines(data[:end], payloads)
                data = data[end:]
            if data:
                end = data.rfind(b"\n\n")
                if end >= 0:
                    self._read_frames(data, end, payloads)
                    data = data[end + 2 :]
                if data:
                    self._read_lines(data, payloads)
        except ProtocolViolation as violation:
            self._violation = violation
            if not payloads:
                raise
        return payloads

    def close(self) -> None:
        """The stream has ended. Raises `TruncatedRun` when it ended inside an event.

        Inside means: after a data line whose event has no blank line, or within a line that could have become one.
        An unfinished comment or other field carries nothing and is a clean end.
        """
        if self._violation is not None:
            raise self._violation
        if self._lines or self._line:
            raise TruncatedRun(
                f"the event stream ends inside an event: {self._held + len(self._line)} bytes of it came, "
                "but no blank line to end it"
            )

    def _without_bom(self, data: bytes, start: bytes) -> bytes:
        start += data
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._start = start
            return b""
        self._start = None
        return start.removeprefix(_BOM)

    def _with_lf(self, data: bytes) -> bytes:
        if not data:
            return data
        if self._after_cr and data[0] == _LF:
            data = data[1:]
        self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _read_frames(self, data: bytes, end: int, payloads: list[bytes]) -> None:
        """Reads `data` up to the blank line at `end`, starting between events."""
        if data.startswith(_OPENING) and end <= self._max:  # then no frame in it is too long
            body = data[len(_OPENING) : end]
            found = body.split(_BETWEEN)
            if body.count(_LF) == 2 * (len(found) - 1):  # no others than between the frames: each is one data line
                payloads += found
                return
        self._read_lines(data[: end + 2], payloads)

    def _read_lines(self, data: bytes, payloads: list[bytes]) -> None:
        lines = data.split(b"\n")
        unfinished = lines.pop()
        if lines and self._length:
            self._grow(lines[0])
            if self._ignored:
                del lines[0]
            else:
                lines[0] = bytes(self._line)
            self._line = bytearray()
            self._length = 0
            self._ignored = False
        for line in lines:
            if self._held + len(line) > self._max:
                raise self._too_long()
            if not line:
                if self._lines:
                    payloads.append(b"\n".join(self._lines))
                    self._lines = []
                    self._held = 0
            elif line.startswith(_FIELD):
                self._lines.append(line[6:] if line.startswith(_OPENING) else line[5:])
                self._held += len(line)
            elif line == b"data":
                self._lines.append(b"")
                self._held += len(line)
        if unfinished:
            self._grow(unfinished)

    def _grow(self, piece: bytes) -> None:
        before = self._length
        self._length += len(piece)
        if self._held + self._length > self._max:
            raise self._too_long()
        if self._ignored:
            return
        self._line += piece
        if before < len(_FIELD) and self._line[: len(_FIELD)] != _FIELD[: self._length]:
            self._ignored = True
            self._line.clear()

    def _too_long(self) -> ProtocolViolation:
        return ProtocolViolation(
            f"an event or line of the event stream is longer than max_frame_bytes={self._max}",
            stage="wire",
            rule="frame-limit",
        )


def encode_frame(payload: bytes) -> bytes:
    """One event that carries `payload`, JSON text without raw line breaks; `EncodingError` if it holds one."""
    if _LF in payload or _CR in payload:
        raise _broken()
    return b"data: %b\n\n" % payload


def encode_frames(payloads: Sequence[bytes]) -> bytes:
    """The events that carry `payloads`, one after another, each as `encode_frame` makes it."""
    if len(payloads) <= 1:
        return encode_frame(payloads[0]) if payloads else b""
    body = _BETWEEN.join(payloads)
    if body.count(_LF) != 2 * (len(payloads) - 1) or _CR in body:
        raise _broken()
    return b"data: %b\n\n" % body


def _broken() -> EncodingError:
    return EncodingError("a frame's payload cannot hold a raw line break", path="")


def comment(text: str = "") -> bytes:
    """A comment, which readers pass over: sent from time to time, it keeps an idle connection open.

    `EncodingError` when `text` holds a line break, since what follows it would be read as a field.
    """
    if "\n" in text or "\r" in text:
        raise EncodingError("a comment cannot hold a line break", path="")
    return f": {text}\n\n".encode(errors="replace")
