"""What is exchanged with the other daemons of a database about common limits; runs in a thread.

One of the daemons divides the slots, by a lease of its own. That one is shorter than those of
workflows, so that another daemon divides before the grants of a dead one are stale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import psycopg
from msgspec import Struct

from sortie.model import StoreError
from sortie.resources.lease import boot_time
from sortie.scheduler.common_slots import CommonAllocator, SlotReport
from sortie.scheduler.common_usage import CommonLimit, Step
from sortie.store.postgres_address import PostgresAddress
from sortie.store.postgres_common import REPORTED, SLOTS, CommonTables, OwnGrants
from sortie.store.postgres_connection import PostgresConnection
from sortie.store.postgres_errors import explanation
from sortie.store.postgres_leases import PostgresLeases
from sortie.store.postgres_shared import bring_up_to_date

ANSWER_LIMIT = 4.0
"""Seconds after which a server that does not answer is given up, and connected to anew."""


class Order(Struct, frozen=True, kw_only=True):
    """What this process has to say, and asks: the reports of its ``workflows`` that are news, what
    is to be put on record of accounts, with workflow and token, and the ``accounts`` it has."""

    workflows: Sequence[str]
    reports: Mapping[str, SlotReport]
    steps: Sequence[tuple[str, int, Step]]
    accounts: frozenset[str]


class Answer(Struct, frozen=True, kw_only=True):
    """What stands on record. ``session`` counts the connections that were made. ``guaranteed`` are
    more slots than the ``total``, 0 where that is not so or not known to this daemon."""

    session: int
    own: OwnGrants
    limits: Mapping[str, CommonLimit]
    guaranteed: int
    total: int


class CommonExchange:
    """The way of one process to the shared schema; ``seconds`` is how long its lease for dividing
    lasts. One thread at a time calls it."""

    def __init__(self, address: PostgresAddress, daemon: str, name: str, seconds: float) -> None:
        self.connection = PostgresConnection(address)
        self._address = address
        self._tables = CommonTables(self.connection)
        self._leases = PostgresLeases(self.connection, daemon, name)
        self._seconds = seconds
        self._session = 0
        self._divider: int | None = None
        self._allocator = CommonAllocator({})
        self._renew_at = 0.0

    @property
    def divides(self) -> bool:
        """Whether this process divides the slots."""
        return self._divider is not None

    def exchange(self, order: Order) -> Answer:
        """Put on record what is to be, divide the slots if it falls to this process, and return
        what stands on record. Raises StoreError."""
        try:
            with self.connection.answering(ANSWER_LIMIT):
                return self._exchange(order)
        except (psycopg.Error, StoreError, OSError) as exc:
            # What was written is not known: the next one who divides begins from the record.
            self._divider = None
            self.connection.drop()
            if isinstance(exc, psycopg.Error):
                raise explanation(exc, "divide the slots in", self._address) from exc
            raise StoreError(str(exc)) from exc

    def end(self, order: Order) -> None:
        """Say the last, leave the division to others, and close; failures have no effect."""
        try:
            with self.connection.answering(ANSWER_LIMIT):
                self._exchange(order, divide=False)
                if self._divider is not None:
                    self._leases.give_back(self._divider, "released")
        except (psycopg.Error, StoreError, OSError):
            pass  # others wait until the lease is over
        self.connection.drop()

    def is_concerned(self, workflows: Sequence[str]) -> bool:
        """Tell whether what the server has told meanwhile concerns this process; never blocks.
        Raises psycopg.Error."""
        concerned = False
        own = self.connection.live().info.backend_pid
        for message in self.connection.live().notifies(timeout=0):
            if message.pid == own:
                continue
            if message.channel == REPORTED:
                concerned |= self.divides
            else:
                named = message.payload.splitlines()
                concerned |= not named or not set(named).isdisjoint(workflows)
        return concerned

    def _exchange(self, order: Order, *, divide: bool = True) -> Answer:
        self.connection.live()
        if self._session != self.connection.session:
            bring_up_to_date(self.connection)
            self._tables.begin_session()
            self._give_up_division()
            self._session = self.connection.session
        if order.reports:
            self._tables.put_reports(order.reports)
        for workflow, token, step in order.steps:
            self._tables.put(workflow, token, step)
        own = self._tables.grants(order.workflows)
        if divide and self._divide(own):
            own = self._tables.grants(order.workflows)
        over = self._allocator.guaranteed > self._allocator.total and self.divides
        return Answer(
            session=self._session,
            own=own,
            limits=self._tables.limits(order.accounts) if order.accounts else {},
            guaranteed=self._allocator.guaranteed if over else 0,
            total=self._allocator.total,
        )

    def _give_up_division(self) -> None:
        """Leave the division that an earlier session of this process had."""
        standing = self._leases.standings((SLOTS,))[SLOTS]
        if standing.daemon == self._leases.daemon:
            self._leases.give_back(standing.token, "released")

    def _divide(self, own: OwnGrants) -> bool:
        """Divide the slots if that falls to this process; tell whether there is anything new."""
        if self._divider is None:
            if own.divider is not None or not self._begin():
                return False
        elif boot_time() >= self._renew_at and not self._renewed():
            return False
        assert self._divider is not None
        news = self._allocator.allocate(*self._tables.reports(), boot_time())
        if news and not self._tables.put_grants(self._divider, news):
            self._divider = None
        return bool(news)

    def _begin(self) -> bool:
        """Acquire the lease for dividing, if it is free, and go on from the record."""
        standing = self._leases.standings((SLOTS,))[SLOTS]
        if standing.left > 0:
            return False
        self._divider = self._leases.acquire(standing, self._seconds, 0.0)
        if self._divider is None:
            return False
        self._allocator = CommonAllocator(self._tables.all_grants())
        self._renew_at = boot_time() + self._seconds / 3
        return True

    def _renewed(self) -> bool:
        assert self._divider is not None
        if not self._tables.renew(self._divider, self._seconds):
            self._divider = None
            return False
        self._renew_at = boot_time() + self._seconds / 3
        return True
