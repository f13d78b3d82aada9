"""How much is running: everything that a worker stands behind or is about to."""

from __future__ import annotations

from dataclasses import dataclass, field

from sortie.model import Issue, state_key
from sortie.scheduler.claims import Claim, Rechecking, Running, Starting, Stopping

Share = tuple[str, tuple[str, ...]]
"""What one issue takes of the room: a slot on a host, and one in each of these states."""


@dataclass(slots=True)
class Load:
    """Runs, those about to start included. No count is 0: what nobody takes is not in there."""

    total: int = 0
    by_state: dict[str, int] = field(default_factory=dict)
    by_host: dict[str, int] = field(default_factory=dict)

    def add(self, share: Share) -> None:
        """Count one more."""
        host, states = share
        self.total += 1
        self.by_host[host] = self.by_host.get(host, 0) + 1
        for state in states:
            self.by_state[state] = self.by_state.get(state, 0) + 1

    def remove(self, share: Share) -> None:
        """Count one less."""
        host, states = share
        self.total -= 1
        _less(self.by_host, host)
        for state in states:
            _less(self.by_state, state)

    def copy(self) -> Load:
        """Return an equal load that changes by itself."""
        return Load(self.total, self.by_state.copy(), self.by_host.copy())


def _less(counts: dict[str, int], key: str) -> None:
    left = counts[key] - 1
    if left:
        counts[key] = left
    else:
        del counts[key]


def share_of(issue: Issue, host: str, bound_for: str | None) -> Share:
    """Return what a run takes; ``bound_for`` is a second state in which it needs a slot."""
    state = state_key(issue.state)
    if bound_for is None or (other := state_key(bound_for)) == state:
        return host, (state,)
    return host, (state, other)


def share_of_claim(claim: Claim, in_progress_state: str | None) -> Share | None:
    """Return what a claim takes, None where no worker stands behind it or is about to."""
    match claim:
        case Rechecking():
            return share_of(claim.issue, claim.host, in_progress_state)
        case Starting():
            return share_of(claim.issue, claim.host, claim.bound_for)
        case Running() | Stopping():
            return share_of(claim.issue, claim.host, None)
        case _:
            return None
