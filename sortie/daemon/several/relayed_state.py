"""How a workflow stands that another daemon leads: its leader is asked when the page of all is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import trio

from sortie.daemon.relayed_leader import RelayedLeader
from sortie.store.relay import RelayedRequest, Unanswered
from sortie.web.state import StateView

FRESH = 1.5
"""Seconds for which a state is shown without asking again."""

LIMIT = 2.0
"""Seconds for which a page waits for leaders."""

_REQUEST = RelayedRequest(
    id="", workflow="", method="GET", target="/api/v1/state", caller="anybody"
)


class RelayedState:
    """The state that the leader of a workflow told last; ``view`` is None where it told none."""

    def __init__(
        self, leader: RelayedLeader, clock: Callable[[], float] = trio.current_time
    ) -> None:
        self.view: StateView | None = None
        self._leader = leader
        self._clock = clock
        self._seen_at = float("-inf")

    async def look(self) -> None:
        """Ask the leader, unless it was asked just now."""
        if self._clock() - self._seen_at < FRESH:
            return
        self._seen_at = self._clock()
        try:
            with trio.fail_after(LIMIT):
                answer = await self._leader.ask(_REQUEST)
            self.view = msgspec.json.decode(answer.body, type=StateView)
        except (Unanswered, trio.TooSlowError, msgspec.MsgspecError):
            self.view = None  # a leader of another version may have another form

    def overview(self, waiting: int) -> StateView:
        """See OverviewSource."""
        assert self.view is not None
        return replace(self.view, waiting=self.view.waiting[:waiting])
