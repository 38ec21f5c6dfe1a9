"""An ASGI application under uvicorn on a free port of 127.0.0.1, with the driver's JSON lines beside it.

Once it listens it says its port. To every line it answers with its resident memory and the processor time it has used;
when standard input ends, it stops.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn

# As the ASGI specification has it; uvicorn's and Starlette's own types for it do not agree with each other.
ASGIApplication = Callable[..., Any]


def serve_application(app: ASGIApplication, *, http: str) -> None:
    """Serves until the driver is done. `http` is uvicorn's: `h11` with asyncio's loop, or `httptools` with uvloop."""
    loop = "uvloop" if http == "httptools" else "asyncio"
    config = uvicorn.Config(
        app,
        http=http,
        loop=loop,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        backlog=4_096,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0), backlog=4_096)

    def answer() -> None:
        _say({"ready": True, "port": listener.getsockname()[1]})
        for line in sys.stdin:
            if json.loads(line) == "collect":
                gc.collect()
            _say({"memory": _resident_bytes(), "cpu": _cpu_seconds()})
        server.should_exit = True

    threading.Thread(target=answer, daemon=True).start()
    server.run(sockets=[listener])
    os._exit(0)  # whatever a framework still has running


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _say(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()
