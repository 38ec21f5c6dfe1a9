"""Reaching a producer over HTTP, in process or in a recording: the asyncio shell around `accord.consumer`."""

from accord.client.client import AGUIClient, Said
from accord.client.frontend_tools import Consent, FrontendCall, FrontendTool, ToolLike
from accord.client.http import Auth, HTTPTransport
from accord.client.inprocess import InProcessTransport
from accord.client.interrupts import Cancelled, resume_entries
from accord.client.replay import ReplayTransport
from accord.client.run import ClientRun, RunOutcome
from accord.client.stream import Wire
from accord.client.transport import Response, Transport

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
