"""The wire format of Protocol Buffers: a message is a run of fields, each a tag and a value.

Reading follows the public encoding guide. What no encoder writes is refused: a tag or length of more than 32 bits, a
field number 0, a wire type that does not exist, a group that is not closed by its own number, a field that goes on past
the end of its message. What an encoder may write is read: fields in any order, unknown ones, and numbers in more bytes
than they need, of which the low 64 bits count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from accord.errors import ProtocolViolation

#: The wire types: the low three bits of a tag.
VARINT: Final = 0
FIXED64: Final = 1
DELIMITED: Final = 2
START_GROUP: Final = 3
END_GROUP: Final = 4
FIXED32: Final = 5

#: Where bytes begin and end.
Span = tuple[int, int]

_ONE_BYTE: Final = tuple(bytes([number]) for number in range(128))
_MASK: Final = 2**64 - 1
_LONGEST: Final = 10  # bytes that 64 bits take, seven in each
_LONGEST_SHORT: Final = 5  # and 32


def violation(rule: str, message: str) -> ProtocolViolation:
    """What a frame that cannot be read raises."""
    return ProtocolViolation(message, stage="wire", rule=rule)


def undecodable(message: str) -> ProtocolViolation:
    """The same, for bytes that are no Protocol Buffers at all."""
    return violation("undecodable", f"not a Protocol Buffers message: {message}")


def varint(number: int) -> bytes:
    """A number of 64 bits as seven bits in each byte, the lowest first."""
    if 0 <= number < 128:
        return _ONE_BYTE[number]
    number &= _MASK
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def delimited(tag: bytes, body: bytes) -> bytes:
    """A length-delimited field."""
    length = len(body)
    return tag + (_ONE_BYTE[length] if length < 128 else varint(length)) + body


def walk(data: bytes, position: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The fields of the message that `data[position:end]` is.

    Each is its tag and, when that says it is a number of variable length, the number and where it ends; otherwise where
    its bytes begin and end. A group is one field; its tag is the one that opens it. Reading past the end of `data` may
    raise `IndexError` instead of a violation.
    """
    while position < end:
        tag = data[position]
        position += 1
        if tag > 127:
            tag, position = _short(data, position - 1)
        if tag < 8:
            raise undecodable("a field has the number 0")
        wire_type = tag & 7
        if wire_type == DELIMITED:
            length = data[position]
            position += 1
            if length > 127:
                length, position = _short(data, position - 1)
            start = position
            position += length
            if position > end:
                raise undecodable("a field is longer than what it is in")
            yield tag, start, position
        elif wire_type == VARINT:
            number = data[position]
            position += 1
            if number > 127:
                number, position = _long(data, position - 1)
            yield tag, number, position
        else:
            start = position
            position = _skip(data, position, end, tag)
            if position > end:
                raise undecodable("a field is longer than what it is in")
            yield tag, start, position
    if position != end:
        raise undecodable("a field is longer than what it is in")


def check_message(data: bytes, position: int, end: int) -> None:
    """Raises `ProtocolViolation` unless `data[position:end]` can be a message; what its fields hold may be anything."""
    for _ in walk(data, position, end):
        pass


def joined(data: bytes, spans: Sequence[Span]) -> tuple[bytes, int, int]:
    """The message that several occurrences of one field make together: to merge them is to read them in one go.

    `ProtocolViolation` when one of several is no message of its own.
    """
    if len(spans) == 1:
        (start, end) = spans[0]
        return data, start, end
    for start, end in spans:
        check_message(data, start, end)
    together = b"".join([data[start:end] for start, end in spans])
    return together, 0, len(together)


def signed(number: int, bits: int) -> int:
    """The number of two's complement in the low bits of `number`."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def _short(data: bytes, position: int) -> tuple[int, int]:
    """A number of 32 bits: a tag or a length."""
    number, end = _long(data, position)
    if end - position > _LONGEST_SHORT or number >> 32:
        raise undecodable("a tag or length has more than 32 bits")
    return number, end


def _long(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    for _ in range(_LONGEST):
        byte = data[position]
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number & _MASK, position
        shift += 7
    raise undecodable("a number has more than 64 bits")


def _skip(data: bytes, position: int, end: int, tag: int) -> int:
    """The end of a field that is neither delimited nor a number of variable length."""
    wire_type = tag & 7
    if wire_type == FIXED64:
        position += 8
    elif wire_type == FIXED32:
        position += 4
    elif wire_type == START_GROUP:
        return _skip_group(data, position, end, tag >> 3)
    elif wire_type == END_GROUP:
        raise undecodable("a group ends that was not opened")
    else:
        raise undecodable(f"there is no wire type {wire_type}")
    return position


def _skip_group(data: bytes, position: int, end: int, number: int) -> int:
    """The end of a group, and of those in it; not recursive, since nothing bounds how many there are."""
    open_groups = [number]
    while open_groups:
        if position >= end:
            raise undecodable("a group is not closed")
        tag, position = _short(data, position)
        if tag < 8:
            raise undecodable("a field has the number 0")
        wire_type = tag & 7
        if wire_type == START_GROUP:
            open_groups.append(tag >> 3)
        elif wire_type == END_GROUP:
            if open_groups.pop() != tag >> 3:
                raise undecodable("a group ends that was not opened")
        elif wire_type == DELIMITED:
            length, position = _short(data, position)
            position += length
        elif wire_type == VARINT:
            _, position = _long(data, position)
        else:
            position = _skip(data, position, end, tag)
    return position
