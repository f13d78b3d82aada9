"""What can be asked of what is on record."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from sortie.dataclass import dataclass
from sortie.web.issue import IssueView
from sortie.web.runs import RunView


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryQuery:
    """A page of history: at most ``limit`` runs, of one issue where that is given by its
    identifier, from behind the run ``before`` on."""

    issue: str | None
    limit: int
    before: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Questions about what is on record; each raises StoreError where it cannot be read.

    ``history`` gives runs, newest first, and raises UnknownRun. ``run`` gives None where the run is
    not recorded. ``issue`` gives a sentence where nothing is known of an issue.
    """

    history: Callable[[HistoryQuery], Awaitable[Sequence[RunView]]]
    run: Callable[[str], Awaitable[RunView | None]]
    issue: Callable[[str], Awaitable[IssueView | str]]
