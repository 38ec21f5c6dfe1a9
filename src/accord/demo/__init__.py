"""A recipe agent that shares its recipe with the screen: an example to read, and what `accord demo` runs.

`recipe` is what a program of one's own would look like: models, a tool, an agent. The rest stands in for a language
model, so that the example runs offline: `request`, `dishes`, `edits` and `amounts` know a little of cooking, and
`model` answers with it. `app` serves the agent.
"""

from accord.demo.model import scripted_cook
from accord.demo.recipe import CookingTime, Ingredient, Recipe, SkillLevel, recipe_agent, update_recipe

__all__ = ["CookingTime", "Ingredient", "Recipe", "SkillLevel", "recipe_agent", "scripted_cook", "update_recipe"]
