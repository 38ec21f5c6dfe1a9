"""Reaching a producer over HTTP, in process or in a recording: the asyncio shell around `accord.consumer`.

HTTP is loaded when there is a URL to reach, and what reads signatures when a function is offered as a tool.
"""

from typing import TYPE_CHECKING

from accord import _on_demand
from accord.client.client import AGUIClient, Said
from accord.client.frontend_tools import Consent, FrontendCall, FrontendTool, ToolLike
from accord.client.inprocess import InProcessTransport
from accord.client.interrupts import Cancelled, resume_entries
from accord.client.replay import ReplayTransport
from accord.client.run import ClientRun, RunOutcome
from accord.client.stream import Wire
from accord.client.transport import Response, Transport

if TYPE_CHECKING:
    from accord.client.http import Auth, HTTPTransport
else:
    __getattr__, __dir__ = _on_demand(globals(), {"Auth": "accord.client.http", "HTTPTransport": "accord.client.http"})

__all__ = [
    "AGUIClient",
    "Auth",
    "Cancelled",
    "ClientRun",
    "Consent",
    "FrontendCall",
    "FrontendTool",
    "HTTPTransport",
    "InProcessTransport",
    "ReplayTransport",
    "Response",
    "RunOutcome",
    "Said",
    "ToolLike",
    "Transport",
    "Wire",
    "resume_entries",
]
