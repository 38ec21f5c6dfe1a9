"""Changes to a recipe, whoever wrote it. Each gives a new recipe; one that changes nothing gives an equal one."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from accord.demo.amounts import scale_amount
from accord.demo.dishes import SERVINGS
from accord.demo.recipe import Ingredient, Recipe, SkillLevel

VEGETARIAN: Final = "Vegetarian"
_SERVES = re.compile(r"Serves (\d{1,4})")

#: What is not vegetarian, its stand-in and that one's icon. The first that fits is meant.
_STAND_INS: Final[tuple[tuple[str, str, str], ...]] = (
    (r"(?:chicken|beef|fish|bone) (?:stock|broth)", "vegetable stock", "🥕"),
    (r"fish sauce", "soy sauce", "🫙"),
    (r"guanciale|pancetta|bacon|speck|lardons?", "smoked oyster mushrooms", "🍄"),
    (r"pecorino romano|pecorino|parmigiano(?: reggiano)?|parmesan|grana padano", "vegetarian hard cheese", "🧀"),
    (r"chicken(?: thighs?| breasts?)?|turkey|duck", "chickpeas", "🫘"),
    (r"(?:minced |ground )?(?:beef|pork|lamb|veal)|sausages?|ham|chorizo", "brown lentils", "🫘"),
    (r"prawns?|shrimps?|salmon|tuna|cod|anchov(?:y|ies)", "marinated tofu", "🧊"),
)

#: A better kind of what an ingredient's name holds.
_BETTER: Final[dict[str, str]] = {
    "spaghetti": "Bronze-cut",
    "pasta": "Bronze-cut",
    "rice": "Aged",
    "egg": "Free-range",
    "guanciale": "Air-cured",
    "chicken": "Free-range",
    "beef": "Grass-fed",
    "pecorino": "Long-matured",
    "parmesan": "Long-matured",
    "mushroom": "Mixed wild",
    "tomato": "Vine-ripened",
    "butter": "Cultured",
    "milk": "Fresh full-cream",
    "flour": "Stone-ground",
    "pepper": "Freshly cracked",
    "garlic": "Young",
    "onion": "Sweet",
}
_SWEET = re.compile(r"sugar|honey|syrup|chocolate|vanilla", re.IGNORECASE)
_PREPARATION: Final = "Weigh and cut everything before the first pan gets hot, so that nothing has to wait."
_SAVOURY_END: Final = (
    Ingredient(icon="🌿", name="Flat-leaf parsley", amount="20g"),
    "Taste, adjust the salt, and finish on warm plates with the flat-leaf parsley.",
)
_SWEET_END: Final = (
    Ingredient(icon="🫐", name="Fresh berries", amount="150g"),
    "Finish with the fresh berries just before serving.",
)


def make_vegetarian(recipe: Recipe) -> Recipe:
    """Meat, fish and cheese made with rennet replaced, in the ingredients and in the instructions."""
    title, ingredients, instructions = recipe.title, [*recipe.ingredients], [*recipe.instructions]
    for pattern, stand_in, icon in _STAND_INS:
        found = re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)
        ingredients = [
            Ingredient(icon=icon, name=stand_in.capitalize(), amount=each.amount) if found.search(each.name) else each
            for each in ingredients
        ]
        instructions = [_replaced(found, stand_in, step) for step in instructions]
        title = found.sub(stand_in.removesuffix("s").title(), title)
    return recipe.model_copy(
        update={
            "title": title,
            "ingredients": ingredients,
            "instructions": instructions,
            "special_preferences": _with(recipe.special_preferences, VEGETARIAN),
        }
    )


def improve(recipe: Recipe) -> Recipe:
    """Better ingredients, a finishing touch, more technique; harder for it."""
    touch, end = _SWEET_END if any(_SWEET.search(each.name) for each in recipe.ingredients) else _SAVOURY_END
    if _PREPARATION in recipe.instructions:
        return recipe
    levels = list(SkillLevel)
    harder = levels[min(levels.index(recipe.skill_level) + 1, len(levels) - 1)]
    return recipe.model_copy(
        update={
            "skill_level": harder,
            "ingredients": [*(_better(each) for each in recipe.ingredients), touch],
            "instructions": [_PREPARATION, *recipe.instructions, end],
        }
    )


def scale(recipe: Recipe, servings: int) -> Recipe:
    """Every amount computed for so many servings."""
    factor = Fraction(servings, servings_of(recipe))
    kept = [each for each in recipe.special_preferences if not _SERVES.fullmatch(each)]
    return recipe.model_copy(
        update={
            "ingredients": [
                each.model_copy(update={"amount": scale_amount(each.amount, factor)}) for each in recipe.ingredients
            ],
            "special_preferences": [*kept, f"Serves {servings}"],
        }
    )


def servings_of(recipe: Recipe) -> int:
    """How many it serves: what it says, else four."""
    said = [int(match[1]) for each in recipe.special_preferences if (match := _SERVES.fullmatch(each))]
    return said[-1] if said and said[-1] > 0 else SERVINGS


def _replaced(found: re.Pattern[str], stand_in: str, step: str) -> str:
    """The step with the stand-in, capitalised where it opens the sentence."""
    return found.sub(lambda match: stand_in.capitalize() if match.start() == 0 else stand_in, step)


def _better(ingredient: Ingredient) -> Ingredient:
    name = ingredient.name.lower()
    kind = next((kind for word, kind in _BETTER.items() if word in name), None)
    if kind is None or name.startswith(kind.lower()) or any(name == stand_in for _, stand_in, _ in _STAND_INS):
        return ingredient
    first_word, _, rest = ingredient.name.partition(" ")
    # A name that goes on in capitals is a proper one: "Pecorino Romano".
    kept = ingredient.name if rest[:1].isupper() else f"{first_word.lower()} {rest}".strip()
    return ingredient.model_copy(update={"name": f"{kind} {kept}"})


def _with(preferences: list[str], preference: str) -> list[str]:
    return preferences if preference in preferences else [*preferences, preference]
