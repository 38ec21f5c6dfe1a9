"""Agent and application in agreed state over AG-UI 1.0."""

__version__ = "0.1.0"
