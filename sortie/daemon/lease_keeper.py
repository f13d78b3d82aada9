"""A thread that acquires and renews the leases of this process on one database.

Rule 1: it has a connection of its own, so that neither a slow transaction nor a loop that stands
still keeps a lease from being renewed.
Rule 2: a lease counts from the moment before its renewal was sent, on this machine's clock.
Rule 3: the watchdog knows of a deadline before the daemon acts by it.
"""

from __future__ import annotations

import math
import select
import socket
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import psycopg

from sortie.daemon.candidacy import Candidacy, LeaseCounts
from sortie.daemon.watchdog_client import LeaseWatchdog
from sortie.model import StoreError
from sortie.resources.lease import Lease, boot_time
from sortie.scheduler import lease_times
from sortie.scheduler.rendezvous import preferred
from sortie.store.leases import LeaseStanding
from sortie.store.postgres_address import PostgresAddress
from sortie.store.postgres_connection import PostgresConnection
from sortie.store.postgres_errors import explanation
from sortie.store.postgres_fleet import FleetWatch
from sortie.store.postgres_leases import CHANNEL, DAEMON_SECONDS, PostgresLeases
from sortie.store.postgres_shared import bring_up_to_date

UNFIT_PAUSE = 10.0
"""Seconds for which a lease is left to others by a daemon that is not fit, where there are none."""

RETRY_PAUSE = 0.5
"""Seconds after a failure."""

ANSWER_LIMIT = 4.0
"""Seconds after which a server that does not answer is given up, and connected to anew."""


