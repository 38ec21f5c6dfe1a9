"""What every side of a comparison is given: the same bytes, made once, the same on every machine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

MESSAGE_ID = "5b0c4f0e-6d3c-4b7e-9a53-0a9be4c4c1d7"
THREAD_ID = "c1a7f3a2-94b1-4f19-8f1e-2d1c7a9d6e55"
RUN_ID = "0f8e2a64-1c57-4f0d-b6e3-7a1d9c3b5e21"

_SENTENCE = (
    "the onions until they are soft add garlic and stir for a minute then pour in stock bring it to a gentle boil "
    "season with salt pepper thyme serve warm with bread “crusty” if you can café style about 20 min. "
)


class Material:
    """A folder of files that workers read."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    def file(self, name: str, content: bytes) -> str:
        """Writes a file and returns its path."""
        path = self._folder / name
        path.write_bytes(content)
        return str(path)

    def json(self, name: str, value: Any) -> str:
        """Writes a JSON file and returns its path."""
        return self.file(name, compact(value))

    def stream(self, name: str, events: Iterable[dict[str, Any]]) -> str:
        """Writes an event stream of one run around `events` and returns its path."""
        run = {"threadId": THREAD_ID, "runId": RUN_ID}
        whole = [{"type": "RUN_STARTED", **run}, *events, {"type": "RUN_FINISHED", **run}]
        return self.file(name, b"".join(b"data: " + compact(event) + b"\n\n" for event in whole))


def compact(value: Any) -> bytes:
    """JSON without spaces, in UTF-8."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def words() -> Iterator[str]:
    """Pieces of text as models stream them, a word and a space each, without end."""
    while True:
        yield from re.findall(r"\S+ ", _SENTENCE)


def prose_deltas(count: int) -> list[str]:
    """A text in so many pieces."""
    return list(islice(words(), count))


def prose(characters: int) -> str:
    """So many characters of text."""
    return (_SENTENCE * (characters // len(_SENTENCE) + 1))[:characters]


def text_deltas(count: int) -> Iterator[dict[str, Any]]:
    """A text message in `count` deltas."""
    yield {"type": "TEXT_MESSAGE_START", "messageId": MESSAGE_ID, "role": "assistant"}
    for delta in prose_deltas(count):
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": MESSAGE_ID, "delta": delta}
    yield {"type": "TEXT_MESSAGE_END", "messageId": MESSAGE_ID}


def shopping_list(items: int) -> dict[str, Any]:
    """A state of about 145 bytes an item."""
    return {
        "title": "Shopping",
        "items": [
            {
                "id": f"item-{number}",
                "name": f"Ingredient {number}",
                "quantity": number % 12,
                "unit": "g",
                "done": number % 3 == 0,
                "tags": ["kitchen", "weekly"],
                "note": prose(24),
            }
            for number in range(items)
        ],
        "totals": {"open": items, "done": 0},
    }


def settings_sheet(members: int) -> dict[str, Any]:
    """A state with many members, about 58 bytes each."""
    return {
        f"setting-{number:04}": {"value": number, "label": f"Setting number {number:04}"} for number in range(members)
    }


def settings_patches(count: int, members: int) -> list[list[dict[str, Any]]]:
    """`count` patches of two operations each on a settings sheet of so many members."""
    return [
        [
            {"op": "replace", "path": f"/setting-{member % members:04}/value", "value": number}
            for member in (number * 37, number * 53 + 1)
        ]
        for number in range(count)
    ]


def to_do_list(items: int) -> dict[str, Any]:
    """A state of small items, about 60 bytes each."""
    return {
        "items": [
            {"id": number, "title": f"Task {number}", "quantity": number % 12, "done": number % 3 == 0}
            for number in range(items)
        ]
    }


def shopping_patches(count: int, items: int) -> list[list[dict[str, Any]]]:
    """`count` patches of two operations each on a shopping list of so many items."""
    return [
        [
            {"op": "replace", "path": f"/items/{number * 37 % items}/quantity", "value": number},
            {"op": "replace", "path": "/totals/open", "value": number},
        ]
        for number in range(count)
    ]


def run_input(*, messages: int = 0, message_size: int = 0, state: Any = None) -> dict[str, Any]:
    """A run input with a history of so many messages of so many characters."""
    return {
        "threadId": THREAD_ID,
        "runId": RUN_ID,
        "state": {} if state is None else state,
        "messages": [
            {
                "id": f"message-{number}",
                "role": "assistant" if number % 2 else "user",
                "content": prose(message_size),
            }
            for number in range(messages)
        ],
        "tools": [],
        "context": [],
        "forwardedProps": {},
    }


def recipe(size: int) -> dict[str, Any]:
    """A recipe of about `size` bytes of JSON, with what arguments of tools hold: objects, lists, text, numbers."""
    steps: list[dict[str, Any]] = []
    made = {"title": "Café “Carbonara”", "servings": 4, "vegetarian": False, "rating": 4.75, "steps": steps}
    left = size - len(compact(made))
    while left > 0:
        number = len(steps)
        step = {
            "number": number,
            "text": prose(90 + number % 40) + ("\n\t“stir” \\" if number % 5 == 0 else ""),
            "minutes": number % 15,
            "tools": ["pan", "spoon"] if number % 2 else [],
        }
        steps.append(step)
        left -= len(compact(step)) + 1
    return made
