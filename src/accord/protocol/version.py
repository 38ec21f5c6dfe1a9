"""Protocol versions: declared as `major.minor`, compared by component as numbers (rules section 8)."""

import re

#: The version this package speaks and declares.
PROTOCOL_VERSION = "1.0"

_DECLARED = re.compile(r"[0-9]{1,9}\.[0-9]{1,9}")
_OURS = (1, 0)
_PEER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){1,2}")


def parse_declared(version: str) -> tuple[int, int] | None:
    """The (major, minor) of a version a producer declared, or None when it cannot be read."""
    if not _DECLARED.fullmatch(version):
        return None
    major, minor = version.split(".")
    return int(major), int(minor)


def unlike_ours(declared: str) -> str | None:
    """What there is to warn of in a version that a peer declared; None when it is ours or an older one."""
    if declared == PROTOCOL_VERSION:
        return None
    version = parse_declared(declared)
    if version is None:
        return f"the peer declares version {declared!r}, which cannot be read"
    if version > _OURS:
        return f"the peer speaks version {declared}, newer than {PROTOCOL_VERSION}; going on"
    return None


def parse_peer(version: str) -> tuple[int, int, int]:
    """The components of a peer's version such as `0.0.39` or `1.0`; raises ValueError when it is none."""
    if not _PEER.fullmatch(version):
        raise ValueError(f"not a version: {version!r} (expected two or three numbers, such as '0.0.57' or '1.0')")
    numbers = [int(part) for part in version.split(".")]
    return numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else 0
