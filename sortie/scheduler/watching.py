"""Watching pull requests: what is looked at when, and what follows from what is seen.

Rule 1: what is to be done is on record, with its cause, before it is done; so a crash repeats
nothing, as each errand is made once for its key, and each merge names its head.
Rule 2: one further run of an issue at a time. What comes meanwhile is answered together after it.
Rule 3: a head that Sortie has made gives no budget back; one that somebody else has made does.
"""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from sortie import facts
from sortie.model import (
    Delivery,
    HoldReason,
    Issue,
    RunReport,
    cut,
)
from sortie.model.pull_requests import CheckState, PullRequestState, ReviewThread
from sortie.model.watches import (
    HEADS_KEPT,
    BranchDeletion,
    Errand,
    IssueMove,
    PullRequestComment,
    Reaction,
    ThreadReply,
)
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import WORKED, Held
from sortie.scheduler.decisions import LookAtPullRequests
from sortie.scheduler.errands import begin_errand
from sortie.scheduler.holds import end_hold
from sortie.scheduler.reacting import obey, react
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.watch_records import (
    end_watch,
    forget_former,
    forget_watch,
    forgiven,
    is_expired,
    look_backoff,
    reaction_ended,
    record_watch,
    watch_of,
)
from sortie.scheduler.watch_table import Watched
from sortie.scheduler.webhook_misses import note_looked, tell_lag
from sortie.scheduler.webhook_pauses import is_counted_on, next_look_at
from sortie.scheduler.webhooks import look_soon

STALE_FOR = 300.0
"""Seconds for which an answer of the forge may be older than a push."""

ANSWER_SHOWN = 3000
"""Characters of an agent's answer in a reply."""


def delivered(
    state: SchedulerState, issue: Issue, delivery: Delivery, report: RunReport, now: float
) -> None:
    """Watch the pull request of a delivery, and end the reaction that its run has answered."""
    request, settings = delivery.pull_request, state.policy.reactions
    watched = state.watches.get(issue.id)
    if request is None or not settings.on:
        return
    if watched is not None and watched.watch.pull_request.id != request.id:
        end_watch(state, watched, "left", f"{request.url} was opened for its issue", now)
        watched = None
    if watched is None:
        watch = watch_of(state, issue, request, now)
        watched = state.watches[issue.id] = Watched(
            issue=issue, watch=watch, due_at=now, interval=settings.interval
        )
        state.out.append(rec.RecordWatch(issue=issue, watch=watch))
        state.out.append(facts.WatchBegan(issue=issue, pull_request=request.url))
    watched.issue = issue
    heads = watched.watch.heads
    if delivery.head is not None and delivery.head not in heads[-1:]:
        kept = tuple(head for head in heads if head != delivery.head)
        heads, watched.head_known_at = (*kept, delivery.head)[-HEADS_KEPT:], now
    record_watch(state, watched, replace(watched.watch, pull_request=request, heads=heads))
    if watched.watch.reaction is not None:
        _answered(state, watched, watched.watch.reaction, delivery, report)
    _look_soon(state, watched, now)


def _answered(
    state: SchedulerState,
    watched: Watched,
    reaction: Reaction,
    delivery: Delivery,
    report: RunReport,
) -> None:
    """Tell people what has become of what they wrote, and let the reaction go."""
    moved = delivery.head != reaction.head
    said = cut((report.summary.answer or "").strip(), ANSWER_SHOWN)
    quoted = "\n".join(f"> {line}".rstrip() for line in said.splitlines())
    done = f"Answered by {delivery.head}." if moved else "No commit was made for this."
    body = f"{done}\n\n{quoted}" if quoted else done
    key = f"{watched.watch.pull_request.id}:{reaction.head}:{reaction.causes[-1]}"
    errands: list[Errand] = [
        ThreadReply(thread=_first_note_of(thread), body=body, key=f"{key}:{thread.id}")
        for thread in reaction.threads
    ]
    asked = reaction.comments or reaction.reviews or reaction.labelled
    if asked or (not moved and not reaction.threads):
        errands.append(PullRequestComment(body=body, key=f"{key}:answer"))
    record_watch(
        state,
        watched,
        replace(watched.watch, reaction=None, errands=(*watched.watch.errands, *errands)),
    )
    watched.waits_for = "it is looked at again after its run"
    reaction_ended(state, watched, reaction, "changed" if moved else "unchanged")


