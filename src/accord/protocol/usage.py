"""Token counts of one provider and model."""

from msgspec import UNSET, UnsetType

from accord.protocol.values import Count, Shape


class TokenUsage(Shape, frozen=True, kw_only=True):
    """Tokens used. `input_tokens` and `output_tokens` are totals; the cached, cache-write and reasoning counts are
    parts of them; absent is not zero. Source: rules section 3, "Token usage"."""

    provider: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    input_tokens: Count | UnsetType = UNSET
    output_tokens: Count | UnsetType = UNSET
    total_tokens: Count | UnsetType = UNSET
    reasoning_tokens: Count | UnsetType = UNSET
    cached_input_tokens: Count | UnsetType = UNSET
    cache_write_input_tokens: Count | UnsetType = UNSET
