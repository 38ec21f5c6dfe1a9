"""`accord demo`: the recipe agent on a port of this machine, and a chat that talks to it over HTTP."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from accord.cli.background import BackgroundLoop
from accord.cli.chat import Chat
from accord.cli.failure import CommandFailed
from accord.cli.serving import listen_near, require_server, serve, served, url_of
from accord.cli.visible import one_line
from accord.errors import AccordError

if TYPE_CHECKING:
    from accord.agents import ChatClient

_HOST: Final = "127.0.0.1"
_EXCHANGE: Final = "I want to make a classic Italian pasta carbonara"
_EXAMPLES: Final = 'Try "I want to make a carbonara", "make it vegetarian", "make it for 8".'


def demo(*, once: str | None, model: str | None, port: int, chat: bool) -> None:
    """Serves the agent and talks to it: in a terminal until the person quits, elsewhere in one exchange."""
    require_server()
    from accord.demo.app import create_app

    interactive = sys.stdin.isatty() and sys.stdout.isatty() and once is None
    client = _scripted(interactive=interactive) if model is None else _real(model)
    app = create_app(client)
    with listen_near(_HOST, port) as listener:
        url = url_of(listener)
        if listener.getsockname()[1] != port != 0:
            _say(f"Port {port} is in use.")
        _say(f"The recipe agent is at {url} (model: {model or 'scripted, offline'})")
        if not chat:
            _say(f"Talk to it with: accord chat {url}")
            serve(app, listener)
            return
        _say(_EXAMPLES if interactive else "")
        with BackgroundLoop() as loop, _reasons_told():
            stack = AsyncExitStack()
            if isinstance(client, SupportsAclose):
                stack.push_async_callback(client.aclose)
            loop.run(stack.enter_async_context(served(app, listener)))
            try:
                with Chat(loop, url) as conversation:
                    if interactive:
                        conversation.talk()
                    else:
                        conversation.exchange(_EXCHANGE if once is None else once)
            finally:
                loop.run(stack.aclose())


@runtime_checkable
class SupportsAclose(Protocol):
    """A model with connections to close."""

    async def aclose(self) -> None:
        """Closes them."""


def _scripted(*, interactive: bool) -> ChatClient:
    from accord.demo.model import scripted_cook

    # For somebody who watches, small pieces and pauses, as a model makes them.
    return scripted_cook(piece_size=10, delay=0.02) if interactive else scripted_cook(piece_size=24)


def _real(model: str) -> ChatClient:
    try:
        from accord.openai import OpenAIChatCompletionClient

        return OpenAIChatCompletionClient(model=model)
    except ImportError as error:
        raise CommandFailed(str(error)) from None
    except AccordError as error:
        raise CommandFailed(f"--model {model}: {error}") from None


@contextmanager
def _reasons_told() -> Iterator[None]:
    """The screen shows what a user of the agent may see; whoever runs the agent is told the reason, too."""
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine())
    handler.setLevel(logging.ERROR)
    logger = logging.getLogger("accord")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _OneLine(logging.Formatter):
    """The message and what was raised, without a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        raised = record.exc_info[1] if record.exc_info else None
        detail = getattr(raised, "detail", None)
        reason = "" if raised is None else f": {raised}" if detail is None else f": {raised}: {detail}"
        return one_line(f"accord: {record.getMessage()}{reason}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
