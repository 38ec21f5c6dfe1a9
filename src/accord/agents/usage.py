"""Tokens that a model call cost. A count that was not reported is absent, which is not zero."""

from __future__ import annotations

import msgspec


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Token counts of one or several model calls.

    `input_tokens` and `output_tokens` are totals; the cached, cache-write and reasoning counts are parts of them.
    Sums (`a + b`) take an absent count as nothing to add, and keep `provider` and `model` where both sides agree.
    """

    provider: str | None = None
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            provider=self.provider if self.provider == other.provider else None,
            model=self.model if self.model == other.model else None,
            input_tokens=_sum(self.input_tokens, other.input_tokens),
            output_tokens=_sum(self.output_tokens, other.output_tokens),
            total_tokens=_sum(self.total_tokens, other.total_tokens),
            reasoning_tokens=_sum(self.reasoning_tokens, other.reasoning_tokens),
            cached_input_tokens=_sum(self.cached_input_tokens, other.cached_input_tokens),
            cache_write_input_tokens=_sum(self.cache_write_input_tokens, other.cache_write_input_tokens),
        )


def _sum(left: int | None, right: int | None) -> int | None:
    if left is None:
        return right
    return left if right is None else left + right
