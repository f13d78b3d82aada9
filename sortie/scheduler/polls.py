"""Polls: when the next one is due, and what follows from an answer."""

from __future__ import annotations

from sortie.scheduler.dispatch import note_candidates
from sortie.scheduler.events import CandidatesFetched
from sortie.scheduler.holds import program_appeared
from sortie.scheduler.state import SchedulerState


def poll_now(state: SchedulerState, now: float) -> None:
    """Poll at once, or as soon as the tracker may be asked again.

    If a poll is under way its answer may be old already, so once more after it.
    """
    soonest = max(now, state.tracker_paused_until)
    state.refresh_asked = state.polling
    state.poll_at = min(state.poll_at, soonest)
    for watched in state.watches.values():
        watched.due_at = min(watched.due_at, now)
    state.reconcile_at = min(state.reconcile_at, soonest)


def candidates_fetched(state: SchedulerState, event: CandidatesFetched, now: float) -> None:
    """Take the answer of a poll."""
    _answered(state, now)
    state.skipped = state.poll_error = None
    state.tracker_answered(now)
    hindrances = dict(event.rule_hindrances)
    if event.hindrance is not None:
        hindrances[""] = event.hindrance
    appeared = state.hindrances.keys() - hindrances.keys()
    state.hindrances, state.shortage = hindrances, event.shortage
    if appeared:
        program_appeared(state, appeared)
    note_candidates(state, event.issues)


def poll_failed(state: SchedulerState, error: str, now: float, *, skipped: bool) -> None:
    """Note why a poll has failed, or was ``skipped``."""
    _answered(state, now)
    state.poll_error = error
    state.skipped = error if skipped else None
    state.idle_polls = 0


def _answered(state: SchedulerState, now: float) -> None:
    state.polling_since = None
    pause = 0.0 if state.refresh_asked else state.policy.poll_interval
    state.poll_at = max(now + pause, state.tracker_paused_until)
    state.refresh_asked = False
