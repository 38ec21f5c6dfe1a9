"""What can go wrong between an agent, its model and its tools, as it is told to whoever runs the agent.

What a *tool* does wrong is no error of the run: it goes to the model as an error result (see `loop`).
"""

from __future__ import annotations

from accord.errors import AccordError


class AgentSetupError(AccordError):
    """An agent put together from parts that do not fit: two tools of one name, a middleware of unknown kind, ..."""


class ToolDefinitionError(AgentSetupError):
    """A function that cannot be described to a model; the message names the tool and the parameter."""


class MessageError(AccordError):
    """Something given as a message, a role or a content that is none."""


class ToolArgumentsError(AccordError):
    """Arguments that a tool cannot take.

    `path` is the JSON Pointer of the first wrong place (`""` for the arguments as a whole); the message lists them
    all and is written for the model, which can then correct itself.
    """

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class StructuredOutputError(AccordError):
    """The model's answer does not have the format that was asked for; `path` as in `ToolArgumentsError`.

    `text` is the answer as it came.
    """

    def __init__(self, message: str, *, text: str, path: str = "") -> None:
        super().__init__(message)
        self.text = text
        self.path = path


class ChatClientError(AccordError):
    """The model could not be asked, or its answer broke off.

    The message can be shown to a user: it holds no address, no credential and nothing the server wrote. `code` is
    one word for programs (`authentication`, `rate_limited`, `invalid_request`, `connection`, `timeout`, `cut`, ...),
    `status` the HTTP status where there was one, and `detail` what the server said: for the log, not for the user.
    """

    def __init__(self, message: str, *, code: str, status: int | None = None, detail: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.detail = detail


class RunIncomplete(AccordError):
    """A whole response was asked of a run that was closed, or failed, before its end."""
