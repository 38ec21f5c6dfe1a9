"""What the SDK and the connection under it raise, as `ChatClientError`: plain words, and no word of the server's."""

from __future__ import annotations

import httpx

import openai
from accord.agents.errors import ChatClientError

_NOT_ACCEPTED = ("invalid_request", "the model server does not accept the request")
_FAILED = ("server_error", "the model server failed")
_BY_STATUS = {
    401: ("authentication", "the model server does not accept the credentials"),
    403: ("permission", "the model server does not permit this"),
    404: ("not_found", "the model server knows no such model, or no such address"),
    408: ("timeout", "the model server gave up waiting"),
    413: ("invalid_request", "the request is too large for the model server"),
    429: ("rate_limited", "the model server is asked too much at the moment, or a quota is used up"),
}

# What a server may say of a refused request that a program wants to tell apart.
_BY_SERVER_CODE = {
    "content_filter": "the content filter of the model server does not accept the request",
    "context_length_exceeded": "the conversation is too long for the model",
    "insufficient_quota": "the quota at the model server is used up",
    "model_not_found": "the model server knows no such model",
}


def as_chat_client_error(error: Exception, *, answering: bool) -> ChatClientError:
    """The error for whoever runs the agent, before or while the server was `answering`; what it said is the `detail`.

    The SDK lets some failures of the connection through as they are, and fails in ways of its own over answers that
    are no JSON or none that it knows.
    """
    detail = str(error)
    if isinstance(error, openai.APITimeoutError | httpx.TimeoutException):
        return ChatClientError("the model server does not answer in time", code="timeout", detail=detail)
    if isinstance(error, openai.APIConnectionError | httpx.HTTPError):
        return ChatClientError(
            "the model server cannot be reached, or the connection broke", code="connection", detail=detail
        )
    if isinstance(error, openai.APIError) and error.code in _BY_SERVER_CODE:
        status = error.status_code if isinstance(error, openai.APIStatusError) else None
        return ChatClientError(_BY_SERVER_CODE[error.code], code=error.code, status=status, detail=detail)
    if isinstance(error, openai.APIStatusError):
        status = error.status_code
        code, message = _BY_STATUS.get(status, _FAILED if status >= 500 else _NOT_ACCEPTED)
        return ChatClientError(f"{message} ({status})", code=code, status=status, detail=detail)
    if isinstance(error, openai.OpenAIError):
        return ChatClientError("the model server reports an error", code="server_error", detail=detail)
    if isinstance(error, UnicodeEncodeError):
        return ChatClientError("the conversation holds text that cannot be encoded", code="invalid_request")
    if isinstance(error, TypeError) and not answering:
        return ChatClientError("the request holds something that is no JSON", code="invalid_request", detail=detail)
    return ChatClientError("the model server's answer cannot be read", code="malformed", detail=detail)
