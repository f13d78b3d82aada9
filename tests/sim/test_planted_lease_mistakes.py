"""Mistakes with leases are planted, and the days of several daemons find each of them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
import trio

from sortie.daemon import hand_over
from sortie.daemon.candidacy import Candidacy
from sortie.orchestrator import recovery
from sortie.resources.lease import Lease
from sortie.scheduler import lease_times
from sortie.store import Recovered
from sortie.store.leases import LeaseStanding
from sortie.store.sqlite_database import SqliteDatabase
from tests.sim.leases.clocks import Clock
from tests.sim.leases.database import LeasedStore, _FencedDatabase
from tests.sim.leases.day import live_through
from tests.sim.leases.keeper import SimKeeper
from tests.sim.leases.lease_server import LeaseServer
from tests.sim.leases.timed_lease import BOOT
from tests.sim.leases.watchdog import SimWatchdog

SEEDS = 120
Plant = Callable[[pytest.MonkeyPatch], None]


def _instead(owner: object, name: str, other: object) -> Plant:
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

    async def looking(keeper: SimKeeper, standing: LeaseStanding) -> float:
        known = keeper.candidacies.get(standing.workflow)
        if known is not None and known.lease is None:
            for workflow in keeper._around.workflows:
                rows = workflow.rows
                seen.setdefault((keeper.daemon, workflow.name), (rows.left, rows.commits))
        return await look(keeper, standing)

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


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is planted. ``breaks`` is what a day says that finds it, as a pattern; ``often`` are the
    things that bring it out, and ``first`` is the first seed that is tried."""

    plant: Plant
    breaks: str
    often: tuple[str, ...] = ()
    first: int = 0


LEFT_BEHIND = "outlives the recovery"
OUTDATED = r"with token \d+, the newest is"

MISTAKES: dict[str, Mistake] = {
    "a write does not look at the lease": Mistake(
        _instead(_FencedDatabase, "transaction", _unfenced),
        "was written with the older token",
        ("requests to the database take", "transactions take", "SIGSTOP"),
    ),
    "leases count by the time of day": Mistake(
        _by_wall_clock, OUTDATED, ("the clock is set", "SIGSTOP", "cut from the database")
    ),
    "a token is used again after a restart": Mistake(
        _token_of_before, "a token was given twice", ("the daemon",)
    ),
    "a standby acts on rows of before its lease": Mistake(
        _stale_snapshot, r"begins with rows that \d+ commits have changed since"
    ),
    "a renewal counts from its answer": Mistake(
        _from_the_answer, LEFT_BEHIND, ("answers come late, then SIGSTOP",)
    ),
    "there is no watchdog": Mistake(
        _instead(SimWatchdog, "watch", _never), LEFT_BEHIND, ("SIGSTOP",)
    ),
    "runs are under way at a hand-over": Mistake(
        _instead(hand_over, "_running", lambda _: 0), r"hands w\d over \(\w+\) while there is"
    ),
    "the preferred daemon is not given its workflows": Mistake(
        _instead(lease_times, "must_hand_over", lambda *_, **__: None),
        r"is led by .*, and should be by",
    ),
    "a lease is given back while a change may arrive": Mistake(
        _instead(Lease, "leave_unanswered", lambda *_: None),
        rf"comments on \w+ for \w+ {OUTDATED}",
        first=43217,
    ),
    "the wait for a lost host goes by the clock of another machine": Mistake(
        _instead(recovery, "current_lease", lambda: None), LEFT_BEHIND, first=40353
    ),
    "a lease that was given up is renewed": Mistake(
        _instead(Candidacy, "may_renew", property(lambda known: known.lease is not None)),
        "has had no leader for",
        ("cut from the database, hosts are slow",),
    ),
}
"""What something else makes good is not among them: the watchdog ends a life that goes on without
renewals, recovery ends what is on record as started on hosts by older leaders, and hosts that
compare no tokens start nothing late all the same, as they wait for a word of the daemon."""

pytestmark = pytest.mark.full  # it tries the simulation, which alone can change what it says


@pytest.mark.timeout(900)
@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_the_days_of_several_daemons_find_a_mistake(mistake: Mistake) -> None:
    """Some day of a few says what the mistake breaks, and is right without it."""
    for seed in range(mistake.first, mistake.first + SEEDS):
        with pytest.MonkeyPatch.context() as patch:
            mistake.plant(patch)
            wrongs = live_through(seed, mistake.often).trace.wrongs
        if any(re.search(mistake.breaks, wrong.text) for wrong in wrongs):
            break
    else:
        pytest.fail(f"no day of {SEEDS} says: {mistake.breaks}")

    assert live_through(seed, mistake.often).trace.wrongs == []
