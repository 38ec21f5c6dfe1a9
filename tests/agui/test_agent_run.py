"""What an agent does, as the events of a run."""

from __future__ import annotations

import asyncio
import base64
import logging
import random
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.agents import (
    Agent,
    AgentResponseUpdate,
    ChatClientError,
    ChatOptions,
    Content,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    Interleaved,
    Message,
    ReasoningContent,
    Role,
    TextContent,
    UriContent,
    Usage,
    UsageContent,
    scripted_call,
    tool,
)
from accord.agui import AGUIAgent, current_run
from accord.errors import RunFailed
from accord.protocol import ImagePart, TextPart, UrlSource, UserMessage
from agui.talk import Model, Raw, Talk, types


@tool
def double(x: int) -> int:
    return 2 * x


@tool
def shout(text: str) -> str:
    return text.upper()


class Fragments:
    """A model whose every update is written down, whatever shape a provider may give it."""

    def __init__(self, *answers: Sequence[Content | Sequence[Content]]) -> None:
        self._answers = answers

    async def stream(self, messages: Sequence[Message], options: ChatOptions) -> AsyncIterator[AgentResponseUpdate]:
        answer = self._answers[sum(message.role is Role.TOOL for message in messages) and 1]
        for piece in answer:
            await asyncio.sleep(0)
            yield AgentResponseUpdate(piece)
        yield AgentResponseUpdate(finish_reason="stop")


def calls_of(events: Sequence[Raw]) -> dict[str, tuple[str, str]]:
    """Name and whole arguments of each call, which was started and ended once."""
    found: dict[str, tuple[str, str]] = {}
    ended: list[str] = []
    for event in events:
        match event["type"]:
            case "TOOL_CALL_START":
                assert event["toolCallId"] not in found
                found[event["toolCallId"]] = (event["toolCallName"], "")
            case "TOOL_CALL_ARGS":
                assert event["toolCallId"] not in ended
                name, arguments = found[event["toolCallId"]]
                found[event["toolCallId"]] = (name, arguments + event["delta"])
            case "TOOL_CALL_END":
                ended.append(event["toolCallId"])
    assert sorted(ended) == sorted(found)
    return found


