"""What the state must look like, in every form it may be written, and both ways it is changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
import pytest
from pydantic import BaseModel, Field

from accord.agents import Agent, AgentSetupError, scripted_call, tool
from accord.agui import AGUIAgent, InMemoryThreadStore, StateRejected, StateSchema, current_run
from accord.errors import InputRejected
from agui.talk import Model, Talk, raw, run_alone
from producer.recording import an_input, consumed


class Part(BaseModel):
    name: str
    amount: float | None = None


class Pydantic(BaseModel):
    title: str = "Untitled"
    parts: list[Part] = Field(default_factory=list)
    note: str | None = None
    servings: int


@dataclass
class DataPart:
    name: str
    amount: float | None = None


@dataclass
class Data:
    servings: int
    title: str = "Untitled"
    parts: list[DataPart] = field(default_factory=list)
    note: str | None = None


class StructPart(msgspec.Struct):
    name: str
    amount: float | None = None


class Struct(msgspec.Struct, kw_only=True):
    title: str = "Untitled"
    parts: list[StructPart] = []
    note: str | None = None
    servings: int


JSON_SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "default": "Untitled"},
        "parts": {
            "type": "array",
            "default": [],
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "amount": {"type": ["number", "null"]}},
                "required": ["name"],
            },
        },
        "note": {"type": ["string", "null"], "default": None},
        "servings": {"type": "integer"},
    },
    "required": ["servings"],
}
SIMPLE = {name: {**spec, "description": name} for name, spec in JSON_SCHEMA["properties"].items()}  # type: ignore[attr-defined]

FORMS = [Pydantic, Data, Struct, JSON_SCHEMA, SIMPLE]
NAMES = ["pydantic", "dataclass", "msgspec", "json", "simple"]


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
class TestForms:
    def test_members(self, form: Any) -> None:
        assert StateSchema(form).members == {"title", "parts", "note", "servings"}

    def test_true_defaults(self, form: Any) -> None:
        """Not an empty object for whatever type, and none where there is none; null where null is the default."""
        schema = StateSchema(form)
        assert schema.defaults == {"title": "Untitled", "parts": [], "note": None}
        assert schema.completed({"title": "Mine"}) == {"title": "Mine", "parts": [], "note": None}

    def test_defaults_are_not_shared(self, form: Any) -> None:
        schema = StateSchema(form)
        schema.completed({})["parts"].append(1)
        assert schema.completed({})["parts"] == []

    @pytest.mark.parametrize(
        "state",
        [
            {},
            {"servings": 4},
            {"title": "A", "parts": [{"name": "egg", "amount": None}, {"name": "oil", "amount": 1.5}], "note": "n"},
            {"note": None},
        ],
    )
    def test_what_fits(self, form: Any, state: Any) -> None:
        StateSchema(form).check(state)

    @pytest.mark.parametrize(
        ("state", "path"),
        [
            ({"title": 5}, "/title"),
            ({"parts": [{"name": "egg"}, {"name": 1}]}, "/parts/1/name"),
            ({"parts": [{"amount": 1}]}, "/parts/0"),
            ({"parts": {}}, "/parts"),
            ({"servings": "four"}, "/servings"),
            ({"servings": 1.5}, "/servings"),
            ({"servings": True}, "/servings"),
            ([], ""),
            (None, ""),
        ],
    )
    def test_what_does_not_is_refused_by_its_path(self, form: Any, state: Any, path: str) -> None:
        with pytest.raises(StateRejected) as refused:
            StateSchema(form).check(state)
        assert refused.value.path == path
        assert str(refused.value).startswith(path or "(root)")

    def test_a_whole_state_has_what_is_required(self, form: Any) -> None:
        schema = StateSchema(form)
        if form is SIMPLE:
            schema.check({}, partial=False)
        else:
            with pytest.raises(StateRejected, match="servings"):
                schema.check({"title": "A"}, partial=False)


class TestOtherShapes:
    def test_a_model_that_contains_itself(self) -> None:
        class Node(BaseModel):
            name: str = "root"
            children: list[Node] = Field(default_factory=list)

        Node.model_rebuild()
        schema = StateSchema(Node, private=["name"])
        assert schema.members == {"name", "children"}
        assert schema.defaults == {"name": "root", "children": []}
        schema.check({"children": [{"name": "a", "children": []}]})
        with pytest.raises(StateRejected) as refused:
            schema.check({"children": [{"children": [{"name": 1}]}]})
        assert refused.value.path == "/children/0/children/0/name"

    def test_a_struct_that_contains_itself(self) -> None:
        schema = StateSchema(TreeNode)
        assert schema.members == {"name", "children"}
        with pytest.raises(StateRejected) as refused:
            schema.check({"children": [{"children": [{"name": 1}]}]})
        assert refused.value.path == "/children/0/children/0/name"

    def test_names_on_the_wire(self) -> None:
        class Aliased(BaseModel):
            skill_level: str = Field("easy", alias="skillLevel")
            steps: list[str] = Field(default_factory=lambda: ["boil"], alias="allSteps")

        class Renamed(msgspec.Struct, rename="camel"):
            skill_level: str = "easy"
            all_steps: list[str] = msgspec.field(default_factory=lambda: ["boil"])

        for form in (Aliased, Renamed):
            schema = StateSchema(form)
            assert schema.defaults == {"skillLevel": "easy", "allSteps": ["boil"]}

    def test_a_default_that_is_a_model(self) -> None:
        class Outer(BaseModel):
            part: Part = Part(name="egg")
            other: Part = Field(default_factory=lambda: Part(name="oil"))

        assert StateSchema(Outer).defaults == {
            "part": {"name": "egg", "amount": None},
            "other": {"name": "oil", "amount": None},
        }

    def test_members_called_like_keywords(self) -> None:
        schema = StateSchema({"type": {"type": "string"}, "properties": {"type": "object"}, "required": {}})
        assert schema.members == {"type", "properties", "required"}
        with pytest.raises(StateRejected):
            schema.check({"type": 5})

    def test_keys_are_escaped_in_paths(self) -> None:
        with pytest.raises(StateRejected) as refused:
            StateSchema({"a/b~": {"type": "string"}}).check({"a/b~": 1})
        assert refused.value.path == "/a~1b~0"

    @pytest.mark.parametrize("form", [5, "recipe", int, {"recipe": "object"}, {"type": "objct"}, {"a": {"type": 7}}])
    def test_what_is_no_schema(self, form: Any) -> None:
        with pytest.raises(AgentSetupError, match="state_schema"):
            StateSchema(form)

    @pytest.mark.parametrize("names", [{"private": ["secrt"]}, {"read_only": ["secrt"]}])
    def test_members_that_do_not_exist(self, names: Any) -> None:
        with pytest.raises(AgentSetupError, match="secrt"):
            StateSchema({"secret": {"type": "string"}}, **names)

    def test_what_is_private_can_be_marked_in_the_model(self) -> None:
        class Marked(BaseModel):
            title: str = ""
            key: Annotated[str, Field(json_schema_extra={"x-private": True})] = "k"
            version: int = Field(1, json_schema_extra={"readOnly": True})

        schema = StateSchema(Marked)
        assert schema.private == {"key"}
        assert schema.read_only == {"version"}
        assert set(schema.shown["properties"]) == {"title", "version"}

    def test_a_schema_given_is_not_changed_and_not_kept(self) -> None:
        given: dict[str, Any] = {"title": {"type": "string"}}
        schema = StateSchema(given)
        given["title"]["type"] = "integer"
        schema.check({"title": "A"})
        assert "properties" not in given


class TreeNode(msgspec.Struct):
    name: str = "root"
    children: list[TreeNode] = []


class TestIncoming:
    """What the client sends is judged before anything streams."""

    @staticmethod
    def agent(**options: Any) -> AGUIAgent:
        return AGUIAgent(Agent(Model(["ok", "ok"])), state_schema=Pydantic, **options)

    @pytest.mark.parametrize(
        ("state", "path"),
        [({"title": 5}, "/state/title"), ({"parts": [{}]}, "/state/parts/0"), ([], "/state"), ("x", "/state")],
    )
    async def test_a_state_that_does_not_fit(self, state: Any, path: str) -> None:
        with pytest.raises(InputRejected) as refused:
            await self.agent().check_input(an_input(state=state))
        assert refused.value.path == path
        assert path in str(refused.value)

    @pytest.mark.parametrize("state", [{}, {"servings": 4, "more": 1}])
    async def test_a_state_that_does(self, state: Any) -> None:
        await self.agent().check_input(an_input(state=state))
        await self.agent().check_input(an_input())

    async def test_what_is_ignored_is_not_judged(self) -> None:
        served = self.agent(private_state=["note"], read_only_state=["title"])
        await served.check_input(an_input(state={"note": 5, "title": []}))
        with pytest.raises(InputRejected):
            await served.check_input(an_input(state={"note": 5, "servings": "x"}))

    async def test_defaults_reach_the_client_at_once(self) -> None:
        talk = Talk(self.agent())
        await talk.say()
        assert talk.state == {"title": "Untitled", "parts": [], "note": None}
        assert talk.types[:2] == ["RUN_STARTED", "STATE_DELTA"] or talk.types[:2] == ["RUN_STARTED", "STATE_SNAPSHOT"]
        await talk.say()
        assert not talk.of("STATE_DELTA", "STATE_SNAPSHOT"), "and only once"


class TestChanges:
    """Every change of the agent's: the model gets the error, the state stays."""

    @pytest.mark.parametrize("way", ["set", "edit", "patch"], ids=["set", "edit", "patch"])
    async def test_a_tool_that_breaks_it(self, way: str) -> None:
        @tool
        def write() -> str:
            state: Any = current_run().state
            if way == "set":
                state.set({"title": 5})
            elif way == "patch":
                state.patch([{"op": "add", "path": "/title", "value": 5}])
            else:
                with state.edit() as draft:
                    draft["title"] = 5
            return "ok"

        model = Model([scripted_call("write"), "Sorry."])
        talk = Talk(AGUIAgent(Agent(model, tools=[write]), state_schema=Pydantic), state={"title": "Old"})
        await talk.say()
        assert talk.state == {"title": "Old", "parts": [], "note": None}
        assert "/title" in model.results()[0]
        assert "string" in model.results()[0]


