"""When a growing value is worth sending again: soon enough to watch, and seldom enough to stay small.

Ended values are sent as soon as the text received so far has paid for them; an open text when it has grown by an
eighth; everything there is when `max_delay` has passed. The first characters do not wait at all.
"""

from __future__ import annotations

from enum import Enum, auto

# Costs are bytes of operations as they leave; texts are counted by their characters in the source.
DELTA_COST = 48
"""What carries a list of operations: the event around it and its frame."""
OPERATION_COST = 36
"""An operation without its path and value."""

_BYTES_PER_CHARACTER = 2.5
"""What each character received pays towards ended values: small members at paths of their own take about that."""
_RESERVE = 1_024
"""What has been paid at the start, and the most that is kept: a quiet stretch must not pay for a noisy one."""
_OPENING = 2_048
"""What may be spent at the start on anything, open texts included."""
_LEAST_COST = DELTA_COST + OPERATION_COST + 16
"""The smallest delta that is worth looking for."""
_BATCH = 64
"""Characters that may wait to be read together: small pieces are cheap only in company."""
_GROWTH = 8
"""An open text is sent again when it has grown by one part in so many."""


class Due(Enum):
    """What is to be sent now."""

    NOTHING = auto()
    ENDED = auto()
    EVERYTHING = auto()


class Pace:
    """Decides after each piece what is due.

    While no time passes, the deltas of ended values together cost 2.5 bytes a character and 3 KB, those of an open
    text nine times that text; what is left at the end comes on top, at most the document once more.
    """

    def __init__(self, *, max_delay: float, min_growth: int) -> None:
        self._max_delay = max_delay
        self._min_growth = min_growth
        self._paid: float = _RESERVE
        self._opening = _OPENING
        self._received = 0
        self.wake_at: float = 0
        """The number of characters received before which nothing can be due without a pause or an end."""
        self.due_at: float | None = None
        """The time from which everything is due, once a time is known."""

    def decide(
        self,
        received: int,
        now: float | None,
        *,
        ended_cost: int,
        text_ended: bool,
        text_cost: int | None,
        sent: int,
        growth: int,
    ) -> Due:
        """What is due after `received` characters in all, at the time `now`.

        `ended_cost` is what the ended values and opened containers would cost, 0 when there are none; `text_ended`
        says that the end of a text which is partly on the wire is among them. `text_cost` is what the open text would
        cost beside them, `None` when no text is open that anyone sees; of that text `sent` characters are on the wire
        and `growth` are not.
        """
        cost = ended_cost + DELTA_COST if ended_cost else 0
        self._paid = min(max(_RESERVE, cost), self._paid + _BYTES_PER_CHARACTER * (received - self._received))
        self._received = received
        due = self._judge(now, cost, text_ended, text_cost or 0, sent, growth)
        if now is not None and (self.due_at is None or due is Due.EVERYTHING or (due is Due.ENDED and not growth)):
            self.due_at = now + self._max_delay
        if due is Due.EVERYTHING:
            sent, growth = sent + growth, 0
        until_text = None if text_cost is None else self._needed(sent) - growth
        self._plan(cost if due is Due.NOTHING else 0, sent, until_text)
        return due

    def _judge(self, now: float | None, cost: int, text_ended: bool, text_cost: int, sent: int, growth: int) -> Due:
        if not cost and not growth:
            return Due.NOTHING
        late = now is not None and self.due_at is not None and now >= self.due_at
        if late or text_ended or (growth and growth >= self._needed(sent)):
            self._paid = max(-_RESERVE, self._paid - cost)
            return Due.EVERYTHING
        opening_cost = (cost or DELTA_COST) + text_cost
        if opening_cost <= self._opening:
            self._opening -= opening_cost
            return Due.EVERYTHING
        if growth:
            self._opening = 0
        if 0 < cost <= self._paid:
            self._paid -= cost
            return Due.ENDED
        return Due.NOTHING

    def _plan(self, cost: int, sent: int, until_text: int | None) -> None:
        """Set `wake_at` from what is left to send and the characters still wanted before the open text is."""
        if self._opening >= _LEAST_COST:
            self.wake_at = 0
            return
        wait = max(_BATCH, ((cost or _LEAST_COST) - self._paid) / _BYTES_PER_CHARACTER)
        if until_text is not None:
            wait = until_text if sent and not cost else min(wait, until_text)
        self.wake_at = self._received + wait

    def _needed(self, sent: int) -> int:
        return max(self._min_growth, -(-sent // _GROWTH))
