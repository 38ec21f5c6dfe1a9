"""The floor of a server: bytes that are there already, in batches as large as ours."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.workers.serving import serve_application

if __name__ == "__main__":
    parameters = json.loads(sys.argv[2])
    whole = Path(parameters["stream"]).read_bytes()
    size = parameters["batch"]
    batches = [whole[start : start + size] for start in range(0, len(whole), size)]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        """Answers anything with the batches."""
        while (await receive()).get("more_body"):
            pass
        headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for batch in batches:
            await send({"type": "http.response.body", "body": batch, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    serve_application(app, http=parameters["http"])