def _first_note_of(thread: ReviewThread) -> ReviewThread:
    return replace(thread, notes=tuple(replace(note, body="") for note in thread.notes[:1]))


def watch_due(state: SchedulerState, now: float) -> None:
    """Do what is due: errands one by one, looks together."""
    looks: list[Watched] = []
    forget_former(state, now)
    for watched in state.watches.take_due(now):
        state.in_hand = watched.issue
        if watched.watch.errands:
            begin_errand(state, watched)
        else:
            looks.append(watched)
    state.in_hand = None
    if not looks:
        return
    places: dict[str, list[Watched]] = {}
    for watched in looks:
        places.setdefault(watched.watch.pull_request.place, []).append(watched)
    for together in places.values():
        _look_at(state, together, now)


def _look_at(state: SchedulerState, looks: list[Watched], now: float) -> None:
    """Look at pull requests of one repository."""
    token = state.next_request()
    for watched in looks:
        watched.token, watched.doing = token, "look"
    parts = {watched.issue.id: watched.part or "all" for watched in looks}
    for watched in looks:
        _note_look(state, watched, now)
    asked = {watched.issue.id: watched.watch.pull_request for watched in looks}
    named = {watched.issue.id: parts[watched.issue.id] for watched in looks if watched.woken}
    told = is_counted_on(state, "pull_requests", looks[0], now)
    rule = state.rule_of(looks[0].issue)
    state.out.append(LookAtPullRequests(token, asked, rule, named, told))


def _note_look(state: SchedulerState, watched: Watched, now: float) -> None:
    """Tell how long a delivery has waited for the look that begins."""
    kind = state.policy_for(watched.issue).webhooks.forge
    tell_lag(state, kind, "pull_requests", watched.named_at, now)
    watched.woken, watched.looked_at = watched.named_at is not None, now
    watched.named_at = watched.part = None
    if watched.woken:
        state.webhooks.looked_at = now


def seen(state: SchedulerState, event: ev.PullRequestsSeen, now: float) -> None:
    """Act on what a look has shown."""
    for issue_id in sorted(event.asked):
        watched = state.watches.get(issue_id)
        if watched is None or watched.token != event.token:
            continue
        state.in_hand, watched.token = watched.issue, None
        if event.error is not None:
            watched.tries += 1
            watched.due_at = now + max(event.pause, look_backoff(state, watched.tries))
            watched.not_before = watched.due_at
            watched.waits_for = f"it could not be looked at: {event.error}"
            _end_if_expired(state, watched, now)
            continue
        watched.tries = 0
        found = event.seen.get(issue_id)
        if found is None:
            end_watch(state, watched, "gone", "the forge does not know it any more", now)
        elif not _is_stale(watched, found, now):
            _judge(state, watched, found, event.writers, now)
        else:
            watched.due_at = now + state.policy.reactions.interval
        if watched.named_at is not None:
            look_soon(state, watched, now)


def _end_if_expired(state: SchedulerState, watched: Watched, now: float) -> bool:
    """End a watch whose days are over, and tell whether they are."""
    if not is_expired(state, watched, now):
        return False
    days = state.policy.reactions.watch_days
    end_watch(state, watched, "expired", f"it was watched for {days} days", now)
    return True


def _is_stale(watched: Watched, found: PullRequestState, now: float) -> bool:
    """Tell whether a forge shows a head from before the newest that is known: an old answer, if
    not somebody has gone back to it, which shows a while later."""
    heads, request = watched.watch.heads, found.pull_request
    is_fresh = now < watched.head_known_at + STALE_FOR
    return is_fresh and request.state == "open" and request.head in heads[:-1]


