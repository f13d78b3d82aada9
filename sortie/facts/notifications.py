"""Facts about notifications on their way to people and other systems."""

from __future__ import annotations

from collections.abc import Iterable

from sortie.facts.fact import Fact, LogLine, RecurringFailures, fact, line


@fact("notification.recorded", "debug")
class NotificationRecorded(Fact, frozen=True, kw_only=True):
    """Something is on record as to be told to ``targets``; ``about`` is the kind of event."""

    about: str
    targets: tuple[str, ...]


@fact("notification.sent", "debug")
class NotificationsSent(Fact, frozen=True, kw_only=True):
    """A target took so many notifications; ``repeated`` of them may have reached it before."""

    target: str
    count: int
    repeated: int = 0
    seconds: float

    def log_lines(self, failures: RecurringFailures, /) -> Iterable[LogLine]:
        again = line("info", "notification.target_recovered", target=self.target)
        return [line(self.level, self.event, **self.shown()), *failures.end(_of(self), again)]


@fact("notification.failed", "warning")
class NotificationFailed(Fact, frozen=True, kw_only=True):
    """A target could not be told, and is tried again after ``delay`` seconds."""

    target: str
    error: str
    delay: float

    def log_lines(self, failures: RecurringFailures, /) -> Iterable[LogLine]:
        return [failures.count(_of(self), line(self.level, self.event, **self.shown()), self.error)]


@fact("notification.dead", "warning")
class NotificationsGivenUp(Fact, frozen=True, kw_only=True):
    """So many notifications were refused by a target, or could not be told for too long."""

    target: str
    count: int
    error: str


def _of(told: NotificationsSent | NotificationFailed) -> str:
    return f"notifications to {told.target}"
