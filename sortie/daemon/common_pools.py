"""The databases in which workflows of this process share limits with those of other daemons."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from sortie.config.settings import Settings
from sortie.daemon.leadership import Leaderships
from sortie.telemetry import Publish

if TYPE_CHECKING:
    from sortie.daemon.common_limits import CommonLimits
    from sortie.daemon.lease_keeper import LeaseKeeper

_EXCHANGES = 3
"""How many times the lease for dividing slots is shorter than that of a workflow."""


class CommonPools:
    """``most`` is the limit for all workflows that this process was given, None for none;
    ``alone``: it was begun for one workflow."""

    def __init__(
        self,
        leaderships: Leaderships,
        most: int | None,
        publish: Publish,
        *,
        alone: bool = False,
    ) -> None:
        self._alone = alone
        self._leaderships = leaderships
        self._most = most
        self._publish = publish
        self._pools: dict[LeaseKeeper, CommonLimits] = {}
        self._new: list[CommonLimits] = []
        self._came = trio.Event()

    def of(self, settings: Settings) -> CommonLimits | None:
        """Return what a workflow shares in its database, None where that is a file."""
        if settings.store.url is None:
            return None
        from sortie.daemon.common_exchange import CommonExchange
        from sortie.daemon.common_limits import CommonLimits

        keeper = self._leaderships.keeper_of(settings)
        if keeper not in self._pools:
            lease = settings.store.lease
            exchange = CommonExchange(
                keeper.address, keeper.daemon, keeper.name, lease / _EXCHANGES
            )
            pool = self._pools[keeper] = CommonLimits(
                exchange, lease, self._most, self._publish, alone=self._alone
            )
            self._new.append(pool)
            self._came.set()
        return self._pools[keeper]

    async def run(self) -> None:
        """Tell and hear in each of these databases, until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                for pool in self._new:
                    nursery.start_soon(pool.run)
                self._new.clear()
                self._came = trio.Event()
                await self._came.wait()

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Do so for the length of a block."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.run)
            yield
            nursery.cancel_scope.cancel()