class TestPrivate:
    """Report 9: private members never leave, and stale ones that come in are ignored."""

    @staticmethod
    def counting() -> tuple[AGUIAgent, Model]:
        @tool
        def count() -> str:
            with current_run().state.edit() as draft:
                draft["secret"] = draft["secret"] + 1
                draft["shown"] = draft["secret"] % 2 == 0
            return str(current_run().state.value["secret"])

        schema = {"secret": {"type": "integer", "default": 40}, "shown": {"type": "boolean"}}
        model = Model(lambda messages, options: "ok" if messages[-1].role == "tool" else scripted_call("count"))
        return AGUIAgent(Agent(model, tools=[count]), state_schema=schema, private_state=["secret"]), model

    async def test_they_stay_with_the_server_from_run_to_run(self) -> None:
        served, model = self.counting()
        talk = Talk(served)
        for value in (41, 42, 43):
            await talk.say()
            assert model.results()[-1] == str(value)
            assert talk.state == {"shown": value % 2 == 0}
            assert "secret" not in str(talk.events).replace(str(talk.results), "")

    async def test_what_the_client_sends_of_them_is_ignored(self) -> None:
        served, model = self.counting()
        talk = Talk(served, state={"secret": 7})
        await talk.say()
        assert model.results()[-1] == "41"
        talk.client.state = {"secret": "not even a number", "shown": True}
        await talk.say()
        assert model.results()[-1] == "42"

    async def test_they_are_kept_apart_by_thread_and_scope(self) -> None:
        served, model = self.counting()
        elsewhere: list[Any] = [{}, {"thread_id": "t2"}, {"scope": "other"}]
        for members in elsewhere:
            await run_alone(served, **members)
            assert model.results()[-1] == "41"
        await run_alone(served)
        assert model.results()[-1] == "42"

    async def test_a_run_that_fails_before_it_begins_gives_the_client_no_way_in(self) -> None:
        from accord.protocol import DataSource, ImagePart, UserMessage

        served, model = self.counting()
        broken = ImagePart(source=DataSource(value="no base64!", mime_type="image/png"))
        outlet = await run_alone(served, state={"secret": 7}, messages=[UserMessage(id="u", content=[broken])])
        assert outlet.types[-1] == "RUN_ERROR"
        await run_alone(served, state={"secret": 7})
        assert model.results()[-1] == "41"

    async def test_nor_does_one_whose_thread_cannot_be_loaded(self, caplog: pytest.LogCaptureFixture) -> None:
        class Down(InMemoryThreadStore):
            down = True

            async def load(self, scope: str, thread_id: str) -> Any:
                if self.down:
                    raise OSError("no such host")
                return await super().load(scope, thread_id)

        served, model = self.counting()
        served.threads = threads = Down()
        with caplog.at_level("CRITICAL", "accord"):
            outlet = await run_alone(served, state={"secret": 7})
        assert outlet.types[-1] == "RUN_ERROR"
        assert b"host" not in b"".join(outlet.payloads)
        threads.down = False
        await run_alone(served, state={"secret": 7})
        assert model.results()[-1] == "41"

    async def test_what_a_run_did_that_fails_later_is_kept(self, caplog: pytest.LogCaptureFixture) -> None:
        served, model = self.counting()
        failing = Model(
            lambda messages, options: RuntimeError() if messages[-1].role == "tool" else scripted_call("count")
        )
        broken = AGUIAgent(
            Agent(failing, tools=served.agent.tools),
            state_schema=served.state_schema,
            threads=served.threads,
        )
        with caplog.at_level("CRITICAL", "accord"):
            await run_alone(broken)
        await run_alone(served)
        assert model.results()[-1] == "42"


