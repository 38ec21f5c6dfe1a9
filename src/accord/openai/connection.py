"""Where the model is and who asks: SDK clients from arguments and the usual environment variables."""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any

import openai
from accord.agents.errors import AgentSetupError, ChatClientError

_AZURE_API_VERSION = "2024-10-21"
_AZURE_SCOPE = "https://cognitiveservices.azure.com/.default"
_TOKEN_MARGIN = 300.0  # seconds; a token this near to its expiry is replaced


def only_azure_is_configured(api_key: str | None, base_url: str | None) -> bool:
    """Whether the environment speaks of Azure, and neither it nor the arguments speak of anything else."""
    elsewhere = (api_key, base_url, os.environ.get("OPENAI_API_KEY"), os.environ.get("OPENAI_BASE_URL"))
    return not any(elsewhere) and bool(os.environ.get("AZURE_OPENAI_ENDPOINT"))


def openai_client(base_url: str | None, api_key: str | None, settings: dict[str, Any]) -> openai.AsyncOpenAI:
    if base_url and not (api_key or os.environ.get("OPENAI_API_KEY")):
        api_key = "none"  # the SDK insists on a key; servers of one's own seldom do
    try:
        return openai.AsyncOpenAI(base_url=base_url, api_key=api_key, **settings)
    except openai.OpenAIError as error:
        raise AgentSetupError("no key for the model server: pass api_key=, or set OPENAI_API_KEY") from error


def azure_client(
    endpoint: str | None, api_version: str | None, api_key: str | None, credential: Any, settings: dict[str, Any]
) -> openai.AsyncAzureOpenAI:
    endpoint = endpoint or os.environ.get("AZURE_OPENAI_ENDPOINT")
    if not endpoint:
        raise AgentSetupError("no Azure endpoint: pass azure_endpoint=, or set AZURE_OPENAI_ENDPOINT")
    if api_key and credential is not None:
        raise AgentSetupError("api_key= and credential= both say who asks: pass one of them")
    version = api_version or os.environ.get("AZURE_OPENAI_API_VERSION") or os.environ.get("OPENAI_API_VERSION")
    try:
        return openai.AsyncAzureOpenAI(
            azure_endpoint=endpoint,
            api_version=version or _AZURE_API_VERSION,
            api_key=api_key,
            azure_ad_token_provider=None if credential is None else _token_provider(credential),
            **settings,
        )
    except openai.OpenAIError as error:
        raise AgentSetupError(
            "no key for Azure OpenAI: pass api_key= or credential=, or set AZURE_OPENAI_API_KEY"
        ) from error


def _token_provider(credential: Any) -> Callable[[], Awaitable[str]]:
    if hasattr(credential, "get_token"):
        return _Tokens(credential).current
    if callable(credential):

        async def call() -> str:
            token = credential()
            return str(await token if inspect.isawaitable(token) else token)

        return call
    raise AgentSetupError(f"credential: {type(credential).__name__} has no get_token() and is no function")


class _Tokens:
    """The tokens of a credential, asked for once each: some credentials start a process for every one."""

    def __init__(self, credential: Any) -> None:
        self._get_token = credential.get_token
        self._token = ""
        self._good_until = 0.0
        self._asking = asyncio.Lock()

    async def current(self) -> str:
        async with self._asking:
            if time.time() >= self._good_until:
                try:
                    found = await self._ask()
                except Exception as error:
                    raise ChatClientError(
                        "the credential gives no token for the model server", code="authentication", detail=str(error)
                    ) from error
                self._token = found.token
                self._good_until = found.expires_on - _TOKEN_MARGIN
            return self._token

    async def _ask(self) -> Any:
        if inspect.iscoroutinefunction(self._get_token):
            return await self._get_token(_AZURE_SCOPE)
        found = await asyncio.to_thread(self._get_token, _AZURE_SCOPE)
        return await found if inspect.isawaitable(found) else found
