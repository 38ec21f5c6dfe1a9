from __future__ import annotations

import asyncio
import contextvars
import datetime
import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from accord.agents import FunctionTool, ToolArgumentsError, ToolContext, ToolDefinition, ToolDefinitionError, tool
from accord.agents.tools import as_tools
from accord.sessions import AgentSession

if TYPE_CHECKING:
    from somewhere import OnlyForTypeCheckers  # type: ignore[import-not-found]


class SkillLevel(str, Enum):  # noqa: UP042  (as users write it)
    BEGINNER = "Beginner"
    ADVANCED = "Advanced"


class Ingredient(BaseModel):
    icon: str = Field(..., description="An emoji")
    name: str
    amount: str | None = None


class Recipe(BaseModel):
    """A complete recipe."""

    title: str
    skill_level: SkillLevel = Field(..., description="The skill required")
    ingredients: list[Ingredient]


@tool
def update_recipe(recipe: Recipe) -> str:
    """Update the recipe with new or modified content.

    You MUST write the complete recipe.

    Args:
        recipe: The complete recipe object with all details

    Returns:
        Confirmation that the recipe was updated
    """
    return f"{recipe.title}: {recipe.skill_level.value}, {[item.name for item in recipe.ingredients]}"


async def refused(subject: FunctionTool[..., Any], arguments: dict[str, Any]) -> ToolArgumentsError:
    with pytest.raises(ToolArgumentsError) as caught:
        await subject.invoke(arguments)
    return caught.value


def properties(function: Callable[..., Any]) -> dict[str, Any]:
    found: dict[str, Any] = tool(function).definition.parameters["properties"]
    return found