class TestAnswer:
    async def test_text_streams(self) -> None:
        talk = Talk(Agent(Model(["Good morning"])))
        run = await talk.say("hello")
        assert run.outcome == "success"
        assert [event["delta"] for event in talk.of("TEXT_MESSAGE_CONTENT")] == ["Good", " mor", "ning"]
        assert talk.types == [
            "RUN_STARTED",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "RUN_FINISHED",
        ]
        assert talk.events[0]["protocolVersion"] == "1.0"

    async def test_reasoning_is_a_span_of_its_own_and_keeps_its_seal(self) -> None:
        talk = Talk(Agent(Model([[ReasoningContent("I think", "sealed"), "So."], "Again."])))
        await talk.say()
        assert talk.types == [
            "RUN_STARTED",
            "REASONING_START",
            "REASONING_MESSAGE_START",
            "REASONING_MESSAGE_CONTENT",
            "REASONING_ENCRYPTED_VALUE",
            "REASONING_MESSAGE_END",
            "REASONING_END",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "RUN_FINISHED",
        ]
        (reasoning,) = [message for message in talk.messages if message["role"] == "reasoning"]
        assert (reasoning["content"], reasoning["encryptedValue"]) == ("I think", "sealed")

    async def test_reasoning_ends_where_a_call_begins(self) -> None:
        talk = Talk(Agent(Model([[ReasoningContent("hm"), scripted_call("double", {"x": 1})], "ok"]), tools=[double]))
        await talk.say()
        assert talk.types[4:8] == ["REASONING_MESSAGE_END", "REASONING_END", "TOOL_CALL_START", "TOOL_CALL_ARGS"]

    async def test_what_was_reasoned_goes_back_to_the_model(self) -> None:
        model = Model([[ReasoningContent("I think", "sealed"), "So."], "Again."])
        talk = Talk(Agent(model))
        await talk.say()
        await talk.say("and?")
        contents = [content for message in model.shown[-1] for content in message.contents]
        assert ReasoningContent("I think", "sealed") in contents

    async def test_several_rounds_are_one_run(self) -> None:
        model = Model([["First. ", scripted_call("double", {"x": 1})], scripted_call("double", {"x": 2}), "Six."])
        talk = Talk(Agent(model, tools=[double]))
        run = await talk.say()
        assert run.outcome == "success"
        assert talk.results == {"call_1": "2", "call_2": "4"}
        assert talk.text == "First. Six."
        # Text and call of one answer are one message; each result is a message of its own.
        assert [message["role"] for message in talk.messages] == [
            "user",
            "assistant",
            "tool",
            "assistant",
            "tool",
            "assistant",
        ]

    async def test_usage_of_all_calls_of_the_model(self) -> None:
        usage = Usage(provider="p", model="m", input_tokens=3, output_tokens=2, total_tokens=5)
        talk = Talk(Agent(Model([scripted_call("double", {"x": 1}), "ok"], usage=usage), tools=[double]))
        await talk.say()
        assert talk.events[-1]["usage"] == [
            {"provider": "p", "model": "m", "inputTokens": 6, "outputTokens": 4, "totalTokens": 10}
        ]

    async def test_usage_of_two_models_is_two_entries(self) -> None:
        spent = [UsageContent(Usage(model=name, input_tokens=1)) for name in ("a", "b", "a")]
        talk = Talk(Agent(Model([["Hi", *spent]])))
        await talk.say()
        assert talk.events[-1]["usage"] == [{"model": "a", "inputTokens": 2}, {"model": "b", "inputTokens": 1}]

    async def test_what_the_service_reports_beside_its_answer_is_text(self) -> None:
        talk = Talk(Agent(Model([["So far. ", ErrorContent("The answer was cut.", "filtered")]])))
        await talk.say()
        assert talk.text == "So far. The answer was cut."

    async def test_a_refusal_that_was_streamed_is_not_repeated(self) -> None:
        talk = Talk(Agent(Model([["I will not.", ErrorContent("I will not.", "refusal")]])))
        await talk.say()
        assert talk.text == "I will not."

    async def test_a_tool_answers_with_an_image(self) -> None:
        @tool
        def draw() -> list[Any]:
            return ["Here:", DataContent(b"\x89PNG", "image/png"), UriContent("https://x.org/a.mp3", "audio/mpeg")]

        talk = Talk(Agent(Model([scripted_call("draw"), "There."]), tools=[draw]))
        await talk.say()
        assert talk.results["call_1"] == [
            {"type": "text", "text": "Here:"},
            {
                "type": "image",
                "source": {"type": "data", "value": base64.b64encode(b"\x89PNG").decode(), "mimeType": "image/png"},
            },
            {"type": "audio", "source": {"type": "url", "value": "https://x.org/a.mp3", "mimeType": "audio/mpeg"}},
        ]

    async def test_an_image_reaches_the_model_and_stays_in_the_history(self) -> None:
        model = Model(["A cat.", "Still a cat."])
        talk = Talk(Agent(model))
        picture = ImagePart(source=UrlSource(value="https://x.org/cat.png", mime_type="image/png"))
        await talk.say(UserMessage(id="u1", content=[TextPart(text="What is it?"), picture]))
        assert model.shown[0][-1].contents == (
            TextContent("What is it?"),
            UriContent("https://x.org/cat.png", "image/png"),
        )
        await talk.say("Sure?")
        assert model.shown[1][0].contents == model.shown[0][-1].contents

    async def test_media_in_the_models_answer_reach_the_application(self) -> None:
        talk = Talk(Agent(Model([["Look. ", DataContent(b"\x00\x01", "image/png")]])))
        await talk.say()
        assert [event["value"] for event in talk.of("CUSTOM")] == [
            {"type": "data", "mediaType": "image/png", "data": "AAE="}
        ]

    async def test_json_in_the_models_answer_is_the_state(self) -> None:
        talk = Talk(Agent(Model([[DataContent(b'{"n": [1, null]}', "application/json"), "Done."]])))
        await talk.say()
        assert talk.state == {"n": [1, None]}


