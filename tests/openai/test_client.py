"""The client against a real HTTP server on loopback that speaks the chat completions API."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvicorn
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

import openai
from accord.agents import (
    Agent,
    AgentResponse,
    AgentSetupError,
    ChatClient,
    ChatClientError,
    ChatOptions,
    Message,
    ReasoningContent,
    StructuredOutputError,
    TextContent,
    ToolDefinition,
    Usage,
    tool,
)
from accord.openai import OpenAIChatCompletionClient

HELLO = [Message("user", "Hello")]
DONE = "data: [DONE]\n\n"
SECRET = "sk-very-secret"


def chunk(delta: dict[str, Any] | None = None, finish_reason: str | None = None, **rest: Any) -> dict[str, Any]:
    choices = [{"index": 0, "delta": delta or {}, "finish_reason": finish_reason}]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m-1",
        "choices": choices,
    } | rest


def event(value: dict[str, Any]) -> str:
    return f"data: {json.dumps(value)}\n\n"


def call(index: int | None = None, call_id: str | None = None, **function: Any) -> dict[str, Any]:
    fragment: dict[str, Any] = {"function": function}
    if index is not None:
        fragment["index"] = index
    if call_id is not None:
        fragment |= {"id": call_id, "type": "function"}
    return chunk({"tool_calls": [fragment]})


@dataclass
class Server:
    """What it answers is said by the test; what it was asked is kept."""

    url: str = ""
    answers: list[Response | Callable[[], Response]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    reader_left: threading.Event = field(default_factory=threading.Event)

    def will_stream(self, *chunks: dict[str, Any] | str) -> None:
        """Answer the next request with these chunks; text is sent as it is."""
        self.answers.append(
            StreamingResponse(
                (item if isinstance(item, str) else event(item) for item in chunks), media_type="text/event-stream"
            )
        )

    def will_say(self, text: str, finish_reason: str = "stop") -> None:
        self.will_stream(chunk({"role": "assistant", "content": text}), chunk(finish_reason=finish_reason), DONE)

    async def respond(self, request: Request) -> Response:
        self.requests.append(request)
        self.bodies.append(await request.json())
        answer = self.answers.pop(0)
        return answer if isinstance(answer, Response) else answer()

    async def endless(self) -> AsyncIterator[str]:
        try:
            while True:
                yield event(chunk({"content": "a"}))
                await asyncio.sleep(0.01)
        finally:
            self.reader_left.set()


@pytest.fixture(scope="module")
def running_server() -> Iterator[Server]:
    server = Server()
    routes = [Route("/{path:path}", server.respond, methods=["POST"])]
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        web = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="error", lifespan="off"))
        thread = threading.Thread(target=web.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield server
        finally:
            web.should_exit = True
            thread.join()


@pytest.fixture
def server(running_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "OPENAI_API_VERSION"):
        monkeypatch.delenv(name, raising=False)
    for name in ("ENDPOINT", "API_KEY", "AD_TOKEN", "API_VERSION", "DEPLOYMENT_NAME"):
        monkeypatch.delenv(f"AZURE_OPENAI_{name}", raising=False)
    running_server.answers.clear()
    running_server.requests.clear()
    running_server.bodies.clear()
    running_server.reader_left.clear()
    return running_server


@pytest.fixture
async def client(server: Server) -> AsyncIterator[OpenAIChatCompletionClient]:
    client = OpenAIChatCompletionClient("gpt", base_url=f"{server.url}/v1", api_key=SECRET, max_retries=0)
    yield client
    await client.aclose()


async def ask(client: ChatClient, options: ChatOptions | None = None) -> AgentResponse:
    updates = [update async for update in client.stream(HELLO, options or ChatOptions())]
    return AgentResponse.from_updates(updates, response_format=options.response_format if options else None)


async def failure(client: ChatClient) -> ChatClientError:
    with pytest.raises(ChatClientError) as caught:
        await ask(client)
    shown = str(caught.value)
    assert SECRET not in shown
    assert "http" not in shown
    return caught.value


class TestAnswers:
    async def test_text_streams(self, server: Server, client: OpenAIChatCompletionClient) -> None:
        server.will_stream(
            chunk({"role": "assistant", "content": ""}), chunk({"content": "Hel"}), chunk({"content": "lo"}),
            chunk(finish_reason="stop"), DONE,
        )  # fmt: skip
        updates = [update async for update in client.stream(HELLO, ChatOptions())]
        assert [update.text for update in updates] == ["Hel", "lo", ""]
        assert [update.finish_reason for update in updates] == [None, None, "stop"]
        assert {update.response_id for update in updates} == {"chatcmpl-1"}
        assert server.requests[0].url.path == "/v1/chat/completions"
        assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"
        assert server.bodies[0] == {
            "model": "gpt",
            "messages": [{"role": "user", "content": "Hello"}],
            "stream": True,
            "stream_options": {"include_usage": True},
        }

    async def test_usage(self, server: Server, client: OpenAIChatCompletionClient) -> None:
        usage = {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
            "completion_tokens_details": {"reasoning_tokens": 3},
        }
        server.will_stream(
            chunk({"content": "a"}, usage={"prompt_tokens": 10, "completion_tokens": 1}),
            chunk(finish_reason="stop"), chunk(choices=[], usage=usage), DONE,
        )  # fmt: skip
        assert (await ask(client)).usage == Usage(
            model="m-1",
            input_tokens=10,
            output_tokens=5,
            total_tokens=15,
            reasoning_tokens=3,
            cached_input_tokens=4,
            cache_write_input_tokens=2,
        )

    async def test_usage_in_part(self, server: Server, client: OpenAIChatCompletionClient) -> None:
        usage = {"prompt_tokens": 1, "completion_tokens": 2}
        server.will_stream(chunk({"content": "a"}, finish_reason="stop", usage=usage), DONE)
        found = (await ask(client)).usage
        assert found == Usage(model="m-1", input_tokens=1, output_tokens=2, total_tokens=3)

    async def test_no_usage(self, server: Server, client: OpenAIChatCompletionClient) -> None:
        server.will_say("a")
        assert (await ask(client)).usage is None
        bare = OpenAIChatCompletionClient("gpt", base_url=server.url, include_usage=False)
        server.will_say("a")
        await ask(bare)
        assert "stream_options" not in server.bodies[1]
        await bare.aclose()

    @pytest.mark.parametrize("member", ["reasoning_content", "reasoning"])
    async def test_reasoning(self, server: Server, client: OpenAIChatCompletionClient, member: str) -> None:
        server.will_stream(
            chunk({member: "Let "}), chunk({member: "me think."}), chunk({"content": "42"}), chunk({}, "stop"), DONE
        )
        assert (await ask(client)).messages[0].contents == (ReasoningContent("Let me think."), TextContent("42"))

    async def test_a_refusal(self, server: Server, client: OpenAIChatCompletionClient) -> None:
        server.will_stream(chunk({"refusal": "I can"}), chunk({"refusal": "not."}), chunk({}, "stop"), DONE)
        response = await ask(client, ChatOptions(response_format={"type": "object"}))
        assert response.text == "I cannot."
        with pytest.raises(StructuredOutputError, match="refused"):
            _ = response.value

    async def test_text_cut_between_surrogates(self, server: Server, client: OpenAIChatCompletionClient) -> None:
        # As JavaScript producers cut it: each half is an escape in a chunk of its own.
        server.will_stream(chunk({"content": "a\ud83d"}), chunk({"content": "\ude00"}), chunk({}, "stop"), DONE)
        assert (await ask(client)).text == "a😀"

    async def test_chunks_of_odd_shapes(self, server: Server, client: OpenAIChatCompletionClient) -> None:
        server.will_stream(
            chunk(choices=[], prompt_filter_results=[]),
            {"id": "chatcmpl-1"},
            chunk(choices=None),
            chunk(choices=[{"index": 1, "delta": {"content": "another choice"}, "finish_reason": None}]),
            chunk(choices=[{"delta": None}]),
            chunk(choices=[{"delta": {"content": "a", "tool_calls": None}, "finish_reason": "length"}]),
            ": a comment\n\n",
            DONE,
        )
        response = await ask(client)
        assert (response.text, response.finish_reason) == ("a", "length")

    async def test_content_in_parts(self, server: Server, client: OpenAIChatCompletionClient) -> None:
        thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Let "}, {"type": "odd"}, 7]}
        server.will_stream(
            chunk({"content": [thinking]}), chunk({"content": [{"type": "thinking", "thinking": "me think."}]}),
            chunk({"content": [{"type": "text", "text": "4"}, {"type": "reference", "reference_ids": [1]}, "odd"]}),
            chunk({"content": "2"}), chunk({}, "stop"), DONE,
        )  # fmt: skip
        assert (await ask(client)).messages[0].contents == (ReasoningContent("Let me think."), TextContent("42"))

    async def test_counts_that_are_none_are_left_out(self, server: Server, client: OpenAIChatCompletionClient) -> None:
        usage = {
            "prompt_tokens": "12",
            "completion_tokens": 5,
            "total_tokens": -1,
            "prompt_tokens_details": "none",
            "completion_tokens_details": {"reasoning_tokens": "many"},
        }
        server.will_stream(chunk({"content": "a"}, "stop"), chunk(choices=[], usage=usage), DONE)
        assert (await ask(client)).usage == Usage(model="m-1", output_tokens=5)

    @pytest.mark.parametrize("odd", [7, True, "x", [], [7], {}, {"a": [1]}, [[None]], [{"index": {}, "id": 1}]])
    @pytest.mark.parametrize("member", ["content", "reasoning_content", "refusal", "tool_calls", "role"])
    async def test_members_of_other_types(
        self, server: Server, client: OpenAIChatCompletionClient, member: str, odd: Any
    ) -> None:
        server.will_stream(chunk({member: odd}), chunk({"content": "a"}), chunk({}, "stop"), DONE)
        assert (await ask(client)).text.endswith("a")

    @pytest.mark.parametrize("odd", [7, True, "x", [], [7], {}, {"a": [1]}, [[None]]])
    @pytest.mark.parametrize("member", ["id", "model", "choices", "usage"])
    async def test_chunks_with_members_of_other_types(
        self, server: Server, client: OpenAIChatCompletionClient, member: str, odd: Any
    ) -> None:
        server.will_stream(chunk(**{member: odd}), chunk({"content": "a"}), chunk({}, "stop"), DONE)
        assert (await ask(client)).text == "a"

    @pytest.mark.parametrize("odd", [7, "x", [], [[7]], None])
    async def test_chunks_that_are_no_objects(
        self, server: Server, client: OpenAIChatCompletionClient, odd: Any
    ) -> None:
        server.will_stream(event(odd), chunk({"content": "a"}), chunk({}, "stop"), DONE)
        with suppress(ChatClientError):
            assert (await ask(client)).text == "a"


class TestCalls:
    async def test_interleaved(self, server: Server, client: OpenAIChatCompletionClient) -> None:
        server.will_stream(
            call(0, "A", name="f", arguments=""), call(1, "B", name="g", arguments=""),
            call(0, arguments='{"a": 1}'), call(1, arguments='{"b": 2}'), chunk({}, "tool_calls"), DONE,
        )  # fmt: skip
        response = await ask(client)
        assert [(c.call_id, c.name, c.arguments) for c in response.pending_calls] == [
            ("A", "f", '{"a": 1}'),
            ("B", "g", '{"b": 2}'),
        ]
        assert response.finish_reason == "tool_calls"

    async def test_without_index_and_id(self, server: Server, client: OpenAIChatCompletionClient) -> None:
        server.will_stream(
            call(name="f", arguments={"é": 1}), call(name="f", arguments='{"b"'), call(arguments=": 2}"),
            chunk({}, "stop"), DONE,
        )  # fmt: skip
        calls = (await ask(client)).pending_calls
        assert [(c.name, c.arguments) for c in calls] == [("f", '{"é": 1}'), ("f", '{"b": 2}')]
        assert len({c.call_id for c in calls}) == 2

    async def test_several_fragments_in_a_chunk(self, server: Server, client: OpenAIChatCompletionClient) -> None:
        fragments = [call(n, f"c{n}", name="f", arguments="{}")["choices"][0]["delta"]["tool_calls"][0] for n in (0, 1)]
        server.will_stream(chunk({"content": "Both:", "tool_calls": fragments}), chunk({}, "tool_calls"), DONE)
        response = await ask(client)
        assert response.text == "Both:"
        assert [c.call_id for c in response.pending_calls] == ["c0", "c1"]

    async def test_the_whole_loop(self, server: Server, client: OpenAIChatCompletionClient) -> None:
        @tool
        def double(x: int) -> dict[str, int]:
            """Double it.

            Args:
                x: The number
            """
            return {"doubled": 2 * x}

        server.will_stream(call(0, "A", name="double", arguments='{"x": 21}'), chunk({}, "tool_calls"), DONE)
        server.will_say("It is 42.")
        response = await Agent(client, "Be brief.", tools=[double]).run("Hello")
        assert response.text == "It is 42."
        assert server.bodies[0]["tools"] == [
            {
                "type": "function",
                "function": {
                    "name": "double",
                    "description": "Double it.",
                    "parameters": {
                        "type": "object",
                        "properties": {"x": {"type": "integer", "description": "The number"}},
                        "required": ["x"],
                        "additionalProperties": False,
                    },
                },
            }
        ]
        assert server.bodies[1]["messages"] == [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "A", "type": "function", "function": {"name": "double", "arguments": '{"x": 21}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "A", "content": '{"doubled": 42}'},
        ]


class TestOptions:
    async def test_all(self, server: Server, client: OpenAIChatCompletionClient) -> None:
        class City(BaseModel):
            name: str

        server.will_say('{"name": "Oslo"}')
        options = ChatOptions(
            tools=[ToolDefinition("f")],
            tool_choice="f",
            response_format=City,
            temperature=0.0,
            max_tokens=7,
            model="other",
            extra={"seed": 3, "top_k": 5},
        )
        assert (await ask(client, options)).value == City(name="Oslo")
        body = server.bodies[0]
        assert body["model"] == "other"
        assert body["tool_choice"] == {"type": "function", "function": {"name": "f"}}
        assert body["response_format"]["json_schema"]["name"] == "City"
        assert body["response_format"]["json_schema"]["strict"] is True
        assert (body["temperature"], body["max_tokens"], body["seed"], body["top_k"]) == (0.0, 7, 3, 5)

    async def test_a_choice_without_tools_is_left_out(self, server: Server, client: OpenAIChatCompletionClient) -> None:
        server.will_say("a")
        await ask(client, ChatOptions(tool_choice="none"))
        assert "tool_choice" not in server.bodies[0]


class TestFailures:
    @pytest.mark.parametrize(
        ("status", "code"),
        [
            (400, "invalid_request"),
            (401, "authentication"),
            (403, "permission"),
            (404, "not_found"),
            (418, "invalid_request"),
            (422, "invalid_request"),
            (429, "rate_limited"),
            (500, "server_error"),
            (503, "server_error"),
        ],
    )
    async def test_a_status(self, server: Server, client: OpenAIChatCompletionClient, status: int, code: str) -> None:
        server.answers.append(JSONResponse({"error": {"message": f"Incorrect key {SECRET}"}}, status))
        error = await failure(client)
        assert (error.code, error.status) == (code, status)
        assert error.detail is not None
        assert SECRET in error.detail

    @pytest.mark.parametrize("code", ["context_length_exceeded", "content_filter", "insufficient_quota"])
    async def test_what_a_program_wants_to_tell_apart(
        self, server: Server, client: OpenAIChatCompletionClient, code: str
    ) -> None:
        server.answers.append(JSONResponse({"error": {"message": "no", "code": code}}, 400))
        error = await failure(client)
        assert (error.code, error.status) == (code, 400)

    @pytest.mark.parametrize(
        "body",
        [
            [],
            [DONE],
            [": comment\n\n"],
            [chunk({"content": "Hel"})],
            [chunk({"content": "Hel"}), DONE],
            [chunk({"content": "Hel"}), event(chunk({}, "stop")).rstrip()[:-9]],
            ["<html><body>Welcome</body></html>"],
        ],
    )
    async def test_an_answer_without_its_end_was_cut(
        self, server: Server, client: OpenAIChatCompletionClient, body: list[Any]
    ) -> None:
        server.will_stream(*body)
        assert (await failure(client)).code == "cut"

    @pytest.mark.parametrize("text", ["data: {oops\n\n", "data: \xff{}\n\n"])
    async def test_a_chunk_that_is_no_json(self, server: Server, client: OpenAIChatCompletionClient, text: str) -> None:
        server.will_stream(chunk({"content": "Hel"}), text)
        assert (await failure(client)).code == "malformed"

    async def test_a_request_that_is_no_json(self, server: Server, client: OpenAIChatCompletionClient) -> None:
        with pytest.raises(ChatClientError) as caught:
            await ask(client, ChatOptions(extra={"seed": object()}))
        assert caught.value.code == "invalid_request"

    async def test_what_came_before_the_cut_is_kept(self, server: Server, client: OpenAIChatCompletionClient) -> None:
        server.will_stream(chunk({"content": "Hel"}))
        stream = client.stream(HELLO, ChatOptions())
        assert (await anext(stream)).text == "Hel"
        with pytest.raises(ChatClientError, match="cut off"):
            await anext(stream)

    async def test_a_connection_that_breaks(self, server: Server, client: OpenAIChatCompletionClient) -> None:
        def broken() -> Response:
            async def body() -> AsyncIterator[str]:
                yield event(chunk({"content": "Hel"}))

            # More is promised than comes: the server has to drop the connection.
            return StreamingResponse(body(), media_type="text/event-stream", headers={"content-length": "100000"})

        server.answers.append(broken)
        assert (await failure(client)).code == "connection"

    async def test_an_error_in_the_stream(self, server: Server, client: OpenAIChatCompletionClient) -> None:
        server.will_stream(chunk({"content": "a"}), event({"error": {"message": f"failed {SECRET}"}}))
        assert (await failure(client)).code == "server_error"
        server.will_stream(chunk({"content": "a"}), chunk({}, "error"), DONE)
        assert (await failure(client)).code == "server_error"

    async def test_a_page_instead_of_an_answer(self, server: Server, client: OpenAIChatCompletionClient) -> None:
        server.answers.append(PlainTextResponse("Welcome"))
        assert (await failure(client)).code == "cut"

    async def test_nobody_there(self, server: Server) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
            client = OpenAIChatCompletionClient("gpt", base_url=url, max_retries=0)
            assert (await failure(client)).code == "connection"
            await client.aclose()

    async def test_a_server_that_does_not_answer(self, server: Server) -> None:
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
            client = OpenAIChatCompletionClient("gpt", base_url=url, max_retries=0, timeout=0.05)
            assert (await failure(client)).code == "timeout"
            await client.aclose()

    async def test_text_that_cannot_be_encoded(self, server: Server, client: OpenAIChatCompletionClient) -> None:
        with pytest.raises(ChatClientError) as caught:
            await anext(client.stream([Message("user", "\ud83d")], ChatOptions()))
        assert caught.value.code == "invalid_request"
        assert server.requests == []

    async def test_no_model(self, server: Server) -> None:
        client = OpenAIChatCompletionClient(base_url=server.url)
        assert (await failure(client)).code == "no_model"
        await client.aclose()

    async def test_leaving_early_lets_the_server_go(self, server: Server, client: OpenAIChatCompletionClient) -> None:
        server.answers.append(lambda: StreamingResponse(server.endless(), media_type="text/event-stream"))
        async with Agent(client).run("Hello", stream=True) as stream:
            assert (await anext(stream)).text == "a"
            assert not server.reader_left.is_set()
        assert await asyncio.to_thread(server.reader_left.wait, 10)


@dataclass
class Token:
    token: str
    expires_on: float


class Credential:
    """As those of `azure.identity`."""

    def __init__(self, lifetime: float = 3600) -> None:
        self.scopes: list[str] = []
        self.threads: set[int] = set()
        self.lifetime = lifetime

    def get_token(self, *scopes: str, **_: Any) -> Token:
        self.scopes += scopes
        self.threads.add(threading.get_ident())
        return Token(f"token{len(self.scopes)}", time.time() + self.lifetime)


class AsyncCredential(Credential):
    async def get_token(self, *scopes: str, **_: Any) -> Token:  # type: ignore[override]
        return super().get_token(*scopes)


class TestWhereTo:
    async def sent_by(self, server: Server, client: OpenAIChatCompletionClient, times: int = 1) -> Request:
        for _ in range(times):
            server.will_say("a")
            await ask(client)
        await client.aclose()
        return server.requests[-1]

    async def test_azure_with_a_key(self, server: Server) -> None:
        client = OpenAIChatCompletionClient(
            model="my-deployment", azure_endpoint=server.url, api_version="2025-01-01", api_key=SECRET
        )
        request = await self.sent_by(server, client)
        assert request.url.path == "/openai/deployments/my-deployment/chat/completions"
        assert request.query_params["api-version"] == "2025-01-01"
        assert request.headers["api-key"] == SECRET

    @pytest.mark.parametrize("credential", [Credential(), AsyncCredential()])
    async def test_azure_with_a_credential(
        self, server: Server, credential: Credential, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "unheard")
        client = OpenAIChatCompletionClient(
            model="m", azure_endpoint=server.url, api_version=None, credential=credential
        )
        request = await self.sent_by(server, client, times=3)
        assert request.headers["authorization"] == "Bearer token1"
        assert "api-key" not in request.headers
        assert request.query_params["api-version"] == "2024-10-21"
        assert credential.scopes == ["https://cognitiveservices.azure.com/.default"]
        # One that blocks is asked in a thread: some start a process.
        on_loop = threading.get_ident() in credential.threads
        assert on_loop is isinstance(credential, AsyncCredential)

    async def test_a_token_about_to_expire_is_replaced(self, server: Server) -> None:
        client = OpenAIChatCompletionClient("m", azure_endpoint=server.url, credential=Credential(lifetime=200))
        assert (await self.sent_by(server, client, times=2)).headers["authorization"] == "Bearer token2"

    async def test_concurrent_calls_ask_for_one_token(self, server: Server) -> None:
        credential = Credential()
        client = OpenAIChatCompletionClient("m", azure_endpoint=server.url, credential=credential)
        for _ in range(5):
            server.will_say("a")
        await asyncio.gather(*(ask(client) for _ in range(5)))
        assert len(credential.scopes) == 1
        await client.aclose()

    @pytest.mark.parametrize("is_async", [True, False])
    async def test_a_function_that_returns_a_token(self, server: Server, is_async: bool) -> None:
        async def later() -> str:
            return "mine"

        client = OpenAIChatCompletionClient(
            "m", azure_endpoint=server.url, credential=later if is_async else lambda: "mine"
        )
        assert (await self.sent_by(server, client)).headers["authorization"] == "Bearer mine"

    async def test_a_credential_that_fails(self, server: Server) -> None:
        class Failing:
            def get_token(self, *scopes: str) -> Token:
                raise RuntimeError(f"az login first, {SECRET}")

        client = OpenAIChatCompletionClient("m", azure_endpoint=server.url, credential=Failing(), max_retries=0)
        error = await failure(client)
        assert error.code == "authentication"
        assert error.detail is not None
        assert "az login" in error.detail
        await client.aclose()

    async def test_azure_by_the_environment(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url)
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", SECRET)
        monkeypatch.setenv("AZURE_OPENAI_API_VERSION", "2025-02-02")
        monkeypatch.setenv("AZURE_OPENAI_DEPLOYMENT_NAME", "from-env")
        request = await self.sent_by(server, OpenAIChatCompletionClient())
        assert request.url.path == "/openai/deployments/from-env/chat/completions"
        assert request.query_params["api-version"] == "2025-02-02"
        assert request.headers["api-key"] == SECRET

    async def test_openai_by_the_environment(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "http://unheard.invalid")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/other")
        monkeypatch.setenv("OPENAI_API_KEY", "from-env")
        monkeypatch.setenv("OPENAI_MODEL", "model-from-env")
        request = await self.sent_by(server, OpenAIChatCompletionClient())
        assert request.url.path == "/other/chat/completions"
        assert request.headers["authorization"] == "Bearer from-env"
        assert server.bodies[-1]["model"] == "model-from-env"

    async def test_a_client_that_is_given_stays_open(self, server: Server) -> None:
        async with openai.AsyncOpenAI(base_url=server.url, api_key="given") as sdk:
            client = OpenAIChatCompletionClient("m", client=sdk)
            await self.sent_by(server, client)
            assert not sdk.is_closed()
            request = await self.sent_by(server, client)
            assert request.headers["authorization"] == "Bearer given"

    async def test_headers(self, server: Server) -> None:
        client = OpenAIChatCompletionClient("m", base_url=server.url, default_headers={"X-Title": "accord"})
        assert (await self.sent_by(server, client)).headers["x-title"] == "accord"

    async def test_limits_are_named_by_who_is_asked(self, server: Server) -> None:
        client = OpenAIChatCompletionClient("m", azure_endpoint=server.url, api_key=SECRET)
        server.will_say("a")
        await ask(client, ChatOptions(max_tokens=3))
        assert server.bodies[0]["max_completion_tokens"] == 3
        await client.aclose()

    def test_what_is_missing_is_said(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(AgentSetupError, match="OPENAI_API_KEY"):
            OpenAIChatCompletionClient("m")
        with pytest.raises(AgentSetupError, match="AZURE_OPENAI_API_KEY"):
            OpenAIChatCompletionClient("m", azure_endpoint=server.url)
        with pytest.raises(AgentSetupError, match="AZURE_OPENAI_ENDPOINT"):
            OpenAIChatCompletionClient("m", credential=Credential())
        with pytest.raises(AgentSetupError, match="str has no get_token"):
            OpenAIChatCompletionClient("m", azure_endpoint=server.url, credential="token")
        with pytest.raises(AgentSetupError, match="pass one of them"):
            OpenAIChatCompletionClient("m", azure_endpoint=server.url, credential=Credential(), api_key=SECRET)
