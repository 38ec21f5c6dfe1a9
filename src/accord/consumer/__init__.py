"""The processing model: from what a peer sent to what an application may see. Sans I/O, one file a stage."""

from accord.consumer.conversation import Conversation, MessagesView, RunRecord, RunStatus
from accord.consumer.deviation import Deviation, OnDeviation
from accord.consumer.enforcement import enforce
from accord.consumer.middleware import EventMiddleware, InputMiddleware, ToolFilter
from accord.consumer.outgoing import admit_input, check_resume, prepare_input
from accord.consumer.pipeline import Pipeline
from accord.consumer.verification import Verifier

__all__ = [
    "Conversation",
    "Deviation",
    "EventMiddleware",
    "InputMiddleware",
    "MessagesView",
    "OnDeviation",
    "Pipeline",
    "RunRecord",
    "RunStatus",
    "ToolFilter",
    "Verifier",
    "admit_input",
    "check_resume",
    "enforce",
    "prepare_input",
]
