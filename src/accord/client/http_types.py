"""The types of what only HTTP takes, without loading httpx: to whoever reads annotations at run time they are `Any`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from httpx import AsyncClient as HTTPClient

    from accord.client.http import Auth
else:
    Auth = HTTPClient = Any

__all__ = ["Auth", "HTTPClient"]
