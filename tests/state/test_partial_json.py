from __future__ import annotations

import contextlib
import copy
import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from accord.errors import AccordError, LimitExceeded
from accord.state import IncompleteJSON, MalformedJSON, PartialJSON, PointerError, apply_patch, identical
from accord.state.json_reader import JSONReader
from state.values import json_values, lines_run

JSON = Any
ABSENT = object()


def cut(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


class Watcher:
    """Reads the operations as a front end would, and holds every law they keep on the way."""

    def __init__(self, start: JSON = None, *, names_repeat: bool = False) -> None:
        self.state: JSON = {} if start is None else start
        self._names_repeat = names_repeat
        self.bytes = 0
        self.deltas = 0
        self._emitted: list[tuple[Any, Any]] = []

    def see(self, operations: list[dict[str, Any]]) -> None:
        if not operations:
            return
        json.dumps(operations, ensure_ascii=False).encode()
        self._emitted.append((operations, copy.deepcopy(operations)))
        self.deltas += 1
        self.bytes += len(json.dumps({"type": "STATE_DELTA", "delta": operations}, separators=(",", ":")))
        for operation in operations:
            old = _at(self.state, operation["path"])
            if isinstance(old, str) and operation["op"] == "replace" and not self._names_repeat:
                assert operation["value"].startswith(old)
            self.state = apply_patch(self.state, [operation])

    def check(self) -> None:
        for operations, before in self._emitted:
            assert identical(operations, before)


def _at(document: JSON, pointer: str) -> JSON:
    try:
        for token in pointer.split("/")[1:]:
            token = token.replace("~1", "/").replace("~0", "~")
            document = document[int(token)] if isinstance(document, list) else document[token]
    except (KeyError, IndexError, TypeError):
        return ABSENT
    return document


def predict(text: str, size: int = 4, *, names_repeat: bool = False, **given: Any) -> Watcher:
    """What a front end makes of `text` in pieces of `size`."""
    parser, watcher = PartialJSON(**given), Watcher(names_repeat=names_repeat)
    for piece in cut(text, size):
        watcher.see(parser.feed(piece))
    # Only a number alone needs the end of the text to end; all else is there with the last character.
    complete = parser.complete
    rest = parser.close()
    assert parser.complete
    assert complete or not (parser.value is None or isinstance(parser.value, dict | list | str | bool))
    assert rest == [] or not complete
    watcher.see(rest)
    watcher.check()
    return watcher


def shown(*pieces: str, **given: Any) -> list[list[dict[str, Any]]]:
    """The operations of each piece."""
    parser = PartialJSON("/v", **given)
    return [parser.feed(piece) for piece in pieces]


def add(path: str, value: JSON) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def replace(path: str, value: JSON) -> dict[str, Any]:
    return {"op": "replace", "path": path, "value": value}


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, JSON, bool]:
    """JSON text, what it means, and whether names come twice in it. Now and then a long text or much of one kind."""
    value = draw(json_values(20))
    form = draw(st.sampled_from(["plain", "plain", "long", "many", "twice"]))
    if form == "long":
        value = {"before": value, "text": draw(st.text(st.characters(exclude_categories=["Cs"]))) * 40, "after": value}
    elif form == "many":
        value = [value] * draw(st.integers(1, 60))
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    if form == "twice":
        other = json.dumps(draw(json_values(6)))
        text = f'{{"a":{other},"b":{text},"a":{text},"b":{other},"a":{other}}}'
        value = json.loads(text)
    return text, value, form == "twice"


