"""Hosts in trouble: paused for growing times, then tried with one run.

Rule 1: a host that is not in here works; this machine never is in here.
Rule 2: after its pause a host gets one run at a time until a run has reached it.
Rule 3: a host without the agent's program counts as such until an agent was launched on it, or
the settings change.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from sortie.model import LOCAL
from sortie.scheduler.policy import Policy
from sortie.scheduler.timing import backoff

HOST_WAIT_LIMIT = 600.0
"""Seconds of trouble after which a host's issues go elsewhere, without their workspaces."""


class Troubled(Struct, frozen=True, kw_only=True):
    """A host in trouble since ``since``, ``times`` in a row, that is paused until ``until``.

    ``pass_time`` sets ``backing_off`` while the host is paused, and ``missed`` once it has been in
    trouble for HOST_WAIT_LIMIT. Times are monotonic seconds.
    """

    since: float
    until: float
    times: int
    message: str
    lacks_agent: bool = False
    backing_off: bool = True
    missed: bool = False


class Hosts:
    """What is known of the hosts that are in trouble."""

    def __init__(self) -> None:
        self._troubled: dict[str, Troubled] = {}

    def of(self, host: str) -> Troubled | None:
        """Return a host's trouble, None where it is well."""
        return self._troubled.get(host)

    def all(self) -> dict[str, Troubled]:
        """Return every host in trouble."""
        return dict(self._troubled)

    def trouble(
        self, host: str, message: str, policy: Policy, now: float, *, lacks_agent: bool = False
    ) -> Troubled | None:
        """Pause a host; return its trouble, None where it is paused already or is this machine.

        Several runs that meet one trouble at the same time do not prolong the pause.
        """
        before = self._troubled.get(host)
        if host == LOCAL:
            return None
        if before is not None and before.backing_off:
            return self._without_agent(host, before, message) if lacks_agent else None
        times = before.times + 1 if before is not None else 1
        rested = Troubled(
            since=before.since if before is not None else now,
            until=now + backoff(times, policy),
            times=times,
            message=message,
            lacks_agent=lacks_agent or (before is not None and before.lacks_agent),
            missed=before is not None and before.missed,
        )
        self._troubled[host] = rested
        return rested

    def _without_agent(self, host: str, before: Troubled, message: str) -> Troubled | None:
        """Note that a paused host lacks the agent's program."""
        if before.lacks_agent:
            return None
        known = self._troubled[host] = replace(before, message=message, lacks_agent=True)
        return known

    def reached(self, host: str, *, launched: bool) -> bool:
        """Note that a host could be used, or even an agent launched there; return whether that
        ends its trouble."""
        before = self._troubled.get(host)
        if before is None or (before.lacks_agent and not launched):
            return False
        del self._troubled[host]
        return True

    def forget(self, hosts: Iterable[str], *, settings_changed: bool) -> None:
        """Know nothing of hosts that are not among these; other settings may mean another agent."""
        kept = set(hosts)
        self._troubled = {
            host: trouble
            for host, trouble in self._troubled.items()
            if host in kept and not (settings_changed and trouble.lacks_agent)
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

    def all_lack_agent(self, hosts: Iterable[str]) -> bool:
        """Tell whether every one of these hosts answered that it has no such program."""
        troubles = [self._troubled.get(host) for host in hosts]
        return all(trouble is not None and trouble.lacks_agent for trouble in troubles)
