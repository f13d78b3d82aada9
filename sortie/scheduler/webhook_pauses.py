"""How long polls and looks are apart while deliveries of webhooks arrive.

Rule: nothing is later than it would be without webhooks once deliveries are not counted on any
more: each deadline here is at most the end of the trust in them, and then as early as ever.
"""

from __future__ import annotations

from collections.abc import Iterator

from sortie.model.pull_requests import PullRequestState
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.timing import RERUN_PATIENCE
from sortie.scheduler.watch_table import Watched
from sortie.scheduler.webhook_table import Arrival, Subject

STRETCH = 10
"""How many times as long polls are apart."""

LONGEST_POLL_PAUSE = 600.0
"""Seconds up to which that makes them be apart."""

LOOK_PAUSE = 3600.0
"""Seconds between two looks at the pull requests that nothing has named. All are looked at together
then, those too that were looked at alone meanwhile: a list costs the same for many."""


def arrival_for(state: SchedulerState, subject: Subject, watched: Watched | None) -> Arrival | None:
    """Return how deliveries about issues arrive, or about a pull request; None where none do."""
    if subject == "issues" or watched is None:
        kind = state.policy.webhooks.tracker
    else:
        kind = state.policy_for(watched.issue).webhooks.forge
    return None if kind is None else state.webhooks.arrival(kind, subject)


def known_arrivals(state: SchedulerState) -> tuple[Arrival, ...]:
    """Return how deliveries about each subject arrive, for the kinds of the settings."""
    tracker = state.policy.webhooks.tracker
    forges = dict.fromkeys(policy.webhooks.forge for policy in state.policy.every())
    found = [] if tracker is None else [state.webhooks.arrival(tracker, "issues")]
    if state.policy.reactions.on:
        found += [
            state.webhooks.arrival(forge, "pull_requests") for forge in forges if forge is not None
        ]
    return tuple(found)


def is_counted_on(
    state: SchedulerState, subject: Subject, watched: Watched | None, now: float
) -> bool:
    """Tell whether deliveries are counted on to tell of changes."""
    arrival = arrival_for(state, subject, watched)
    return arrival is not None and arrival.counts(now)


def poll_pause(state: SchedulerState, now: float) -> float:
    """Return the seconds from the end of one poll to the next."""
    pause = state.policy.poll_interval
    arrival = arrival_for(state, "issues", None)
    hindered = state.hindrances or state.shortage or state.poll_error or state.skipped
    if arrival is None or hindered or not arrival.counts(now):
        return pause
    stretched = max(pause, min(pause * STRETCH, LONGEST_POLL_PAUSE))
    return min(stretched, max(pause, arrival.trusted_until - now))


def next_look_at(
    state: SchedulerState, watched: Watched, found: PullRequestState, now: float
) -> float:
    """Return when a pull request is looked at again that nothing names until then.

    What no delivery tells is looked at as often as ever: what the forge computes, and how a merge
    and its train get on.
    """
    regular = now + watched.interval
    arrival = arrival_for(state, "pull_requests", watched)
    moves = watched.watch.merging is not None or watched.ready or found.conflicts is None
    if arrival is None or moves or not arrival.counts(now):
        return regular
    together = (now // LOOK_PAUSE + 1) * LOOK_PAUSE
    stretched = min(together, arrival.trusted_until)
    return max(regular, min(stretched, *_own_deadlines(state, watched, now)))


def _own_deadlines(state: SchedulerState, watched: Watched, now: float) -> Iterator[float]:
    """Yield when something follows from the mere passing of time, the end of all time at least."""
    merge = state.policy.reactions.merge
    times = [watched.rerun_at + RERUN_PATIENCE]
    if merge is not None:
        times.append(watched.head_since + merge.settle)
    yield from (time for time in times if time > now)
    yield watched.watch.since - state.epoch + state.policy.reactions.watch_days * 86_400.0
