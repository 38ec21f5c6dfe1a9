"""Serving any producer over HTTP, as an ASGI application."""

from accord.hosting.admission import Authorize
from accord.hosting.endpoint import AGUIEndpoint

__all__ = ["AGUIEndpoint", "Authorize"]
