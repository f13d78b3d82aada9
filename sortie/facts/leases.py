"""What happened to the lease of a workflow, which several daemons may lead."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from sortie.facts.fact import Fact, LogLine, RecurringFailures, fact, line


@fact("lease.waiting", "info")
class LeaseAwaited(Fact, frozen=True, kw_only=True):
    """This daemon stands by: ``leader`` leads the workflow, None while that is not known. ``error``
    is why the leases cannot be read."""

    leader: str | None
    error: str | None = None

    def log_lines(self, failures: RecurringFailures, /) -> Iterable[LogLine]:  # noqa: ARG002
        if self.error is not None:
            return [line("warning", self.event, error=self.error)]
        return [line(self.level, self.event, leader=self.leader)]


@fact("lease.acquired", "info")
class LeaseAcquired(Fact, frozen=True, kw_only=True):
    """This daemon leads the workflow from now on. ``former`` led it until its lease was over, None
    where it was given back, or never led."""

    token: int
    former: str | None = None

    def log_lines(self, failures: RecurringFailures, /) -> Iterable[LogLine]:  # noqa: ARG002
        if self.former is None:
            return [line(self.level, self.event, token=self.token)]
        return [line("warning", self.event, token=self.token, former=self.former)]


@fact("lease.lost", "error")
class LeaseEnded(Fact, frozen=True, kw_only=True):
    """The lease is over without having been given back: all runs of the workflow here are ended."""

    token: int
    reason: str


@fact("lease.handing_over", "info")
class HandOverBegan(Fact, frozen=True, kw_only=True):
    """No run is started any more, and another daemon leads the workflow once ``running`` runs have
    ended."""

    reason: Literal["drained", "moved"]
    running: int


@fact("lease.kept", "info")
class HandOverEnded(Fact, frozen=True, kw_only=True):
    """The workflow is not handed over after all: runs are started again."""
