"""The recipe, the tool that writes it, and the agent that has the tool.

The state is `{"recipe": {...}}`. While the model writes the arguments of `update_recipe`, they already appear in the
state; when the tool has run, they are the state.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, Field

from accord.agents import Agent, ChatClient, tool
from accord.agui import AGUIAgent


class SkillLevel(StrEnum):
    """How much practice a dish takes."""

    BEGINNER = "Beginner"
    INTERMEDIATE = "Intermediate"
    ADVANCED = "Advanced"


class CookingTime(StrEnum):
    """How long a dish takes from start to table."""

    FIVE = "5 min"
    FIFTEEN = "15 min"
    THIRTY = "30 min"
    FORTY_FIVE = "45 min"
    SIXTY_PLUS = "60+ min"


class Ingredient(BaseModel):
    """Something that goes into the dish."""

    icon: str = Field(description="One emoji that shows the ingredient, such as 🧄")
    name: str = Field(description="What it is")
    amount: str = Field(description="How much of it, with its unit: '400g', '2 tbsp', 'To taste'")


class Recipe(BaseModel):
    """A whole recipe."""

    title: str = Field(description="The name of the dish")
    skill_level: SkillLevel = Field(description="How much practice it takes")
    special_preferences: list[str] = Field(
        default_factory=list, description="Diets and wishes it meets, such as 'Vegetarian'; 'Serves 4' for the servings"
    )
    cooking_time: CookingTime = Field(description="How long it takes")
    ingredients: list[Ingredient] = Field(description="All ingredients")
    instructions: list[str] = Field(description="All steps, in order, one sentence or two each")


@tool
def update_recipe(recipe: Recipe) -> str:
    """Show a new or changed recipe to the user.

    Args:
        recipe: The whole recipe. What is left out is gone, so repeat everything that has not changed.
    """
    return "Recipe updated."


INSTRUCTIONS = """\
You write recipes together with the user, who sees the recipe beside the conversation.

- The current recipe is in the shared state that you are shown. Work from it: every change builds on what is there.
- To show a recipe or a change, call update_recipe once with the whole recipe, unchanged parts included.
- Give every ingredient one fitting emoji. Fill special_preferences only with what was asked for.
- When you are asked to improve a recipe, choose better ingredients, add what rounds it off, explain the technique,
  and raise the skill level if it has become harder.
- When you are asked for other quantities, compute every amount and note the servings as 'Serves N'; a recipe that does
  not say serves 4.
- Afterwards say in one or two sentences what you did. Do not repeat the recipe.
"""


def recipe_agent(client: ChatClient) -> AGUIAgent:
    """The agent, answering with the model behind `client`."""
    agent = Agent(name="recipe_agent", instructions=INSTRUCTIONS, client=client, tools=[update_recipe])
    return AGUIAgent(
        agent=agent,
        name="RecipeAgent",
        description="Writes and changes a recipe that the user sees fill in",
        state_schema={"recipe": {"type": "object", "description": "The current recipe"}},
        predict_state_config={"recipe": {"tool": "update_recipe", "tool_argument": "recipe"}},
    )
