"""The look before a poll: could runs be recorded, placed and started now.

Rule 1: candidates are judged by a look that was made in the same poll.
Rule 2: a list without candidates may go by an earlier look that found all well, under the same
circumstances and a moment ago: it costs more than the list, and nothing follows from it.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import trio

KEPT = 25.0
"""Seconds for which a good look serves polls that find nothing; less than the usual interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """What a preflight found: ``fault`` forbids any dispatch and any poll; ``hindrance`` says
    why no agent can be launched, and ``shortage`` what this machine is short of. None: all is
    well."""

    fault: str | None = None
    hindrance: str | None = None
    shortage: str | None = None


READY = Readiness()


class Preflight:
    """Makes looks; ``circumstances`` are compared, and others make the last look worthless."""

    def __init__(
        self,
        look: Callable[[], Awaitable[Readiness]],
        circumstances: Callable[[], object] = lambda: None,
    ) -> None:
        self._look = look
        self._circumstances = circumstances
        self._good_under: object = None
        self._good_until = -math.inf

    async def look(self) -> Readiness:
        """Look now."""
        self._good_until = -math.inf
        under = self._circumstances()
        found = await self._look()
        if found == READY:
            self._good_under, self._good_until = under, trio.current_time() + KEPT
        return found

    def was_good(self) -> bool:
        """Tell whether all was well a moment ago."""
        return trio.current_time() < self._good_until and self._circumstances() == self._good_under
