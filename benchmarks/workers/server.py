"""Our endpoint with one producer behind it that says a text as fast as it can be made."""

from __future__ import annotations

import json
import sys

from accord.hosting import AGUIEndpoint
from accord.producer import Run
from benchmarks.material import prose_deltas
from benchmarks.workers.serving import serve_application

if __name__ == "__main__":
    parameters = json.loads(sys.argv[2])
    deltas = prose_deltas(parameters["deltas"])

    async def producer(run: Run) -> None:
        """Emits the text, and waits where the reader is slow."""
        with run.text() as message:
            for delta in deltas:
                message.write(delta)
                await run.drain()

    serve_application(AGUIEndpoint(producer), http=parameters["http"])
