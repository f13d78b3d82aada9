"""Hosts in trouble, reckoned beside the scheduler: how long each must rest, and why it need not.

Rule: a rest is as long as the trouble before it was frequent; neither another trouble meanwhile nor
a reload of the settings changes it, and it is over when the host was reached.
"""

from __future__ import annotations

from dataclasses import dataclass

from sortie.model import ErrorKind, Failed
from sortie.scheduler import Event, Policy
from sortie.scheduler import events as ev
from sortie.scheduler.hosts import HOST_WAIT_LIMIT
from sortie.scheduler.timing import backoff


@dataclass(slots=True)
class Rest:
    """A host in trouble ``since`` when, ``times`` in a row; it rests ``until`` when."""

    since: float
    until: float
    times: int
    lacks_agent: bool


class Rests:
    """The hosts in trouble; times are monotonic seconds."""

    def __init__(self) -> None:
        self._rests: dict[str, Rest] = {}
        self._lacking = False

    def hear(self, event: Event, host: str | None) -> None:
        """Take in an event before the scheduler does; ``host`` is where its run is."""
        match event:
            case ev.HostReached(host=reached):
                if reached in self._rests and not self._rests[reached].lacks_agent:
                    del self._rests[reached]
            case ev.ProcessLaunched() if host is not None:
                self._rests.pop(host, None)
            case ev.PolicyChanged(policy=policy):
                for name in [n for n, rest in self._rests.items() if _is_over(n, rest, policy)]:
                    del self._rests[name]
            case _:
                pass
        end = event.report.end if isinstance(event, ev.WorkerExited) else None
        self._lacking = isinstance(end, Failed) and end.kind is ErrorKind.AGENT_NOT_FOUND

    def rested(self, host: str, seconds: float, policy: Policy, now: float) -> None:
        """Note a rest that begins, or that the host lacks the agent's program as well."""
        before = self._rests.get(host)
        if before is not None and now < before.until:
            assert not before.lacks_agent, "rested twice"
            assert abs(before.until - now - seconds) < 1e-6, "another trouble changed a rest"
            before.lacks_agent = True
            return
        times = before.times + 1 if before is not None else 1
        assert abs(seconds - backoff(times, policy)) < 1e-6, "rested for another time"
        lacks = self._lacking or (before is not None and before.lacks_agent)
        since = before.since if before is not None else now
        self._rests[host] = Rest(since, now + seconds, times, lacks)

    def trusted(self, host: str) -> None:
        """Note that a host counts as well again."""
        assert host not in self._rests, "trusted again without a reason"

    def given_up(self, host: str, now: float) -> None:
        """Note that a host's issues go elsewhere."""
        assert now >= self._rests[host].since + HOST_WAIT_LIMIT, "given up too early"

    def allow(self, host: str, load: int, now: float) -> bool:
        """Tell whether a host that has ``load`` runs may get one more, for all that is known."""
        rest = self._rests.get(host)
        return rest is None or (now >= rest.until and load == 0)

    def awaited(self, host: str, now: float, *, blank: bool) -> bool:
        """Tell whether an issue waits for a host that has its workspace."""
        rest = self._rests.get(host)
        return rest is None or not (
            blank or rest.lacks_agent or now >= rest.since + HOST_WAIT_LIMIT
        )


def _is_over(host: str, rest: Rest, policy: Policy) -> bool:
    return host not in policy.hosts or rest.lacks_agent
