"""Facts about webhooks of trackers and forges."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from sortie.facts.fact import Fact, LogLine, RecurringFailures, fact, line

Subject = Literal["issues", "pull_requests"]

Rejection = Literal[
    "signature",
    "timestamp",
    "replayed",
    "content_type",
    "malformed",
    "too_large",
    "too_slow",
    "flood",
    "unknown_kind",
]
"""Why a delivery was not taken."""

UNKNOWN_KIND = "other"
"""Stands for a kind that is not set up: what a stranger writes into a path is told nowhere."""


@fact("webhook.received", "debug")
class WebhookReceived(Fact, frozen=True, kw_only=True):
    """An authentic delivery has come from a service of this kind."""

    kind: str


@fact("webhook.rejected", "warning")
class WebhookRejected(Fact, frozen=True, kw_only=True):
    """A delivery was not taken; ``count`` is how many were not for this reason since the process
    began. Anybody may cause it, so that it is told less and less often."""

    kind: str
    reason: Rejection
    count: int

    def log_lines(self, _failures: RecurringFailures, /) -> Iterable[LogLine]:
        if self.count.bit_count() == 1 and self.reason != "replayed":
            return [
                line("warning", self.event, kind=self.kind, reason=self.reason, count=self.count)
            ]
        return []


@fact("webhook.lost", "warning")
class WebhookLost(Fact, frozen=True, kw_only=True):
    """What deliveries have named could not be passed on to the daemon that leads the workflow; its
    polls find it."""

    kind: str
    error: str


@fact("webhook.followed", "debug")
class WebhookFollowed(Fact, frozen=True, kw_only=True):
    """What a delivery has named is looked at, so many seconds after the delivery came."""

    kind: str
    subject: Subject
    seconds: float


@fact("webhooks.arriving", "info")
class WebhooksArriving(Fact, frozen=True, kw_only=True):
    """Deliveries about this subject arrive, so that polls, or looks at pull requests, become
    rare."""

    kind: str
    subject: Subject


@fact("webhooks.silent", "info")
class WebhooksSilent(Fact, frozen=True, kw_only=True):
    """Deliveries about this subject are not counted on any more: polls, or looks at pull requests,
    are as frequent as without."""

    kind: str
    subject: Subject


@fact("webhooks.missed", "warning")
class WebhooksMissed(Fact, frozen=True, kw_only=True):
    """Polls, or looks at pull requests, have found changes that no delivery has told; deliveries
    are not counted on for so many seconds."""

    kind: str
    subject: Subject
    changes: int
    seconds: float
