"""The beginning of a body that is no stream of events, to say what came: bounded in bytes, in time and as text."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from contextlib import suppress

from accord.errors import TruncatedRun


async def read_start(body: AsyncIterable[bytes], *, max_bytes: int, patience: float | None) -> bytes:
    """At most `max_bytes` of the body: what came within `patience` seconds and before it was cut off."""
    start = bytearray()
    with suppress(TruncatedRun, TimeoutError):
        async with asyncio.timeout(patience):
            async for data in body:
                start += data
                if len(start) >= max_bytes:
                    break
    return bytes(start[:max_bytes])


def excerpt(text: str | bytes, *, max_characters: int = 200) -> str:
    """Text that a peer sent, fit for one line of a message: no line breaks, nothing a terminal would obey."""
    if isinstance(text, bytes):
        text = text[: 4 * max_characters].decode(errors="replace")
    words = " ".join(text.split())
    shown = "".join(character if character.isprintable() else "\ufffd" for character in words[:max_characters])
    return f"{shown}…" if len(words) > max_characters else shown
