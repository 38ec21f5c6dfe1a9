"""A chat client for the chat completions API: OpenAI's own, Azure's, and every server that speaks it.

conversation ─ request ─▶ openai SDK ─▶ chunks ─ answer ─▶ updates
"""

try:
    import openai  # noqa: F401
except ImportError as error:
    raise ImportError("accord.openai needs the openai package: pip install 'accord[openai]'") from error

from accord.openai.client import OpenAIChatCompletionClient

__all__ = ["OpenAIChatCompletionClient"]
