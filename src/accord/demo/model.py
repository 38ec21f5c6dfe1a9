"""The scripted cook: answers as a language model with one tool would, by rules, offline.

It works from what a model is shown: the conversation, and the shared state in its system message. So every change
builds on the recipe as it is, whoever changed it last.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from pydantic import ValidationError

from accord.agents import ChatOptions, FunctionResultContent, Message, Role, ScriptedChatClient, scripted_call
from accord.agents.scripted import Turn
from accord.agui.shared_state import STATE_OPENS
from accord.demo.dishes import DISHES
from accord.demo.edits import improve, make_vegetarian, scale, servings_of
from accord.demo.recipe import Recipe
from accord.demo.request import MAX_SERVINGS, Request, read_request

_DISH_NAMES: Final = ", ".join(DISHES)
WHAT_I_AM: Final = (
    "I am no language model: I am a small script that stands in for one, so that this demo runs offline. "
    f'I can write a recipe for {_DISH_NAMES}, make it vegetarian, improve it, and scale it ("for 8", "double it"). '
    "For anything else, start the demo with a real model: accord demo --model NAME."
)
NO_RECIPE: Final = f"There is no recipe yet. Ask me for one first: {_DISH_NAMES}."
NOTHING_TO_DO: Final = "The recipe is like that already, so I left it as it is."
TOO_MANY: Final = f"I cook for at least one and for {MAX_SERVINGS} at most, so I left the recipe as it is."


def scripted_cook(*, piece_size: int = 8, delay: float = 0.0) -> ScriptedChatClient:
    """The model; it writes pieces of `piece_size` characters, `delay` seconds apart."""
    return ScriptedChatClient(answer, piece_size=piece_size, delay=delay)


def answer(messages: Sequence[Message], options: ChatOptions) -> Turn:
    """The next turn of the conversation: a call of `update_recipe`, or words."""
    said = next((message.text for message in reversed(messages) if message.role is Role.USER), "")
    request = read_request(said)
    if messages and messages[-1].role is Role.TOOL:
        return _closing(request, messages)
    if not request:
        return WHAT_I_AM
    try:
        current = _current_recipe(messages)
    except ValidationError as error:
        first = error.errors()[0]
        place = "/".join(map(str, first["loc"]))
        return f"I cannot read the recipe in the state (/{place}: {first['msg']}). Ask me for a new one: {_DISH_NAMES}."
    start = current if _is_about(current, request) else DISHES.get(request.dish or "")
    if start is None:
        return NO_RECIPE
    servings = _servings(start, request)
    if servings is not None and not 1 <= servings <= MAX_SERVINGS:
        return TOO_MANY
    recipe = _changed(start, request, servings)
    if start is current and recipe == current:
        return NOTHING_TO_DO
    return scripted_call("update_recipe", {"recipe": recipe.model_dump(mode="json")})


def _is_about(current: Recipe | None, request: Request) -> bool:
    """Whether the request is to change what is there; naming the dish that is there does not begin it anew."""
    if current is None or request.new:
        return False
    return request.dish is None or (request.changes and request.dish in current.title.lower())


def _servings(recipe: Recipe, request: Request) -> int | None:
    if request.servings is not None or request.factor is None:
        return request.servings
    # Half of three is one and a half: the nearest number of people, but somebody.
    return max(round(servings_of(recipe) * request.factor), 1)


def _changed(recipe: Recipe, request: Request, servings: int | None) -> Recipe:
    if request.vegetarian:
        recipe = make_vegetarian(recipe)
    if request.improve:
        recipe = improve(recipe)
    if servings is not None and servings != servings_of(recipe):
        recipe = scale(recipe, servings)
    return recipe


def _closing(request: Request, messages: Sequence[Message]) -> str:
    """What is said when the tool has run."""
    results = [content for content in messages[-1].contents if isinstance(content, FunctionResultContent)]
    failure = next((result.error for result in results if result.error is not None), None)
    if failure is not None:
        return f"That did not work: {failure}"
    recipe = _current_recipe(messages)
    now = []
    if request.vegetarian:
        now.append("vegetarian")
    if request.improve:
        now.append("made with better ingredients and more technique")
    if recipe is not None and (request.servings is not None or request.factor is not None):
        now.append(f"for {servings_of(recipe)}, with every amount computed")
    return f"Now it is {', '.join(now)}." if now else "Here's your recipe!"


def _current_recipe(messages: Sequence[Message]) -> Recipe | None:
    """The recipe in the state that the model is shown; raises ValidationError for one that is none."""
    state = _shown_state(messages)
    recipe = state.get("recipe") if isinstance(state, dict) else None
    return None if recipe in (None, {}) else Recipe.model_validate(recipe)


def _shown_state(messages: Sequence[Message]) -> Any:
    """The JSON behind the fence of the system message that shows the state, None without one."""
    for message in reversed(messages):
        _, fence, shown = message.text.partition(f"{STATE_OPENS}\n")
        if message.role is Role.SYSTEM and fence:
            try:
                return json.JSONDecoder().raw_decode(shown)[0]
            except ValueError:  # a state too long to be shown whole
                return None
    return None