class LeaseKeeper:
    """The candidacies of this process; ``daemon`` is its id, ``name`` is HOST:PID."""

    def __init__(
        self,
        address: PostgresAddress,
        daemon: str,
        name: str,
        version: str,
        weight: float,
        watchdog: LeaseWatchdog,
    ) -> None:
        self.address = address
        self.daemon, self.name = daemon, name
        self.draining = False
        self.error: str | None = None
        self._version, self._weight = version, weight
        self._watchdog = watchdog
        self._connection = PostgresConnection(address)
        self._leases = PostgresLeases(self._connection, daemon, name)
        self._fleet = FleetWatch(self._connection)
        self._is_fleet_stale = True
        self._counts: defaultdict[str, LeaseCounts] = defaultdict(LeaseCounts)
        self._candidacies: dict[str, Candidacy] = {}
        self._jobs: list[Callable[[], object]] = []
        self._guard = threading.Lock()
        self._extending = threading.Lock()  # no deadline comes after a workflow was withdrawn
        self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        self._session = 0
        self._renew_at = 0.0
        self._busy_since: float | None = None
        self._closing, self._leaving = False, True
        self._thread = threading.Thread(target=self._work, name="sortie-leases", daemon=True)

    def start(self) -> None:
        """Begin; from now on the process is known to the others."""
        self._thread.start()

    def close(self, leaving: bool = True) -> None:
        """End, and leave the others if ``leaving``; blocks for some seconds at most."""
        self._leaving = leaving
        self._closing = True
        self._wake()
        self._thread.join(ANSWER_LIMIT)
        self._connection.give_up()
        self._thread.join(ANSWER_LIMIT)

    def stand(self, candidacy: Candidacy) -> None:
        """Acquire a lease as soon as that is possible, and renew it until it is given back."""
        candidacy.daemon, candidacy.counts = self.daemon, self._counts[candidacy.workflow]
        with self._guard:
            self._candidacies = {**self._candidacies, candidacy.workflow: candidacy}
        self.join_again()

    def join_again(self) -> None:
        """Tell the others for which workflows this process stands now."""
        self._do(self._forget_session)

    def _forget_session(self) -> None:
        self._session = 0

    def withdraw(self, candidacy: Candidacy) -> None:
        """Give the lease back, if it is held: nothing is done for the workflow any more."""
        with self._extending:
            candidacy.is_withdrawn = True
            self._watchdog.clear(candidacy.workflow)

        def withdraw() -> None:
            with self._guard:
                others = self._candidacies.items()
                self._candidacies = {name: one for name, one in others if one is not candidacy}
            self._forget_session()
            if candidacy.lease is not None:
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

    def give_up_silent_server(self) -> None:
        """Connect anew where the server has not answered for a while; called by other threads."""
        since = self._busy_since
        if since is not None and boot_time() - since > ANSWER_LIMIT:
            self._connection.give_up()

    def _do(self, job: Callable[[], object]) -> None:
        with self._guard:
            self._jobs.append(job)
        self._wake()

    def _wake(self) -> None:
        with suppress(BlockingIOError):
            self._waker.send(b"+")

    def _work(self) -> None:
        while not self._closing:
            pause = RETRY_PAUSE
            try:
                self._busy_since = boot_time()
                pause = self._round()
                self.error = None
            except (psycopg.Error, StoreError, OSError) as exc:
                self._connection.drop()
                self.error = error = self._explained(exc)
                for candidacy in self._candidacies.values():
                    candidacy.fail(error)
            finally:
                self._busy_since = None
            self._sleep(pause)
        with suppress(psycopg.Error, StoreError, OSError):
            self._do_jobs()
            if self._leaving:
                self._leases.leave()
        self._connection.drop()

    def _explained(self, exc: Exception) -> str:
        if isinstance(exc, psycopg.Error):
            return str(explanation(exc, "keep the leases in", self.address))
        return str(exc)

    def _sleep(self, pause: float) -> None:
        """Wait for a job, for what the server tells, or for some seconds."""
        sources: list[Any] = [self._woken]
        if not self._connection.is_lost:
            sources.append(self._connection.live().fileno())
        with suppress(OSError, ValueError, psycopg.Error):
            select.select(sources, [], [], pause)
        with suppress(BlockingIOError):
            self._woken.setblocking(False)
            self._woken.recv(4096)

    def _round(self) -> float:
        """Do what is due; return the seconds until the next look."""
        if self._connection.live() is not None and self._session != self._connection.session:
            self._begin_session()
        self._do_jobs()
        if self._session != self._connection.session:
            self._begin_session()
        for _ in self._connection.live().notifies(timeout=0):
            pass  # each round looks at everything
        if boot_time() >= self._renew_at:
            self._renew()
        self._look(self._leases.standings(self._candidacies))
        if self._is_fleet_stale:
            self._see_fleet()
        until_renewal = max(self._renew_at - boot_time(), 0.0)
        waits = any(candidacy.lease is None for candidacy in self._candidacies.values())
        return min(until_renewal, lease_times.LOOK) if waits else until_renewal

    def _see_fleet(self) -> None:
        """Let all candidacies know which daemons there are; leases were renewed before."""
        fleet = self._fleet.see(self._candidacies, boot_time())
        for candidacy in self._candidacies.values():
            candidacy.fleet = fleet
        self._is_fleet_stale = False

    def _begin_session(self) -> None:
        bring_up_to_date(self._connection)
        self._connection.execute("SET application_name = 'sortie leases'")
        self._connection.execute("SET lock_timeout = '2s'")
        self._connection.execute(f"LISTEN {CHANNEL}")
        fit = [name for name, candidacy in self._candidacies.items() if candidacy.is_fit]
        self._leases.join(self._version, self._weight, fit, self._candidacies)
        self._leases.forget_the_gone()
        self._session = self._connection.session

    def _do_jobs(self) -> None:
        while True:
            with self._guard:
                if not self._jobs:
                    return
                job = self._jobs[0]
            job()
            with self._guard:
                self._jobs.pop(0)

    def _renew(self) -> None:
        held = {
            candidacy.lease.token: candidacy
            for candidacy in self._candidacies.values()
            if candidacy.lease is not None
        }
        sent = boot_time()
        renewed = self._leases.renew({token: one.seconds for token, one in held.items()})
        self.draining = self._leases.is_draining()
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

    def _look(self, standings: Mapping[str, LeaseStanding]) -> None:
        for workflow, standing in standings.items():
            candidacy = self._candidacies.get(workflow)
            if candidacy is None:
                continue
            candidacy.candidates = len(standing.candidates)
            best = preferred(standing.candidates, workflow)
            candidacy.has_others = any(each != self.daemon for each in standing.candidates)
            if candidacy.lease is not None:
                # One that is not fit gives the workflow up by itself.
                best = best if candidacy.is_fit else self.daemon
                draining = self.draining
                candidacy.hand_over(
                    lease_times.must_hand_over(self.daemon, best, draining=draining)
                )
            elif standing.daemon == self.daemon:
                # The answer to an acquisition was lost, so the lease has never been valid here.
                self._leases.give_back(standing.token, "released")
            elif not candidacy.is_lost:
                candidacy.see(standing)
                wait = lease_times.acquire_at(0.0, self.daemon, best)
                if self.daemon not in standing.candidates:
                    wait = math.inf if self.draining or standing.candidates else UNFIT_PAUSE
                if standing.left <= -wait:
                    self._acquire(candidacy, standing, wait)

    def _acquire(self, candidacy: Candidacy, standing: LeaseStanding, wait: float) -> None:
        sent, seconds = boot_time(), candidacy.seconds
        if not self._is_watched(candidacy, sent):
            return
        token = None
        try:
            token = self._leases.acquire(standing, seconds, wait)
        finally:
            if token is None:
                self._watchdog.clear(candidacy.workflow)
        if token is None:
            return
        valid_until, refuse = lease_times.valid_until(sent, seconds), candidacy.counts.refuse
        lease = Lease(candidacy.workflow, token, self.name, valid_until, refuse)
        candidacy.acquired(lease, sent, standing)
        self._is_fleet_stale = True
