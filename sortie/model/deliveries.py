"""What becomes of a run's work: a branch, evidence, a pull request."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from sortie.model.pull_requests import PullRequest
from sortie.model.reviews import SelfReview
from sortie.model.runs import Finish

FILES_SHOWN = 200
"""Changed files of a delivery that are kept by name."""

DIFF_LIMIT = 512 * 1024
"""Characters of a diff that are kept."""


class CommandResult(Struct, frozen=True, kw_only=True):
    """How a command of ``verify.commands`` ended; ``tail`` is the end of what it printed."""

    command: str
    ok: bool
    status: str
    seconds: float
    tail: str = ""


class VerificationResult(Struct, frozen=True, kw_only=True):
    """What was checked at which commit, and with which result; the first failure is the last."""

    commit: str
    where: str
    commands: tuple[CommandResult, ...]

    @property
    def ok(self) -> bool:
        """Whether all commands succeeded."""
        return all(result.ok for result in self.commands)


class ChangedFile(Struct, frozen=True, kw_only=True):
    """A file that differs from the base, with its lines added and removed; None for a binary."""

    path: str
    added: int | None = None
    removed: int | None = None


class Stage(StrEnum):
    """How far a delivery has come; each step is on record before the next is taken."""

    FINISHED = "finished"
    """The agent has finished; nothing was looked at yet."""
    PROVEN = "proven"
    """The work is committed, and what had to be checked has succeeded."""
    PUSHED = "pushed"
    """The branch is at the remote."""
    DELIVERED = "delivered"
    """The pull request is open, or there is no forge."""
    DROPPED = "dropped"
    """The agent went on, or the issue was held: nothing follows by itself."""


PENDING = frozenset(Stage) - {Stage.DROPPED}
"""Stages at which a run that is cut short leaves something to go on with, without its agent; one
that is delivered has its handoff left."""


class Delivery(Struct, frozen=True, kw_only=True):
    """The work of an issue on its way from a workspace to a pull request.

    ``finish`` and ``reason`` are how the agent ended, and ``answer`` is what it said last.
    ``began_at`` is the commit of the branch at
    the remote when the run began, None where it was not there: what the agent has rewritten may be
    replaced from there only. ``files`` are the first FILES_SHOWN of ``files_changed``. ``opened``
    tells that there was no pull request of the branch, so that the issue is to be told of the new
    one.
    """

    branch: str
    base: str
    host: str
    stage: Stage
    finish: Finish
    reason: str = ""
    answer: str | None = None
    began_at: str | None = None
    head: str | None = None
    tree: str | None = None
    base_commit: str | None = None
    commits: int = 0
    behind: int = 0
    files_changed: int = 0
    added: int = 0
    removed: int = 0
    files: tuple[ChangedFile, ...] = ()
    evidence: VerificationResult | None = None
    review: SelfReview | None = None
    pull_request: PullRequest | None = None
    opened: bool = False

    @property
    def is_pending(self) -> bool:
        """Whether a later run goes on with it, where this one is cut short."""
        return self.stage in PENDING
