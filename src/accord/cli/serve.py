"""`accord serve MODULE:ATTRIBUTE`: an agent, a producer or a whole application, on a port."""

from __future__ import annotations

import importlib
import inspect
import logging
import sys
import traceback
from functools import reduce
from typing import Any

from accord.cli.failure import CommandFailed
from accord.cli.serving import listen, require_server, serve, url_of
from accord.cli.stopping import ASGIApplication


def serve_target(target: str, *, host: str, port: int, path: str | None) -> None:
    """Serves what `target` names until it is stopped; `path` is for what is not an application by itself."""
    require_server()
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    app = application(find(target), target, path)
    with listen(host, port) as listener:
        sys.stdout.write(f"Serving {target} on {url_of(listener, path or '/')} (Ctrl+C to stop)\n")
        sys.stdout.flush()
        serve(app, listener)


def find(target: str) -> Any:
    """What `MODULE:ATTRIBUTE` names; modules are looked for in the working directory first, as `python -m` does."""
    module_name, colon, attribute = target.partition(":")
    if not (colon and module_name and attribute):
        raise CommandFailed(f"{target!r}: MODULE:ATTRIBUTE is due, such as my_package.server:agent", exit_code=2)
    if module_name.endswith(".py"):
        meant = module_name.removesuffix(".py").replace("/", ".")
        raise CommandFailed(f"{target!r}: name the module, not its file: {meant}:{attribute}", exit_code=2)
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise _import_failed(module_name) from None
        raise CommandFailed(f"there is no module {error.name!r} here or on the Python path", exit_code=2) from None
    except Exception:  # noqa: BLE001  whatever the module's own code raises
        raise _import_failed(module_name) from None
    try:
        return reduce(getattr, attribute.split("."), module)
    except AttributeError as error:
        raise CommandFailed(f"{target!r}: {error}", exit_code=2) from None


def application(found: Any, target: str, path: str | None) -> ASGIApplication:
    """The application that serves `found`: itself if it is one, else one with an endpoint at `path`."""
    from fastapi import FastAPI

    from accord.agents import Agent
    from accord.agui import add_agui_endpoint

    if inspect.isclass(found):
        raise CommandFailed(f"{target!r} is a class: name an object made of it", exit_code=2)
    parameters = _required_parameters(found)
    if parameters == 3:
        if path is not None:
            raise CommandFailed(
                f"{target!r} is an ASGI application with paths of its own: leave out --path", exit_code=2
            )
        return found
    if not isinstance(found, Agent) and parameters != 1:
        what = "takes other parameters" if callable(found) else f"is {type(found).__name__}"
        raise CommandFailed(
            f"{target!r} {what}: an Agent, an AGUIAgent, `async def producer(run)` or an ASGI application is due",
            exit_code=2,
        )
    app = FastAPI(title=target, openapi_url=None)
    add_agui_endpoint(app, found, path=f"/{(path or '/').lstrip('/')}")
    return app


def _required_parameters(found: Any) -> int | None:
    """How many positional parameters a call must give, None for what cannot be called so."""
    if not callable(found):
        return None
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return None
    required = [each for each in parameters if each.default is each.empty]
    if any(each.kind is each.KEYWORD_ONLY for each in required):
        return None
    return len([each for each in required if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)])


def _import_failed(module_name: str) -> CommandFailed:
    return CommandFailed(f"importing {module_name} failed:\n{traceback.format_exc().rstrip()}")
