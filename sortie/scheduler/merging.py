"""Merging what is ready: one pull request of a base after another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from msgspec.structs import replace

from sortie import facts
from sortie.model import cut
from sortie.model.pull_requests import PullRequestState
from sortie.model.watches import (
    CAUSES_KEPT,
    LabelChange,
    MergeCancellation,
    PullRequestComment,
    Watch,
)
from sortie.scheduler import events as ev
from sortie.scheduler.candidates import GateVerdict
from sortie.scheduler.decisions import MergePullRequest
from sortie.scheduler.merge_gates import (
    CHECKS_PENDING,
    CONFLICTS,
    TRAIN,
    MergeView,
    first_closed_for_merge,
    merge_verdicts,
)
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.watch_records import record_watch
from sortie.scheduler.watch_table import Watched

UPDATE_PATIENCE = 600.0
"""Seconds that a forge gets to bring a base into a branch."""

FRONT_PATIENCE = 7200.0
"""Seconds for which others wait for the checks of what is merged before them."""

MERGE_TRIES = 5
"""Refusals of the merge of one head after which a person is called for."""

REFUSAL_SHOWN = 500
"""Characters of the reason for a refusal that are told."""

SOON = 5.0
"""Seconds until a pull request is looked at that was merged, or whose branch was updated."""


def merge_is_wanted(state: SchedulerState, watched: Watched) -> bool:
    """Tell whether Sortie merges, and nothing of it is under way."""
    return state.policy.reactions.merge is not None and not watched.watch.errands


def merge_if_ready(
    state: SchedulerState, watched: Watched, found: PullRequestState, now: float
) -> None:
    """Merge a pull request for which every gate is open; else say which is closed."""
    settings, watch = state.policy.reactions.merge, watched.watch
    assert settings is not None
    head = found.pull_request.head
    if watch.updated and head == watch.merging and now < watched.updated_at + UPDATE_PATIENCE:
        watched.waits_for = "the forge brings its base into its branch"
        return
    view = _view(state, watched, found, now)
    assert view is not None
    closed = first_closed_for_merge(view)
    watched.ready = (closed is None or closed.gate == TRAIN) and not watched.refused
    if closed is not None:
        watched.waits_for = closed.reason or ""
        if watch.merging is not None and not _keeps_its_place(watched, found, closed, now):
            record_watch(state, watched, without_merge(watched, watch))
        return
    if found.queued:
        watched.waits_for = "the forge merges it by itself once all that it demands is there"
        in_train = watch.merging is not None and not found.has_queue
        if in_train and not _has_patience(watched, now) and not state.watches.is_alone(watched):
            record_watch(state, watched, without_merge(watched, watch))
        return
    if head is None:
        return
    if watch.merging is None:
        watched.front_since = now
    _set_merging(state, watched, head)
    watched.token, watched.doing = state.next_request(), "merge"
    watched.waits_for = "it is being merged"
    rule = state.rule_of(watched.issue)
    state.out.append(MergePullRequest(watched.token, watched.issue, found.pull_request, head, rule))


def _keeps_its_place(
    watched: Watched, found: PullRequestState, closed: GateVerdict, now: float
) -> bool:
    """Tell whether a merge train still waits for what has begun to be merged: for its checks, and
    for what the forge has to compute about its head."""
    computes = closed.gate == CONFLICTS and found.conflicts is None
    if closed.gate == CHECKS_PENDING or computes:
        return _has_patience(watched, now)
    return closed.gate == TRAIN


def _has_patience(watched: Watched, now: float) -> bool:
    """Tell whether others still wait for the checks of what is merged before them."""
    return now < watched.front_since + FRONT_PATIENCE


def without_merge(watched: Watched, watch: Watch) -> Watch:
    """Return a watch that has left the merge train; first what the forge was told is taken back."""
    if watch.merging is None or watched.seen is None or not watched.seen.queued:
        return replace(watch, merging=None, updated=False)
    return replace(watch, errands=(MergeCancellation(), *watch.errands))


def _set_merging(state: SchedulerState, watched: Watched, head: str | None) -> None:
    record_watch(state, watched, replace(watched.watch, merging=head, updated=False))


def _view(
    state: SchedulerState, watched: Watched, found: PullRequestState, now: float
) -> MergeView | None:
    settings = state.policy.reactions.merge
    if settings is None:
        return None
    ahead = state.watches.ahead_of(watched)
    is_first = watched.watch.merging is not None and _has_patience(watched, now)
    if not found.has_queue and not is_first:
        # While another one could be merged, one with pending checks does not keep it waiting.
        found = replace(found, automatic=found.automatic and state.watches.is_alone(watched))
    busy = None
    if state.claims.find(watched.issue.id) is not None or watched.watch.reaction is not None:
        busy = "its issue is in hand"
    return MergeView(
        seen=found,
        settings=settings,
        head_age=now - watched.head_since,
        writers=watched.writers,
        busy=busy,
        ahead=None if ahead is None else ahead.name,
        given_up=watched.watch.refusal in watched.watch.causes,
    )


def explain_merge(state: SchedulerState, watched: Watched, now: float) -> Iterator[GateVerdict]:
    """Yield what the gates of the merge say of what was seen last; nothing where Sortie does not
    merge."""
    if watched.seen is not None and (view := _view(state, watched, watched.seen, now)):
        yield from merge_verdicts(view)


def merge_tried(state: SchedulerState, event: ev.MergeTried, now: float) -> None:
    """Take in what became of a merge; the next look shows what is true."""
    watched = state.watches.get(event.issue_id)
    if watched is None or watched.token != event.token:
        return
    state.in_hand, watched.token = watched.issue, None
    settings, watch = state.policy.reactions, watched.watch
    state.out.append(
        facts.MergeAttempted(
            issue=watched.issue,
            pull_request=watch.pull_request.url,
            result=event.outcome,
            error=event.message or None,
        )
    )
    watched.refused = 0 if event.outcome != "refused" else watched.refused + 1
    match event.outcome:
        case "merged":
            watched.due_at = now + min(SOON, settings.interval)
            watched.waits_for = "the forge shows that it is merged"
        case "queued":
            watched.due_at = now + settings.interval
            watched.waits_for = "the forge merges it by itself"
        case "updated":
            record_watch(state, watched, replace(watch, updated=True))
            watched.updated_at = now
            watched.due_at = now + min(SOON, settings.interval)
            watched.waits_for = "checks of the head into which its base was brought"
        case "not_ready":
            watched.due_at = now + settings.interval
            watched.waits_for = event.message
        case "refused":
            _refused(state, watched, event.message, now)
        case "failed":
            watched.due_at = now + settings.interval
            watched.waits_for = f"the merge failed: {event.message}"
        case _:
            assert_never(event.outcome)


def _refused(state: SchedulerState, watched: Watched, message: str, now: float) -> None:
    """Try a merge again later, without a place in the train, and call for a person in the end."""
    settings, watch = state.policy.reactions, replace(watched.watch, merging=None, updated=False)
    watched.ready = False
    pause = settings.interval * 2.0 ** min(watched.refused, 16)
    watched.due_at = now + min(pause, settings.longest_interval)
    watched.waits_for = f"its merge is refused: {message}"
    if watched.refused >= MERGE_TRIES:
        why = cut(" ".join(message.split()), REFUSAL_SHOWN)
        body = (
            f"Sortie has tried {watched.refused} times to merge this head, and was refused: {why}."
            " A person is needed: merge it, or push to the branch"
        )
        body += "." if settings.commands is None else ", or say `/sortie retry`."
        errands = (
            LabelChange(add=(settings.needs_human_label,)),
            PullRequestComment(body=body, key=f"{watch.pull_request.id}:{watch.refusal}"),
        )
        causes = (*watch.causes, watch.refusal)[-CAUSES_KEPT:]
        watch = replace(watch, causes=causes, errands=(*watch.errands, *errands))
        watched.due_at = now
    record_watch(state, watched, watch)
