"""A run on the screen as it happens: a line for what begins and ends, text as it streams, the state while it fills in.

On a terminal the changing state is a live outline under the lines, gone when something else is to be said; elsewhere
each change is a line. Nothing that a peer sends is markup or a control sequence here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

from accord.cli.describe import content_text
from accord.cli.outline import Line, outline
from accord.cli.visible import VisibleStream, one_line
from accord.consumer import Conversation
from accord.protocol import (
    JSON,
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    CustomEvent,
    Event,
    MessagesSnapshotEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

_REFRESHES: Final = 12  # of the live outline, a second
_MAX_LINES: Final = 2_000  # of an outline that are looked at for what fits the screen
_RESULT_CELLS: Final = 500
_RULE_CELLS: Final = 60
_STATE_UPDATED: Final = "[State Updated]"
#: Tells front ends which tool predicts what; nothing happens with it.
_PREDICT_STATE: Final = "PredictState"


class Transcript:
    """Shows the events of `conversation`, each when it has been applied there."""

    def __init__(self, console: Console, conversation: Conversation) -> None:
        self._console = console
        self._redraws = console.is_terminal and not console.is_dumb_terminal
        self._conversation = conversation
        conversation.subscribe(on_state=self._take_state)
        self._applied = False  # the event to be shown next has changed the state
        self._live: _LiveState | None = None
        self._speaker: str | None = None  # the id of the message whose text is in the line being written
        self._text = VisibleStream()
        self._column = 0
        self._changed = False
        self._shows: dict[type, Callable[[Any], None]] = {
            RunStartedEvent: lambda _: self.note("Run Started"),
            RunFinishedEvent: self._run_finished,
            StepStartedEvent: lambda event: self.note("Step Started", event.step_name),
            StepFinishedEvent: lambda event: self.note("Step Finished", event.step_name),
            TextMessageStartEvent: self._text_started,
            TextMessageContentEvent: self._text_goes_on,
            TextMessageEndEvent: self._text_ended,
            ReasoningMessageStartEvent: self._text_started,
            ReasoningMessageContentEvent: self._text_goes_on,
            ReasoningMessageEndEvent: self._text_ended,
            ToolCallStartEvent: lambda event: self.note("Calling Tool", event.tool_call_name),
            ToolCallResultEvent: lambda event: self.note("Tool Result", content_text(event.content)),
            StateSnapshotEvent: self._state_event,
            StateDeltaEvent: self._state_event,
            MessagesSnapshotEvent: lambda _: self.note("Messages Updated"),
            ActivitySnapshotEvent: lambda event: self.note("Activity", event.activity_type),
            ActivityDeltaEvent: lambda event: self.note("Activity Updated", event.activity_type),
            SubagentStartedEvent: lambda event: self.note("Subagent Started", event.name),
            SubagentFinishedEvent: lambda _: self.note("Subagent Finished"),
            SubagentErrorEvent: lambda event: self.note("Subagent Error", event.message),
            CustomEvent: self._custom,
        }

    def show(self, event: Event) -> None:
        """Shows one event; one without a look of its own is passed over."""
        shows = self._shows.get(type(event))
        if shows is not None:
            shows(event)

    def note(self, what: str, about: str = "", *, style: str = "cyan") -> None:
        """A line in brackets: `[Calling Tool: update_recipe]`."""
        self.settle()
        self.line(f"[{what}: {one_line(about, _RESULT_CELLS)}]" if about else f"[{what}]", style)

    def line(self, text: str, style: str = "") -> None:
        """A line that is safe to print."""
        self._console.print(Text(text, style), soft_wrap=True)

    def settle(self) -> None:
        """Ends what is still moving: the live outline, a line of text."""
        if self._live is not None:
            updates = self._live.stop()
            self._live = None
            self.line(_STATE_UPDATED if updates == 1 else f"{_STATE_UPDATED} ×{updates}", "cyan")
        if self._speaker is not None:
            self._write(self._text.end())
            self._speaker = None
        if self._column:
            self._console.print()
            self._column = 0

    def show_state(self) -> None:
        """The whole state, between rules."""
        self.settle()
        self._changed = False
        rule = "=" * min(_RULE_CELLS, self._console.width)
        for line in (rule, "CURRENT STATE", rule, ""):
            self.line(line)
        for each in outline(self._conversation.state):
            if self._redraws:
                self._console.print(Padding(_styled(each), (0, 0, 0, 2 * each.depth), expand=False))
            else:
                self.line(str(each))
        for line in ("", rule):
            self.line(line)

    @property
    def state_changed(self) -> bool:
        """Whether the state has changed since it was last shown whole."""
        return self._changed

    # Kinds of event

    def _run_finished(self, event: RunFinishedEvent) -> None:
        if isinstance(event.outcome, RunFinishedInterruptOutcome):
            self.note("Run Interrupted")
        elif isinstance(event.outcome, RunFinishedCancelledOutcome):
            self.note("Run Cancelled")
        else:
            self.note("Run Finished")

    def _text_started(self, event: TextMessageStartEvent | ReasoningMessageStartEvent) -> None:
        self.settle()
        if isinstance(event, ReasoningMessageStartEvent):
            self.note("Thinking", style="dim")
        elif event.role and event.role != "assistant":
            self.note("Message", event.role)

    def _text_goes_on(self, event: TextMessageContentEvent | ReasoningMessageContentEvent) -> None:
        if self._speaker != event.message_id:
            self.settle()
            self._speaker = event.message_id
        self._write(self._text.feed(event.delta), "dim" if isinstance(event, ReasoningMessageContentEvent) else "")

    def _text_ended(self, event: TextMessageEndEvent | ReasoningMessageEndEvent) -> None:
        if self._speaker == event.message_id:
            self.settle()

    def _take_state(self, _: JSON) -> None:
        self._applied = True

    def _state_event(self, event: StateSnapshotEvent | StateDeltaEvent) -> None:
        if not self._applied:  # a patch that was skipped, with a warning
            return
        self._applied = False
        self._changed = True
        if not self._redraws:
            self.settle()
            self.line(_STATE_UPDATED)
            return
        if self._live is None:
            self.settle()
            self._live = _LiveState(self._console)
        self._live.update(self._conversation.state)

    def _custom(self, event: CustomEvent) -> None:
        if event.name != _PREDICT_STATE:
            self.note("Custom", event.name)

    def _write(self, text: str, style: str = "") -> None:
        if text:
            self._console.print(Text(text, style), end="", soft_wrap=True)
            self._column = len(text) - text.rfind("\n") - 1 + (self._column if "\n" not in text else 0)


class _LiveState:
    """The state in as many lines as the screen has left, redrawn a few times a second while it changes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._value: JSON = None
        self._updates = 0
        self._live = Live(
            console=console,
            get_renderable=self._draw,
            refresh_per_second=_REFRESHES,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def update(self, value: JSON) -> None:
        """Takes the state as it is now; the value is not changed afterwards."""
        self._value = value
        self._updates += 1
        if self._updates == 1:
            self._live.start(refresh=True)

    def stop(self) -> int:
        """Takes the outline off the screen; returns how often the state has changed."""
        self._live.stop()
        return self._updates

    def _draw(self) -> Group:
        # Called by the thread that redraws: only values that nobody changes are read here.
        head = Text(f"{_STATE_UPDATED} ×{self._updates}", "cyan", no_wrap=True, overflow="ellipsis")
        room = max(self._console.height - 2, 3)
        return Group(head, *(_drawn(line) for line in self._lines(room)))

    def _lines(self, room: int) -> Iterator[Line]:
        """What grows is at the end, so of more lines than fit the last are shown."""
        lines = iter(islice(outline(self._value), _MAX_LINES))
        first = list(islice(lines, room))
        rest = deque(lines, maxlen=room - 1)
        if not rest:
            yield from first
            return
        yield Line(0, "…", "")
        yield from [*first, *rest][1 - room :]


def _drawn(line: Line) -> Text:
    """A line of the live outline, which must not wrap: the lines are counted."""
    text = Text("  " * line.depth, no_wrap=True, overflow="ellipsis")
    return text.append(_styled(line))


def _styled(line: Line) -> Text:
    text = Text(line.label, "bold", end="")
    return text.append(f" {line.value}" if line.label and line.value else line.value, "not bold")
