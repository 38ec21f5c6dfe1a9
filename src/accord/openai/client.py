"""The client itself: one request, one streamed answer, every failure a `ChatClientError`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import openai
from accord.agents.chat import ChatOptions
from accord.agents.errors import ChatClientError
from accord.agents.message import Message
from accord.agents.update import AgentResponseUpdate
from accord.openai.answer import AnswerReader
from accord.openai.connection import azure_client, only_azure_is_configured, openai_client
from accord.openai.failure import as_chat_client_error
from accord.openai.request import api_messages, api_response_format, api_tool, api_tool_choice


class OpenAIChatCompletionClient:
    """A model behind the chat completions API.

    `OpenAIChatCompletionClient("gpt-4o")` is OpenAI with `OPENAI_API_KEY`; `base_url=` another server of the same API
    (`OPENAI_BASE_URL`), which may need no key; `azure_endpoint=` Azure OpenAI (`AZURE_OPENAI_ENDPOINT`), where `model`
    is the deployment, with `api_key` (`AZURE_OPENAI_API_KEY`) or `credential`: an object of `azure.identity`, sync or
    async (anything with `get_token(scope)`), or a function that returns a token. `api_version`:
    `AZURE_OPENAI_API_VERSION`, `OPENAI_API_VERSION`, else 2024-10-21. Without `model`, `OPENAI_MODEL` names it, or on
    Azure `AZURE_OPENAI_DEPLOYMENT_NAME`, unless a call's options do. `client` is an SDK client to use as it is.

    `timeout` is in seconds, for each wait on the server; `max_retries` counts attempts after the first, before an
    answer has begun. `include_usage=False` is for servers that refuse `stream_options`.

    Raises `AgentSetupError` when nothing says where to go, or with which key.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        azure_endpoint: str | None = None,
        api_version: str | None = None,
        credential: Any = None,
        client: openai.AsyncOpenAI | None = None,
        timeout: float = 600.0,
        max_retries: int = 2,
        default_headers: Mapping[str, str] | None = None,
        include_usage: bool = True,
    ) -> None:
        self._owns_client = client is None
        if client is None:
            settings: dict[str, Any] = {
                "timeout": timeout,
                "max_retries": max_retries,
                "default_headers": default_headers,
            }
            if azure_endpoint or credential is not None or only_azure_is_configured(api_key, base_url):
                client = azure_client(azure_endpoint, api_version, api_key, credential, settings)
            else:
                client = openai_client(base_url, api_key, settings)
        self._client = client
        self._include_usage = include_usage
        is_azure = isinstance(client, openai.AsyncAzureOpenAI)
        is_openai = client.base_url.host == "api.openai.com"
        self._provider = "azure" if is_azure else "openai" if is_openai else None
        # The newer name of the setting is known to these two; other servers know the older one.
        self._max_tokens = "max_completion_tokens" if is_azure or is_openai else "max_tokens"
        deployment = os.environ.get("AZURE_OPENAI_DEPLOYMENT_NAME") if is_azure else None
        self.model = model or deployment or os.environ.get("OPENAI_MODEL")

    async def stream(self, messages: Sequence[Message], options: ChatOptions) -> AsyncIterator[AgentResponseUpdate]:
        """The answer as it is made: see `accord.agents.ChatClient`."""
        request = self._request(messages, options)
        answer = AnswerReader(self._provider)
        answering = False
        try:
            async with await self._client.chat.completions.create(**request) as chunks:
                answering = True
                async for chunk in chunks:
                    if (update := answer.read(chunk)) is not None:
                        yield update
            yield answer.end()
        except ChatClientError:
            raise
        except Exception as error:  # whatever the SDK makes of bytes that are no answer
            raise as_chat_client_error(error, answering=answering) from error

    async def aclose(self) -> None:
        """Close the connections, unless the SDK client was given."""
        if self._owns_client:
            await self._client.close()

    def _request(self, messages: Sequence[Message], options: ChatOptions) -> dict[str, Any]:
        model = options.model or self.model
        if not model:
            raise ChatClientError("no model is named: pass model=, or set OPENAI_MODEL", code="no_model")
        request: dict[str, Any] = {"model": model, "messages": api_messages(messages), "stream": True}
        if self._include_usage:
            request["stream_options"] = {"include_usage": True}
        if tools := [api_tool(definition) for definition in options.tools]:
            request["tools"] = tools
            if options.tool_choice is not None:
                request["tool_choice"] = api_tool_choice(options.tool_choice)
        if options.response_format is not None:
            request["response_format"] = api_response_format(options.response_format)
        if options.temperature is not None:
            request["temperature"] = options.temperature
        if options.max_tokens is not None:
            request[self._max_tokens] = options.max_tokens
        if options.extra:
            request["extra_body"] = dict(options.extra)
        return request
