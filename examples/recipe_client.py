"""A terminal client for any of the servers here: text as it comes, state by its patches, and questions to the user.

    python examples/recipe_client.py [URL]

The server is the model of a local agent, so the rest is the agent's ordinary interface. An empty line, or the end of
the input, ends it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import jsonpatch
from rich.console import Console

from accord import Agent, DataContent, FunctionApprovalRequestContent, Message
from accord.agui import AGUIChatClient, StateDeltaContent

console = Console(highlight=False, markup=False, soft_wrap=True)


async def main(url: str) -> None:
    """Talks until there is nothing more to say."""
    async with AGUIChatClient(server_url=url) as server:
        agent = Agent(server, name="terminal")
        session = agent.create_session()
        state: Any = {}
        said: str | Message = await ask("You")
        while said:
            requests = []
            async for update in agent.run(said, session=session, stream=True):
                console.print(update.text, end="")
                for content in update.contents:
                    if isinstance(content, DataContent) and content.media_type == "application/json":
                        state = json.loads(content.data)
                    elif isinstance(content, StateDeltaContent):
                        state = jsonpatch.JsonPatch(content.delta).apply(state)
                        console.print("·", end="")
                    elif isinstance(content, FunctionApprovalRequestContent):
                        requests.append(content)
            console.print(f"\n{json.dumps(state, indent=2, ensure_ascii=False)}")
            if requests:
                answers = [
                    request.answer((await ask(f"Allow {request.call.name}? [y/n]")) == "y") for request in requests
                ]
                said = Message("user", answers)
            else:
                said = await ask("You")


async def ask(question: str) -> str:
    """A line from the user, `""` at the end of the input."""
    console.print(f"{question}: ", end="")
    line: str = await asyncio.to_thread(sys.stdin.readline)
    return line.strip()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8888/"))