class TestLaws:
    @given(
        documents(),
        st.lists(st.integers(1, 40), min_size=1, max_size=8),
        st.sampled_from([1, 16, 512]),
        st.none() | st.floats(0, 0.2),
    )
    @example((r'{"t":"ab\ud83d\ude00\n"}', {"t": "ab😀\n"}, False), [1], 1, None)
    def test_applied_in_order_the_operations_end_in_the_document(
        self, document: tuple[str, JSON, bool], sizes: list[int], min_growth: int, pause: float | None
    ) -> None:
        text, value, names_repeat = document
        parser = PartialJSON("/v", min_growth=min_growth)
        watcher = Watcher({"v": "old", "kept": 1}, names_repeat=names_repeat)
        start = turn = 0
        read: list[tuple[JSON, JSON]] = []
        while start < len(text):
            size = sizes[turn % len(sizes)]
            watcher.see(parser.feed(text[start : start + size], None if pause is None else pause * turn))
            start, turn = start + size, turn + 1
            if turn % 5 == 0:
                read.append((parser.value, copy.deepcopy(parser.value)))
        # A number that is the whole document is the one thing that only the end of the text ends.
        assert parser.complete or isinstance(value, int | float)
        if parser.complete:
            assert identical(watcher.state["v"], value)
        watcher.see(parser.close())
        assert identical(watcher.state, {"v": value, "kept": 1})
        assert identical(parser.value, value)
        watcher.check()
        for handed_out, before in read:
            assert identical(handed_out, before)

    @given(documents(), st.integers(1, 9))
    def test_a_document_may_be_the_whole_state(self, document: tuple[str, JSON, bool], size: int) -> None:
        text, value, names_repeat = document
        watcher = predict(text, size, names_repeat=names_repeat)
        assert identical(watcher.state, value)

    @given(
        st.dictionaries(st.sampled_from(["a", "b", "c/d", "~", ""]), json_values(8), max_size=5),
        st.integers(1, 9),
        st.booleans(),
    )
    def test_selected_members_and_the_whole_at_once(self, arguments: JSON, size: int, with_whole: bool) -> None:
        select: dict[str, Any] = {"a": "/x", "c/d": ["/y", "/z~1"]}
        watcher = predict(json.dumps(arguments), size, select=select | ({"*": "/all"} if with_whole else {}))
        expected: dict[str, Any] = {"all": arguments} if with_whole else {}
        if "a" in arguments:
            expected["x"] = arguments["a"]
        if "c/d" in arguments:
            expected |= {"y": arguments["c/d"], "z/": arguments["c/d"]}
        assert identical(watcher.state, expected)

    @given(st.text(st.sampled_from('{}[],:"\\aeu0123d8 ntrl-.'), max_size=30), st.integers(1, 9))
    def test_other_text_raises_what_a_strict_parser_would_refuse(self, text: str, size: int) -> None:
        try:
            json.loads(text, parse_constant=lambda name: pytest.fail(name))
        except (ValueError, RecursionError):
            with pytest.raises(MalformedJSON):
                predict(text, size)
        else:
            predict(text, size, names_repeat=True)


