"""Changes that polls and looks find: whether a delivery has told them, or should have.

A poll may be quicker than a delivery, so a change that none has named is a suspect for GRACE
seconds, and a miss after that. One is enough: deliveries are not counted on for a while.
"""

from __future__ import annotations

from sortie import facts
from sortie.model import Issue
from sortie.model.pull_requests import PullRequestState
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.watch_table import Watched
from sortie.scheduler.webhook_pauses import arrival_for
from sortie.scheduler.webhook_table import (
    GRACE,
    LONGEST_GAP,
    SHORTEST_GAP,
    Subject,
    Suspect,
)

_MOST_SUSPECTS = 1000

_EXPECTED = "expected:"
"""How the id of a check begins that is demanded and not there yet; no delivery tells of it."""


def tell_lag(
    state: SchedulerState, kind: str | None, subject: Subject, came: float | None, now: float
) -> None:
    """Tell how long a delivery, which has come at ``came``, has waited for a look."""
    if kind is not None and came is not None:
        seconds = max(0.0, now - came)
        state.out.append(facts.WebhookFollowed(kind=kind, subject=subject, seconds=seconds))


def note_polled(state: SchedulerState, issues: tuple[Issue, ...], now: float) -> None:
    """Compare the issues of a poll with those of the last one, before they replace them."""
    hooks, began = state.webhooks, state.polling_since
    arrival = arrival_for(state, "issues", None)
    if arrival is None:
        hooks.named.clear()
        return
    changed = [issue for issue in issues if _is_news(state, issue)] if hooks.compared else []
    if hooks.poll_woken:
        hooks.poll_gap = _gap(hooks.poll_gap, found_news=bool(changed))
    elif hooks.counted_on and arrival.distrusted_until <= now:
        for issue in changed:
            _suspect(state, issue, arrival.kind, "issues", now)
    hooks.compared, hooks.counted_on = True, arrival.counts(now)
    hooks.named = {name: at for name, at in hooks.named.items() if began is None or at >= began}


def _is_news(state: SchedulerState, issue: Issue) -> bool:
    """Tell whether an issue that is not in hand is new, or reads otherwise."""
    if issue.id in state.claims:
        return False
    if issue.id not in state.candidates:
        return True
    known = state.candidates[issue.id].issue
    return known is not issue and _told_of(known) != _told_of(issue)


def _told_of(issue: Issue) -> tuple[object, ...]:
    """Return what deliveries tell of an issue when it changes."""
    labels = tuple(sorted(issue.labels))
    return (issue.title, issue.state, issue.description, issue.priority, labels, issue.assignee)


def note_looked(
    state: SchedulerState, watched: Watched, found: PullRequestState, now: float
) -> None:
    """Compare how a pull request stands with what was seen last."""
    before = watched.seen
    arrival = arrival_for(state, "pull_requests", watched)
    if arrival is None:
        return
    counted_on, watched.counted_on = watched.counted_on, arrival.counts(now)
    if before is None:
        return
    is_news = _tells(before) != _tells(found)
    if watched.woken:
        watched.gap = _gap(watched.gap, found_news=is_news)
    elif is_news and watched.named_at is None and counted_on and arrival.distrusted_until <= now:
        _suspect(state, watched.issue, arrival.kind, "pull_requests", now)


def _tells(found: PullRequestState) -> tuple[object, ...]:
    """Return what deliveries tell of a pull request when it changes. Not what the forge computes
    for itself: whether it can be merged, which checks are demanded, and which notes are outdated.
    """
    request = found.pull_request
    checks = sorted(
        (check.id, check.state) for check in found.checks if not check.id.startswith(_EXPECTED)
    )
    reviews = sorted((review.id, review.state) for review in found.reviews)
    notes = [note.id for note in found.comments]
    notes += [note.id for thread in found.threads for note in thread.notes]
    labels = sorted(found.labels)
    return request.state, request.head, request.draft, checks, reviews, sorted(notes), labels


def _gap(gap: float, *, found_news: bool) -> float:
    return SHORTEST_GAP if found_news else min(gap * 2, LONGEST_GAP)


def _suspect(state: SchedulerState, issue: Issue, kind: str, subject: Subject, now: float) -> None:
    suspects = state.webhooks.suspects
    names = frozenset({issue.id.casefold(), issue.identifier.casefold()})
    is_named = subject == "issues" and not names.isdisjoint(state.webhooks.named)
    if not is_named and len(suspects) < _MOST_SUSPECTS:
        suspects.setdefault(f"{subject} {issue.id}", Suspect(kind, subject, now, names))


def count_missed(state: SchedulerState, now: float) -> None:
    """Take the suspects for missed that no delivery has named, and poll and look as often as ever
    where they were found."""
    suspects = state.webhooks.suspects
    late = {name: one for name, one in suspects.items() if one.since + GRACE <= now}
    missed: dict[tuple[str, Subject], int] = {}
    for name, one in late.items():
        del suspects[name]
        missed[one.kind, one.subject] = missed.get((one.kind, one.subject), 0) + 1
    for (kind, subject), changes in missed.items():
        arrival = state.webhooks.arrival(kind, subject).failed(changes, now)
        state.webhooks.put(arrival)
        state.out.append(
            facts.WebhooksMissed(
                kind=kind,
                subject=subject,
                changes=changes,
                seconds=arrival.distrusted_until - now,
            )
        )
        hasten(state, subject, now)


def hasten(state: SchedulerState, subject: Subject, now: float) -> None:
    """Poll, or look at pull requests, as soon as they would be without webhooks."""
    if subject == "issues":
        soon = now + state.policy.poll_interval
        state.poll_at = min(state.poll_at, max(soon, state.webhooks.put_off_until))
        state.reconcile_at = min(state.reconcile_at, soon)
        return
    for watched in state.watches.values():
        if watched.token is None:
            soon = now + state.policy.reactions.interval
            watched.due_at = min(watched.due_at, max(soon, watched.not_before))
