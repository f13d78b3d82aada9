"""When conversations began and what they cost, remembered over processes and sessions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct

from sortie.agents.acp.usage import NO_COST, Cost

CONVERSATIONS_REMEMBERED = 1000
"""Conversations that are remembered; those that were used last."""

_GEMINI = "gemini-cli"
_MINUTE = 60.0
"""Seconds within which Gemini CLI cannot load a session, and would lose what was said in it."""


class _Known(Struct):
    opened_at: float
    cost: Cost | None


class Conversations:
    """By session id; for all sessions of an adapter. ``clock`` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def opened(self, session_id: str, *, resumed: bool) -> Cost | None:
        """Note that a conversation is opened; return what it has cost so far, None: unknown."""
        known = self._known.pop(session_id, None)
        cost = (known.cost if known else None) if resumed else NO_COST
        self._known[session_id] = _Known(self._clock(), cost)
        while len(self._known) > CONVERSATIONS_REMEMBERED:
            self._known.popitem(last=False)
        return cost

    def spent(self, session_id: str, cost: Cost | None) -> None:
        """Note what a conversation has cost."""
        if (known := self._known.get(session_id)) is not None:
            known.cost = cost

    def not_yet(self, agent: str, session_id: str) -> str | None:
        """Return why a conversation cannot be gone on with now, None where it can."""
        known = self._known.get(session_id)
        if agent == _GEMINI and known and self._clock() - known.opened_at <= _MINUTE:
            return "Gemini CLI loses a session that is loaded in the minute it began in"
        return None