def _judge(
    state: SchedulerState,
    watched: Watched,
    found: PullRequestState,
    writers: frozenset[str],
    now: float,
) -> None:
    settings = state.policy.reactions
    changed = found != watched.seen
    note_looked(state, watched, found, now)
    _take_in(state, watched, found, now)
    watched.seen, watched.writers = found, writers
    is_moving = changed or watched.watch.merging is not None or _is_pending(found)
    longer = min(watched.interval * 2, settings.longest_interval)
    watched.interval = settings.interval if is_moving else longer
    regular = watched.due_at = now + watched.interval
    request = found.pull_request
    if request.state != "open":
        _over(state, watched, request.state, now)
    elif watched.watch.over is not None:
        forget_watch(state, watched)
    elif not _end_if_expired(state, watched, now):
        obey(state, watched, found, now)
        react(state, watched, found, now)
    if watched.due_at == regular and watched.token is None:
        watched.due_at = next_look_at(state, watched, found, now)
    if watched.watch.errands:
        watched.due_at = now


def _is_pending(found: PullRequestState) -> bool:
    return found.conflicts is None or any(c.state is CheckState.PENDING for c in found.checks)


def _take_in(state: SchedulerState, watched: Watched, found: PullRequestState, now: float) -> None:
    """Take over the head: of Sortie's own making, or of somebody else's, who gives budgets back."""
    watch, head = watched.watch, found.pull_request.head
    before = None if watched.seen is None else watched.seen.pull_request.head
    if before != head:
        watched.head_since, watched.conflict, watched.refused = now, None, 0
    label = state.policy.reactions.commands
    if label is not None and label.label not in found.labels:
        name = f"label:{label.label}"
        watch = replace(watch, causes=tuple(cause for cause in watch.causes if cause != name))
    if head is not None and head not in watch.heads[-1:]:
        watched.head_known_at = now
        heads = (*(known for known in watch.heads if known != head), head)[-HEADS_KEPT:]
        claim = state.claims.find(watched.issue.id)
        if watch.merging is not None:  # its base was brought in, though that may not be known
            watch = replace(watch, heads=heads, updated=False, merging=head)
        elif isinstance(claim, WORKED) or head == _delivered_head(state, watched):
            watch = replace(watch, heads=heads, merging=None)
        else:
            watch = forgiven(state, replace(watch, heads=heads, merging=None))
            if isinstance(claim, Held) and claim.reason is HoldReason.REACTION_EXHAUSTED:
                end_hold(state, claim, "somebody has pushed to its pull request")
    record_watch(state, watched, replace(watch, pull_request=found.pull_request))


def _delivered_head(state: SchedulerState, watched: Watched) -> str | None:
    """Return the commit that a run has meant to push, though its end is not known yet."""
    delivery = state.deliveries.get(watched.issue.id)
    return None if delivery is None else delivery.head


def _over(
    state: SchedulerState, watched: Watched, result: Literal["merged", "closed"], now: float
) -> None:
    """Do what is left to do for a pull request that was merged or closed."""
    settings, merged = state.policy.reactions, result == "merged"
    errands: list[Errand] = list(watched.watch.errands)
    if merged and settings.merge is not None and settings.merge.delete_branch:
        errands.append(BranchDeletion())
    move = settings.merged if merged else settings.closed
    if move is not None and watched.watch.over is None:
        errands.append(IssueMove(state=move.state))
    if merged:
        state.watches.base_moved(watched, now)
    if watched.watch.over is not None and errands:
        record_watch(state, watched, replace(watched.watch, errands=tuple(errands)))
    else:
        end_watch(state, watched, result, f"it was {result}", now, tuple(errands))


def _look_soon(state: SchedulerState, watched: Watched, now: float) -> None:
    settings = state.policy.reactions
    watched.interval = settings.interval
    if watched.token is None:
        watched.due_at = now if watched.watch.errands else now + settings.interval
