"""What outlives a run. Knows nothing of agents, which use it, nor of AG-UI."""

from accord.sessions.session import AgentSession, SessionError

__all__ = ["AgentSession", "SessionError"]
