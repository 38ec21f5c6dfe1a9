"""The one interface between the client and whatever reaches a producer: an input goes out, a body comes back.

A transport carries bytes and judges nothing in them. What the bytes are is said by the response's content type, and
read by `accord.client.stream`, the same for every transport.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from accord.protocol import RunAgentInput


class Response(Protocol):
    """A producer's answer. Iterating gives the body as it comes, in pieces of any size, once.

    The iteration raises `TruncatedRun` when the body is cut off; what came before stays valid.
    """

    @property
    def content_type(self) -> str | None:
        """The media type of the body with its parameters, None when none was declared."""
        ...

    @property
    def status(self) -> int | None:
        """The HTTP status, None where there is no HTTP."""
        ...

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None:
        """Gives up what has not been read and frees what the answer holds; a second call does nothing."""
        ...


class Transport(Protocol):
    """A way to a producer."""

    async def open(self, run_input: RunAgentInput) -> Response:
        """Sends the input; returns when the producer has taken it.

        Raises `TransportError` when the producer is not reached or something else answers, `InputRejected` when the
        producer refuses the input.
        """
        ...

    async def aclose(self) -> None:
        """Frees what is kept from run to run."""
        ...
