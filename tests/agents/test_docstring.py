from __future__ import annotations

from accord.agents.docstring import read_docstring

GOOGLE = """Update the recipe.

    Write it whole.

    Args:
        recipe: The complete recipe,
            with all details
        count (int, optional): How many: one or more

        **extra: Anything else

    Returns:
        Confirmation.

    Raises:
        ValueError: never.

    Note: keep this.
    """

SPHINX = """Update the recipe.

    :param recipe: The complete recipe,
        with all details
    :param int count: How many
    :type recipe: Recipe
    :returns: Confirmation.
    :raises ValueError: never.
    """


def test_google_sections() -> None:
    description, parameters = read_docstring(GOOGLE)
    assert description == "Update the recipe.\n\nWrite it whole.\n\nNote: keep this."
    assert parameters == {
        "recipe": "The complete recipe, with all details",
        "count": "How many: one or more",
        "extra": "Anything else",
    }


def test_sphinx_fields() -> None:
    description, parameters = read_docstring(SPHINX)
    assert description == "Update the recipe."
    assert parameters == {"recipe": "The complete recipe, with all details", "count": "How many"}


def test_other_text_is_kept() -> None:
    text = "Ask.\n\n:smile: is fine.\n\nExample:\n    ask(1)"
    assert read_docstring(text) == (text, {})


def test_no_docstring() -> None:
    assert read_docstring(None) == ("", {})
