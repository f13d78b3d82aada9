"""A thread that acquires and renews the leases of this process on one database.

Rule 1: it has a connection of its own, so that neither a slow transaction nor a loop that stands
still keeps a lease from being renewed.
Rule 2: a lease counts from the moment before its renewal was sent, on this machine's clock.
Rule 3: the watchdog knows of a deadline before the daemon acts by it.
Rule 4: a process that is about to be killed for a lease that is over changes nothing any more.
"""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import psycopg

from sortie.daemon.candidacy import Candidacy, LeaseCounts
from sortie.daemon.server_thread import ServerThread
from sortie.daemon.watchdog_client import LeaseWatchdog
from sortie.resources.lease import Lease, LeaseLost, boot_time
from sortie.scheduler import lease_times
from sortie.scheduler.rendezvous import preferred
from sortie.store.leases import LeaseStanding
from sortie.store.postgres_address import PostgresAddress
from sortie.store.postgres_errors import explanation
from sortie.store.postgres_fleet import FleetWatch
from sortie.store.postgres_leases import CHANNEL, DAEMON_SECONDS, PostgresLeases
from sortie.store.postgres_shared import bring_up_to_date

UNFIT_PAUSE = 10.0
"""Seconds for which a lease is left to others by a daemon that is not fit, where there are none."""


