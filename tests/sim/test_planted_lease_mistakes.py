"""Mistakes with leases are planted, and the days of several daemons find each of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import trio

from sortie.daemon import hand_over
from sortie.daemon.candidacy import Candidacy
from sortie.scheduler import lease_times
from sortie.store import Recovered
from sortie.store.leases import LeaseStanding
from sortie.store.sqlite_database import SqliteDatabase
from tests.sim.leases.clocks import Clock
from tests.sim.leases.database import LeasedStore, _FencedDatabase
from tests.sim.leases.day import live_through
from tests.sim.leases.hosts import Host
from tests.sim.leases.keeper import SimKeeper
from tests.sim.leases.lease_server import LeaseServer
from tests.sim.leases.timed_lease import BOOT
from tests.sim.leases.watchdog import SimWatchdog

SEEDS = 120
Plant = Callable[[pytest.MonkeyPatch], None]


def _instead(owner: object, name: str, other: Callable[..., object]) -> Plant:
    return lambda patch: patch.setattr(owner, name, other)


@contextmanager
def _unfenced(database: _FencedDatabase) -> Iterator[None]:
    """Write without a look at the lease."""
    with SqliteDatabase.transaction(database):
        yield
    database._judge()


def _by_wall_clock(patch: pytest.MonkeyPatch) -> None:
    """Count leases by the time of day."""

    def true(clock: Clock, wall: float) -> float:
        return trio.current_time() + max(0.0, wall + 0.001 - clock.wall())

    patch.setattr(Clock, "boot", lambda clock: math.floor(1000 * clock.wall()) / 1000)
    patch.setattr(Clock, "true", true)


def _token_of_before(patch: pytest.MonkeyPatch) -> None:
    """Have a daemon that was started again use the token of its earlier life."""
    acquire = LeaseServer.acquire

    def acquired(
        server: LeaseServer, standing: LeaseStanding, daemon: str, wait: float
    ) -> int | None:
        former = server.leases[standing.workflow].daemon or ""
        is_ours = former.split(".")[0] == daemon.split(".")[0]
        with pytest.MonkeyPatch.context() as inner:
            if is_ours:
                inner.setattr(LeaseServer, "next_token", lambda *_: standing.token)
            return acquire(server, standing, daemon, wait)

    patch.setattr(LeaseServer, "acquire", acquired)


def _stale_snapshot(patch: pytest.MonkeyPatch) -> None:
    """Have a standby read the rows before it has the lease."""
    seen: dict[tuple[str, str], tuple[Recovered, int]] = {}
    look, recover = SimKeeper._look, LeasedStore.recover

    async def looking(keeper: SimKeeper, standing: LeaseStanding) -> None:
        known = keeper.candidacies.get(standing.workflow)
        if known is not None and known.lease is None:
            for workflow in keeper._around.workflows:
                rows = workflow.rows
                seen.setdefault((keeper.daemon, workflow.name), (rows.left, rows.commits))
        await look(keeper, standing)

    async def recovered(store: LeasedStore) -> Recovered:
        now = await recover(store)
        left, commits = seen.get((store.holder, store.workflow), (now, store.read_at))
        store.read_at = commits
        return left

    patch.setattr(SimKeeper, "_look", looking)
    patch.setattr(LeasedStore, "recover", recovered)


def _from_the_answer(patch: pytest.MonkeyPatch) -> None:
    """Count a renewal from its answer."""
    is_watched, renewed = SimKeeper._is_watched, Candidacy.renewed

    def watched(keeper: SimKeeper, known: Candidacy, _sent: float) -> bool:
        return is_watched(keeper, known, keeper._boot())

    patch.setattr(SimKeeper, "_is_watched", watched)
    patch.setattr(Candidacy, "renewed", lambda known, _: renewed(known, BOOT.get()()))


async def _never(_watchdog: SimWatchdog) -> None:
    await trio.sleep_forever()


MISTAKES: dict[str, Plant] = {
    "a write does not look at the lease": _instead(_FencedDatabase, "transaction", _unfenced),
    "leases count by the time of day": _by_wall_clock,
    "a token is used again after a restart": _token_of_before,
    "a standby acts on rows of before its lease": _stale_snapshot,
    "a renewal counts from its answer": _from_the_answer,
    "there is no watchdog": _instead(SimWatchdog, "watch", _never),
    "hosts do not compare tokens": _instead(Host, "require_token", lambda *_: None),
    "a new leader leaves what ran on hosts": _instead(Host, "older", lambda *_: []),
    "runs are under way at a hand-over": _instead(hand_over, "_running", lambda _: 0),
    "the preferred daemon is not given its workflows": _instead(
        lease_times, "must_hand_over", lambda *_, **__: None
    ),
}
"""A life that goes on without renewals is not among them: the watchdog ends it in time."""

pytestmark = pytest.mark.full  # it tries the simulation, which alone can change what it says


@pytest.mark.timeout(900)
@pytest.mark.parametrize("plant", MISTAKES.values(), ids=MISTAKES.keys())
def test_the_days_of_several_daemons_find_a_mistake(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A promise of some day of a few is broken because of it."""
    plant(monkeypatch)

    assert any(live_through(seed).trace.wrongs for seed in range(SEEDS))
