"""A document that is written by one call: all arguments of the tool are one member of the state.

OPENAI_API_KEY=... OPENAI_MODEL=... python examples/document_server.py
"""

from __future__ import annotations

from typing import Any

import uvicorn
from fastapi import FastAPI

from accord import Agent, ChatClient, tool
from accord.agui import AGUIAgent, DocumentWriterConfirmationStrategy, add_agui_endpoint
from accord.openai import OpenAIChatCompletionClient


@tool
def write_document(title: str, body: str, metadata: dict[str, Any]) -> str:
    """Put a document on the user's screen.

    Args:
        title: Its title.
        body: Its text, as Markdown.
        metadata: Whatever else is known of it, such as the author or keywords.
    """
    return f"{len(body.split())} words are written."


def create_app(client: ChatClient, *, confirm: bool = False) -> FastAPI:
    """The agent at `/`, answering with the model behind `client`."""
    agent = Agent(client, "You write documents with the user.", name="writer", tools=[write_document])
    app = FastAPI()
    add_agui_endpoint(
        app,
        AGUIAgent(
            agent,
            state_schema={"document": {"type": "object", "description": "The document"}},
            predict_state_config={"document": {"tool": "write_document", "tool_argument": "*"}},
            require_confirmation=confirm,
            confirmation_strategy=DocumentWriterConfirmationStrategy(),
        ),
    )
    return app


if __name__ == "__main__":
    uvicorn.run(create_app(OpenAIChatCompletionClient()), port=8888)
