"""The recipe agent as a FastAPI application: `accord serve accord.demo.app:app`."""

from __future__ import annotations

from fastapi import FastAPI

from accord.agents import ChatClient
from accord.agui import add_agui_endpoint
from accord.demo.model import scripted_cook
from accord.demo.recipe import recipe_agent


def create_app(client: ChatClient | None = None) -> FastAPI:
    """The application, with the scripted cook unless there is a model behind `client`."""
    app = FastAPI(title="Recipes")
    add_agui_endpoint(app, recipe_agent(client or scripted_cook()), path="/")
    return app


app = create_app()
