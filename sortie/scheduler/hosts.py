"""Hosts in trouble: paused for growing times, then tried with one run.

Rule 1: a host that is not in here works; this machine never is in here.
Rule 2: after its pause a host gets one run at a time until a run has reached it.
Rule 3: a host without an agent's program counts as such until that agent was launched on it, or
the settings change; for the runs of other agents it is no trouble.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

from msgspec import Struct
from msgspec.structs import replace

from sortie.model import LOCAL
from sortie.scheduler.policy import Policy
from sortie.scheduler.timing import backoff

HOST_WAIT_LIMIT = 600.0
"""Seconds of trouble after which a host's issues go elsewhere, without their workspaces."""


class Troubled(Struct, frozen=True, kw_only=True):
    """A host in trouble since ``since``, ``times`` in a row, that is paused until ``until``.

    ``lacks`` are the accounts whose agent's program is missing there; only theirs is the trouble
    unless the host is ``unwell`` itself. ``pass_time`` sets ``backing_off`` while the host is
    paused, and ``missed`` once it has been in trouble for HOST_WAIT_LIMIT. Times are monotonic
    seconds.
    """

    since: float
    until: float
    times: int
    message: str
    lacks: frozenset[str] = frozenset()
    unwell: bool = True
    backing_off: bool = True
    missed: bool = False

    def concerns(self, accounts: Collection[str]) -> bool:
        """Tell whether no agent of these accounts may simply be started."""
        return self.unwell or self.lacks.issuperset(accounts)


class Hosts:
    """What is known of the hosts that are in trouble."""

    def __init__(self) -> None:
        self._troubled: dict[str, Troubled] = {}

    def of(self, host: str, account: str) -> Troubled | None:
        """Return a host's trouble as far as it concerns an agent, None where it does not."""
        trouble = self._troubled.get(host)
        return trouble if trouble is not None and trouble.concerns((account,)) else None

    def all(self) -> dict[str, Troubled]:
        """Return every host in trouble."""
        return dict(self._troubled)

    def trouble(
        self,
        host: str,
        message: str,
        policy: Policy,
        now: float,
        *,
        lacking: str | None = None,
        at_least: float = 0.0,
    ) -> Troubled | None:
        """Pause a host, for the account ``lacking`` alone where only its agent's program is
        missing; return its trouble, None where it is paused already or is this machine.

        Several runs that meet one trouble at the same time do not prolong the pause, unless it
        would end before the ``at_least`` seconds for which the host cannot be used.
        """
        before = self._troubled.get(host)
        if host == LOCAL:
            return None
        if before is not None and before.backing_off:
            if lacking is not None:
                return self._without_agent(host, before, message, lacking)
            if before.concerns(policy.accounts_on(host)):
                return self._prolonged(host, before, message, now + at_least)
            before = replace(before, times=0, since=now, missed=False)  # it was well for others
        times = before.times + 1 if before is not None else 1
        lacks = before.lacks if before is not None else frozenset()
        rested = Troubled(
            since=before.since if before is not None else now,
            until=now + max(backoff(times, policy), at_least),
            times=times,
            message=message,
            lacks=lacks if lacking is None else lacks | {lacking},
            unwell=lacking is None or (before is not None and before.unwell),
            missed=before is not None and before.missed,
        )
        self._troubled[host] = rested
        return rested

    def _prolonged(
        self, host: str, before: Troubled, message: str, until: float
    ) -> Troubled | None:
        """Pause a host longer that would be tried again too early."""
        if until <= before.until:
            return None
        known = self._troubled[host] = replace(before, message=message, until=until)
        return known

    def _without_agent(
        self, host: str, before: Troubled, message: str, account: str
    ) -> Troubled | None:
        """Note that a paused host lacks an agent's program."""
        if account in before.lacks:
            return None
        lacks = before.lacks | {account}
        known = self._troubled[host] = replace(before, message=message, lacks=lacks)
        return known

    def reached(self, host: str, policy: Policy, *, launched: str | None = None) -> bool:
        """Note that a host could be used, or even the agent of the account ``launched`` be started
        there; return whether that ends its trouble for any agent."""
        before = self._troubled.get(host)
        if before is None:
            return False
        lacks = before.lacks - {launched}
        if lacks:
            self._troubled[host] = replace(before, lacks=lacks, unwell=False)
        else:
            del self._troubled[host]
        accounts = policy.accounts_on(host)
        return any(before.concerns({one}) and one not in lacks for one in accounts)

    def forget(self, hosts: Iterable[str], *, settings_changed: bool) -> None:
        """Know nothing of hosts that are not among these; other settings may mean another agent."""
        kept = set(hosts)
        self._troubled = {
            host: trouble
            for host, trouble in self._troubled.items()
            if host in kept and not (settings_changed and trouble.lacks)
        }

    def pass_time(self, now: float) -> tuple[bool, list[str]]:
        """End pauses; return whether anything changed, and the hosts given up just now."""
        changed, given_up = False, []
        for host, trouble in self._troubled.items():
            backing_off, missed = now < trouble.until, now >= trouble.since + HOST_WAIT_LIMIT
            if (backing_off, missed) != (trouble.backing_off, trouble.missed):
                self._troubled[host] = replace(trouble, backing_off=backing_off, missed=missed)
                changed = True
                if missed and not trouble.missed:
                    given_up.append(host)
        return changed, given_up

    def wakeup_at(self) -> float:
        """Return when ``pass_time`` next has something to tell."""
        rests = (s.until for s in self._troubled.values() if s.backing_off)
        limits = (s.since + HOST_WAIT_LIMIT for s in self._troubled.values() if not s.missed)
        return min((*rests, *limits), default=math.inf)

    def all_lack_agent(self, hosts: Iterable[str], account: str) -> bool:
        """Tell whether every one of these hosts answered that it has not the agent's program."""
        troubles = [self._troubled.get(host) for host in hosts]
        return all(trouble is not None and account in trouble.lacks for trouble in troubles)
