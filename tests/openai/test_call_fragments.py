from __future__ import annotations

import itertools
import json
from dataclasses import asdict, dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.agents import AgentResponse, AgentResponseUpdate, FunctionCallContent
from accord.openai.call_fragments import CallFragments


@dataclass(frozen=True)
class Raw:
    """A fragment as a server sends it."""

    index: int | None
    call_id: str | None
    name: str | None
    arguments: str | None


def read(*raw: Raw) -> list[FunctionCallContent]:
    ids = itertools.count(1)
    reader = CallFragments(new_id=lambda: f"new{next(ids)}")
    passed_on = [fragment for item in raw if (fragment := reader.add(**asdict(item))) is not None]
    return passed_on + reader.finish()


def calls(*raw: Raw) -> list[tuple[str, str, str]]:
    response = AgentResponse.from_updates([AgentResponseUpdate(read(*raw))])
    found = response.messages[0].function_calls if response.messages else []
    return [(call.call_id, call.name, call.arguments) for call in found]


A, B = ("A", "f", '{"a": 1}'), ("B", "g", '{"b": 2}')

SHAPES = {
    "interleaved by index": (
        [
            Raw(0, "A", "f", ""),
            Raw(1, "B", "g", ""),
            Raw(0, None, None, '{"a"'),
            Raw(1, None, None, '{"b": 2}'),
            Raw(0, None, None, ": 1}"),
        ],
        [A, B],
    ),
    "index missing, told apart by id": (
        [
            Raw(None, "A", "f", ""),
            Raw(None, "B", "g", ""),
            Raw(None, "A", None, '{"a": 1}'),
            Raw(None, "B", None, '{"b": 2}'),
        ],
        [A, B],
    ),
    "index missing, one after the other": (
        [
            Raw(None, "A", "f", ""),
            Raw(None, None, None, '{"a": 1}'),
            Raw(None, "B", "g", '{"b"'),
            Raw(None, None, None, ": 2}"),
        ],
        [A, B],
    ),
    "all of A, then all of B, with no end between": (
        [Raw(0, "A", "f", '{"a"'), Raw(0, None, None, ": 1}"), Raw(1, "B", "g", '{"b"'), Raw(1, None, None, ": 2}")],
        [A, B],
    ),
    "one index for all": (
        [Raw(0, "A", "f", ""), Raw(0, None, None, '{"a": 1}'), Raw(0, "B", "g", ""), Raw(0, None, None, '{"b": 2}')],
        [A, B],
    ),
    "whole calls": ([Raw(0, "A", "f", '{"a": 1}'), Raw(1, "B", "g", '{"b": 2}')], [A, B]),
    "whole calls of one tool, without index": (
        [Raw(None, "A", "f", '{"a": 1}'), Raw(None, "B", "f", '{"b": 2}')],
        [A, ("B", "f", '{"b": 2}')],
    ),
    "id repeated on each fragment": (
        [Raw(0, "A", "f", '{"a"'), Raw(1, "B", "g", '{"b"'), Raw(0, "A", None, ": 1}"), Raw(1, "B", None, ": 2}")],
        [A, B],
    ),
    "id and name repeated on each fragment": (
        [Raw(0, "A", "f", '{"a"'), Raw(0, "A", "f", ": 1}"), Raw(0, "A", "f", ""), Raw(1, "B", "g", '{"b": 2}')],
        [A, B],
    ),
    "one id, the index changing": (
        [Raw(0, "A", "f", '{"a"'), Raw(1, "A", None, ": 1"), Raw(2, "A", "f", "}")],
        [A],
    ),
    "the id changing, one index": (
        [Raw(0, "A", "f", '{"a"'), Raw(0, "x", None, ": 1"), Raw(0, "y", None, "}"), Raw(1, "B", "g", '{"b": 2}')],
        [A, B],
    ),
    "two calls given one id": (
        [Raw(0, "A", "f", '{"a": 1}'), Raw(1, "A", "g", '{"b": 2}')],
        [A, ("new1", "g", '{"b": 2}')],
    ),
    "two calls of one tool given one id": (
        [Raw(0, "A", "f", '{"a": 1}'), Raw(1, "A", "f", ""), Raw(1, None, None, '{"b": 2}')],
        [A, ("new1", "f", '{"b": 2}')],
    ),
    "no ids, by index": (
        [Raw(0, None, "f", ""), Raw(1, None, "g", ""), Raw(1, None, None, '{"b": 2}'), Raw(0, None, None, '{"a": 1}')],
        [("new1", "f", '{"a": 1}'), ("new2", "g", '{"b": 2}')],
    ),
    "neither ids nor indices": (
        [Raw(None, None, "f", '{"a"'), Raw(None, None, None, ": 1}"), Raw(None, None, "g", '{"b": 2}')],
        [("new1", "f", '{"a": 1}'), ("new2", "g", '{"b": 2}')],
    ),
    "neither ids nor indices, one tool": (
        [
            Raw(None, None, "f", ""),
            Raw(None, None, None, '{"a": 1}'),
            Raw(None, None, "f", ""),
            Raw(None, None, None, "{}"),
        ],
        [("new1", "f", '{"a": 1}'), ("new2", "f", "{}")],
    ),
    "no ids, one index, whole calls of one tool": (
        [Raw(0, None, "f", '{"a": 1}'), Raw(0, None, "f", '{"b": 2}')],
        [("new1", "f", '{"a": 1}'), ("new2", "f", '{"b": 2}')],
    ),
    "no ids, the name repeated": (
        [Raw(0, None, "f", '{"a"'), Raw(0, None, "f", ": 1}")],
        [("new1", "f", '{"a": 1}')],
    ),
    "calls without arguments": (
        [Raw(0, "A", "f", None), Raw(1, "B", "g", "")],
        [("A", "f", ""), ("B", "g", "")],
    ),
    "calls without arguments or ids": (
        [Raw(None, None, "f", None), Raw(None, None, "g", "")],
        [("new1", "f", ""), ("new2", "g", "")],
    ),
    "empty fragments at the end": (
        [Raw(0, "A", "f", '{"a": 1}'), Raw(0, None, "f", ""), Raw(0, "A", "f", ""), Raw(0, "", "", "")],
        [A],
    ),
    "the id comes late": (
        [Raw(0, None, "f", '{"a"'), Raw(0, "A", None, ": 1"), Raw(0, "A", None, "}")],
        [("new1", "f", '{"a": 1}')],
    ),
    "the name comes late": (
        [Raw(0, "A", None, '{"a"'), Raw(0, None, "f", ": 1}")],
        [A],
    ),
    "the index comes late": (
        [Raw(None, "A", "f", '{"a"'), Raw(0, None, None, ": 1}")],
        [A],
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_the_calls_that_were_meant(shape: str) -> None:
    raw, expected = SHAPES[shape]
    assert calls(*raw) == expected


@pytest.mark.parametrize("shape", SHAPES)
def test_the_first_fragment_of_a_call_names_it_and_no_other_does(shape: str) -> None:
    seen: set[str] = set()
    for fragment in read(*SHAPES[shape][0]):
        assert bool(fragment.name) is (fragment.call_id not in seen)
        seen.add(fragment.call_id)


def test_fragments_pass_at_once_when_their_name_is_known() -> None:
    reader = CallFragments()
    assert reader.add(index=0, call_id="A", name=None, arguments='{"') is None
    assert reader.add(index=0, call_id=None, name="f", arguments="a") == FunctionCallContent("A", "f", '{"a')
    assert reader.add(index=0, call_id=None, name=None, arguments='":') == FunctionCallContent("A", "", '":')


def test_a_call_that_never_gets_a_name_is_not_lost() -> None:
    assert read(Raw(0, "A", None, "{}")) == [FunctionCallContent("A", "", "{}")]


def test_characters_cut_in_two_are_joined_call_by_call() -> None:
    assert calls(
        Raw(0, "A", "f", '"\ud83d'),
        Raw(1, "B", "g", '"\ud83d'),
        Raw(0, None, None, '\ude00"'),
        Raw(1, None, None, '\ude01"'),
    ) == [("A", "f", '"😀"'), ("B", "g", '"😁"')]


ARGUMENTS = st.dictionaries(
    st.text(max_size=3),
    st.recursive(st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=2), max_leaves=3),
    max_size=3,
).map(json.dumps)


@given(st.lists(st.tuples(st.sampled_from("fgh"), ARGUMENTS), min_size=1, max_size=4), st.data())
def test_any_fragmentation_gives_the_same_calls(wanted: list[tuple[str, str]], data: st.DataObject) -> None:
    with_id = data.draw(st.sampled_from(["first", "always", "never"]), "ids")
    with_index = data.draw(st.sampled_from(["always", "never", "same"]), "indices")
    with_name = data.draw(st.sampled_from(["first", "always"]), "names")
    # Calls can only take turns where each fragment says whose it is.
    told_apart = with_id == "always" or with_index == "always"
    interleaved = told_apart and data.draw(st.booleans(), "interleaved")

    queues: list[list[Raw]] = []
    for number, (name, arguments) in enumerate(wanted):
        places = sorted(data.draw(st.lists(st.integers(1, len(arguments)), max_size=4)))
        pieces = [arguments[a:b] for a, b in zip([0, *places], [*places, len(arguments)], strict=True)]
        index = {"always": number, "never": None, "same": 0}[with_index]
        queues.append(
            [
                Raw(
                    index,
                    f"id{number}" if with_id == "always" or (with_id == "first" and place == 0) else None,
                    name if with_name == "always" or place == 0 else None,
                    piece,
                )
                for place, piece in enumerate(pieces)
                # An empty fragment after a whole object that names a tool can only be another call's.
                if piece or place == 0
            ]
        )
    if interleaved:
        raw = [queue.pop(0) for queue in queues]
        turns = data.draw(st.permutations([number for number, queue in enumerate(queues) for _ in queue]))
        raw += [queues[number].pop(0) for number in turns]
    else:
        raw = [item for queue in queues for item in queue]

    found = calls(*raw)
    assert [(name, arguments) for _, name, arguments in found] == wanted
    if with_id != "never":
        assert [call_id for call_id, _, _ in found] == [f"id{number}" for number in range(len(wanted))]
    assert len({call_id for call_id, _, _ in found}) == len(found)


def test_the_cost_is_linear_in_the_text() -> None:
    # Each character of a call's arguments is looked at once, however many fragments there are.
    class Counting(str):
        looked_at = 0

        def __iter__(self) -> Any:
            Counting.looked_at += len(self)
            return super().__iter__()

    reader = CallFragments()
    for number in range(5000):
        reader.add(index=0, call_id="A", name="f", arguments=Counting('{"a":' if number == 0 else " "))
    assert Counting.looked_at == 5 + 4999