class TestCalls:
    """Report 15: whatever shape a provider gives its fragments, each call has its own start, arguments and end."""

    async def test_parallel_calls_one_after_the_other(self) -> None:
        model = Model([[scripted_call("double", {"x": 1}), scripted_call("shout", {"text": "hey"})], "ok"])
        talk = Talk(Agent(model, tools=[double, shout]))
        await talk.say()
        assert calls_of(talk.events) == {"call_1": ("double", '{"x": 1}'), "call_2": ("shout", '{"text": "hey"}')}
        assert talk.results == {"call_1": "2", "call_2": "HEY"}

    async def test_interleaved_calls(self) -> None:
        calls = [scripted_call("double", {"x": 10 + n}, call_id=f"c{n}") for n in range(3)]
        talk = Talk(Agent(Model([[Interleaved(*calls)], "ok"], piece_size=1), tools=[double]))
        await talk.say()
        assert calls_of(talk.events) == {f"c{n}": ("double", f'{{"x": {10 + n}}}') for n in range(3)}
        assert talk.results == {"c0": "20", "c1": "22", "c2": "24"}
        ids = [event["toolCallId"] for event in talk.of("TOOL_CALL_ARGS")][:3]
        assert ids == ["c0", "c1", "c2"], "they arrive by turns and are not held back"

    async def test_a_call_in_one_fragment(self) -> None:
        model = Fragments([FunctionCallContent("a", "double", '{"x": 4}')], [TextContent("ok")])
        talk = Talk(Agent(model, tools=[double]))
        await talk.say()
        assert (calls_of(talk.events), talk.results) == ({"a": ("double", '{"x": 4}')}, {"a": "8"})

    async def test_two_calls_in_one_update(self) -> None:
        both = [FunctionCallContent("a", "double", '{"x":'), FunctionCallContent("b", "double", '{"x":')]
        rest = [FunctionCallContent("b", "", "2}"), FunctionCallContent("a", "", "1}")]
        talk = Talk(Agent(Fragments([both, rest], [TextContent("ok")]), tools=[double]))
        await talk.say()
        assert calls_of(talk.events) == {"a": ("double", '{"x":1}'), "b": ("double", '{"x":2}')}
        assert talk.results == {"a": "2", "b": "4"}

    async def test_a_name_that_comes_after_the_first_arguments(self) -> None:
        late = [FunctionCallContent("a", "", '{"x":'), FunctionCallContent("a", "double", ""), TextContent("...")]
        model = Fragments([*late, FunctionCallContent("a", "", "3}")], [TextContent("ok")])
        talk = Talk(Agent(model, tools=[double]))
        await talk.say()
        assert (calls_of(talk.events), talk.results) == ({"a": ("double", '{"x":3}')}, {"a": "6"})

    async def test_the_same_id_in_a_later_answer_is_another_call(self) -> None:
        class Repeating:
            def __init__(self) -> None:
                self.asked = 0

            async def stream(
                self, messages: Sequence[Message], options: ChatOptions
            ) -> AsyncIterator[AgentResponseUpdate]:
                await asyncio.sleep(0)
                self.asked += 1
                content: Content = TextContent("ok")
                if self.asked % 3:
                    content = FunctionCallContent("call_0", "double", f'{{"x": {self.asked}}}')
                yield AgentResponseUpdate(content, finish_reason="stop")

        talk = Talk(Agent(Repeating(), tools=[double]))
        await talk.say()
        assert len(calls_of(talk.events)) == 2
        assert sorted(talk.results.values()) == ["2", "4"]
        await talk.say("again")
        assert sorted(talk.results.values()) == ["10", "8"]
        calls = [call["id"] for message in talk.messages for call in message.get("toolCalls", ())]
        assert len(set(calls)) == 4

    async def test_text_around_calls_stays_in_order_on_the_model_and_on_the_wire(self) -> None:
        model = Model([["Before. ", scripted_call("double", {"x": 1}), "After."], "ok"])
        talk = Talk(Agent(model, tools=[double]))
        await talk.say()
        message = talk.messages[1]
        assert (message["content"], [call["id"] for call in message["toolCalls"]]) == ("Before. After.", ["call_1"])

    @given(st.integers(0, 2**32))
    @settings(max_examples=40, deadline=None)
    def test_any_order_of_fragments(self, seed: int) -> None:
        rng = random.Random(seed)
        texts = {f"c{n}": f'{{"x": {n}}}' for n in range(rng.randint(1, 3))}
        started: set[str] = set()
        left = dict(texts)
        updates: list[list[Content]] = []
        while left:
            update: list[Content] = []
            for call_id in rng.sample(sorted(left), rng.randint(1, len(left))):
                size = rng.randint(0, len(left[call_id]))
                update.append(
                    FunctionCallContent(call_id, "" if call_id in started else "double", left[call_id][:size])
                )
                started.add(call_id)
                left[call_id] = left[call_id][size:]
                if not left[call_id]:
                    del left[call_id]
            if rng.random() < 0.3:
                update.append(TextContent("."))
            updates.append(update)

        async def run() -> Talk:
            talk = Talk(Agent(Fragments(updates, [TextContent("ok")]), tools=[double]))
            await talk.say()
            return talk

        talk = asyncio.run(run())
        assert calls_of(talk.events) == {call_id: ("double", text) for call_id, text in texts.items()}
        assert talk.results == {f"c{n}": str(2 * n) for n in range(len(texts))}


