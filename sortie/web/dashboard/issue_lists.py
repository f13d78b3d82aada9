"""The lists of issues: what is in each, how it can be narrowed, and what of it is found.

What is searched are names, titles, states, hosts and rules: texts that hold no secrets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from sortie.web.dashboard.board import (
    KeptIssue,
    first_waiting,
    held_rows,
    kept_rows,
    running_rows,
    watched_rows,
)
from sortie.web.dashboard.pieces import Piece
from sortie.web.issue import CandidateView, HeldView, RunningView, WaitingView
from sortie.web.state import StateView
from sortie.web.watches import WatchedView

_SEARCHED_FIELDS = ("issue_identifier", "title", "state", "host", "rule")


class FoundIssue(Struct, frozen=True):
    """An issue in the list of all; ``standing`` is the list that it is in besides."""

    standing: str
    name: str
    title: str
    state: str
    why: str
    rule: str | None = None


class IssueListing(Struct, frozen=True, kw_only=True):
    """A list: its rows, the columns of its table, and what its rows can be narrowed by."""

    rows: Callable[[StateView], tuple[Piece, ...]]
    columns: tuple[str, ...]
    narrowed_by: str
    value: Callable[[object], str]


class Search(Struct, frozen=True):
    """A text in any case, and one value of what the list is narrowed by; both may be ""."""

    text: str = ""
    only: str = ""

    def finds(self, content: object, value: str) -> bool:
        """Tell whether a row is found."""
        if self.only and value != self.only:
            return False
        text = self.text.strip().casefold()
        return not text or any(text in each.casefold() for each in _searched(content))


def choices(kind: IssueListing, rows: tuple[Piece, ...]) -> tuple[tuple[str, int], ...]:
    """Return the values that rows have, and how many have each, those of the most rows first."""
    counted = Counter(kind.value(row.content) for row in rows)
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return tuple((value, count) for value, count in ordered if value)


def _searched(content: object) -> Iterator[str]:
    row = content.candidate if isinstance(content, KeptIssue) else content
    for name in (*_SEARCHED_FIELDS, "name"):
        text = getattr(row, name, None)
        if isinstance(text, str):
            yield text


def _every(state: StateView) -> tuple[Piece, ...]:
    """Return all issues that the daemon knows of, those that need a person first; one that is
    watched and in another list too stands in both."""
    order = ("held", "running", "waiting", "watched", "queued", "blocked")
    return tuple(
        Piece(f"a:{row.id}", "found", _found(standing, row))
        for standing in order
        for row in ISSUE_LISTS[standing].rows(state)
    )


def _found(standing: str, row: Piece) -> FoundIssue:
    match row.content:
        case KeptIssue(candidate=CandidateView() as c):
            return FoundIssue(standing, c.issue_identifier, c.title, c.state, c.reason, c.rule)
        case RunningView() as r:
            turn = r.phase if r.turn is None else f"turn {r.turn} on {r.host}"
            return FoundIssue(standing, r.issue_identifier, r.title, r.state, turn, r.rule)
        case HeldView() as h:
            return FoundIssue(standing, h.issue_identifier, h.title, "", h.detail, h.rule)
        case WaitingView() as w:
            return FoundIssue(standing, w.issue_identifier, w.title, "", w.reason or "", w.rule)
        case WatchedView() as p:
            return FoundIssue(standing, p.issue_identifier, p.title, "", p.waits_for, p.rule)
        case other:
            raise TypeError(f"a list of issues has no {type(other).__name__}")


def _attribute(name: str) -> Callable[[object], str]:
    return lambda content: str(getattr(content, name))


def _state(content: object) -> str:
    assert isinstance(content, KeptIssue)
    return content.candidate.state


ISSUE_LISTS: Mapping[str, IssueListing] = {
    "all": IssueListing(
        rows=_every,
        columns=("issue", "is", "state", "why"),
        narrowed_by="standing",
        value=_attribute("standing"),
    ),
    "held": IssueListing(
        rows=held_rows,
        columns=("issue", "reason", "#for", "why", ""),
        narrowed_by="reason",
        value=_attribute("reason"),
    ),
    "running": IssueListing(
        rows=running_rows,
        columns=("issue", "turn", "#elapsed", "last output", "host", "#used", ""),
        narrowed_by="host",
        value=_attribute("host"),
    ),
    "waiting": IssueListing(
        rows=lambda state: first_waiting(state, len(state.waiting)),
        columns=("issue", "for", "#due", "why", ""),
        narrowed_by="kind",
        value=_attribute("kind"),
    ),
    "watched": IssueListing(
        rows=watched_rows,
        columns=("issue", "pull request", "stands", "#since", "waits for", "#next look"),
        narrowed_by="stage",
        value=_attribute("stage"),
    ),
    "queued": IssueListing(
        rows=lambda state: kept_rows(state.queued, queued=True),
        columns=("issue", "kind", "state", "why"),
        narrowed_by="state",
        value=_state,
    ),
    "blocked": IssueListing(
        rows=lambda state: kept_rows(state.blocked, queued=False),
        columns=("issue", "kind", "state", "why"),
        narrowed_by="state",
        value=_state,
    ),
}
"""The lists by their names, as they stand in ``/lists/NAME``."""
