"""The official SDK behind Starlette, as its documentation shows it: a stream of what its encoder makes."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import AsyncIterator

from ag_ui.core import (
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)
from ag_ui.encoder import EventEncoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from benchmarks.material import prose_deltas
from benchmarks.workers.serving import serve_application

if __name__ == "__main__":
    parameters = json.loads(sys.argv[2])
    deltas = prose_deltas(parameters["deltas"])

    async def endpoint(request: Request) -> StreamingResponse:
        """Answers with the text."""
        run_input = RunAgentInput.model_validate_json(await request.body())
        encoder = EventEncoder(accept=request.headers.get("accept", ""))
        run = {"thread_id": run_input.thread_id, "run_id": run_input.run_id}
        message_id = str(uuid.uuid4())

        async def stream() -> AsyncIterator[str]:
            yield encoder.encode(RunStartedEvent(**run))
            yield encoder.encode(TextMessageStartEvent(message_id=message_id, role="assistant"))
            for delta in deltas:
                yield encoder.encode(TextMessageContentEvent(message_id=message_id, delta=delta))
            yield encoder.encode(TextMessageEndEvent(message_id=message_id))
            yield encoder.encode(RunFinishedEvent(**run))

        return StreamingResponse(stream(), media_type=encoder.get_content_type())

    serve_application(Starlette(routes=[Route("/", endpoint, methods=["POST"])]), http=parameters["http"])