class TestOperations:
    def test_a_value_is_added_where_it_belongs_as_it_ends(self) -> None:
        assert shown('{"title":', '"Soup",', '"n": 4', ', "tags":[', '"a"', ",true]", "}") == [
            [add("/v", {})],
            [add("/v/title", "Soup")],
            [],
            [add("/v/n", 4), add("/v/tags", [])],
            [add("/v/tags/0", "a")],
            [add("/v/tags/1", True)],
            [],
        ]

    def test_what_opens_and_ends_in_one_piece_is_one_operation(self) -> None:
        assert shown('{"a":{"b":[1,{"c":"d"}]}}') == [[add("/v", {"a": {"b": [1, {"c": "d"}]}})]]
        assert shown('{"a":[', '{"b":[1]},{"c":2},') == [
            [add("/v", {"a": []})],
            [add("/v/a/0", {"b": [1]}), add("/v/a/1", {"c": 2})],
        ]

    def test_an_open_container_comes_with_what_is_in_it(self) -> None:
        assert shown('{"a":[1,{"b":"te', 'xt"') == [
            [add("/v", {"a": [1, {"b": "te"}]})],
            [replace("/v/a/1/b", "text")],
        ]

    def test_a_text_is_added_and_then_replaced(self) -> None:
        assert shown('["So', "up", ' of"', "]") == [
            [add("/v", ["So"])],
            [replace("/v/0", "Soup")],
            [replace("/v/0", "Soup of")],
            [],
        ]
        assert shown('"So', 'up"') == [[add("/v", "So")], [replace("/v", "Soup")]]

    def test_a_text_that_was_shown_whole_is_not_sent_again(self) -> None:
        assert shown('["Soup', '"', "]") == [[add("/v", ["Soup"])], [], []]
        assert shown('["', '"]') == [[add("/v", [""])], []]

    def test_a_second_value_of_a_name_replaces_the_first(self) -> None:
        assert shown('{"a":1,', '"a":2,', '"a":[', "3]", ',"a":"x', 'y"}') == [
            [add("/v", {"a": 1})],
            [replace("/v/a", 2)],
            [replace("/v/a", [])],
            [add("/v/a/0", 3)],
            [replace("/v/a", "x")],
            [replace("/v/a", "xy")],
        ]

    def test_names_are_escaped(self) -> None:
        assert shown("{", '"a/b~c":{', '"":1,', '"~1":[', "2") == [
            [add("/v", {})],
            [add("/v/a~1b~0c", {})],
            [add("/v/a~1b~0c/", 1)],
            [add("/v/a~1b~0c/~01", [])],
            [],
        ]

    def test_the_whole_document_is_added_at_the_root(self) -> None:
        parser = PartialJSON()
        assert parser.feed('{"a":') == [add("", {})]
        assert parser.feed('"b"}') == [add("/a", "b")]

    def test_what_is_not_selected_is_read_and_not_sent(self) -> None:
        parser = PartialJSON(select={"recipe": "/r"})
        assert parser.feed('{"other":{"recipe":"no","x":[1,"te') == []
        assert parser.feed('xt"]},"recipe":{') == [add("/r", {})]
        assert parser.feed('"title":"So') == [add("/r/title", "So")]
        assert parser.feed('up"},"more":"') == [replace("/r/title", "Soup")]
        assert parser.feed('"}') == []
        assert parser.value == {"other": {"recipe": "no", "x": [1, "text"]}, "recipe": {"title": "Soup"}, "more": ""}

    def test_several_members_and_the_whole(self) -> None:
        parser = PartialJSON(select={"a": ["/x", "/y"], "*": "/all"})
        assert parser.feed('{"a":[1') == [add("/all", {}), add("/all/a", []), add("/x", []), add("/y", [])]
        assert parser.feed(",") == [add("/all/a/0", 1), add("/x/0", 1), add("/y/0", 1)]
        assert parser.feed(' 2],"b":3}') == [
            *(add(f"{base}/1", 2) for base in ("/all/a", "/x", "/y")),
            add("/all/b", 3),
        ]

    @pytest.mark.parametrize("text", ["[1,2]", '"text"', "5", "null"])
    def test_arguments_that_are_no_object_have_no_members(self, text: str) -> None:
        assert predict(text, 1, select={"a": "/a"}).state == {}
        assert predict(text, 1, select={"a": "/a", "*": "/all"}).state == {"all": json.loads(text)}

    def test_where_things_go_is_checked_at_once(self) -> None:
        with pytest.raises(PointerError):
            PartialJSON("recipe")
        with pytest.raises(PointerError):
            PartialJSON(select={"a": ["/a", "b"]})
        with pytest.raises(ValueError, match="not both"):
            PartialJSON("/a", select={"a": "/a"})


class TestNeverBackwards:
    """Cuts inside an escape, a number or a literal."""

    @pytest.mark.parametrize(
        ("text", "before_the_end"),
        [
            ('{"t":"ab\\', {"t": "ab"}),
            ('{"t":"ab\\u00', {"t": "ab"}),
            ('{"t":"ab\\ud83d', {"t": "ab"}),
            ('{"t":"ab\\ud83d\\', {"t": "ab"}),
            ('{"t":"ab\\ud83d\\ude0', {"t": "ab"}),
            ('{"t":"ab\ud83d', {"t": "ab"}),
            ('{"t":"\\', {"t": ""}),
            ('{"n":1', {}),
            ('{"n":12', {}),
            ('{"n":-', {}),
            ('{"n":1.', {}),
            ('{"n":1e+', {}),
            ('{"b":tru', {}),
            ('{"b":nul', {}),
            ('{"b":[fals', {"b": []}),
            ('{"na', {}),
            ('{"na"', {}),
            ('{"na":', {}),
            ('{"b":true', {"b": True}),
        ],
    )
    @pytest.mark.parametrize("size", [1, 4, 99])
    def test_half_a_token_is_not_shown(self, text: str, before_the_end: JSON, size: int) -> None:
        parser, watcher = PartialJSON("/v"), Watcher()
        for piece in cut(text, size):
            watcher.see(parser.feed(piece))
        assert identical(parser.value, before_the_end)
        state = watcher.state["v"]
        assert identical(state, before_the_end) or (before_the_end == {"t": ""} and state == {})

    def test_a_pair_cut_in_two_is_one_character(self) -> None:
        for halves in (("\\ud83d", "\\ude00"), ("\ud83d", "\ude00"), ("\\ud83d", "\ude00")):
            assert shown(f'["a{halves[0]}', f'{halves[1]}b"]') == [[add("/v", ["a"])], [replace("/v/0", "a😀b")]]

    def test_a_lone_half_becomes_a_replacement_character(self) -> None:
        assert shown('["a\\ud83d', '"]') == [[add("/v", ["a"])], [replace("/v/0", "a\ufffd")]]
        assert shown('{"\\ud83d":1}') == [[add("/v", {"\ufffd": 1})]]


