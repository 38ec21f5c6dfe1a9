"""What README shows works as it stands: its Python is strictly typed, and its client talks to its servers."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from accord.agents import ChatOptions, Message, ScriptedChatClient, scripted_call
from support.serving import serve_in_thread

REPOSITORY = Path(__file__).resolve().parents[1]
BLOCKS = re.findall(r"^```python\n(.*?)^```$", (REPOSITORY / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
CLIENT = next(block for block in BLOCKS if "asyncio.run(" in block)
#: One program in pieces.
SERVER = "\n".join(block for block in BLOCKS if block is not CLIENT)

URL = "http://127.0.0.1:8888/"


def cook(messages: Sequence[Message], options: ChatOptions) -> Any:
    if messages[-1].role == "tool":
        return "Done."
    return [scripted_call("update_recipe", {"recipe": {"title": "Carbonara"}})]


def test_it_is_strictly_typed(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER, "utf-8")
    (tmp_path / "client.py").write_text(CLIENT, "utf-8")
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = true\n")
    arguments = ["-m", "mypy", "--cache-dir", str(REPOSITORY / ".mypy_cache" / "readme"), "server.py", "client.py"]
    checked = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_client_talks_to_the_server(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("accord.openai.OpenAIChatCompletionClient", lambda name: ScriptedChatClient(cook))
    server: dict[str, Any] = {"__name__": "server"}
    exec(compile(SERVER, "README.md", "exec"), server)
    assert URL in CLIENT
    with serve_in_thread(server["app"]) as url:
        exec(compile(CLIENT.replace(URL, f"{url}/"), "README.md", "exec"), {"__name__": "client"})
        shown = capsys.readouterr().out
        assert "STATE_DELTA\n" in shown
        assert "{'recipe': {'title': 'Carbonara'}} AssistantMessage(" in shown
        run_input = {"threadId": "t", "runId": "r", "messages": []}
        headers = {"Accept": "text/event-stream"}
        assert '"path":"/greeted","value":true' in httpx.post(f"{url}/greeting", json=run_input, headers=headers).text
        assert httpx.post(f"{url}/mine", json=run_input, headers=headers).status_code == 403
