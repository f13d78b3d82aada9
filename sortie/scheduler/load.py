"""How many runs there are, by host and by state; runs that are about to start count too."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from sortie.model import Issue, state_key
from sortie.scheduler.claims import Claim, Rechecking, Running, Starting, Stopping

Share = tuple[str, tuple[str, ...]]
"""What one run occupies: a slot on a host, and a slot in each of these states."""


@dataclass(slots=True)
class Load:
    """The number of runs: in total, by state and by host."""

    total: int = 0
    by_state: Counter[str] = field(default_factory=Counter)
    by_host: Counter[str] = field(default_factory=Counter)

    def add(self, share: Share | None, count: int = 1) -> None:
        """Count one run more, or one less where ``count`` is -1; None occupies nothing."""
        if share is not None:
            host, states = share
            self.total += count
            self.by_host[host] += count
            for state in states:
                self.by_state[state] += count

    def copy(self) -> Load:
        """Return an equal load that changes independently."""
        return Load(self.total, self.by_state.copy(), self.by_host.copy())


def share_of(issue: Issue, host: str, bound_for: str | None) -> Share:
    """Return what a run occupies; ``bound_for`` is a second state in which it needs a slot."""
    state = state_key(issue.state)
    if bound_for is None or (other := state_key(bound_for)) == state:
        return host, (state,)
    return host, (state, other)


def share_of_claim(claim: Claim | None, in_progress_state: str | None) -> Share | None:
    """Return what a claim occupies; None where it has no worker and is not about to get one."""
    match claim:
        case Rechecking():
            return share_of(claim.issue, claim.host, in_progress_state)
        case Starting():
            return share_of(claim.issue, claim.host, claim.bound_for)
        case Running() | Stopping():
            return share_of(claim.issue, claim.host, None)
        case _:
            return None
