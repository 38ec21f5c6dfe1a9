"""Importing a part of the package costs that part: what is heavy is loaded when it is needed, and no name is lost."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
import typing
from typing import Any

import pytest

import accord
import accord.agui
import accord.client
import accord.wire

HTTP = ["httpx", "rich", "click"]  # httpx loads the other two where they are installed
HEAVY = [*HTTP, "pydantic", "pydantic_core", "google.protobuf", "jsonschema_rs"]

TOOL = "from accord.protocol import Tool; tools = [Tool(name='f', description='')]"
FUNCTION = "def f(a: int) -> int: ...\ntools = [f]"


def loaded(program: str) -> set[str]:
    """What is heavy and in a new interpreter that has run `program`."""
    program += f"\nimport sys\nprint(*(set(sys.modules) & {set(HEAVY)!r}))"
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import accord",
        "import accord.client",
        "from accord.client import AGUIClient, InProcessTransport, ReplayTransport",
        "import accord.wire",
        "import accord.consumer",
        "import accord.producer",
    ],
)
def test_importing_loads_nothing_heavy(statement: str) -> None:
    assert loaded(statement) == set()


def test_a_server_loads_its_wires_before_it_serves() -> None:
    assert loaded("import accord.hosting") == {"google.protobuf"}
    assert not loaded("import accord.agui") & set(HTTP)


@pytest.mark.parametrize(
    ("program", "needed"),
    [
        ("AGUIClient('http://127.0.0.1:1/')", "httpx"),
        ("AGUIClient(transport=ReplayTransport(b''))", None),
        ("ReplayTransport([])", None),
        ("ReplayTransport([{'type': 'RUN_STARTED', 'threadId': 't', 'runId': 'r'}])", None),
        (f"{TOOL}\nAGUIClient(transport=ReplayTransport(b''), tools=tools)", None),
        (f"{FUNCTION}\nAGUIClient(transport=ReplayTransport(b''), tools=tools)", "pydantic"),
    ],
)
def test_a_client_loads_what_it_needs(program: str, needed: str | None) -> None:
    found = loaded(f"from accord.client import AGUIClient, ReplayTransport\n{program}")
    if needed is None:
        assert found == set()
    else:
        assert needed in found
        assert found <= (set(HTTP) if needed == "httpx" else {"pydantic", "pydantic_core"})


def test_an_event_stream_is_read_without_the_binary_wire() -> None:
    program = (
        "import asyncio\n"
        "from accord.client import AGUIClient, ReplayTransport\n"
        "events = [{'type': each, 'threadId': 't', 'runId': 'r'} for each in ('RUN_STARTED', 'RUN_FINISHED')]\n"
        "async def run(content_type):\n"
        "    await AGUIClient(transport=ReplayTransport(events, content_type=content_type)).run()\n"
        "asyncio.run(run"
    )
    assert loaded(program + "('text/event-stream'))") == set()
    assert loaded(program + "('application/vnd.ag-ui.event+proto'))") == {"google.protobuf"}


@pytest.mark.parametrize(
    ("package", "homes"),
    [
        ("accord", {"Agent": "accord.agents.agent", "tool": "accord.agents.tools", "AgentSession": "accord.sessions"}),
        ("accord.client", {"Auth": "accord.client.http", "HTTPTransport": "accord.client.http"}),
        (
            "accord.wire",
            {
                "ProtobufReader": "accord.wire.protobuf_reader",
                "decode_protobuf": "accord.wire.protobuf_decode",
                "encode_protobuf": "accord.wire.protobuf_encode",
                "frame": "accord.wire.protobuf_encode",
            },
        ),
    ],
)
def test_names_that_wait_to_be_used(package: str, homes: dict[str, str]) -> None:
    names = f"import {package} as package\nassert set(package.__all__) <= set(dir(package))\n"
    waiting = f"assert not set({list(homes)!r}) & set(vars(package))\n"
    assert loaded(names + waiting) == set()
    loaded(names + waiting + f"from {package} import *\n" + names)
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None
    for name, home in homes.items():
        assert getattr(module, name) is getattr(importlib.import_module(home), name)


def test_a_name_that_does_not_exist() -> None:
    with pytest.raises(AttributeError, match="module 'accord' has no attribute 'Client'"):
        accord.Client  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"module 'accord\.client' has no attribute 'Client'"):
        accord.client.Client  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"module 'accord\.wire' has no attribute 'Reader'"):
        accord.wire.Reader  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("missing", "program"),
    [
        ("httpx", "from accord.client import HTTPTransport"),
        ("httpx", "from accord.client import AGUIClient; AGUIClient('http://127.0.0.1:1/')"),
        ("google.protobuf", "from accord.wire import ProtobufReader"),
        (
            "pydantic",
            f"{FUNCTION}\nfrom accord.client import AGUIClient, ReplayTransport\n"
            "AGUIClient(transport=ReplayTransport(b''), tools=tools)",
        ),
    ],
)
def test_what_is_missing_is_named(missing: str, program: str) -> None:
    tried = "\n".join(f"    {line}" for line in program.splitlines())
    loaded(
        f"import sys\nsys.modules[{missing!r}] = None\n"
        f"try:\n{tried}\nexcept ImportError as error:\n    assert {missing!r} in str(error), error\n"
        "else:\n    raise AssertionError('found')\n"
        f"del sys.modules[{missing!r}]"
    )


@pytest.mark.parametrize("client", [accord.client.AGUIClient, accord.agui.AGUIChatClient])
def test_what_a_client_takes_can_be_read_at_run_time(client: Any) -> None:
    assert {"auth", "http_client", "transport"} <= set(typing.get_type_hints(client.__init__))
    assert "auth" in inspect.signature(client, eval_str=True).parameters
