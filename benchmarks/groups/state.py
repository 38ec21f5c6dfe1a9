"""State that changes: patches applied, whole stream and library beside library, and differences found."""

from __future__ import annotations

import copy
from typing import Any

from benchmarks.comparison import MICROSECONDS, MILLISECONDS, Row, at_least, at_most, by_turns, gain, price, series
from benchmarks.environments import reference, worker
from benchmarks.material import (
    Material,
    run_input,
    settings_patches,
    settings_sheet,
    shopping_list,
    shopping_patches,
    to_do_list,
)

DELTAS = 2_000
ITEMS = 413  # 58 KB, as are
MEMBERS = 1_000
LONG_LIST = 20_000
CHANGED = LONG_LIST // 2


def rows(material: Material) -> list[Row]:
    """Deltas of two operations each, and a difference in a long list."""
    return [*_patches(material), *_differences(material)]


def _patches(material: Material) -> list[Row]:
    state = shopping_list(ITEMS)
    patches = shopping_patches(DELTAS, ITEMS)
    stream = material.stream("deltas.sse", ({"type": "STATE_DELTA", "delta": patch} for patch in patches))
    few = material.stream("deltas-few.sse", ({"type": "STATE_DELTA", "delta": patch} for patch in patches[:500]))
    begun = material.json("small-state.json", run_input(state=state))
    ten_times = material.json("large-state.json", run_input(state=shopping_list(ITEMS * 10)))
    given = {
        "state": material.json("state.json", state),
        "patches": material.json("patches.json", patches),
    }
    sheet = settings_sheet(MEMBERS)
    changes = settings_patches(DELTAS, MEMBERS)
    on_sheet = material.json("sheet.json", run_input(state=sheet))
    sheet_stream = material.stream("sheet.sse", ({"type": "STATE_DELTA", "delta": each} for each in changes))
    sheet_few = material.stream("sheet-few.sse", ({"type": "STATE_DELTA", "delta": each} for each in changes[:500]))
    whole = {"stream": stream, "operations": DELTAS, "passes": 5}
    answers = by_turns(
        {
            "ours": worker("accord", "consumer", "apply", **whole, run_input=begun),
            "ours, ten times": worker("accord", "consumer", "apply", **whole, run_input=ten_times),
            "reference": reference("apply", stream=few, operations=500, run_input=begun, warm_up=1),
            "ours, sheet": worker(
                "accord", "consumer", "apply", **{**whole, "stream": sheet_stream}, run_input=on_sheet
            ),
            "reference, sheet": reference("apply", stream=sheet_few, operations=500, run_input=on_sheet, warm_up=1),
            "watched": worker("accord", "consumer", "apply", **whole, run_input=begun, subscribers=1),
            "reference, watched": reference(
                "apply", stream=few, operations=500, run_input=begun, subscribers=1, warm_up=1
            ),
            "shared": worker("accord", "state", "apply", **given, operations=DELTAS, passes=5),
            "pure": worker("accord", "state", "pure", **given, operations=DELTAS, passes=5),
            "jsonpatch": worker("official", "official", "apply_patch", **given, operations=100, warm_up=1),
            "in place": worker("official", "official", "apply_patch", **given, operations=DELTAS, in_place=True),
        },
        rounds=5,
    )
    cost = {name: series(found, MICROSECONDS, "µs") for name, found in answers.items()}
    what = "2,000 two-operation deltas on a 58 KB state, a list of 413 items; a delta"
    members = "2,000 two-operation deltas on a 58 KB state, an object of 1,000 members; a delta"
    seen = f"{what}, the state handed to a subscriber"
    return [
        gain(what, cost["ours"], "@ag-ui/client", cost["reference"], at_least(200)),
        gain(members, cost["ours, sheet"], "@ag-ui/client", cost["reference, sheet"], at_least(200)),
        gain(what, cost["shared"], "jsonpatch.apply_patch", cost["jsonpatch"], at_least(200)),
        price("the same on a list of 4,130 items", cost["ours, ten times"], "ours, 58 KB", cost["ours"], at_most(1.5)),
        gain(seen, cost["watched"], "@ag-ui/client", cost["reference, watched"]),
        gain(f"{what}, as a function of the document", cost["pure"], "jsonpatch.apply_patch", cost["jsonpatch"]),
        gain(what, cost["shared"], "jsonpatch, in place", cost["in place"]),
    ]


def _differences(material: Material) -> list[Row]:
    small = _two_lists(material, "small", to_do_list(LONG_LIST))
    large = _two_lists(material, "large", shopping_list(LONG_LIST))
    answers = by_turns(
        {
            "ours": worker("accord", "state", "difference", **small, passes=5),
            "jsonpatch": worker("official", "official", "diff", **small, warm_up=1),
            "edited": worker("accord", "state", "edited", old=small["old"], index=CHANGED, passes=50),
            "ours, large": worker("accord", "state", "difference", **large, passes=2),
            "jsonpatch, large": worker("official", "official", "diff", **large, warm_up=1),
        }
    )
    cost = {name: series(found, MILLISECONDS, "ms") for name, found in answers.items()}
    peer = "jsonpatch.make_patch"
    what = "diff, one field in a 20,000-item list"
    return [
        gain(f"{what}: items of four members, read apart", cost["ours"], peer, cost["jsonpatch"], at_least(50)),
        gain(f"{what}: the same, one edited from the other", cost["edited"], peer, cost["jsonpatch"]),
        gain(f"{what}: items of eight values, read apart", cost["ours, large"], peer, cost["jsonpatch, large"]),
    ]


def _two_lists(material: Material, name: str, old: dict[str, Any]) -> dict[str, str]:
    new = copy.deepcopy(old)
    new["items"][CHANGED]["quantity"] = -1
    return {"old": material.json(f"{name}-old.json", old), "new": material.json(f"{name}-new.json", new)}
