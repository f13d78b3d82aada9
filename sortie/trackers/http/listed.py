"""The answers that a tracker's lists gave, and the issues that they could not give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sortie.model import Issue
from sortie.telemetry.log.structlog_alone import structlog
from sortie.trackers import Overview, UnreadableIssue

log = structlog.get_logger()


class ListedIssues:
    """What the last list told.

    Rule 1: where nothing has changed, a list is the same tuple of the same objects as before.
    Rule 2: an issue that cannot be read is logged once for each message.
    """

    def __init__(self) -> None:
        self._issues: tuple[Issue, ...] = ()
        self._unreadable: Mapping[Any, UnreadableIssue] = {}
        self._seen: Callable[[], Iterable[Issue]] = tuple
        self._overview: Overview | None = Overview()

    def take(
        self,
        issues: Iterable[Issue],
        unreadable: Mapping[Any, UnreadableIssue],
        seen: Callable[[], Iterable[Issue]],
    ) -> tuple[Issue, ...]:
        """Return the issues of a new list.

        ``unreadable`` are by their ids. ``seen`` returns all issues that are known, whatever
        their states; it is called when an overview is asked for.
        """
        before = {issue.id: issue for issue in self._issues}
        found = []
        for issue in issues:
            known = before.get(issue.id)
            found.append(known if known is not None and known == issue else issue)
        if len(found) != len(self._issues) or any(
            one is not other for one, other in zip(found, self._issues, strict=True)
        ):
            self._issues = tuple(found)
        for key, one in unreadable.items():
            if self._unreadable.get(key) != one:
                log.warning("tracker.issue_malformed", error=one.message)
        self._unreadable, self._seen, self._overview = dict(unreadable), seen, None
        return self._issues

    def overview(self) -> Overview:
        """Return what is known of all issues since the last list."""
        if self._overview is None:
            unreadable = tuple(self._unreadable.values())
            self._overview = Overview(issues=tuple(self._seen()), unreadable=unreadable)
        return self._overview


def unreadable_issue(error: Exception, *names: str) -> UnreadableIssue:
    """Return an issue that cannot be read, and the names by which people may ask for it."""
    return UnreadableIssue(message=str(error), names=frozenset(names) - {""})
