"""Keeps older leaders of a workflow from a place that a newer one has taken over.

Rule 1: the newest token that a place knows is the greatest N of the files token.N in a directory of
its root. A file is made at once or not at all, so what is known only grows.
Rule 2: what changes something there first notes that it is under way, and then looks for a newer
token. A newer leader first makes its token known, and then ends what is noted. So each is refused
or ended, whatever crosses what.
Rule 3: nothing is sent once the lease is over by our own clock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping

from msgspec import Struct

from sortie.model import HostError, HostTrouble
from sortie.resources.lease import Lease, LeaseLost
from sortie.transports.remote.scripts import assignments, text, texts

LOST = "lost"
"""What a script says where a newer leader has taken the place over."""

UNLED = "unled"
"""What it says where the place does not know our token any more."""

NO_NOTES = b"note_launch() { :; }\nnote_watchdog() { :; }"
_UNFENCED = b"is_leader() { :; }\nnote_launch() { :; }"
_NEITHER = {"place": "", "id": "", "P": "", "holder": "", "watchdog": ""}
_NO_NAMESPACE = {"namespace_init": "", "namespace_born": ""}


class LeaderFence(Struct, frozen=True, kw_only=True):
    """The lease with which a root is used, by its real path. Without ``notes`` a newer leader ends
    what is under way there by other means."""

    root: str
    lease: Lease
    notes: bool = True

    @property
    def given(self) -> Mapping[str, str]:
        """The variables that its scripts need."""
        place = f"{self.root.rstrip('/')}/{fence_name(self.lease.scope)}"
        return {"fence": place, "token": str(self.lease.token)}

    def lines(self) -> list[bytes]:
        """Return the lines that define what a launch is checked with."""
        return [text("leader"), text("leader_notes") if self.notes else NO_NOTES]

    def announcement(self) -> list[bytes]:
        """Return the question that makes the token known where no session holds the root; refused
        where a greater one is known."""
        return [*assignments(self.given), text("announce")]

    def question(self, body: Iterable[bytes]) -> list[bytes]:
        """Return a question that is refused where there is a newer leader."""
        given = {**self.given, "notes": "yes" if self.notes else ""}
        return [*assignments(given), *texts("stat_of", "leader", "leader_question"), *body]


FindFence = Callable[[], Awaitable[LeaderFence | None]]
"""Returns the fence of the workflow's root, which is ours from then on; None without a lease.
Raises LeaseLost, and HostError where the root cannot be had."""


async def no_fence() -> None:
    """Return that there is no lease."""


def fence_name(workflow: str) -> str:
    """Return the name of the directory in a root that knows the tokens of a workflow."""
    return f"@leader-{hashlib.sha256(workflow.encode()).hexdigest()[:16]}"


def launch_given(fence: LeaderFence | None) -> Mapping[str, str]:
    """Return the variables that the scripts of a launch need to look for a newer leader."""
    return {} if fence is None else {**_NEITHER, **_NO_NAMESPACE, **fence.given}


def launch_lines(fence: LeaderFence | None) -> list[bytes]:
    """Return what looks for a newer leader before anything of a launch begins."""
    return [_UNFENCED] if fence is None else fence.lines()


def start_lines(fence: LeaderFence | None) -> list[bytes]:
    """Return what looks once more, right before the program begins."""
    return [] if fence is None else [text("leader_start")]


def require(fence: LeaderFence | None) -> None:
    """Raise LeaseLost where a lease is over."""
    if fence is not None:
        fence.lease.require()


def refused_leader(host: str, word: str) -> HostError | LeaseLost:
    """Return the error for what a host has refused with LOST or UNLED."""
    if word == LOST:
        return taken_over(host)
    return HostError(
        HostTrouble.OCCUPIED,
        f"the workspace root on host {host} does not know the token of its leader any more; look at"
        " what removes the directory @leader-... there, and at the space",
    )


def taken_over(host: str) -> LeaseLost:
    """Return the error for a place where a newer leader is known."""
    return LeaseLost(f"a newer leader of this workflow has taken the host over ({host})")