class TestDefinition:
    def test_of_a_model_parameter(self) -> None:
        definition = update_recipe.definition
        assert definition.name == "update_recipe"
        assert definition.description == (
            "Update the recipe with new or modified content.\n\nYou MUST write the complete recipe."
        )
        assert definition.parameters["required"] == ["recipe"]
        assert definition.parameters["additionalProperties"] is False
        recipe = definition.parameters["properties"]["recipe"]
        assert recipe["description"] == "The complete recipe object with all details"
        assert recipe["properties"]["skill_level"]["enum"] == ["Beginner", "Advanced"]
        assert recipe["properties"]["skill_level"]["description"] == "The skill required"
        assert recipe["properties"]["ingredients"]["items"]["properties"]["icon"]["description"] == "An emoji"
        assert "$defs" not in definition.parameters

    def test_of_plain_parameters(self) -> None:
        def search(  # type: ignore[no-untyped-def]
            query: str,
            limit: int = 10,
            kind: Literal["a", "b"] = "a",
            since: Optional[datetime.date] = None,  # noqa: UP045
            *,
            tags: list[str] | None = None,
            anything=None,
        ) -> OnlyForTypeCheckers: ...

        parameters = tool(search).definition.parameters
        assert parameters["required"] == ["query"]
        assert parameters["properties"] == {
            "query": {"type": "string"},
            "limit": {"type": "integer", "default": 10},
            "kind": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "since": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": None},
            "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": None},
            "anything": {"default": None},
        }

    def test_descriptions_in_their_order(self) -> None:
        def f(
            a: Annotated[int, Field(description="field", ge=1)],
            b: Annotated[int, "plain text"],
            c: int,
            d: int = Field(4, description="default"),
        ) -> None:
            """Do it.

            Args:
                a: unheard
                b: unheard
                c: docstring
            """

        found = properties(f)
        assert [found[name]["description"] for name in "abcd"] == ["field", "plain text", "docstring", "default"]
        assert found["a"]["minimum"] == 1
        assert found["d"]["default"] == 4

    def test_name_and_description_may_be_given(self) -> None:
        @tool(name="other", description="Other.", approval_mode="always_require")
        def f() -> None:
            """Unheard."""

        assert f.definition == ToolDefinition(
            "other", "Other.", {"type": "object", "properties": {}, "additionalProperties": False}
        )
        assert f.approval_mode == "always_require"
        assert update_recipe.approval_mode == "never_require"

    def test_the_function_stays_callable(self) -> None:
        assert update_recipe(Recipe(title="T", skill_level=SkillLevel.ADVANCED, ingredients=[])) == "T: Advanced, []"

    def test_types_that_only_the_enclosing_function_knows(self) -> None:
        class Local(BaseModel):
            x: int

        @tool
        def bare(value: Local) -> None: ...

        @tool(name="named")
        def with_options(value: list[Local]) -> None: ...

        assert bare.definition.parameters["properties"]["value"]["required"] == ["x"]
        assert with_options.definition.parameters["properties"]["value"]["items"]["required"] == ["x"]

    async def test_a_type_defined_further_down(self) -> None:
        assert further_up.definition.parameters["properties"]["value"]["required"] == ["x"]
        assert await further_up.invoke({"value": {"x": 3}}) == 3

    def test_a_type_that_does_not_exist_is_named(self) -> None:
        @tool
        def f(value: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

        with pytest.raises(ToolDefinitionError, match=r"'f'.*'Nowhere'"):
            _ = f.definition

    @pytest.mark.parametrize(
        ("function", "message"),
        [
            (lambda x: x, "a function without a name needs name="),
            (3, "a function is needed, not int"),
        ],
    )
    def test_what_cannot_be_a_tool(self, function: Any, message: str) -> None:
        with pytest.raises(ToolDefinitionError, match=message):
            tool(function)

    def test_a_parameter_that_no_schema_describes_is_named(self) -> None:
        class Plain: ...

        def f(a: int, b: Plain) -> None: ...

        with pytest.raises(ToolDefinitionError, match=r"tool 'f': parameter 'b': .*Plain"):
            tool(f)

    def test_unnamed_arguments_are_refused(self) -> None:
        def f(*numbers: int) -> None: ...

        with pytest.raises(ToolDefinitionError, match=r"\*numbers"):
            tool(f)

    def test_an_unknown_approval_mode_is_refused(self) -> None:
        with pytest.raises(ToolDefinitionError, match="'sometimes'"):
            tool(approval_mode="sometimes")(update_recipe)  # type: ignore[call-overload]


@tool
def further_up(value: FurtherDown) -> int:
    return value.x


class FurtherDown(BaseModel):
    x: int


def lowered(level: SkillLevel) -> str:
    return level.lower()


class Lowering:
    def method(self, level: SkillLevel) -> str:
        return lowered(level)

    def __call__(self, level: SkillLevel) -> str:
        return lowered(level)


class TestArguments:
    async def test_become_what_the_signature_says(self) -> None:
        value = await update_recipe.invoke(
            {"recipe": {"title": "T", "skill_level": "Advanced", "ingredients": [{"icon": "🥕", "name": "Carrot"}]}}
        )
        assert value == "T: Advanced, ['Carrot']"

    async def test_all_that_is_wrong_is_told_with_its_place(self) -> None:
        error = await refused(
            update_recipe,
            {
                "recipe": {
                    "title": 1,
                    "skill_level": "Wizard",
                    "ingredients": [{"icon": "a", "name": "b"}, {"icon": "c"}],
                }
            },
        )
        assert error.path == "/recipe/title"
        assert str(error).splitlines() == [
            "/recipe/title: Input should be a valid string",
            "/recipe/skill_level: Input should be 'Beginner' or 'Advanced'",
            "/recipe/ingredients/1/name: Field required",
        ]

    async def test_missing_and_unknown_arguments_are_told(self) -> None:
        error = await refused(update_recipe, {"receipt": {}})
        assert str(error).splitlines() == ["/recipe: Field required", "/receipt: Extra inputs are not permitted"]

    async def test_the_place_is_one_in_what_was_sent(self) -> None:
        @tool
        def f(value: int | list[Ingredient], names: dict[str, int]) -> None: ...

        error = await refused(f, {"value": [{"icon": "a"}], "names": {"a/b": "x"}})
        assert [line.split(":")[0] for line in str(error).splitlines()] == ["/value", "/value/0/name", "/names/a~1b"]

        @tool
        def g(value: Ingredient | Recipe) -> None: ...

        error = await refused(g, {"value": {"icon": "a", "title": "b"}})
        assert {line.split(":")[0] for line in str(error).splitlines()} == {
            "/value/name",
            "/value/skill_level",
            "/value/ingredients",
        }

    async def test_many_errors_are_cut_short(self) -> None:
        @tool
        def f(numbers: list[int]) -> None: ...

        error = await refused(f, {"numbers": ["x"] * 1000})
        assert len(str(error).splitlines()) == 21
        assert str(error).endswith("and 980 more")

    async def test_not_sent_is_the_functions_own_default(self) -> None:
        nothing = object()
        made = Field(default_factory=lambda: [4])

        @tool
        def f(a: int = 1, b: Any = nothing, c: int = Field(3), d: list[int] = made) -> Any:
            return a, b is nothing, c, d

        assert await f.invoke({}) == (1, True, 3, [4])
        assert await f.invoke({"a": 5, "b": None, "c": 6, "d": []}) == (5, False, 6, [])

    async def test_a_default_is_not_shared_between_calls(self) -> None:
        @tool
        def collect(x: int, into: list[int] = []) -> list[int]:  # noqa: B006
            into.append(x)
            return into

        assert await collect.invoke({"x": 1}) == [1]
        assert await collect.invoke({"x": 2}) == [2]

    async def test_any_parameter_name(self) -> None:
        @tool
        def f(copy: int, schema: int, model_config: int, _x: int, argument_0: int) -> list[int]:
            return [copy, schema, model_config, _x, argument_0]

        names = ["copy", "schema", "model_config", "_x", "argument_0"]
        assert list(f.definition.parameters["properties"]) == names
        assert await f.invoke({name: index for index, name in enumerate(names)}) == [0, 1, 2, 3, 4]

    async def test_every_kind_of_parameter(self) -> None:
        @tool
        def f(a: int, b: int = 2, /, c: int = 3, *, d: int = 4, **rest: Any) -> Any:
            return a, b, c, d, rest

        assert await f.invoke({"a": 1}) == (1, 2, 3, 4, {})
        assert await f.invoke({"a": 1, "c": 5, "x": [1], "y": 2}) == (1, 2, 5, 4, {"x": [1], "y": 2})
        assert f.definition.parameters["additionalProperties"] is True

    async def test_strict_models_take_what_json_can_say(self) -> None:
        class Strict(BaseModel):
            model_config = ConfigDict(strict=True)
            day: datetime.date
            count: int

        @tool
        def f(value: Strict) -> Any:
            return value.day

        assert await f.invoke({"value": {"day": "2026-01-02", "count": 1}}) == datetime.date(2026, 1, 2)
        assert (await refused(f, {"value": {"day": "2026-01-02", "count": "1"}})).path == "/value/count"

    @given(
        st.dictionaries(
            st.sampled_from("abc"), st.integers() | st.integers().map(str) | st.text(max_size=3), max_size=3
        )
    )
    @example({"a": "12"})
    async def test_any_arguments_are_taken_or_refused(self, arguments: dict[str, Any]) -> None:
        @tool
        def f(a: int, b: str = "b") -> Any:
            return a, b

        try:
            value = await f.invoke(arguments)
        except ToolArgumentsError as error:
            value = error.path
        if "c" not in arguments and isinstance(arguments.get("a"), int) and isinstance(arguments.get("b", "b"), str):
            assert value == (arguments["a"], arguments.get("b", "b"))
        elif isinstance(value, tuple):
            assert value == (int(arguments["a"]), arguments.get("b", "b"))
        else:
            assert value in {"/a", "/b", "/c"}


class TestContext:
    async def test_is_given_to_whoever_asks_and_hidden_from_the_model(self) -> None:
        @tool
        def f(
            x: int, first: ToolContext, second: ToolContext | None = None, *, third: Annotated[ToolContext, "mine"]
        ) -> Any:
            return x, first is second is third, first.call_id, first.session and first.session.session_id

        context = ToolContext("c1", "f", {"x": 1}, session=AgentSession("s"))
        assert list(f.definition.parameters["properties"]) == ["x"]
        assert await f.invoke({"x": 1}, context) == (1, True, "c1", "s")
        assert (await refused(f, {"x": 1, "first": {}})).path == "/first"

    async def test_without_an_agent(self) -> None:
        @tool
        def f(context: ToolContext, x: int) -> Any:
            return context.name, context.arguments

        assert await f.invoke({"x": 1}) == ("f", {"x": 1})


class TestRunning:
    async def test_a_function_that_blocks_does_not_hold_up_the_loop(self) -> None:
        released = threading.Event()

        @tool
        def wait() -> bool:
            return released.wait(10)

        async def release() -> None:
            released.set()

        # Only a loop that runs while the tool waits can release it.
        assert (await asyncio.gather(wait.invoke({}), release()))[0] is True

    async def test_many_that_block_run_at_once(self) -> None:
        together = threading.Barrier(40)

        @tool
        def meet() -> bool:
            together.wait(10)
            return True

        assert all(await asyncio.gather(*(meet.invoke({}) for _ in range(40))))

    async def test_it_sees_the_callers_context_variables_and_keeps_its_own(self) -> None:
        variable = contextvars.ContextVar[str]("variable")

        @tool
        def read() -> str:
            value = variable.get()
            variable.set("changed in the thread")
            return value

        variable.set("set by the caller")
        assert await read.invoke({}) == "set by the caller"
        assert variable.get() == "set by the caller"

    async def test_it_runs_where_it_is_told_to(self) -> None:
        @tool
        def where() -> str:
            return threading.current_thread().name

        with ThreadPoolExecutor(1, thread_name_prefix="mine") as executor:
            assert (await where.invoke({}, executor=executor)).startswith("mine")

    async def test_async_functions_run_on_the_loop(self) -> None:
        @tool
        async def where() -> int:
            await asyncio.sleep(0)
            return threading.get_ident()

        no_threads = ThreadPoolExecutor(1)
        no_threads.shutdown()
        assert await where.invoke({}, executor=no_threads) == threading.get_ident()

    async def test_a_function_that_returns_an_awaitable_is_awaited(self) -> None:
        async def later(x: int) -> int:
            return x

        @tool
        def f(x: int) -> Any:
            return later(x)

        assert await f.invoke({"x": 1}) == 1

    async def test_stop_iteration_does_not_wait_for_ever(self) -> None:
        @tool
        def f() -> int:
            return next(iter([]))

        async with asyncio.timeout(10):
            with pytest.raises(RuntimeError, match="StopIteration"):
                await f.invoke({})

    async def test_a_method_is_a_tool_of_its_object(self) -> None:
        class Shop:
            def __init__(self, name: str) -> None:
                self.name = name

            @tool
            def greet(self, who: str) -> str:
                """Greet."""
                return f"{self.name} greets {who}"

        greet = Shop("A").greet
        assert greet.definition == ToolDefinition(
            "greet",
            "Greet.",
            {
                "type": "object",
                "properties": {"who": {"type": "string"}},
                "required": ["who"],
                "additionalProperties": False,
            },
        )
        assert await greet.invoke({"who": "B"}) == "A greets B"
        assert await as_tools([Shop("C").greet])[0].invoke({"who": "D"}) == "C greets D"  # type: ignore[union-attr]

    async def test_partials_and_objects_that_can_be_called(self) -> None:
        def add(a: int, b: int) -> int:
            return a + b

        class Adder:
            async def __call__(self, a: int) -> int:
                return a + 1

        partial = FunctionTool(functools.partial(add, b=2), name="add_two")
        assert await partial.invoke({"a": 1}) == 3
        assert await FunctionTool(Adder(), name="adder").invoke({"a": 1}) == 2

    async def test_types_are_looked_up_where_the_function_was_written(self) -> None:
        # Far from here, where a name that only this module knows would not be found.
        far_away = {"__name__": "far_away", "FunctionTool": FunctionTool}
        exec("def make(function): return FunctionTool(function, name='f')", far_away)
        for function in (
            functools.cache(lowered),
            functools.partial(lowered),
            Lowering().method,
            Lowering(),
            functools.partial(functools.cache(lowered)),
        ):
            assert await far_away["make"](function).invoke({"level": "Advanced"}) == "advanced"  # type: ignore[operator]

    async def test_a_wrapped_function_has_its_own_signature(self) -> None:
        def traced(function: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                return "traced", function(*args, **kwargs)

            return wrapper

        @tool
        @traced
        def f(value: SkillLevel) -> Any:
            return value

        assert await f.invoke({"value": "Advanced"}) == ("traced", SkillLevel.ADVANCED)


class TestAsTools:
    def test_takes_tools_definitions_and_functions(self) -> None:
        def plain(x: int) -> None: ...

        declared = ToolDefinition("declared")
        tools = as_tools([update_recipe, declared, plain])
        assert [found.name for found in tools] == ["update_recipe", "declared", "plain"]
        assert as_tools(update_recipe) == (update_recipe,)
        assert as_tools(None) == ()

    def test_two_of_one_name_are_refused(self) -> None:
        with pytest.raises(ToolDefinitionError, match="two tools are called 'update_recipe'"):
            as_tools([update_recipe, ToolDefinition("update_recipe")])

    def test_a_signature_that_cannot_be_described_is_refused_at_once(self) -> None:
        @tool
        def f(value: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

        with pytest.raises(ToolDefinitionError, match="'Nowhere'"):
            as_tools([f])
