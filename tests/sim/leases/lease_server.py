"""The shared schema: daemons, candidates, leases and leaderships, as one server holds them.

Each method is one transaction of the server, at one moment of its own clock. It does what the
statements of ``sortie.store.postgres_leases`` do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from sortie.resources.lease import LeaseLost
from sortie.store.leases import LeaseStanding
from tests.sim.leases.clocks import Clock
from tests.sim.leases.wire import Weather
from tests.sim.system.trace import Trace


@dataclass(slots=True)
class DaemonRow:
    """A process. ``candidates`` are the workflows that it can lead; ``joined`` is how many times it
    has said so."""

    weight: float
    candidates: frozenset[str]
    expires: float
    draining: bool = False
    joined: int = 0


@dataclass(slots=True)
class LeaseRow:
    """The lease of a workflow; ``daemon`` is None where it was given back."""

    workflow: str
    token: int
    daemon: str | None
    expires: float


@dataclass(slots=True)
class GivenToken:
    """One token that was given; ``ended_by`` is None while it is the newest and not given back."""

    token: int
    workflow: str
    daemon: str
    ended_by: str | None = None


@dataclass(slots=True)
class OpenTransaction:
    """A writing transaction that holds the lock on its lease's row."""

    token: int
    terminated: bool = False


@dataclass(slots=True)
class LeaseServer:
    """The server of the database; ``weather`` is how all who ask it fare."""

    clock: Clock
    length: float
    trace: Trace
    weather: Weather = field(default_factory=Weather)
    daemons: dict[str, DaemonRow] = field(default_factory=dict)
    leases: dict[str, LeaseRow] = field(default_factory=dict)
    leaderships: list[GivenToken] = field(default_factory=list)
    transactions: dict[str, list[OpenTransaction]] = field(default_factory=dict)
    notify: Callable[[], object] = lambda: None
    last_token: int = 0

    def now(self) -> float:
        """Return the server's time."""
        return self.clock.wall()

    def next_token(self, workflow: str) -> int:
        """Return a token that is greater than all before it."""
        self.last_token += 1
        return self.last_token

    def join(self, daemon: str, weight: float, candidates: frozenset[str], number: int) -> None:
        """Be known as a candidate for these workflows, and for no others. A transaction waits for
        the row that an earlier one of the daemon has changed, so a late one changes nothing."""
        row = self.daemons.setdefault(daemon, DaemonRow(weight, candidates, 0.0))
        if number < row.joined:
            return
        row.joined = number
        row.candidates, row.expires = candidates, self.now() + self.length
        for workflow in sorted(candidates - self.leases.keys()):
            token = self.next_token(workflow)
            self.leases[workflow] = LeaseRow(workflow, token, None, 0.0)

    def leave(self, daemon: str) -> None:
        """Be a candidate for nothing any more."""
        self.daemons.pop(daemon, None)

    def renew(self, daemon: str, tokens: Collection[int]) -> tuple[frozenset[int], bool]:
        """Renew leases; return those that are held still, and whether the daemon drains."""
        now, renewed = self.now(), set()
        if (own := self.daemons.get(daemon)) is not None:
            own.expires = now + self.length
        for row in self.leases.values():
            if row.token in tokens:
                row.expires = now + self.length
                renewed.add(row.token)
        return frozenset(renewed), own is not None and own.draining

    def standings(self, workflows: Collection[str]) -> list[LeaseStanding]:
        """Return how leases stand."""
        now = self.now()
        living = {i: x for i, x in self.daemons.items() if x.expires > now and not x.draining}
        return [
            LeaseStanding(
                workflow=row.workflow,
                token=row.token,
                daemon=row.daemon,
                name=row.daemon,
                left=row.expires - now,
                expires=row.expires,
                candidates={i: x.weight for i, x in living.items() if row.workflow in x.candidates},
            )
            for row in self.leases.values()
            if row.workflow in workflows
        ]

    def acquire(self, standing: LeaseStanding, daemon: str, wait: float) -> int | None:
        """Take a lease that has been over for some seconds; return its token, None where another
        daemon was first or has renewed it.

        The former leader's session is ended first: a transaction of it would hold the row.
        """
        row = self.leases[standing.workflow]
        if row.token != standing.token or row.expires > self.now() - wait:
            return None
        for transaction in self.transactions.pop(row.workflow, ()):
            transaction.terminated = True
        row.token, row.daemon = self.next_token(row.workflow), daemon
        row.expires = self.now() + self.length
        for before in self.leaderships:
            if before.workflow == row.workflow and before.ended_by is None:
                before.ended_by = "expired"
        self.leaderships.append(GivenToken(row.token, row.workflow, daemon))
        self.trace.note("server", f"{row.workflow} is led by {daemon} with token {row.token}")
        self.notify()
        return row.token

    def give_back(self, token: int, ending: str) -> None:
        """Set a lease free, where it is this token's still."""
        for row in self.leases.values():
            if row.token == token:
                row.daemon, row.expires = None, self.now()
                self._end(token, ending)
                self.trace.note("server", f"{row.workflow} is given back: {ending}, token {token}")
        self.notify()

    def _end(self, token: int, ending: str) -> None:
        for leadership in self.leaderships:
            if leadership.token == token:
                leadership.ended_by = ending

    def require_token(self, workflow: str, token: int) -> None:
        """Raise LeaseLost where a newer token was given."""
        if self.leases[workflow].token != token:
            raise LeaseLost(f"token {token} of {workflow} is not the newest")

    def end(self, workflow: str, transaction: OpenTransaction) -> None:
        """End a transaction, and with it its lock."""
        if not transaction.terminated:
            self.transactions[workflow].remove(transaction)
