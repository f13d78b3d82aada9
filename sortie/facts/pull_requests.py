"""Facts about pull requests that are watched until they are merged or closed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from sortie.facts.fact import Fact, Level, LogLine, RecurringFailures, fact, line
from sortie.model import Issue

WatchResult = Literal["merged", "closed", "gone", "expired", "left"]
ReactionResult = Literal["changed", "unchanged", "dropped", "exhausted"]
MergeResult = Literal["merged", "queued", "updated", "not_ready", "refused", "failed"]


@fact("watch.began", "info")
class WatchBegan(Fact, frozen=True, kw_only=True):
    """An issue's pull request is watched from now on."""

    issue: Issue
    pull_request: str


@fact("watch.ended", "info")
class WatchEnded(Fact, frozen=True, kw_only=True):
    """An issue's pull request is watched no longer; ``result`` is merged, closed, gone, expired or
    left."""

    issue: Issue
    pull_request: str
    result: WatchResult
    reason: str


@fact("pull_requests.seen", "debug")
class PullRequestsLookedAt(Fact, frozen=True, kw_only=True):
    """Watched pull requests were looked at; ``error`` is why none could be seen."""

    count: int
    seconds: float
    error: str | None

    def log_lines(self, failures: RecurringFailures, /) -> Iterable[LogLine]:
        if self.error is not None:
            failed = line("warning", "pull_requests.unseen", error=self.error)
            return [failures.count("forge", failed, self.error)]
        again = line("info", "pull_requests.seen_again")
        shown = {"count": self.count, "seconds": round(self.seconds, 3)}
        return [line("debug", self.event, **shown), *failures.end("forge", again)]


@fact("reaction.planned", "info")
class ReactionPlanned(Fact, frozen=True, kw_only=True):
    """A further run is to answer what has happened to a pull request."""

    issue: Issue
    pull_request: str
    kinds: tuple[str, ...]
    head: str | None


@fact("reaction.ended", "info")
class ReactionEnded(Fact, frozen=True, kw_only=True):
    """A reaction is over; ``result`` is changed where the head is another now, unchanged where it
    is not, dropped where no run has answered it, and exhausted where there may be none."""

    issue: Issue
    pull_request: str
    kinds: tuple[str, ...]
    result: ReactionResult

    @property
    def level(self) -> Level:
        return "info" if self.result == "changed" else "warning"


@fact("merge.attempted", "info")
class MergeAttempted(Fact, frozen=True, kw_only=True):
    """A merge was tried; ``result`` is merged, queued, updated, not_ready, refused or failed."""

    issue: Issue
    pull_request: str
    result: MergeResult
    error: str | None

    @property
    def level(self) -> Level:
        return "warning" if self.result in ("refused", "failed") else "info"


@fact("errand.failed", "warning")
class ErrandFailed(Fact, frozen=True, kw_only=True):
    """What was to be done at a pull request, or to its issue, could not be done and is left, though
    a move of the issue is tried on; ``errand`` is one of the words in ``sortie/model/watches.py``.
    """

    issue: Issue
    pull_request: str
    errand: str
    error: str
