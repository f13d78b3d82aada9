"""The judge: sees that one leader acts for each workflow, and that each takeover is in time.

It knows the server's rows and the true state of each process, as nobody in the world does.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import trio

from sortie.resources.lease import Lease
from tests.sim.leases.lease_server import LeaseServer
from tests.sim.system.trace import Trace

if TYPE_CHECKING:
    from tests.sim.leases.daemon import SimDaemon

TAKEN_OVER_WITHIN = 20.0
"""Seconds in which a workflow without a leader that works is taken over."""

REASONS = {"released", "expired", "drained", "moved"}


class Judge:
    """Each broken promise becomes a line of the trace."""

    def __init__(self, server: LeaseServer, trace: Trace) -> None:
        self._server = server
        self._trace = trace
        self._without_leader: dict[tuple[str, int], float] = {}
        self._able_since: dict[tuple[str, str], float] = {}
        self.longest = 0.0

    def is_newest(self, lease: Lease) -> bool:
        """Tell whether no newer token was given."""
        return lease.token == self._server.leases[lease.workflow].token

    def acts(self, lease: Lease, what: str) -> None:
        """See that a leader acts outside: no newer token may have been given."""
        newest = self._server.leases[lease.workflow].token
        if lease.token != newest:
            self._trace.wrong(
                f"{lease.holder} {what} for {lease.workflow} with token {lease.token}, the newest"
                f" is {newest}"
            )

    def begins(self, lease: Lease, read_at: int, commits: int) -> None:
        """See that a life begins with what was recorded last, as the newest leader."""
        self.acts(lease, "begins")
        if read_at != commits:
            self._trace.wrong(f"{lease.holder} begins with rows that {commits - read_at} commits"
                              " have changed since")  # fmt: skip

    def hands_over(self, lease: Lease, reason: str, left: list[str]) -> None:
        """See that a leader that hands a workflow over leaves nothing behind. One that a newer
        leader has followed already hands nothing over."""
        if left and self.is_newest(lease):
            self._trace.wrong(
                f"{lease.holder} hands {lease.workflow} over ({reason}) while there is {left}"
            )

    async def watch(self, workflows: list[str], daemons: list[SimDaemon]) -> None:
        """See that every workflow is led, or is so in time.

        The looks are so close that a leader which wakes between two stops is seen to lead.
        """
        while True:
            await trio.sleep(0.25)
            for workflow in workflows:
                self._look(workflow, daemons)

    def _look(self, workflow: str, daemons: list[SimDaemon]) -> None:
        now = trio.current_time()
        row = self._server.leases.get(workflow)
        key = (workflow, row.token if row is not None else 0)  # each leader dies for itself
        led = any(
            row is not None and row.daemon == daemon.id and daemon.leads(workflow, row.token)
            for daemon in daemons
        )
        able = list(self._able(workflow, daemons))
        if led or not able:
            self._without_leader.pop(key, None)
            return
        since = max(self._without_leader.setdefault(key, now), min(able))
        self.longest = max(self.longest, now - since)
        if now - since > TAKEN_OVER_WITHIN:
            self._trace.wrong(f"{workflow} has had no leader for {now - since:g} s")
            self._without_leader[key] = now

    def _able(self, workflow: str, daemons: list[SimDaemon]) -> Iterator[float]:
        """Yield since when each daemon could have taken a workflow over."""
        now = trio.current_time()
        for daemon in daemons:
            key = (daemon.id, workflow)
            if daemon.works_well and daemon.can_lead(workflow) and self._server.weather.is_fair:
                yield self._able_since.setdefault(key, now)
            else:
                self._able_since.pop(key, None)

    def judge_leaderships(self) -> None:
        """See that each takeover stands in the history, with its reason."""
        given = [leadership.token for leadership in self._server.leaderships]
        if len(set(given)) != len(given):
            self._trace.wrong(f"a token was given twice: {given}")
        by_workflow: dict[str, list[str | None]] = {}
        for leadership in self._server.leaderships:
            by_workflow.setdefault(leadership.workflow, []).append(leadership.ended_by)
        for workflow, reasons in by_workflow.items():
            tokens = [x.token for x in self._server.leaderships if x.workflow == workflow]
            if any(after <= before for before, after in pairwise(tokens)):
                self._trace.wrong(f"the tokens of {workflow} do not grow: {tokens}")
            if not set(reasons[:-1]) <= REASONS:
                self._trace.wrong(f"a takeover of {workflow} has no reason: {reasons}")
            if self._server.leases[workflow].token != tokens[-1]:
                self._trace.wrong(f"the leader of {workflow} is not in the history")