class TestErrors:
    @pytest.mark.parametrize("text", ['{"a":1,}', '{"a":"\n"}', "[1 2]", "{}{}"])
    @pytest.mark.parametrize("size", [1, 4, 99])
    def test_what_is_not_json_is_an_error_with_its_place(self, text: str, size: int) -> None:
        with pytest.raises(MalformedJSON, match=r"at character [0-9]+$") as caught:
            predict(text, size)
        assert 0 <= caught.value.offset < len(text)

    def test_the_place_counts_from_the_start_of_the_text(self) -> None:
        long = '{"a":"' + "x" * 5_000 + '","b":?}'
        with pytest.raises(MalformedJSON, match=r"at character 5012$"):
            predict(long)

    def test_after_an_error_there_is_only_that_error(self) -> None:
        parser = PartialJSON()
        with pytest.raises(MalformedJSON) as caught:
            parser.feed("{]")
        for again in (lambda: parser.feed("}"), lambda: parser.feed(" "), parser.close, lambda: parser.value):
            with pytest.raises(MalformedJSON) as later:
                again()
            assert later.value is caught.value

    def test_pieces_that_wait_do_not_hide_an_error(self) -> None:
        parser = PartialJSON()
        for piece in cut('{"a":["' + "x" * 4_000 + '",?', 4):
            with contextlib.suppress(MalformedJSON):
                parser.feed(piece)
        with pytest.raises(MalformedJSON):
            for piece in cut(" " * 200, 4):
                parser.feed(piece)
        for piece in ("x", '"', "]"):
            with pytest.raises(MalformedJSON):
                parser.feed(piece)

    @pytest.mark.parametrize("text", ["", '{"a":', '{"a":"te', "[1"])
    def test_a_text_that_ends_early(self, text: str) -> None:
        parser = PartialJSON()
        parser.feed(text)
        assert not parser.complete
        with pytest.raises(IncompleteJSON):
            parser.close()
        with pytest.raises(IncompleteJSON):
            parser.feed("}")

    def test_a_number_alone_ends_with_the_text(self) -> None:
        parser = PartialJSON("/v")
        assert parser.feed("12") == []
        assert parser.close() == [add("/v", 12)]
        assert parser.complete
        assert parser.close() == []

    @pytest.mark.parametrize(
        ("limits", "text"),
        [
            ({"max_length": 9}, '{"a":"xxx"}'),
            ({"max_depth": 2}, "[[[1]]]"),
            ({"max_number_length": 3}, "[1234]"),
            ({"max_key_length": 3}, '{"abcd":1}'),
        ],
    )
    def test_limits(self, limits: dict[str, Any], text: str) -> None:
        with pytest.raises(LimitExceeded, match=next(iter(limits))):
            predict(text, **limits)
        with pytest.raises(AccordError):
            predict(text, 1, **limits)


def recipe(size: int) -> dict[str, Any]:
    """A recipe of about `size` characters of JSON."""
    chance = random.Random(5)
    words = ["chop", "the", "onion", "until", "golden", "and", "season", "with", "salt", "then", "simmer", "gently"]
    made: dict[str, Any] = {
        "title": "Spaghetti alla Carbonara",
        "skill_level": "Intermediate",
        "special_preferences": ["Vegetarian"],
        "cooking_time": "30 min",
        "ingredients": [],
        "instructions": [],
    }
    for number in range(10_000):
        made["ingredients"].append({"icon": "🥕", "name": f"Carrot {number}", "amount": f"{number} g"})
        made["instructions"].append(f"Step {number}: " + " ".join(chance.choices(words, k=14)))
        if len(json.dumps({"recipe": made}, ensure_ascii=False)) >= size:
            break
    return {"recipe": made}


