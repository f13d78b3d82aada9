"""What the tracker holds besides candidates, and why an issue is not known to the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC
from difflib import get_close_matches

from msgspec import Struct

from sortie.config.settings import Settings
from sortie.daemon.tracker import states_of
from sortie.daemon.wall_time import wall_time
from sortie.model import Issue, RateBudget, state_key
from sortie.model.issues import natural_key
from sortie.orchestrator.guarded_tracker import GuardedTracker
from sortie.trackers import Overview
from sortie.web.issue import BudgetView
from sortie.web.state import TrackerView, UnnamedStateView

SHOWN_ISSUES = 20
"""Issues of one kind that are shown; all are counted."""

_SIMILARITY = 0.7  # of 1, as difflib reckons it: a typing mistake or two
_HINTS = 3
_COMPARED_NAMES = 500  # names, which takes some ten milliseconds


class TrackerStatus(Struct, kw_only=True):
    """The tracker as of its last answers; each method returns at once."""

    tracker: GuardedTracker
    settings: Callable[[], Settings]
    _unnamed: tuple[Overview, tuple[str, ...], tuple[UnnamedStateView, ...]] | None = None
    """The unnamed states, with the overview and the named states that they were found by."""

    def view(self) -> TrackerView:
        """Return what ``/api/v1/state`` shows of the tracker."""
        overview, named = self.tracker.overview(), states_of(self.settings()).named
        rest = self.tracker.pause
        return TrackerView(
            rests_until=None if rest is None else wall_time(rest.until),
            rests_because=None if rest is None else rest.error,
            unreadable=tuple(found.message for found in overview.unreadable[:SHOWN_ISSUES]),
            unnamed_states=self._unnamed_states(overview, named),
            budgets=self.budgets(),
        )

    def budgets(self) -> tuple[BudgetView, ...]:
        """Return what the tracker still lets its credential ask."""
        return tuple(map(_budget, self.tracker.budgets()))

    def budget_sentences(self) -> tuple[str, ...]:
        """Say the same in a sentence for each."""
        return tuple(f"the tracker's budget of {budget.words}" for budget in self.budgets())

    def _unnamed_states(
        self, overview: Overview, named: tuple[str, ...]
    ) -> tuple[UnnamedStateView, ...]:
        """Look through all issues only where they, or the named states, have changed."""
        known = self._unnamed
        if known is None or known[0] is not overview or known[1] != named:
            found = unnamed_states(overview.issues, named)[:SHOWN_ISSUES]
            known = self._unnamed = (overview, named, found)
        return known[2]

    def resting(self) -> str | None:
        """Say until when the tracker is left alone, if it is."""
        rest = self.tracker.pause
        if rest is None:
            return None
        return f"the tracker is left alone until {wall_time(rest.until):%H:%M:%SZ}: {rest.error}"

    def unreadable_count(self) -> int:
        """Return how many issues cannot be read."""
        return len(self.tracker.overview().unreadable)

    def explain_unknown(self, name: str, sentence: str, known: Collection[str]) -> str:
        """Return what to say of an issue that the scheduler does not know.

        ``sentence`` is the scheduler's, and ``known`` are the identifiers that it knows.
        """
        overview, settings = self.tracker.overview(), self.settings()
        for found in overview.unreadable:
            if name in found.names:
                return f"{name} cannot be read: {found.message}"
        for issue in overview.issues:
            if name in (issue.identifier, issue.id):
                return _why_not_worked_on(issue, settings) or sentence
        names = {*known, *(issue.identifier for issue in overview.issues)}
        near = _similar(name, names)
        return f"{sentence}; did you mean {', '.join(near)}?" if near else sentence


def _budget(budget: RateBudget) -> BudgetView:
    resets_at = None if budget.resets_at is None else budget.resets_at.astimezone(UTC)
    return BudgetView(
        name=budget.name, remaining=budget.remaining, limit=budget.limit, resets_at=resets_at
    )


def _why_not_worked_on(issue: Issue, settings: Settings) -> str | None:
    """Say why the state of an issue keeps it from being worked on; None where it does not."""
    key = state_key(issue.state)
    where = f"{issue.identifier} is in {issue.state}"
    states = states_of(settings)
    if key in map(state_key, states.terminal):
        return f"{where}, which is a terminal state: it is finished"
    if key in map(state_key, states.active):
        return None
    if key in map(state_key, states.handoffs):
        return f"{where}, a handoff state: a person takes it from there"
    near = _similar(issue.state, states.named)
    hint = f"; did you mean {near[0]}?" if near else ""
    active = ", ".join(states.active)
    return f"{where}, which no setting names{hint} (active states are {active})"


def unnamed_states(
    issues: tuple[Issue, ...], named: tuple[str, ...]
) -> tuple[UnnamedStateView, ...]:
    """Return the states that no setting names; those that look like one that is come first."""
    keys = set(map(state_key, named))
    by_state: dict[str, list[Issue]] = {}
    for issue in issues:
        by_state.setdefault(issue.state, []).append(issue)
    found = []
    for state, there in by_state.items():
        if state_key(state) not in keys:
            near = _similar(state, named)
            first = min((issue.identifier for issue in there), key=natural_key)
            found.append(
                UnnamedStateView(
                    state=state, issues=len(there), first=first, near=near[0] if near else None
                )
            )
    return tuple(sorted(found, key=lambda view: (view.near is None, view.state)))


def _similar(word: str, known: Collection[str]) -> list[str]:
    """Return the known names that look like one, the likeliest first."""
    begins = _normalised(word)[:1]
    alike = sorted(name for name in known if _normalised(name)[:1] == begins)
    plain = {_normalised(name): name for name in reversed(alike[:_COMPARED_NAMES])}
    close = get_close_matches(_normalised(word), plain, n=_HINTS, cutoff=_SIMILARITY)
    return [plain[match] for match in close]


def _normalised(word: str) -> str:
    """Return a name without case, blanks and dashes, which are easily mistaken."""
    return "".join(char for char in word.casefold()[:100] if char.isalnum())