class TestFailure:
    async def test_a_model_that_fails_in_the_middle(self, caplog: pytest.LogCaptureFixture) -> None:
        broken: list[Any] = [
            "So far",
            scripted_call("double", '{"x":'),
            ReasoningContent("hm"),
            KeyError("the secret key"),
        ]
        talk = Talk(Agent(Model([broken]), tools=[double]))
        with caplog.at_level(logging.CRITICAL, "accord"):
            run = await talk.say()
        assert run.outcome == "failed"
        assert isinstance(run.error, RunFailed)
        assert "secret" not in str(talk.events)
        assert "KeyError" not in str(talk.events)
        ends = ("TEXT_MESSAGE_END", "TOOL_CALL_END", "REASONING_MESSAGE_END", "REASONING_END")
        assert sorted(event["type"] for event in talk.of(*ends)) == sorted(ends)
        assert talk.types[-1] == "RUN_ERROR"
        assert talk.messages[1]["content"] == "So far"

    async def test_what_a_model_says_of_its_failure_is_not_passed_on(self, caplog: pytest.LogCaptureFixture) -> None:
        error = ChatClientError("The model is not there.", code="connection", detail="10.0.0.7 refused")
        talk = Talk(Agent(Model([error])))
        with caplog.at_level(logging.ERROR, "accord"):
            await talk.say()
        assert talk.events[-1]["type"] == "RUN_ERROR"
        assert "10.0.0.7" not in str(talk.events)
        assert "run" in caplog.text

    async def test_the_thread_goes_on_after_a_failed_run(self, caplog: pytest.LogCaptureFixture) -> None:
        def answer(messages: Sequence[Message], options: ChatOptions) -> Any:
            return ["Broken", ValueError()] if messages[-1].text == "fail" else "Fine."

        talk = Talk(Agent(Model(answer)))
        with caplog.at_level(logging.CRITICAL, "accord"):
            assert (await talk.say("fail")).outcome == "failed"
        assert (await talk.say("go on")).outcome == "success"
        assert talk.text == "Fine."

    async def test_a_tool_that_fails_is_an_error_for_the_model(self, caplog: pytest.LogCaptureFixture) -> None:
        @tool
        def fail() -> None:
            raise ValueError("no such city")

        model = Model([scripted_call("fail"), "Sorry."])
        talk = Talk(Agent(model, tools=[fail]))
        with caplog.at_level(logging.CRITICAL, "accord"):
            run = await talk.say()
        assert run.outcome == "success"
        assert "no such city" in model.results()[0]

    async def test_cancelled_from_within(self) -> None:
        async def cancel(messages: Sequence[Message], options: ChatOptions) -> str:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(1)
            return "never"

        talk = Talk(Agent(Model(cancel)))
        run = await talk.say()
        assert run.outcome == "cancelled"
        assert talk.types == ["RUN_STARTED", "RUN_FINISHED"]


