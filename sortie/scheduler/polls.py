"""Polls: when the next one is due, and what follows from an answer."""

from __future__ import annotations

from sortie.scheduler.decisions import Poll
from sortie.scheduler.dispatch import note_candidates
from sortie.scheduler.events import CandidatesFetched
from sortie.scheduler.holds import program_appeared
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.webhook_misses import note_polled, tell_lag
from sortie.scheduler.webhook_pauses import poll_pause

TOGETHER = 1.0
"""Seconds for which further deliveries are waited for before anything is asked for one."""


def begin_poll(state: SchedulerState, now: float) -> None:
    """Poll, and tell how long a delivery has waited for that."""
    hooks = state.webhooks
    hooks.poll_woken, hooks.polled_at = hooks.poll_asked is not None, now
    tell_lag(state, state.policy.webhooks.tracker, "issues", hooks.poll_asked, now)
    hooks.poll_asked = None
    state.polling_since = now
    state.out.append(Poll())


def poll_soon(state: SchedulerState, came: float, now: float) -> None:
    """Poll soon, as a delivery that has come at ``came`` names an issue not in hand.

    While a poll is under way its answer may be old already: then once more after it.
    """
    hooks = state.webhooks
    if hooks.poll_asked is None:
        hooks.poll_asked = came
    soonest = max(now + TOGETHER, hooks.polled_at + hooks.poll_gap, hooks.put_off_until)
    state.poll_at = min(state.poll_at, max(soonest, state.tracker_paused_until))


def put_polls_off(state: SchedulerState, until: float) -> None:
    """Poll no sooner, as requests are short."""
    state.webhooks.put_off_until = until
    state.poll_at = max(state.poll_at, until)


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
    note_polled(state, event.issues, now)
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
    _answered(state, now)


def poll_failed(state: SchedulerState, error: str, now: float, *, skipped: bool) -> None:
    """Note why a poll has failed, or was ``skipped``."""
    state.poll_error = error
    state.skipped = error if skipped else None
    _answered(state, now)
    state.idle_polls = 0


def _answered(state: SchedulerState, now: float) -> None:
    state.polling_since = None
    pause = 0.0 if state.refresh_asked else poll_pause(state, now)
    state.poll_at = max(now + pause, state.tracker_paused_until)
    state.refresh_asked = False
    if (came := state.webhooks.poll_asked) is not None:
        poll_soon(state, came, now)
