from __future__ import annotations

import pytest

from accord.demo.dishes import DISHES
from accord.demo.edits import improve, make_vegetarian, scale, servings_of
from accord.demo.recipe import CookingTime, Ingredient, Recipe, SkillLevel

STEW = Recipe(
    title="Beef stew",
    skill_level=SkillLevel.ADVANCED,
    special_preferences=["Serves 2"],
    cooking_time=CookingTime.SIXTY_PLUS,
    ingredients=[
        Ingredient(icon="🥩", name="Beef", amount="500g"),
        Ingredient(icon="🍲", name="Beef stock", amount="1l"),
        Ingredient(icon="🧂", name="Salt", amount="To taste"),
    ],
    instructions=["Beef goes in first, the beef stock follows.", "Ham it up."],
)


def test_vegetarian_replaces_in_title_ingredients_and_steps() -> None:
    recipe = make_vegetarian(STEW)
    assert recipe.title == "Brown Lentil stew"
    assert [(each.name, each.amount) for each in recipe.ingredients] == [
        ("Brown lentils", "500g"),
        ("Vegetable stock", "1l"),
        ("Salt", "To taste"),
    ]
    assert recipe.instructions[0] == "Brown lentils goes in first, the vegetable stock follows."
    assert recipe.special_preferences == ["Serves 2", "Vegetarian"]


@pytest.mark.parametrize("dish", DISHES.values(), ids=DISHES.keys())
def test_every_dish_can_be_changed_in_every_order(dish: Recipe) -> None:
    text = make_vegetarian(dish).model_dump_json().lower()
    assert not any(meat in text for meat in ("guanciale", "chicken", "pecorino", "parmesan"))
    assert make_vegetarian(make_vegetarian(dish)) == make_vegetarian(dish)
    better = improve(dish)
    assert improve(better) == better
    assert len(better.ingredients) == len(dish.ingredients) + 1
    assert len(better.instructions) == len(dish.instructions) + 2
    assert better.skill_level != dish.skill_level
    for recipe in (scale(improve(make_vegetarian(dish)), 8), improve(make_vegetarian(scale(dish, 8)))):
        assert servings_of(recipe) == 8
        assert "Vegetarian" in recipe.special_preferences
        assert recipe == Recipe.model_validate_json(recipe.model_dump_json())
    assert scale(scale(dish, 8), 4).ingredients == dish.ingredients


def test_scaling_counts_from_what_the_recipe_says() -> None:
    recipe = scale(STEW, 6)
    assert [each.amount for each in recipe.ingredients] == ["1500g", "3l", "To taste"]
    assert recipe.special_preferences == ["Serves 6"]
    assert servings_of(DISHES["curry"]) == 4
    assert servings_of(STEW.model_copy(update={"special_preferences": ["Serves 0"]})) == 4


def test_what_is_best_already_stays() -> None:
    assert improve(STEW).skill_level == SkillLevel.ADVANCED
    assert improve(STEW).ingredients[0].name == "Grass-fed beef"
    assert improve(DISHES["carbonara"]).ingredients[3].name == "Long-matured Pecorino Romano"
