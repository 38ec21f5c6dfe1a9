"""Growing JSON text as patch operations: what has arrived is on screen before the rest is written.

The operations of all feeds, applied in order, end in the document. Each stands at its real path, `add` comes before
any `replace` of a place, and a text only grows. What is due when is `pacing`'s decision, so that all deltas together
stay within a small multiple of the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import NoReturn, TypeAlias

from accord.errors import AccordError
from accord.protocol import JSON, JSONObject
from accord.protocol.conform import escape_token
from accord.state.json_reader import MAX_DEPTH, MAX_KEY_LENGTH, MAX_LENGTH, MAX_NUMBER_LENGTH, Frame, JSONReader
from accord.state.pacing import OPERATION_COST, Due, Pace
from accord.state.pointer import REFUSED_NAMES, is_refused_below, parse_pointer

Pointers: TypeAlias = tuple[str, ...]

_WORTH = 256
"""Bytes that sending a whole container again has to save: paths of their own tell a reader more."""

WHOLE = "*"
"""In `select`: the document itself, not one of its members."""


class PartialJSON:
    """Turns the growing text of one JSON document into RFC 6902 operations.

    The document appears at `base_path`; or, with `select`, members of the outermost object appear each at its own
    path or paths: `PartialJSON(select={"recipe": "/recipe", "note": ["/note", "/log/last"], "*": "/arguments"})`,
    where `"*"` is the whole document. Members not selected are read, not sent. The first operation at a path is an
    `add`, which is right whether or not the target has that member already; a base path must not end in an array.

    `max_delay` is in the unit of the `now` that callers pass (seconds); without `now` no time passes. `min_growth` is
    the least number of characters by which an open text grows before it is sent again ahead of that delay: below
    eight times as many, an eighth would be many small sendings.

    JSON permits a lone surrogate in a string, which no encoder could send on: it becomes U+FFFD. Of members with one
    name the last stands. An integer is an `int`, a number with a fraction or exponent a `float`; one beyond any
    double is malformed.

    A container or text whose JSON Pointer has more than `max_pointer_length` characters is not shown while it grows,
    only when it ends: its path would be most of every delta. A member whose pointer peers refuse (`__proto__`) is sent
    when it has ended, with the whole object that it is a member of.
    """

    def __init__(
        self,
        base_path: str = "",
        *,
        select: Mapping[str, str | Sequence[str]] | None = None,
        max_delay: float = 0.25,
        min_growth: int = 512,
        max_pointer_length: int = 1_024,
        max_length: int = MAX_LENGTH,
        max_depth: int = MAX_DEPTH,
        max_number_length: int = MAX_NUMBER_LENGTH,
        max_key_length: int = MAX_KEY_LENGTH,
    ) -> None:
        whole, self._members = _targets(base_path, select)
        self._reader = JSONReader(
            watch_root=self._members is not None,
            max_length=max_length,
            max_depth=max_depth,
            max_number_length=max_number_length,
            max_key_length=max_key_length,
        )
        self._pace = Pace(max_delay=max_delay, min_growth=min_growth)
        self._max_pointer_length = max_pointer_length
        self._failure: AccordError | None = None

        self._held: list[str] = []
        self._received = 0
        self._wake_at: float = 0
        self._due_at = -inf
        self._depth = 0
        self._closings = 0

        # What is on the wire: the document, and the containers that are open there, outermost first.
        self._levels = [_Level(None, whole)]
        self._sent_text: int | None = None
        self._text_ended = False

    @property
    def complete(self) -> bool:
        """Whether the document has ended. (A number that is the whole document ends only with `close`.)"""
        return self._reader.complete

    @property
    def value(self) -> JSON:
        """The document as far as it has been read, selected or not: values that have ended, and open texts.

        `None` before the first value. The value handed out does not change later; what has ended is shared with it,
        so treat it as read-only.
        """
        self._read_held()
        stack = self._reader.stack
        text = self._reader.text if self._reader.in_text else None
        if stack:
            return _snapshot(stack, text)
        return self._reader.root if text is None else text

    def feed(self, text: str, now: float | None = None) -> list[JSONObject]:
        """Take the next piece of the text (`""` just lets time pass) and return the operations that are due.

        Raises `MalformedJSON` with the offset of the first character that is not JSON, at the latest when the
        operations around it are due, and `LimitExceeded`; after that the object is of no use.
        """
        self._held.append(text)
        received = self._received = self._received + len(text)
        waiting = received < self._wake_at and (now is None or now < self._due_at)
        if waiting:
            # Nothing can be due, unless the text on the wire or the document ends in this piece.
            if self._sent_text is not None:
                if '"' not in text:
                    return []
            else:
                if "}" in text or "]" in text:
                    self._closings += text.count("}") + text.count("]")
                if self._closings < self._depth:
                    return []
        self._read_held()
        if waiting and self._sent_text is not None:
            return []  # a quote inside the text
        return self._send_due(now)

    def close(self) -> list[JSONObject]:
        """The text has ended: the operations that are left; `IncompleteJSON` when the document has not ended."""
        self._read_held()
        try:
            self._reader.close()
        except AccordError as failure:
            self._fail(failure)
        self._settle()
        return self._send([], with_text=False)

    def _read_held(self) -> None:
        if self._failure is not None:
            raise self._failure
        if not self._held:
            return
        text = "".join(self._held)
        self._held.clear()
        try:
            self._reader.feed(text)
        except AccordError as failure:
            self._fail(failure)
        self._settle()

    def _fail(self, failure: AccordError) -> NoReturn:
        self._failure = failure
        self._wake_at = 0
        raise failure

    def _settle(self) -> None:
        """Put what has ended since the last time where it waits to be sent."""
        levels = self._levels
        root = self._reader.root_frame
        if self._members is not None and root is not None:
            if root.watched:
                # With members selected, whoever reads the whole has the object around them from its opening on.
                levels[0].put("add", levels[0].pointers, {}, 2)
                levels.append(_Level(root, levels[0].pointers, self._members))
            self._members = None
        for place, value, length, replaces, watched in self._reader.ended:
            level = levels[-1]
            if watched:
                levels.pop()
                levels[-1].adopt(level, value, length)
                continue
            level.note(place)
            if self._sent_text is None:
                level.put("replace" if replaces else "add", level.below(place), value, length)
            else:
                # Its end costs nothing extra: a text on the wire has its own measure.
                if self._sent_text < len(value):
                    level.put("replace", level.below(place), value, 0)
                    self._text_ended = True
                self._sent_text = None
        self._reader.ended.clear()

    def _send_due(self, now: float | None) -> list[JSONObject]:
        reader = self._reader
        if reader.complete:
            return self._send([], with_text=False)
        opened = self._opened()
        text_cost: int | None = None
        sent = growth = 0
        if reader.in_text:
            pointers = self._text_pointers(opened)
            if pointers:
                sent = self._sent_text or 0
                growth = reader.text_length - sent
                text_cost = _cost(pointers, reader.text_length)
        pace = self._pace
        due = pace.decide(
            self._received,
            now,
            ended_cost=self._cost(opened),
            text_ended=self._text_ended,
            text_cost=text_cost,
            sent=sent,
            growth=growth,
        )
        self._due_at = -inf if pace.due_at is None else pace.due_at
        self._depth = len(reader.stack)
        self._closings = 0
        self._wake_at = pace.wake_at
        if due is Due.NOTHING:
            return []
        return self._send(opened, with_text=due is Due.EVERYTHING and text_cost is not None)

    def _opened(self) -> list[_Level]:
        """The open containers that are not on the wire yet and that can appear, outermost first."""
        opened: list[_Level] = []
        outer = self._levels[-1]
        for frame in self._reader.stack[len(self._levels) - 1 :]:
            pointers = outer.open_below(self._max_pointer_length)
            if not pointers:
                break
            outer = _Level(frame, pointers)
            opened.append(outer)
        return opened

    def _text_pointers(self, opened: list[_Level]) -> Pointers:
        """Where the open text appears: nowhere if a container around it cannot, and is not in `opened` for that."""
        return (opened or self._levels)[-1].open_below(self._max_pointer_length)

    def _cost(self, opened: list[_Level]) -> int:
        """Bytes of what has ended and opened; decides which containers are sent again whole because that is less."""
        reader = self._reader
        cost = 0
        if opened:
            text = reader.text_length if reader.in_text else 0
            cost = _cost(opened[0].pointers, reader.length - opened[0].start - text)
        for level in reversed(self._levels):
            cost = level.settle_cost(cost, reader.length)
        return cost

    def _send(self, opened: list[_Level], *, with_text: bool) -> list[JSONObject]:
        """The operations for all that has ended, for the containers `opened`, and for the open text if asked."""
        levels = self._levels
        self._text_ended = False
        operations: list[JSONObject] = []
        for depth, level in enumerate(levels):
            if level.whole:
                for inner in levels[depth:]:
                    inner.take()
                value = self._snapshot([*levels[depth:], *opened], with_text=with_text)
                operations += _operations("replace", level.pointers, value)
                break
            operations += level.take()
        else:
            if opened:
                op = "replace" if levels[-1].taken else "add"
                value = self._snapshot(opened, with_text=with_text)
                operations += _operations(op, opened[0].pointers, value)
            elif with_text:
                op = "replace" if levels[-1].taken or self._sent_text is not None else "add"
                operations += _operations(op, self._text_pointers([]), self._reader.text)
        for level in opened:
            level.watch()
            levels.append(level)
        if with_text:
            self._sent_text = self._reader.text_length
        return operations

    def _snapshot(self, levels: Sequence[_Level], *, with_text: bool) -> JSON:
        frames = [level.frame for level in levels if level.frame is not None]
        return _snapshot(frames, self._reader.text if with_text else None)


def _snapshot(frames: Sequence[Frame], text: str | None) -> JSON:
    """Open containers as they are now, the inner ones in the outer ones, in copies that stay as they are."""
    inner: list[JSON] = [] if text is None else [text]
    for frame in reversed(frames):
        copy: JSON = frame.container.copy()
        for value in inner:
            if isinstance(copy, dict):
                copy[frame.key] = value
            else:
                copy.append(value)
        inner = [copy]
    return inner[0]


class _Level:
    """Something open on the wire: where it appears, and what is still to be sent of what is in it.

    A container, or (`frame` is `None`) the place of the document itself. `members` says where selected members of
    the outermost object appear besides.
    """

    __slots__ = ("cost", "due_whole", "frame", "members", "pending", "pointers", "whole")

    def __init__(self, frame: Frame | None, pointers: Pointers, members: Mapping[str, Pointers] | None = None) -> None:
        self.frame = frame
        self.pointers = pointers
        self.members = members
        self.pending: list[JSONObject] = []
        self.cost = 0
        self.whole = False
        self.due_whole = False

    @property
    def start(self) -> int:
        return 0 if self.frame is None else self.frame.start

    @property
    def taken(self) -> bool:
        """Whether a member of the name of the value being read came before."""
        return self.frame is not None and self.frame.taken

    def watch(self) -> None:
        """It is on the wire: each value in it goes there on its own from here."""
        if self.frame is not None:
            self.frame.watched = True

    def open_below(self, max_pointer_length: int) -> Pointers:
        """Where the value being read can appear before it ends."""
        if self.frame is None:
            return self.pointers
        place = self.frame.place
        if isinstance(place, str) and len(place) > max_pointer_length:
            return ()
        pointers = self.below(place)
        for pointer in pointers:
            if len(pointer) > max_pointer_length:
                return ()
        return pointers

    def below(self, place: str | int) -> Pointers:
        """Where the value at `place` appears: nowhere, at one pointer or at several."""
        if self.frame is None:
            return self.pointers
        if isinstance(place, int):
            token = f"/{place}"
        elif place in REFUSED_NAMES and self._cannot_name(place):
            return () if self.members is None else self.members.get(place, ())
        else:
            token = "/" + escape_token(place)
        pointers = tuple([pointer + token for pointer in self.pointers])
        return pointers if self.members is None else pointers + self.members.get(str(place), ())

    def note(self, place: str | int) -> None:
        """The value at `place` has ended; when no pointer can name it, all of the container is to be sent."""
        if place in REFUSED_NAMES and self.frame is not None and self._cannot_name(str(place)):
            self.due_whole = True

    def _cannot_name(self, name: str) -> bool:
        return any(is_refused_below(pointer, name) for pointer in self.pointers)

    def put(self, op: str, pointers: Pointers, value: JSON, length: int) -> None:
        """`value`, whose text has `length` characters, is to be sent."""
        self.pending += _operations(op, pointers, value)
        self.cost += _cost(pointers, length)

    def take(self) -> list[JSONObject]:
        """What is to be sent, which is then no longer to be sent."""
        pending, self.pending, self.cost = self.pending, [], 0
        if self.due_whole:
            assert self.frame is not None
            pending += _operations("replace", self.pointers, self.frame.container.copy())
            self.due_whole = False
        return pending

    def adopt(self, closed: _Level, value: JSON, length: int) -> None:
        """The container `closed` has ended as `value`: what it left to send, or all of it if that is less."""
        dear = closed.cost > _cost(closed.pointers, length) + _WORTH
        if closed.members is None and (closed.due_whole or dear):
            self.put("replace", closed.pointers, value, length)
        else:
            self.pending += closed.pending
            self.cost += closed.cost
            if closed.due_whole:
                self.put("replace", closed.pointers, value, length)

    def settle_cost(self, inner_cost: int, length: int) -> int:
        """What is to be sent here and inside costs; sets `whole` when sending all of the container costs less."""
        cost = self.cost + inner_cost
        self.whole = False
        if self.due_whole:
            self.whole = self.members is None
            whole_cost = _cost(self.pointers, length - self.start)
            return whole_cost if self.whole else cost + whole_cost
        if self.frame is not None and self.members is None and cost > _WORTH + length - self.frame.start:
            whole_cost = _cost(self.pointers, length - self.frame.start)
            if cost > whole_cost + _WORTH:
                self.whole = True
                return whole_cost
        return cost


def _operations(op: str, pointers: Pointers, value: JSON) -> list[JSONObject]:
    return [{"op": op, "path": pointer, "value": value} for pointer in pointers]


def _cost(pointers: Pointers, length: int) -> int:
    return sum(map(len, pointers)) + (OPERATION_COST + length) * len(pointers)


def _targets(
    base_path: str, select: Mapping[str, str | Sequence[str]] | None
) -> tuple[Pointers, dict[str, Pointers] | None]:
    """Where the whole document appears, and where its selected members do, if any are."""
    if select is None:
        select = {WHOLE: base_path}
    elif base_path:
        raise ValueError("give base_path or select, not both")
    targets = {member: (at,) if isinstance(at, str) else tuple(at) for member, at in select.items()}
    for pointers in targets.values():
        for pointer in pointers:
            parse_pointer(pointer)
    whole = targets.pop(WHOLE, ())
    return whole, targets or None
