"""Protocol versions: declared as `major.minor`, compared by component as numbers (rules section 8)."""

import re

#: The version this package speaks and declares.
PROTOCOL_VERSION = "1.0"

_DECLARED = re.compile(r"[0-9]{1,9}\.[0-9]{1,9}")
_PEER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){1,2}")


def parse_declared(version: str) -> tuple[int, int] | None:
    """The (major, minor) of a version a producer declared, or None when it cannot be read."""
    if not _DECLARED.fullmatch(version):
        return None
    major, minor = version.split(".")
    return int(major), int(minor)


def parse_peer(version: str) -> tuple[int, int, int]:
    """The components of a peer's version such as `0.0.39` or `1.0`; raises ValueError when it is none."""
    if not _PEER.fullmatch(version):
        raise ValueError(f"not a version: {version!r} (expected two or three numbers, such as '0.0.57' or '1.0')")
    numbers = [int(part) for part in version.split(".")]
    return numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else 0