class TestReadOnly:
    @staticmethod
    def versioned() -> AGUIAgent:
        @tool
        def save() -> str:
            with current_run().state.edit() as draft:
                draft["version"] = draft["version"] + 1
            return "ok"

        schema = {"version": {"type": "integer", "default": 1}, "title": {"type": "string"}}
        model = Model(lambda messages, options: "ok" if messages[-1].role == "tool" else scripted_call("save"))
        return AGUIAgent(Agent(model, tools=[save]), state_schema=schema, read_only_state=["version"])

    async def test_the_client_sees_them_and_cannot_change_them(self) -> None:
        talk = Talk(self.versioned())
        await talk.say()
        assert talk.state == {"version": 2}
        talk.client.state = {"version": 99, "title": "Mine"}
        await talk.say()
        assert talk.state == {"version": 3, "title": "Mine"}
        assert talk.states[1] == {"version": 2, "title": "Mine"}, "it is put right before anything else"

    async def test_they_cannot_be_taken_away(self) -> None:
        served = self.versioned()
        talk = Talk(served)
        await talk.say()
        talk.client.state = {}
        await talk.say()
        assert talk.state == {"version": 3}

    async def test_a_client_that_comes_back_with_nothing_is_told(self) -> None:
        served = self.versioned()
        await run_alone(served)
        outlet = await run_alone(served)
        assert consumed(outlet).state == {"version": 3}
        assert raw(outlet)[1]["type"].startswith("STATE")
