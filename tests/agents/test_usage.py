from __future__ import annotations

import msgspec

from accord.agents import Usage


def test_counts_add_and_absent_is_not_zero() -> None:
    total = Usage(input_tokens=1, output_tokens=2) + Usage(input_tokens=10, cached_input_tokens=3)
    assert total == Usage(input_tokens=11, output_tokens=2, cached_input_tokens=3)
    assert total.reasoning_tokens is None


def test_every_count_adds() -> None:
    names = [name for name in Usage.__struct_fields__ if name.endswith("_tokens")]
    assert len(names) == 6
    for name in names:
        total = msgspec.convert({name: 1}, Usage) + msgspec.convert({name: 2}, Usage)
        assert msgspec.to_builtins(total) == {name: 3}


def test_provider_and_model_stay_where_both_agree() -> None:
    total = Usage(provider="p", model="a") + Usage(provider="p", model="b")
    assert (total.provider, total.model) == ("p", None)