class LeaseKeeper(ServerThread):
    """The candidacies of this process; ``daemon`` is its id, ``name`` is HOST:PID.

    Where it ``is_coming_back`` it stays known to the others at its end.
    """

    def __init__(
        self,
        address: PostgresAddress,
        daemon: str,
        name: str,
        version: str,
        weight: float,
        watchdog: LeaseWatchdog,
    ) -> None:
        super().__init__("sortie-leases", address)
        self.daemon, self.name = daemon, name
        self.draining = False
        self.error: str | None = None
        self._unanswered: set[str] = set()  # workflows whose lease may be acquired without our word
        self._version, self._weight = version, weight
        self._watchdog = watchdog
        self._leases = PostgresLeases(self.connection, daemon, name)
        self._fleet = FleetWatch(self.connection)
        self._is_fleet_stale = True
        self._counts: defaultdict[str, LeaseCounts] = defaultdict(LeaseCounts)
        self._candidacies: dict[str, Candidacy] = {}
        self._jobs: list[Callable[[], object]] = []
        self._extending = threading.Lock()  # no deadline comes after a workflow was withdrawn
        self._database = ""
        self._renew_at = 0.0
        self.is_coming_back = False
        self.is_overdue = False
        """Whether a lease was over before this process had ended what it did for the workflow."""

    def stand(self, candidacy: Candidacy) -> None:
        """Acquire a lease as soon as that is possible, and renew it until it is given back."""
        candidacy.daemon, candidacy.counts = self.daemon, self._counts[candidacy.workflow]
        with self.guard:
            self._candidacies = {**self._candidacies, candidacy.workflow: candidacy}
        self.join_again()

    def join_again(self) -> None:
        """Tell the others for which workflows this process stands now."""
        self._do(self._forget_session)

    def withdraw(self, candidacy: Candidacy) -> None:
        """Give the lease back, if it is held, or leave it to its end: nothing is done for the
        workflow any more."""
        with self._extending:
            self._note_overdue()
            candidacy.is_withdrawn = True
            if not self.is_overdue:
                self._watchdog.clear(candidacy.workflow)

        def withdraw() -> None:
            with self.guard:
                others = self._candidacies.items()
                self._candidacies = {name: one for name, one in others if one is not candidacy}
            self._forget_session()
            if candidacy.lease is not None and candidacy.is_given_back:
                self._leases.give_back(candidacy.lease.token, candidacy.ending)
            candidacy.tell(candidacy.withdrawn.set)

        self._do(withdraw)

    @property
    def candidacies(self) -> Sequence[Candidacy]:
        """What this process stands for now."""
        return tuple(self._candidacies.values())

    def drain(self, *, draining: bool) -> None:
        """Hand all workflows over, or lead some again, once the server has taken it."""

        def drain() -> None:
            self._leases.drain(draining=draining)
            self.draining = draining

        self._do(drain)

    def _do(self, job: Callable[[], object]) -> None:
        with self.guard:
            self._jobs.append(job)
        self.wake()

    def _fail(self, exc: Exception) -> None:
        if isinstance(exc, psycopg.Error):
            exc = explanation(exc, "keep the leases in", self.address)
        self.error = error = str(exc)
        for candidacy in self._candidacies.values():
            candidacy.fail(error)

    def _end(self) -> None:
        self._refuse_if_overdue()
        self._do_jobs()
        if not self.is_coming_back:
            self._leases.leave()

    def _ensure_session(self) -> None:
        self._refuse_if_overdue()
        super()._ensure_session()

    def _refuse_if_overdue(self) -> None:
        """Raise LeaseLost where this process must not do anything any more."""
        self._note_overdue()
        if self.is_overdue:
            raise LeaseLost("a lease was over before this daemon could give it up")

    def _note_overdue(self) -> None:
        self.is_overdue = self.is_overdue or any(one.is_overdue for one in self.candidacies)

    def _round(self) -> float:
        """Do what is due; return the seconds until the next look."""
        self._do_jobs()
        self._ensure_session()
        for _ in self.connection.live().notifies(timeout=0):
            pass  # each round looks at everything
        if boot_time() >= self._renew_at:
            self._renew()
        acquire_in = self._look(self._leases.standings(self._candidacies))
        if self._is_fleet_stale:
            self._see_fleet()
        until_renewal = max(self._renew_at - boot_time(), 0.0)
        self.error = None
        waits = any(candidacy.lease is None for candidacy in self._candidacies.values())
        pause = lease_times.pause_of_standby(acquire_in) if waits else math.inf
        return min(until_renewal, pause)

    def _see_fleet(self) -> None:
        """Let all candidacies know which daemons there are; leases were renewed before."""
        fleet = self._fleet.see(self._candidacies, boot_time())
        for candidacy in self._candidacies.values():
            candidacy.fleet = fleet
        self._is_fleet_stale = False

    def _begin_session(self) -> None:
        bring_up_to_date(self.connection)
        self.connection.execute("SET application_name = 'sortie leases'")
        self.connection.execute("SET lock_timeout = '2s'")
        self.connection.execute(f"LISTEN {CHANNEL}")
        fit = [name for name, candidacy in self._candidacies.items() if candidacy.is_fit]
        self._database = self._leases.database()
        self._leases.join(self._version, self._weight, fit, self._candidacies)
        self._leases.forget_the_gone()

    def _do_jobs(self) -> None:
        while True:
            with self.guard:
                if not self._jobs:
                    return
                job = self._jobs[0]
            job()
            with self.guard:
                self._jobs.pop(0)

    def _renew(self) -> None:
        held = {
            candidacy.lease.token: candidacy
            for candidacy in self._candidacies.values()
            if candidacy.lease is not None and candidacy.may_renew
        }
        sent = boot_time()
        renewed = self._leases.renew({token: one.seconds for token, one in held.items()})
        told = self._leases.stay()
        self.draining = bool(told)
        if told is None:  # this daemon was away for so long that others know of it no more
            self._forget_session()
        self._is_fleet_stale = True
        shortest = min((one.seconds for one in self._candidacies.values()), default=DAEMON_SECONDS)
        self._renew_at = lease_times.renew_at(sent, min(shortest, DAEMON_SECONDS))
        for token, candidacy in held.items():
            if token in renewed:
                self._extend(candidacy, sent)
            else:
                candidacy.lose("another daemon has taken the workflow over")

    def _extend(self, candidacy: Candidacy, sent: float) -> None:
        """Let a lease be valid longer, if it has not run out: what has stopped stays so."""
        if self._is_watched(candidacy, sent):
            candidacy.renewed(sent)

    def _is_watched(self, candidacy: Candidacy, sent: float) -> bool:
        """Tell the watchdog until when the daemon may act; False where it acts no more."""
        with self._extending:
            if candidacy.is_lost or candidacy.is_withdrawn:
                return False
            deadline = lease_times.kill_at(sent, candidacy.seconds)
            self._watchdog.extend(candidacy.workflow, deadline)
            return True

    def _look(self, standings: Mapping[str, LeaseStanding]) -> float:
        """Do what follows from how leases stand; return in how many seconds one may be acquired."""
        soonest = math.inf
        for workflow, standing in standings.items():
            candidacy = self._candidacies.get(workflow)
            if candidacy is None:
                continue
            candidacy.candidates = len(standing.candidates)
            best = preferred(standing.candidates, workflow)
            candidacy.has_others = any(each != self.daemon for each in standing.candidates)
            if candidacy.lease is not None:
                # One that is not fit gives the workflow up by itself.
                best = candidacy.steadily(best) if candidacy.is_fit else self.daemon
                draining = self.draining
                candidacy.hand_over(
                    lease_times.must_hand_over(self.daemon, best, draining=draining)
                )
            elif standing.daemon == self.daemon and workflow in self._unanswered:
                # It was acquired, and has never been valid here.
                self._leases.give_back(standing.token, "released")
                self._unanswered.discard(workflow)
            elif not candidacy.is_lost:
                candidacy.see(standing)
                wait = lease_times.preference(self.daemon, best)
                if self.daemon not in standing.candidates:
                    wait = math.inf if self.draining or standing.candidates else UNFIT_PAUSE
                if (acquire_in := candidacy.acquire_in(standing, wait, self.daemon)) <= 0:
                    self._acquire(candidacy, standing, wait)
                else:
                    soonest = min(soonest, acquire_in)
        return soonest

    def _acquire(self, candidacy: Candidacy, standing: LeaseStanding, wait: float) -> None:
        sent, seconds = boot_time(), candidacy.seconds
        if candidacy.is_withdrawn:
            return
        self._watchdog.start()
        self._unanswered.add(candidacy.workflow)
        token = self._leases.acquire(standing, seconds, wait)
        if token is not None and not (
            boot_time() < lease_times.cancel_at(sent, seconds) and self._is_watched(candidacy, sent)
        ):
            self._leases.give_back(token, "released")  # the answer came too late, or for nothing
            token = None
        self._unanswered.discard(candidacy.workflow)
        if token is None:
            return
        valid_until, refuse = lease_times.kill_at(sent, seconds), candidacy.counts.refuse
        scope = f"{self._database}/{candidacy.workflow}"
        lease = Lease(candidacy.workflow, token, self.name, valid_until, refuse, scope)
        candidacy.acquired(lease, sent, standing)
        self._is_fleet_stale = True
