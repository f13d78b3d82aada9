"""What daemons cost the server of their database by their leases and by the slots they share.

The keepers of leases and the parts that share slots are the real ones, with the connections that
they have in a daemon; workflows are counted runs that begin and end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from random import Random
from typing import Any, cast

import psutil
import trio
from msgspec import Struct

from sortie.config.settings import AgentSettings
from sortie.config.share import ShareSettings
from sortie.config.worker import WorkerSettings
from sortie.daemon.candidacy import Candidacy
from sortie.daemon.common_exchange import CommonExchange
from sortie.daemon.common_limits import CommonLimits
from sortie.daemon.lease_keeper import LeaseKeeper
from sortie.daemon.watchdog_client import LeaseWatchdog
from sortie.facts import Fact
from sortie.model import LOCAL
from sortie.scheduler import events as ev
from sortie.scheduler.grants import SlotGrant, SlotUse
from sortie.store.postgres_address import parse_address
from tests.benchmarks.row import Scale, Value
from tests.store.postgres_server import PostgresServer, postgres_running

LEASE = 15.0
RUN = 60.0
"""Seconds that a run takes on the average."""


class _Settings(Struct, kw_only=True):
    share: ShareSettings = ShareSettings()
    agent: AgentSettings
    worker: WorkerSettings = WorkerSettings()


class _Workflow:
    """Stands in for a workflow's loop: it has always something to start."""

    def __init__(self, dice: Random) -> None:
        self.settings = _Settings(agent=AgentSettings(max_concurrent_agents=10))
        self._dice = dice
        self._grant = SlotGrant()
        self._ends: list[float] = []

    def tell(self, event: object) -> None:
        """Obey a grant."""
        if isinstance(event, ev.SlotsGranted):
            self._grant = event.grant

    def work(self) -> bool:
        """End and start runs; tell whether that has changed anything."""
        now, before = trio.current_time(), len(self._ends)
        ends = [end for end in self._ends if end > now]
        over, begun = before - len(ends), max(0, self._grant.usable - len(ends))
        ends += [now + self._dice.expovariate(1 / RUN) for _ in range(begun)]
        self._ends = ends
        return over + begun > 0

    def slot_use(self) -> SlotUse:
        """Return what it has and wants."""
        used = len(self._ends)
        return SlotUse(
            used=used,
            by_host={LOCAL: used} if used else {},
            more=3,
            more_by_host={LOCAL: 3},
            grant=self._grant,
        )

    def account_limits(self) -> Mapping[str, None]:
        """Return its account, which has no limit."""
        return {"kiro kiro-cli": None}


def leases(scale: Scale) -> Mapping[str, Value]:
    """Measure what the server does a second, and how much of a processor it takes."""
    daemons, workflows, seconds = scale.of(20, 3), scale.of(100, 6), scale.of(60.0, 2.0)
    with postgres_running(max_connections=120, shared_buffers="64MB") as server:
        leading = trio.run(_measure, server, daemons, workflows, seconds, False)
        sharing = trio.run(_measure, server, daemons, workflows, seconds, True)
    about = {"leases alone [1/s]": leading[0], "CPU of the server [%]": sharing[1]}
    return {"leases.statements": Value(ours=sharing[0], also=about)}


async def _measure(
    server: PostgresServer, daemons: int, workflows: int, seconds: float, shares: bool
) -> tuple[float, float]:
    """Return the transactions of the server a second, each of them a statement but for few, and
    its share of a processor in percent."""
    address = parse_address(server.url, "none", server.schema()).of_shared_schema()
    watchdog = LeaseWatchdog()
    names = [f"workflow_{number}" for number in range(workflows)]
    keepers = [
        LeaseKeeper(address, f"d{n}", f"box:{n}", "1", 1.0, watchdog) for n in range(daemons)
    ]
    stands: list[tuple[int, Candidacy]] = []
    for keeper in keepers:
        keeper.start()
    for number, name in enumerate(names):
        for place in (number % daemons, (number + 1) % daemons):
            candidacy = Candidacy(name, LEASE)
            keepers[place].stand(candidacy)
            stands.append((place, candidacy))
    while sum(one.leading.is_set() for _, one in stands) < workflows:
        await trio.sleep(0.2)
    async with trio.open_nursery() as nursery:
        if shares:
            await _share(nursery, keepers, stands, workflows // 2)
        await trio.sleep(min(seconds, 10.0))
        began, done, spent = time.perf_counter(), _done(server), _spent(server)
        await trio.sleep(seconds)
        span = time.perf_counter() - began
        found = (_done(server) - done) / span, 100 * (_spent(server) - spent) / span
        nursery.cancel_scope.cancel()
    for keeper in keepers:
        keeper.close()
    watchdog.close()
    return found


async def _share(
    nursery: trio.Nursery,
    keepers: list[LeaseKeeper],
    stands: list[tuple[int, Candidacy]],
    slots: int,
) -> None:
    """Have the leaders share slots, and runs begin and end."""
    dice = Random(1)

    def ignore(_: Fact) -> None:
        return None

    async def work(pool: CommonLimits, all_: list[_Workflow]) -> None:
        while True:
            await trio.sleep(0.1)
            changed = [each.work() for each in all_]  # all of them work
            if any(changed):
                pool.look_soon()

    for place, keeper in enumerate(keepers):
        exchange = CommonExchange(keeper.address, keeper.daemon, keeper.name, LEASE / 3)
        pool = CommonLimits(exchange, LEASE, slots, ignore)
        mine: list[_Workflow] = []
        for where, candidacy in stands:
            if where == place and candidacy.lease is not None:
                mine.append(_Workflow(dice))
                pool.join(cast("Any", mine[-1]), candidacy.lease)
        nursery.start_soon(pool.run)
        nursery.start_soon(work, pool, mine)


def _done(server: PostgresServer) -> int:
    """Return how many transactions the server has ended."""
    ((count,),) = server.ask(
        "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'sortie'"
    )
    return int(str(count))


def _processes(server: PostgresServer) -> Iterator[psutil.Process]:
    assert server.process is not None
    root = psutil.Process(server.process.pid)
    yield root
    yield from root.children(recursive=True)


def _spent(server: PostgresServer) -> float:
    """Return the processor time of all processes of the server that live, in seconds."""
    found = 0.0
    for each in _processes(server):
        with suppress(psutil.Error):  # a session has ended meanwhile
            times = each.cpu_times()
            found += times.user + times.system
    return found
