"""A producer behind HTTP (rules section 9): POST of the JSON input, a stream of events back.

What keeps a stream from beginning is `TransportError` or `InputRejected`; what cuts one that has begun is
`TruncatedRun`, whichever side or network did it.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import TypeAlias

import httpx

from accord.client.excerpt import read_start
from accord.client.refusal import refusal
from accord.client.stream import ACCEPT, Wire
from accord.errors import TransportError, TruncatedRun
from accord.protocol import RunAgentInput, encode_input
from accord.wire import JSON_MEDIA_TYPE

#: What httpx takes for `auth`: a user name and password, an `httpx.Auth`, or a function that changes the request.
Auth: TypeAlias = httpx.Auth | tuple[str, str] | Callable[[httpx.Request], httpx.Request]


class HTTPTransport:
    """Sends inputs to one URL.

    `headers` and `auth` go with every request; content type and accepted types are ours to say. `http_client` is used
    instead of one of our own, and not closed: its proxies, certificates, cookies and redirects hold, our timeouts too.
    Redirects are not followed by ours, since an input and its credentials are meant for one address.

    `wire` is what is asked for; the answer is read as what its content type says, whichever that was. `sse` asks for
    an event stream, which every producer can send. `protobuf` asks for the binary wire, smaller for text but slower to
    read in Python, without keep-alives and unable to carry everything (`accord.wire.protobuf_encode`); a producer that
    does not have it sends an event stream. `auto` accepts both and leaves the choice to the producer: one that has the
    binary wire then sends that, since it goes by what is admitted and not by what is preferred (rules section 9).

    - `connect_timeout`: seconds to be connected, and for the connection to take a piece of the request.
    - `read_timeout`: seconds of silence, for the answer to begin and between two pieces of it; a producer that thinks
      for longer must send keep-alives. None waits for ever.
    - `max_error_bytes`: how much of the body of an HTTP error is read, for `error_timeout` seconds at most.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        auth: Auth | None = None,
        http_client: httpx.AsyncClient | None = None,
        wire: Wire = "sse",
        connect_timeout: float | None = 10.0,
        read_timeout: float | None = 300.0,
        max_error_bytes: int = 64 * 1024,
        error_timeout: float | None = 10.0,
    ) -> None:
        accept = ACCEPT.get(wire)
        if accept is None:
            raise ValueError(f"wire={wire!r} must be one of {', '.join(ACCEPT)}")
        self._url = url
        self._headers = httpx.Headers(headers)
        self._headers.setdefault("Accept-Encoding", "identity")  # what compresses a stream tends to hold it back
        self._headers["Content-Type"] = JSON_MEDIA_TYPE
        self._headers["Accept"] = accept
        self._auth = httpx.USE_CLIENT_DEFAULT if auth is None else auth
        self._client = http_client
        self._owns_client = http_client is None
        self._timeout = httpx.Timeout(connect_timeout, read=read_timeout)
        self._max_error_bytes = max_error_bytes
        self._error_timeout = error_timeout

    async def open(self, run_input: RunAgentInput) -> HTTPResponse:
        """Posts the input; the response has a status of 2xx."""
        body = encode_input(run_input)
        try:
            client = self._client or await self._own_client()
            request = client.build_request(
                "POST", self._url, content=body, headers=self._headers, timeout=self._timeout
            )
            answer = await client.send(request, auth=self._auth, stream=True)
        except Exception as error:  # httpx lets some through that are not its own, such as for a port beyond 65535
            raise TransportError(f"no answer from {_shown(self._url)}: {self._reason(error)}") from error
        response = HTTPResponse(answer, self._reason)
        if not answer.is_success:
            try:
                start = await read_start(response, max_bytes=self._max_error_bytes, patience=self._error_timeout)
            finally:
                await response.aclose()
            raise refusal(
                _shown(self._url),
                answer.status_code,
                response.content_type,
                start,
                location=answer.headers.get("Location"),
            )
        return response

    async def aclose(self) -> None:
        """Closes the connections, unless the HTTP client is somebody else's."""
        if self._owns_client and self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _own_client(self) -> httpx.AsyncClient:
        certificates = await asyncio.to_thread(_certificates)
        if self._client is None:
            self._client = httpx.AsyncClient(verify=certificates)
        return self._client

    def _reason(self, error: Exception) -> str:
        """What went wrong; httpx leaves the text of some errors empty."""
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        name = type(error).__name__
        if isinstance(error, httpx.ReadTimeout):
            return f"nothing came for {self._timeout.read:g} s (read_timeout)"
        if isinstance(error, httpx.TimeoutException):
            return f"{name} after {self._timeout.connect:g} s (connect_timeout)"
        return f"{name}: {error}" if str(error) else name


class HTTPResponse:
    """A response of which the body is being read."""

    def __init__(self, response: httpx.Response, reason: Callable[[Exception], str]) -> None:
        self._response = response
        self._reason = reason
        self._body = self._read()

    @property
    def content_type(self) -> str | None:
        """As the `Content-Type` header has it."""
        content_type: str | None = self._response.headers.get("Content-Type")
        return content_type

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._response.status_code

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._body

    async def aclose(self) -> None:
        """Closes the connection, unless the body was read to its end and it can be used again."""
        await self._body.aclose()
        with suppress(httpx.HTTPError):
            await self._response.aclose()

    async def _read(self) -> AsyncGenerator[bytes, None]:
        try:
            async with aclosing(self._response.aiter_bytes()) as body:  # type: ignore[type-var]
                async for data in body:
                    yield data
        except (httpx.HTTPError, OSError) as error:
            raise TruncatedRun(f"the connection was lost: {self._reason(error)}") from error


@functools.cache
def _certificates() -> ssl.SSLContext:
    """The authorities to trust; reading them takes long enough to be done once, and not on the event loop."""
    return httpx.create_ssl_context()


def _shown(url: str) -> str:
    """The URL without what may be secret in it: the user's name and password, the query."""
    try:
        return str(httpx.URL(url).copy_with(username=None, password=None, query=None, fragment=None))
    except httpx.InvalidURL:
        return repr(url)