class TestCurrentRun:
    async def test_outside_a_run_there_is_none(self) -> None:
        with pytest.raises(LookupError):
            current_run()

    async def test_tools_of_every_kind_reach_their_run(self) -> None:
        @tool
        def in_thread(name: str) -> str:
            with current_run().state.edit() as draft:
                draft[name] = current_run().thread_id
            return "ok"

        @tool
        async def on_loop(name: str) -> str:
            with current_run().state.edit() as draft:
                draft[name] = current_run().thread_id
            current_run().custom("progress", {"name": name})
            return "ok"

        calls = [scripted_call("in_thread", {"name": "a"}), scripted_call("on_loop", {"name": "b"})]
        talk = Talk(Agent(Model([calls, "ok"]), tools=[in_thread, on_loop]))
        await talk.say()
        assert talk.state == {"a": talk.client.thread_id, "b": talk.client.thread_id}
        assert [event["value"] for event in talk.of("CUSTOM")] == [{"name": "b"}]

    async def test_tools_in_threads_write_all_at_once(self) -> None:
        @tool
        def append(n: int) -> str:
            for step in range(20):
                with current_run().state.edit() as draft:
                    draft["results"].append([n, step])
            return "ok"

        calls = [scripted_call("append", {"n": n}) for n in range(4)]
        talk = Talk(Agent(Model([calls, "ok"]), tools=[append]), state={"results": []})
        await talk.say()
        assert sorted(talk.state["results"]) == [[n, step] for n in range(4) for step in range(20)]
        for n in range(4):
            assert [step for m, step in talk.state["results"] if m == n] == list(range(20)), "in their own order"

    async def test_the_model_and_the_middleware_reach_it_as_well(self) -> None:
        def answer(messages: Sequence[Message], options: ChatOptions) -> str:
            return f"run {current_run().run_id}"

        talk = Talk(Agent(Model(answer)))
        run = await talk.say()
        assert talk.text == f"run {run.run_id}"


async def test_an_agent_serves_any_number_of_threads() -> None:
    served = AGUIAgent(Agent(Model(["one", "two"])))
    talks = [Talk(served), Talk(served)]
    await talks[0].say()
    await talks[1].say()
    assert [talk.text for talk in talks] == ["one", "one"]
    assert types(talks[0].events) == types(talks[1].events)


async def test_the_answers_of_tools_of_an_earlier_run_stay(caplog: pytest.LogCaptureFixture) -> None:
    model = Model([scripted_call("double", {"x": 3}), "Six.", "As I said."])
    talk = Talk(Agent(model, tools=[double]))
    await talk.say()
    with caplog.at_level(logging.WARNING, "accord"):
        await talk.say("and?")
    assert caplog.records == []
    assert model.results() == ["6"]
    assert [message["role"] for message in talk.messages].count("tool") == 1
