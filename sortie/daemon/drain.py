"""Drains this process: it hands its workflows over to other daemons, and leads none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import trio

from sortie.daemon.daemon_view import DaemonView
from sortie.daemon.leadership import Leaderships
from sortie.web.drain import DrainStatus, DrainView, NoLeases

if TYPE_CHECKING:
    from sortie.daemon.candidacy import Candidacy

_LIMIT = 3.0  # seconds for which an answer waits for the server
_LOOK = 0.05


class ProcessDrain:
    """See DrainSource; ``views`` returns the workflows that work here."""

    def __init__(
        self, leaderships: Leaderships, views: Callable[[], Iterable[DaemonView]] = tuple
    ) -> None:
        self.leaderships = leaderships
        self.views = views

    @property
    def draining(self) -> bool:
        """Whether this process is to lead nothing."""
        return any(keeper.draining for keeper in self.leaderships.keepers)

    def standing(self) -> DrainView | str:
        """See DrainSource."""
        if not self.leaderships.keepers:
            return NoLeases().standing()
        led = self._led()
        return DrainView(
            daemon=self.leaderships.daemon,
            status=self._status(leads=bool(led)),
            leads=tuple(sorted(each.workflow for each in led)),
            running=sum(_running(view) for view in self.views()),
            alone=tuple(sorted(each.workflow for each in led if not each.has_others)),
        )

    def _status(self, *, leads: bool) -> DrainStatus:
        if self.draining:
            return "draining" if leads else "drained"
        return "leading" if leads else "standby"

    def _led(self) -> list[Candidacy]:
        return [
            each
            for keeper in self.leaderships.keepers
            for each in keeper.candidacies
            if each.is_held
        ]

    async def drain(self, *, draining: bool) -> DrainView | str | None:
        """See DrainSource."""
        keepers = self.leaderships.keepers
        for keeper in keepers:
            keeper.drain(draining=draining)
        with trio.move_on_after(_LIMIT):
            while any(keeper.draining != draining for keeper in keepers):
                await trio.sleep(_LOOK)
            return self.standing()
        return None


def _running(view: DaemonView) -> int:
    return sum(1 for _ in view.orchestrator.snapshot().worked)