def shapes() -> Iterator[Any]:
    chance = random.Random(7)
    yield pytest.param(recipe(20_000), id="recipe")
    yield pytest.param({"v": [chance.randint(0, 999) for _ in range(4_000)]}, id="integers")
    yield pytest.param({"v": [[1, 2, 3] for _ in range(2_000)]}, id="rows")
    yield pytest.param({"v": [True, None] * 1_500}, id="literals")
    yield pytest.param({"v": ["word"] * 2_000}, id="short texts")
    yield pytest.param({f"k{number}": number for number in range(1_500)}, id="members")
    yield pytest.param({"v": [{"x" * 60: [number]} for number in range(200)]}, id="long names")
    yield pytest.param({"v": {"w" * 5_000: [[number] for number in range(3_000)]}}, id="a very long name")
    yield pytest.param({"v": ["x" * 400 for _ in range(50)]}, id="paragraphs")


class TestSmallAndSoon:
    @pytest.mark.parametrize("document", list(shapes()))
    @pytest.mark.parametrize("ascii_only", [False, True])
    def test_all_deltas_of_an_object_are_at_most_three_times_its_text(self, document: JSON, ascii_only: bool) -> None:
        text = json.dumps(document, ensure_ascii=ascii_only)
        name = next(iter(document))
        watcher = predict(text, select={name: f"/{name}"} if len(document) == 1 else {"*": "/all"})
        assert identical(watcher.state, document if len(document) == 1 else {"all": document})
        assert watcher.bytes <= 3 * len(json.dumps(document))
        assert watcher.deltas >= 20 or max(map(len, document["v"]), default=0) > 1_024

    def test_the_title_is_there_in_the_first_hundredth(self) -> None:
        text = json.dumps(recipe(20_000), ensure_ascii=False)
        pieces = cut(text, 4)
        parser, watcher = PartialJSON(select={"recipe": "/recipe"}), Watcher()
        for piece in pieces[: len(pieces) // 100]:
            watcher.see(parser.feed(piece))
        assert watcher.state["recipe"]["title"] == "Spaghetti alla Carbonara"

    def test_values_appear_soon_after_they_end(self) -> None:
        text = json.dumps(recipe(20_000), ensure_ascii=False)
        parser, watcher = PartialJSON(select={"recipe": "/recipe"}), Watcher()
        furthest = 0
        for piece in cut(text, 4):
            watcher.see(parser.feed(piece))
            read = parser.value.get("recipe", {})
            for part in ("ingredients", "instructions"):
                seen = watcher.state.get("recipe", {}).get(part, [])
                furthest = max(furthest, len(read.get(part, [])) - len(seen))
        assert furthest <= 8

    def test_small_elements_appear_too(self) -> None:
        """Each at its own path they would cost ten times their text; then the array is sent again as it grows."""
        text = json.dumps({"v": list(range(4_000))}, separators=(",", ":"))
        parser, watcher = PartialJSON(select={"v": "/v"}), Watcher()
        for number, piece in enumerate(cut(text, 4)):
            watcher.see(parser.feed(piece))
            if number % 50 == 0 and number > 1_000:
                assert len(watcher.state["v"]) > 0.5 * len(parser.value["v"])

    @pytest.mark.parametrize("length", [20_000, 200_000])
    @pytest.mark.parametrize("letter", ["x", "한", "\n"])
    def test_a_text_arriving_at_once_is_sent_at_most_ten_times(self, length: int, letter: str) -> None:
        text = json.dumps({"document": letter * length}, ensure_ascii=False)
        watcher = predict(text, select={"document": "/document"})
        assert watcher.state == {"document": letter * length}
        assert watcher.bytes <= 10 * len(json.dumps({"document": letter * length}))
        assert watcher.deltas > 20

    def test_no_length_of_a_text_passes_ten_times(self) -> None:
        worst = 0.0
        for length in range(20_000, 22_600, 130):
            text = json.dumps({"document": "x" * length})
            worst = max(worst, predict(text, 4, select={"document": "/document"}).bytes / len(text))
        assert worst <= 9.5

    def test_an_open_text_lags_by_an_eighth_at_most(self) -> None:
        parser, watcher = PartialJSON("/v"), Watcher()
        watcher.see(parser.feed('["'))
        for number in range(10_000):
            watcher.see(parser.feed("abcd"))
            length, seen = 4 * (number + 1), len((watcher.state["v"] or [""])[0])
            assert length - seen < max(512, seen / 8) + 4

    @pytest.mark.parametrize("length", [2_000, 20_000])
    def test_a_text_arriving_slowly_is_seen_three_times_a_second(self, length: int) -> None:
        text = json.dumps({"document": "x" * length})
        parser = PartialJSON(select={"document": "/document"})
        last, longest = 0.0, 0.0
        for number, piece in enumerate(cut(text, 4)):
            now = number * 4 / 160
            if parser.feed(piece, now):
                longest, last = max(longest, now - last), now
        assert longest <= 0.3
        assert now - last <= 0.3

    def test_everything_there_is_sent_when_time_has_passed(self) -> None:
        parser, watcher = PartialJSON("/v", max_delay=2.0), Watcher()
        text = json.dumps(recipe(6_000))
        for piece in cut(text[:4_000], 4):
            watcher.see(parser.feed(piece, 1.0))
        assert not identical(watcher.state["v"], parser.value)
        assert parser.feed("", 2.9) == []
        watcher.see(parser.feed("", 3.0))
        assert identical(watcher.state["v"], parser.value)
        assert parser.feed("", 99.0) == []

    def test_what_would_need_a_long_pointer_appears_when_it_ends(self) -> None:
        name = "n" * 20
        parser, watcher = PartialJSON("/v", max_pointer_length=20), Watcher()
        watcher.see(parser.feed('{"a":{"' + name + '":[1,{"b":"te'))
        assert watcher.state == {"v": {"a": {}}}
        watcher.see(parser.feed('xt"}],"c":"x'))
        assert watcher.state == {"v": {"a": {name: [1, {"b": "text"}], "c": "x"}}}
        watcher.see(parser.feed('y","' + name + '":"tex'))
        assert watcher.state["v"]["a"] == {name: [1, {"b": "text"}], "c": "xy"}
        watcher.see(parser.feed('t"}}'))
        assert watcher.state == {"v": {"a": {name: "text", "c": "xy"}}}


class TestLinear:
    """No time is measured: lines run, characters scanned and bytes made grow with the text and no faster."""

    @staticmethod
    def _text(length: int) -> str:
        return json.dumps({"document": "x" * length})

    @pytest.mark.parametrize("kind", ["text", "recipe", "number", "spaces", "name", "escapes"])
    def test_ten_times_the_one_character_pieces_is_ten_times_the_work(
        self, kind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def make(length: int) -> str:
            return {
                "text": lambda: self._text(length),
                "recipe": lambda: json.dumps(recipe(length), ensure_ascii=False),
                "number": lambda: "[" + ",".join(["1" * 100] * (length // 100)) + "]",
                "spaces": lambda: "[" + " " * length + "1]",
                "name": lambda: "[{" + "},{".join(['"' + "n" * 1_000 + '":1'] * (length // 1_000)) + "}]",
                "escapes": lambda: json.dumps("한" * (length // 6)),
            }[kind]()

        scanned = 0
        feed = JSONReader.feed

        def counting(reader: JSONReader, piece: str) -> None:
            nonlocal scanned
            scanned += len(piece) + len(reader._unread)
            feed(reader, piece)

        monkeypatch.setattr(JSONReader, "feed", counting)

        def work(length: int) -> tuple[int, int]:
            nonlocal scanned
            scanned = 0
            parser = PartialJSON("/v")
            lines = lines_run(lambda: [parser.feed(piece) for piece in make(length)])
            return lines, scanned

        small, large = work(3_000), work(30_000)
        assert large[0] < 12 * small[0]
        assert large[1] < 12 * small[1]

    def test_most_pieces_cost_next_to_nothing(self) -> None:
        text = json.dumps(recipe(24_000), ensure_ascii=False)
        pieces = cut(text, 4)
        parser = PartialJSON(select={"recipe": "/recipe"})
        assert lines_run(lambda: [parser.feed(piece) for piece in pieces]) < 45 * len(pieces)
        parser = PartialJSON("/v")
        pieces = cut(self._text(24_000), 4)
        assert lines_run(lambda: [parser.feed(piece) for piece in pieces]) < 9 * len(pieces)
        parser = PartialJSON("/v")
        pieces = cut(json.dumps({"document": 'say "x" ' * 3_000}), 4)
        assert lines_run(lambda: [parser.feed(piece) for piece in pieces]) < 55 * len(pieces)

    @settings(max_examples=20)
    @given(st.integers(0, 3))
    def test_depth_costs_no_more_than_its_text(self, extra: int) -> None:
        text = "[" * (200 + extra) + "]" * (200 + extra)
        watcher = predict(text, 1)
        assert watcher.bytes <= 4 * len(text) + 4_096


class TestPointersThatPeersRefuse:
    values = st.recursive(
        st.integers(0, 2) | st.text("ab", max_size=30),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["__proto__", "constructor", "prototype", "a"]), inner, max_size=4)
        ),
        max_leaves=16,
    )

    @given(
        st.dictionaries(st.sampled_from(["__proto__", "constructor", "prototype", "a"]), values, max_size=4),
        st.integers(1, 30),
        st.sampled_from([1, 512]),
        st.sampled_from(
            [
                {"base_path": "/v"},
                {"select": {"*": "/v"}},
                {"select": {"a": "/w", "*": "/v"}},
                {"select": {"a": ["/v/constructor", "/w"], "__proto__": "/p"}},
            ]
        ),
        st.none() | st.just(0.3),
    )
    def test_are_not_sent(
        self, document: JSON, size: int, min_growth: int, given: dict[str, Any], pause: float | None
    ) -> None:
        text = json.dumps(document)
        parser = PartialJSON(min_growth=min_growth, **given)
        state: JSON = {"v": {}}
        for turn, piece in enumerate([*cut(text, size), None]):
            now = None if pause is None else pause * turn
            for operation in parser.close() if piece is None else parser.feed(piece, now):
                tokens = operation["path"].split("/")
                assert "__proto__" not in tokens
                assert ("constructor", "prototype") not in itertools.pairwise(tokens)
                state = apply_patch(state, [operation])
        if given.get("select", {"*": ""}).get("*") is not None:
            assert identical(state["v"], document)
        else:
            for name, targets in given["select"].items():
                for target in [targets] if isinstance(targets, str) else targets:
                    found = _at(state, target)
                    assert found is ABSENT if name not in document else identical(found, document[name])

    def test_such_a_member_comes_with_the_whole_around_it(self) -> None:
        pieces = ['{"a":{"k":1,', '"__proto__":{"z":"lo', 'ng"}', ',"l":2}}']
        parser, seen = PartialJSON("/v", min_growth=1), []
        for turn, piece in enumerate(pieces):
            seen.append(parser.feed(piece, float(turn)))
        assert seen[1] == []
        assert seen[2] == [replace("/v/a", {"k": 1, "__proto__": {"z": "long"}})]
        assert seen[3] == [add("/v/a/l", 2)]

    def test_so_it_does_when_the_object_ends_with_it(self) -> None:
        parser, seen = PartialJSON("/v", min_growth=1), []
        for turn, piece in enumerate(['{"a":{"k":1,', '"m":5,"__proto__":2}', ',"l":3}']):
            seen.append(parser.feed(piece, float(turn)))
        assert seen[1:] == [[replace("/v/a", {"k": 1, "m": 5, "__proto__": 2})], [add("/v/l", 3)]]

    def test_selected_members_go_where_they_are_selected_to(self) -> None:
        parser, seen = PartialJSON(select={"a": "/w", "*": "/v"}, min_growth=1), []
        for turn, piece in enumerate(['{"k":1,', '"a":5,"__proto__":2,', '"l":3,', '"__proto__":4}']):
            seen.append(parser.feed(piece, float(turn)))
        whole = {"k": 1, "a": 5, "__proto__": 2}
        assert seen[1] == [add("/v/a", 5), add("/w", 5), replace("/v", whole)]
        assert seen[2:] == [[add("/v/l", 3)], [replace("/v", {**whole, "l": 3, "__proto__": 4})]]

    def test_coming_again_and_again_they_do_not_cost_the_whole_each(self) -> None:
        def sent(times: int) -> int:
            watcher = predict('{"k":"' + "x" * 500 + '",' + '"__proto__":1,' * times + '"z":1}', 14, names_repeat=True)
            return watcher.bytes

        assert sent(400) < 3 * sent(200)
