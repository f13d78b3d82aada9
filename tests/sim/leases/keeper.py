"""The keeper of a simulated process: it does what ``sortie.daemon.lease_keeper`` does in a thread.

The product's candidacies and its pure rules decide; here each statement takes its way through the
simulated network.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import trio

from sortie.daemon.candidacy import Candidacy
from sortie.daemon.server_thread import ANSWER_LIMIT, RETRY_PAUSE
from sortie.resources.lease import Lease
from sortie.scheduler import lease_times
from sortie.scheduler.rendezvous import preferred
from sortie.store.leases import LeaseStanding
from tests.sim.leases.surroundings import Surroundings
from tests.sim.leases.watchdog import SimWatchdog
from tests.sim.leases.wire import NoAnswerError

_T = TypeVar("_T")


class SimKeeper:
    """The candidacies of one process; see LeaseKeeper."""

    def __init__(
        self, daemon: str, around: Surroundings, weight: float, watchdog: SimWatchdog
    ) -> None:
        self.daemon = daemon
        self.weight = weight
        self.draining = False
        self.candidacies: dict[str, Candidacy] = {}
        self.woken = trio.Event()
        self._around = around
        self._server = around.server
        self._boot = around.boot
        self._watchdog = watchdog
        self._jobs: list[Callable[[], object]] = []
        self._renew_at = 0.0
        self._joined = False
        self._joins = 0
        self._unanswered: set[str] = set()

    def stand(self, candidacy: Candidacy) -> None:
        """Acquire a lease as soon as that is possible, and renew it until it is given back."""
        self.candidacies[candidacy.workflow] = candidacy
        self._joined = False
        self.woken.set()

    def withdraw(self, candidacy: Candidacy) -> None:
        """Give the lease back, if it is held: nothing is done for the workflow any more."""
        is_overdue = candidacy.is_overdue
        candidacy.is_withdrawn = True
        if not is_overdue:
            self._watchdog.clear(candidacy.workflow)
        self.candidacies.pop(candidacy.workflow, None)
        self._joined = False
        lease, ending = candidacy.lease, candidacy.ending
        is_given_back = candidacy.is_given_back

        def give_back() -> None:
            if lease is not None and is_given_back:
                self._server.give_back(lease.token, ending)

        self._jobs.append(give_back)
        self.woken.set()

    async def work(self) -> None:
        """Do what is due until the process ends."""
        while True:
            self.woken = trio.Event()
            try:
                pause = await self._round()
            except NoAnswerError:
                self._joined, pause = False, RETRY_PAUSE
            woken = self.woken
            with trio.move_on_after(pause):
                await self._around.plug.through(woken.wait)

    async def leave(self) -> None:
        """Do what was asked for, and be a candidate for nothing any more."""
        try:
            await self._do_jobs()
            await self._ask(partial(self._server.leave, self.daemon))
        except NoAnswerError:
            pass

    async def _ask(self, statement: Callable[[], _T]) -> _T:
        async def make() -> _T:
            return statement()

        return await self._around.plug.through(
            lambda: self._around.database.ask(make, ANSWER_LIMIT)
        )

    async def _round(self) -> float:
        if not self._joined:
            self._joined = True
            candidates = frozenset(self.candidacies)
            self._joins += 1
            await self._ask(
                partial(self._server.join, self.daemon, self.weight, candidates, self._joins)
            )
        await self._do_jobs()
        if self._boot() >= self._renew_at:
            await self._renew()
        workflows, soonest = list(self.candidacies), math.inf
        for standing in await self._ask(partial(self._server.standings, workflows)):
            soonest = min(soonest, await self._look(standing))
        until_renewal = max(self._renew_at - self._boot(), 0.001)
        waits = any(candidacy.lease is None for candidacy in self.candidacies.values())
        return min(until_renewal, lease_times.pause_of_standby(soonest) if waits else math.inf)

    async def _do_jobs(self) -> None:
        while self._jobs:
            await self._ask(self._jobs[0])
            self._jobs.pop(0)

    async def _renew(self) -> None:
        known = self.candidacies.values()
        held = {x.lease.token: x for x in known if x.lease is not None and x.may_renew}
        sent = self._boot()
        renewed, self.draining = await self._ask(
            partial(self._server.renew, self.daemon, list(held))
        )
        self._renew_at = lease_times.renew_at(sent, self._server.length)
        for token, candidacy in held.items():
            if token not in renewed:
                candidacy.lose("another daemon has taken the workflow over")
            elif self._is_watched(candidacy, sent):
                candidacy.renewed(sent)

    def _is_watched(self, candidacy: Candidacy, sent: float) -> bool:
        if candidacy.is_lost or candidacy.is_withdrawn:
            return False
        deadline = lease_times.kill_at(sent, candidacy.seconds)
        self._watchdog.extend(candidacy.workflow, deadline)
        return True

    async def _look(self, standing: LeaseStanding) -> float:
        """Do what follows from how a lease stands; return in how many seconds it may be had."""
        candidacy = self.candidacies.get(standing.workflow)
        if candidacy is None:
            return math.inf
        best = preferred(standing.candidates, standing.workflow)
        if candidacy.lease is not None:
            best = candidacy.steadily(best)
            candidacy.hand_over(
                lease_times.must_hand_over(self.daemon, best, draining=self.draining)
            )
        elif standing.daemon == self.daemon and standing.workflow in self._unanswered:
            await self._ask(partial(self._server.give_back, standing.token, "released"))
            self._unanswered.discard(standing.workflow)
        elif not candidacy.is_lost:
            candidacy.see(standing)
            wait = lease_times.preference(self.daemon, best)
            if self.daemon not in standing.candidates:
                wait = math.inf
            if (acquire_in := candidacy.acquire_in(standing, wait, self.daemon)) > 0:
                return acquire_in
            await self._acquire(candidacy, standing, wait)
        return math.inf

    async def _acquire(self, candidacy: Candidacy, standing: LeaseStanding, wait: float) -> None:
        sent = self._boot()
        if candidacy.is_withdrawn:
            return
        self._unanswered.add(candidacy.workflow)
        token = await self._ask(partial(self._server.acquire, standing, self.daemon, wait))
        is_in_time = self._boot() < lease_times.cancel_at(sent, candidacy.seconds)
        if token is not None and not (is_in_time and self._is_watched(candidacy, sent)):
            self._jobs.append(partial(self._server.give_back, token, "released"))
            token = None  # the answer came too late, or for nothing
        self._unanswered.discard(candidacy.workflow)
        if token is None:
            return
        until = lease_times.kill_at(sent, candidacy.seconds)
        lease = Lease(candidacy.workflow, token, self.daemon, until)
        candidacy.acquired(lease, sent, standing)
