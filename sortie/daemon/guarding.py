"""What keeps the daemon fair and alive: its clock, its watchdog, and its account of shortages."""

from __future__ import annotations

from dataclasses import dataclass

import trio

from sortie.resources import Shortages, keep_account
from sortie.resources.clock import PauseClock
from sortie.resources.descriptors import keep_reserve
from sortie.resources.watchdog import Watchdog
from sortie.telemetry import Publish, facts


@dataclass(frozen=True, slots=True)
class Guard:
    """What sees to it that the daemon neither judges too early nor stands still for ever."""

    clock: PauseClock
    watchdog: Watchdog

    def begin(self, services: trio.Nursery, shortages: Shortages, publish: Publish) -> None:
        """Notice pauses and shortages while the nursery lasts."""
        keep_account(shortages)
        keep_reserve()
        services.start_soon(shortages.watch)
        services.start_soon(
            self.clock.tick, lambda seconds: publish(facts.DaemonWasPaused(seconds=seconds))
        )


def shortages_told_to(publish: Publish) -> Shortages:
    """Return an account that tells of the beginning and the end of each shortage."""
    return Shortages(
        begun=lambda s: publish(facts.ShortageBegan(resource=s.resource, message=str(s))),
        ended=lambda s: publish(facts.ShortageEnded(resource=s.resource)),
    )
