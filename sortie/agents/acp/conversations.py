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
"""Seconds within which Gemini CLI cannot load a session, and would lose what was said in it: its
file is named by the minute."""

WHY_IT_WAITS = "Gemini CLI loses a session that is loaded in the minute in which it was opened"
"""Why a conversation of Gemini CLI is waited for."""


class _Known(Struct):
    opened_at: float
    cost: Cost | None


class Conversations:
    """By session id; for all sessions of an adapter. ``clock`` gives monotonic seconds.

    One that is not known may have been opened right before this was made, by a daemon that was
    killed then.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._made_at = clock()
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

    def wait_before(self, agent: str, session_id: str) -> float:
        """Return the seconds until an agent can go on with a conversation, 0.0 where it can now."""
        if agent != _GEMINI:
            return 0.0
        known = self._known.get(session_id)
        opened_at = self._made_at if known is None else known.opened_at
        return max(0.0, opened_at + _MINUTE - self._clock())
