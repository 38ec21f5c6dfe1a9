"""Where agents meet the protocol: an agent as a producer, its tools' arguments as predicted state."""

from accord.agui.agent import AGUIAgent, current_run
from accord.agui.endpoint import add_agui_endpoint, as_producer
from accord.agui.shared_state import Showing

__all__ = ["AGUIAgent", "Showing", "add_agui_endpoint", "as_producer", "current_run"]
