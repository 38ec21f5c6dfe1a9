"""The dishes that the scripted cook knows, each for four."""

from __future__ import annotations

from typing import Final

from accord.demo.recipe import CookingTime, Ingredient, Recipe, SkillLevel

#: How many a recipe serves that does not say.
SERVINGS: Final = 4


def _recipe(
    title: str, skill: SkillLevel, time: CookingTime, preferences: list[str], ingredients: str, instructions: str
) -> Recipe:
    """Ingredients as lines of `icon | name | amount`, instructions as lines."""
    rows = (line.split(" | ") for line in ingredients.strip().splitlines())
    return Recipe(
        title=title,
        skill_level=skill,
        special_preferences=preferences,
        cooking_time=time,
        ingredients=[Ingredient(icon=icon.strip(), name=name, amount=amount) for icon, name, amount in rows],
        instructions=[line.strip() for line in instructions.strip().splitlines()],
    )


#: By the word that asks for them.
DISHES: Final[dict[str, Recipe]] = {
    "carbonara": _recipe(
        "Pasta alla Carbonara",
        SkillLevel.INTERMEDIATE,
        CookingTime.THIRTY,
        ["Roman classic"],
        """
        🍝 | Spaghetti | 400g
        🥓 | Guanciale | 150g
        🥚 | Egg yolks | 5
        🧀 | Pecorino Romano | 80g, finely grated
        🧂 | Black pepper | 2 tsp, coarse
        """,
        """
        Put a wide pot of water on to boil and salt it less than usual, for the cheese is salty.
        Cut the guanciale into batons and let them turn golden in a cold pan over medium heat.
        Stir the egg yolks, the Pecorino Romano and the black pepper into a thick cream.
        Cook the spaghetti two minutes short of done and keep a ladle of their water.
        Toss the spaghetti with the guanciale in its pan, and take the pan off the heat.
        Fold in the cream, loosening it with the water until it coats every strand.
        Serve at once with more pepper.
        """,
    ),
    "risotto": _recipe(
        "Mushroom Risotto",
        SkillLevel.INTERMEDIATE,
        CookingTime.FORTY_FIVE,
        [],
        """
        🍚 | Risotto rice | 320g
        🍄 | Mushrooms | 400g
        🧅 | Onion | 1, finely chopped
        🍷 | Dry white wine | 150ml
        🍲 | Chicken stock | 1.2l, hot
        🧈 | Butter | 60g, cold
        🧀 | Parmesan | 60g, grated
        """,
        """
        Fry the mushrooms in a little of the butter until they are brown, and set them aside.
        Soften the onion in the same pot, add the rice and stir until it is hot.
        Pour in the wine and let it boil away.
        Add the chicken stock a ladle at a time, stirring, until the rice is tender and flows.
        Take the pot off the heat and beat in the rest of the butter and the Parmesan.
        Stir in the mushrooms and let it rest for a minute before serving.
        """,
    ),
    "curry": _recipe(
        "Chicken Curry",
        SkillLevel.BEGINNER,
        CookingTime.FORTY_FIVE,
        [],
        """
        🍗 | Chicken thighs | 600g
        🥥 | Coconut milk | 400ml
        🧅 | Onions | 2
        🧄 | Garlic cloves | 3
        🫚 | Ginger | 20g
        🌶️ | Curry paste | 2-3 tbsp
        🍅 | Tomatoes | 2
        """,
        """
        Slice the onions and let them brown slowly in oil.
        Add the garlic and the ginger, grated, and the curry paste, and fry until it smells toasted.
        Add the chicken thighs in bite-sized pieces and turn them in the paste.
        Add the tomatoes and the coconut milk and simmer until everything is tender.
        Salt to taste and serve with rice.
        """,
    ),
    "pancakes": _recipe(
        "Fluffy Pancakes",
        SkillLevel.BEGINNER,
        CookingTime.FIFTEEN,
        [],
        """
        🌾 | Flour | 250g
        🥛 | Milk | 300ml
        🥚 | Eggs | 2
        🧂 | Baking powder | 1 tbsp
        🍬 | Sugar | 1 1/2 tbsp
        🧈 | Butter | 40g, melted
        """,
        """
        Mix the flour, the baking powder and the sugar in a bowl.
        Beat the milk with the eggs and the butter, and stir it in just until no dry flour is left.
        Let the batter rest while a pan gets warm.
        Bake small ladlefuls until bubbles stay open, turn them and bake the other side.
        Serve warm.
        """,
    ),
}
