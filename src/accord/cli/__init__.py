"""The `accord` command. Each command imports what it needs when it runs: `--help` costs nothing and needs no extra."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated

import typer

from accord.cli.failure import CommandFailed

__all__ = ["app", "main"]

app = typer.Typer(
    name="accord",
    help="Agent and application in agreed state over AG-UI 1.0.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(asked: bool) -> None:
    if asked:
        from accord import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _accord(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    logging.getLogger("accord").addHandler(logging.NullHandler())  # what is worth saying, the commands say


class ReplayFormat(StrEnum):
    """How `accord replay` prints."""

    HUMAN = "human"
    JSON = "json"


@app.command()
def demo(
    once: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Say this, show what comes of it and the recipe, and end.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="A real model, by the environment: OPENAI_API_KEY, OPENAI_BASE_URL, AZURE_..."
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to serve; the next free one when taken.")] = 8888,
    chat: Annotated[bool, typer.Option("--chat/--no-chat", help="Talk to the agent here, or only serve it.")] = True,
) -> None:
    """Serve a recipe agent and talk to it: shared state that fills in while the model writes."""
    from accord.cli.demo import demo as run

    with _failures_told():
        run(once=once, model=model, port=port, chat=chat)


@app.command()
def serve(
    target: Annotated[
        str,
        typer.Argument(metavar="MODULE:ATTRIBUTE", help="An Agent, an AGUIAgent, a producer, or an ASGI application."),
    ],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on, 0 for any.")] = 8888,
    path: Annotated[str | None, typer.Option(help="Where the agent is, / unless given.")] = None,
) -> None:
    """Serve an agent over AG-UI."""
    from accord.cli.serve import serve_target as run

    with _failures_told():
        run(target, host=host, port=port, path=path)


@app.command()
def chat(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Where the AG-UI server is, such as http://127.0.0.1:8888/")
    ],
    once: Annotated[str | None, typer.Option(metavar="TEXT", help="Say this, show what comes of it, and end.")] = None,
    state: Annotated[
        str | None, typer.Option(metavar="FILE", help="The state that the thread begins with, a JSON file.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option(metavar="NAME:VALUE", help="An HTTP header of every request; may be repeated.")
    ] = None,
) -> None:
    """Talk to any AG-UI server in the terminal."""
    from accord.cli.chat import chat as run

    with _failures_told():
        run(url, once=once, state_name=state, headers=header or ())


@app.command()
def replay(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A recording: .sse, .pb, .jsonl, .json (events or a case), - for stdin."),
    ],
    output: Annotated[
        ReplayFormat, typer.Option("--format", help="For people, or one JSON object for programs.")
    ] = ReplayFormat.HUMAN,
    input_file: Annotated[
        str | None, typer.Option("--input", metavar="FILE", help="A (partial) RunAgentInput the client starts from.")
    ] = None,
    peer_version: Annotated[
        str | None, typer.Option(metavar="V", help="The version the producer is known to speak, such as 0.0.57.")
    ] = None,
) -> None:
    """Run a recorded stream through the whole consumer and show what came of it."""
    from accord.cli.replay import replay as run

    with _failures_told():
        run(file, as_json=output is ReplayFormat.JSON, input_name=input_file, peer_version=peer_version)


def main() -> None:
    """Runs the command line."""
    if sys.stdout is None:  # closed, as by `>&-`
        typer.echo("accord: standard output is closed; /dev/null takes what nobody shall see", err=True)
        sys.exit(2)
    for stream in (sys.stdout, sys.stderr):
        # What a terminal cannot show is shown as an escape, and never an error.
        if stream is not None:
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    app()


@contextmanager
def _failures_told() -> Iterator[None]:
    try:
        yield
    except CommandFailed as failure:
        typer.echo(f"accord: {failure}", err=True)
        raise typer.Exit(failure.exit_code) from None
