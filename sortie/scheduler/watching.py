"""Watching pull requests: what is looked at when, and what follows from what is seen.

Rule 1: what is to be done is on record, with its cause, before it is done; so a crash repeats
nothing, as each errand is made once for its key, and each merge names its head.
Rule 2: one further run of an issue at a time. What comes meanwhile is answered together after it.
Rule 3: a head that Sortie has made gives no budget back; one that somebody else has made does.
"""

from __future__ import annotations

from msgspec.structs import replace

from sortie import facts
from sortie.model import (
    Delivery,
    HoldReason,
    Issue,
    RunReport,
    Streak,
    Trigger,
    cut,
)
from sortie.model.pull_requests import CheckState, PullRequestState
from sortie.model.watches import (
    CAUSES_KEPT,
    HEADS_KEPT,
    Acknowledgement,
    BranchDeletion,
    CheckRerun,
    Errand,
    IssueMove,
    LabelChange,
    PullRequestComment,
    Reaction,
    ReactionKind,
    ThreadReply,
    Watch,
)
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import HandingOff, Held, Waiting
from sortie.scheduler.clean_ups import finish
from sortie.scheduler.commands import stop
from sortie.scheduler.decisions import LookAtPullRequests, RunErrand
from sortie.scheduler.holds import end_hold, hold
from sortie.scheduler.merging import merge_if_ready, merge_is_wanted
from sortie.scheduler.reactions import Causes, call_for, causes_of, commands_in, rerun_key
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.watch_records import forget_watch, record_watch
from sortie.scheduler.watch_table import Watched

ERRAND_TRIES = 5
"""Tries after which an errand that the service refuses is left."""

STALE_FOR = 300.0
"""Seconds for which an answer of the forge may be older than a push."""

RERUN_PATIENCE = 600.0
"""Seconds for which a check that was made again may still show its earlier failure."""

ANSWER_SHOWN = 3000
"""Characters of an agent's answer in a reply."""

DAY = 86_400.0


def delivered(
    state: SchedulerState, issue: Issue, delivery: Delivery, report: RunReport, now: float
) -> None:
    """Watch the pull request of a delivery, and end the reaction that its run has answered."""
    request, settings = delivery.pull_request, state.policy.reactions
    watched = state.watches.get(issue.id)
    if request is None or not settings.on:
        return
    if watched is None or watched.watch.pull_request.id != request.id:
        watch = Watch(pull_request=request, since=state.epoch + now)
        watched = state.watches[issue.id] = Watched(
            issue=issue, watch=watch, due_at=now, interval=settings.interval
        )
        state.out.append(rec.RecordWatch(issue=issue, watch=watch))
        state.out.append(facts.WatchBegan(issue=issue, pull_request=request.url))
    watched.issue = issue
    heads = watched.watch.heads
    if delivery.head is not None and delivery.head not in heads:
        heads, watched.head_known_at = (*heads, delivery.head)[-HEADS_KEPT:], now
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
        ThreadReply(thread=thread.id, body=body, key=f"{key}:{thread.id}")
        for thread in reaction.threads
    ]
    if reaction.comments or reaction.labelled or (not moved and not reaction.threads):
        errands.append(PullRequestComment(body=body, key=f"{key}:answer"))
    record_watch(
        state,
        watched,
        replace(watched.watch, reaction=None, errands=(*watched.watch.errands, *errands)),
    )
    _ended(state, watched, reaction, "changed" if moved else "unchanged")


def _ended(state: SchedulerState, watched: Watched, reaction: Reaction, result: str) -> None:
    state.out.append(
        facts.ReactionEnded(
            issue=watched.issue,
            pull_request=watched.watch.pull_request.url,
            kinds=tuple(kind.value for kind in reaction.kinds),
            result=result,
        )
    )


def watch_due(state: SchedulerState, now: float) -> None:
    """Do what is due: errands one by one, looks together."""
    looks: list[Watched] = []
    for watched in state.watches.take_due(now):
        state.in_hand = watched.issue
        if watched.watch.errands:
            _begin_errand(state, watched)
        else:
            looks.append(watched)
    state.in_hand = None
    if not looks:
        return
    token = state.next_request()
    for watched in looks:
        watched.token, watched.doing = token, "look"
    asked = {watched.issue.id: watched.watch.pull_request for watched in looks}
    state.out.append(LookAtPullRequests(token, asked))


def _begin_errand(state: SchedulerState, watched: Watched) -> None:
    watched.token, watched.doing = state.next_request(), "errand"
    watch = watched.watch
    state.out.append(RunErrand(watched.token, watched.issue, watch.pull_request, watch.errands[0]))


def errand_done(state: SchedulerState, event: ev.ErrandDone, now: float) -> None:
    """Take the first errand off, or try it again later."""
    watched = state.watches.get(event.issue_id)
    if watched is None or watched.token != event.token:
        return
    state.in_hand, watched.token = watched.issue, None
    errand = watched.watch.errands[0]
    if event.error is not None:
        watched.tries += 1
        if event.again or (isinstance(errand, IssueMove) and watched.tries < ERRAND_TRIES):
            watched.due_at = now + _backoff(state, watched.tries)
            watched.waits_for = event.error
            return
        state.out.append(
            facts.ErrandFailed(
                issue=watched.issue,
                pull_request=watched.watch.pull_request.url,
                errand=type(errand).__name__,
                error=event.error,
            )
        )
    watched.tries, watched.due_at = 0, now
    record_watch(state, watched, replace(watched.watch, errands=watched.watch.errands[1:]))
    if isinstance(errand, IssueMove):
        _issue_moved(state, watched, errand, event.error, now)
    if watched.watch.over and not watched.watch.errands:
        forget_watch(state, watched)


def _issue_moved(
    state: SchedulerState, watched: Watched, errand: IssueMove, error: str | None, now: float
) -> None:
    """Go on with an issue that is elsewhere as its pull request is over."""
    claim = state.claims.find(watched.issue.id)
    if error is not None:
        if claim is None:
            detail = f"it could not be moved to {errand.state}: {error}"
            reason = HoldReason.HANDOFF_FAILED
            hold(state, watched.issue, reason, detail, now, handoff_state=errand.state)
        return
    issue = replace(watched.issue, state=errand.state)
    state.out.append(rec.RecordHandoff(issue=issue, state=errand.state))
    match claim:
        case Held():
            end_hold(state, claim, f"it was moved to {errand.state}")
        case Waiting() | HandingOff(token=None):
            state.end_wait(claim, f"it was moved to {errand.state}")
        case None:
            pass
        case _:
            state.reconcile_at = now  # its run is stopped once it reads so
            return
    if state.policy.is_terminal(issue):
        finish(state, issue)


def _backoff(state: SchedulerState, tries: int) -> float:
    settings = state.policy.reactions
    return min(settings.interval * 2.0 ** min(tries - 1, 16), settings.longest_interval)


def seen(state: SchedulerState, event: ev.PullRequestsSeen, now: float) -> None:
    """Act on what a look has shown."""
    for issue_id in event.asked:
        watched = state.watches.get(issue_id)
        if watched is None or watched.token != event.token:
            continue
        state.in_hand, watched.token = watched.issue, None
        if event.error is not None:
            watched.tries += 1
            watched.due_at = now + max(event.pause, _backoff(state, watched.tries))
            watched.waits_for = f"it could not be looked at: {event.error}"
            continue
        watched.tries = 0
        found = event.seen.get(issue_id)
        if found is None:
            _end(state, watched, "gone", "the forge does not know it any more", now)
        elif not _is_stale(watched, found, now):
            _judge(state, watched, found, event.writers, now)
        else:
            watched.due_at = now + state.policy.reactions.interval


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
    _take_in(state, watched, found, now)
    watched.seen, watched.writers = found, writers
    is_moving = changed or watched.watch.merging is not None or _is_pending(found)
    longer = min(watched.interval * 2, settings.longest_interval)
    watched.interval = settings.interval if is_moving else longer
    watched.due_at = now + watched.interval
    request = found.pull_request
    if request.state != "open":
        _over(state, watched, request.state, now)
    elif watched.watch.over is not None:
        forget_watch(state, watched)
    elif state.epoch + now >= watched.watch.since + settings.watch_days * DAY:
        days = f"{settings.watch_days} days"
        _end(state, watched, "expired", f"it was watched for {days}", now)
    else:
        _obey(state, watched, found, now)
        _react(state, watched, found, now)
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
        if watch.updated:
            watch = replace(watch, heads=heads, updated=False, merging=head)
        else:
            watch = _forgiven(state, replace(watch, heads=heads, merging=None))
            claim = state.claims.find(watched.issue.id)
            if isinstance(claim, Held) and claim.reason is HoldReason.REACTION_EXHAUSTED:
                end_hold(state, claim, "somebody has pushed to its pull request")
    record_watch(state, watched, replace(watch, pull_request=found.pull_request))


def _forgiven(state: SchedulerState, watch: Watch) -> Watch:
    """Return a watch with all its runs still to be had, and without the call for a person."""
    errands = watch.errands
    if watch.exhausted is not None:
        label = state.policy.reactions.needs_human_label
        errands = (*errands, LabelChange(remove=(label,)))
    return replace(watch, runs={}, exhausted=None, errands=errands)


def _over(state: SchedulerState, watched: Watched, result: str, now: float) -> None:
    """Do what is left to do for a pull request that was merged or closed."""
    settings, merged = state.policy.reactions, result == "merged"
    errands: list[Errand] = []
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
        _end(state, watched, result, f"it was {result}", now, tuple(errands))


def _end(
    state: SchedulerState,
    watched: Watched,
    result: str,
    reason: str,
    now: float,
    errands: tuple[Errand, ...] = (),
) -> None:
    """Watch a pull request no longer, once these errands are done."""
    watch = watched.watch
    if watch.reaction is not None:
        _ended(state, watched, watch.reaction, "dropped")
        claim = state.claims.find(watched.issue.id)
        if isinstance(claim, Waiting):
            state.end_wait(claim, reason)
    if watch.over is None:
        state.out.append(
            facts.WatchEnded(
                issue=watched.issue,
                pull_request=watch.pull_request.url,
                result=result,
                reason=reason,
            )
        )
    watched.waits_for, watched.due_at, watched.ready = reason, now, False
    record_watch(
        state,
        watched,
        replace(watch, reaction=None, merging=None, over=reason, errands=errands),
    )
    if not errands:
        forget_watch(state, watched)


def _obey(state: SchedulerState, watched: Watched, found: PullRequestState, now: float) -> None:
    """Obey ``/sortie stop`` and ``/sortie retry``, each once."""
    for command in list(commands_in(watched.watch, found, watched.writers, state.policy.reactions)):
        if command.word == "fix":
            continue
        watch = watched.watch
        causes = (*watch.causes, f"comment:{command.note.id}")
        errands = (*watch.errands, Acknowledgement(note=command.note))
        watch = replace(watch, errands=errands)
        claim = state.claims.find(watched.issue.id)
        if command.word == "retry":
            causes = tuple(cause for cause in causes if cause.startswith("comment:"))
            watch = _forgiven(state, watch)
            if isinstance(claim, Held):
                end_hold(state, claim, f"{command.note.author} asked for a retry")
        record_watch(state, watched, replace(watch, causes=causes[-CAUSES_KEPT:]))
        if command.word == "stop":
            stop(state, watched.issue.id, now)


def _react(state: SchedulerState, watched: Watched, found: PullRequestState, now: float) -> None:
    """Start a further run where something calls for it, else merge what is ready."""
    settings, issue = state.policy.reactions, watched.issue
    claim, watch = state.claims.find(issue.id), watched.watch
    watched.ready = False
    if claim is not None:
        watched.waits_for = _busy_with(claim, watch)
        return
    if watch.reaction is not None:  # its wait was ended from outside
        _ended(state, watched, watch.reaction, "dropped")
        record_watch(state, watched, replace(watch, reaction=None))
    if watch.exhausted is not None:  # its hold was ended
        record_watch(state, watched, _forgiven(state, watched.watch))
    head = found.pull_request.head
    causes = causes_of(watched.watch, found, watched.writers, settings)
    causes = _ripe(state, watched, causes, head, now)
    call = call_for(watched.watch, head, causes, settings)
    if call.exhausted is not None:
        _exhaust(state, watched, call.exhausted, now)
    elif call.reaction is not None:
        _begin(state, watched, call.reaction, now)
    elif causes.again:
        _rerun(state, watched, causes, head, now)
    elif merge_is_wanted(state, watched):
        merge_if_ready(state, watched, found, now)
    else:
        watched.waits_for = "it is merged, closed, or something happens to it"


def _busy_with(claim: object, watch: Watch) -> str:
    if isinstance(claim, Held):
        return f"its issue is held: {claim.detail}"
    kinds = ", ".join(watch.reaction.kinds) if watch.reaction is not None else ""
    return f"a run answers {kinds}" if kinds else "the issue's run"


def _ripe(
    state: SchedulerState, watched: Watched, causes: Causes, head: str | None, now: float
) -> Causes:
    """Leave out what may be more, or gone, in a moment: a review under way, a first conflict."""
    if causes.conflicts and watched.conflict != head:
        watched.conflict = head
        watched.due_at = min(watched.due_at, now + state.policy.reactions.interval)
        causes = replace(causes, conflicts={})
    if watched.rerun_at + RERUN_PATIENCE > now:
        causes = replace(causes, checks={}, again={})
    review = state.policy.reactions.review
    if review is None or not causes.review:
        watched.reviewed = frozenset()
        return causes
    if not causes.review <= watched.reviewed:
        watched.review_since = now
    watched.reviewed = causes.review
    if now < watched.review_since + review.debounce:
        watched.due_at = min(watched.due_at, watched.review_since + review.debounce)
        return replace(causes, reviews={}, threads={})
    return causes


def _rerun(
    state: SchedulerState, watched: Watched, causes: Causes, head: str | None, now: float
) -> None:
    checks = tuple(causes.again.values())
    keys = tuple(rerun_key(head, check) for check in checks)
    watched.rerun_at = now
    watched.waits_for = f"made again: {', '.join(check.name for check in checks)}"
    record_watch(
        state,
        watched,
        replace(
            watched.watch,
            reruns=(*watched.watch.reruns, *keys)[-CAUSES_KEPT:],
            errands=tuple(CheckRerun(check=check) for check in checks),
        ),
    )


def _begin(state: SchedulerState, watched: Watched, reaction: Reaction, now: float) -> None:
    watch = watched.watch
    runs = {**watch.runs, **{kind: watch.runs.get(kind, 0) + 1 for kind in reaction.kinds}}
    errands: list[Errand] = [Acknowledgement(note=note) for note in reaction.comments]
    commands = state.policy.reactions.commands
    if reaction.labelled and commands is not None:
        errands.append(LabelChange(remove=(commands.label,)))
    record_watch(
        state,
        watched,
        replace(
            watch,
            causes=(*watch.causes, *reaction.causes)[-CAUSES_KEPT:],
            runs=runs,
            reaction=reaction,
            merging=None,
            errands=(*watch.errands, *errands),
        ),
    )
    state.out.append(
        facts.ReactionPlanned(
            issue=watched.issue,
            pull_request=watch.pull_request.url,
            kinds=tuple(kind.value for kind in reaction.kinds),
            head=reaction.head,
        )
    )
    state.wait(watched.issue, Streak(), Trigger.REACTION, now, delay=0.0)
    watched.waits_for = _busy_with(None, watched.watch)


def _exhaust(state: SchedulerState, watched: Watched, kind: ReactionKind, now: float) -> None:
    """Hold an issue for which there were enough runs, and call for a person."""
    settings, watch = state.policy.reactions, watched.watch
    count = watch.runs.get(kind, 0)
    times = "once" if count == 1 else f"{count} times"
    detail = f"the agent was asked {times} about {kind} of {watch.pull_request.url}"
    body = (
        f"Sortie has asked its agent {times} about {kind}, which is all that"
        f" `reactions.{kind}.max_runs` allows. A person is needed: push to the branch, or say"
        " `/sortie retry`."
    )
    errands: tuple[Errand, ...] = (
        LabelChange(add=(settings.needs_human_label,)),
        PullRequestComment(body=body, key=f"{watch.pull_request.id}:{kind}:{watch.heads[-1:]}"),
    )
    record_watch(
        state,
        watched,
        replace(watch, exhausted=kind, merging=None, errands=(*watch.errands, *errands)),
    )
    state.out.append(
        facts.ReactionEnded(
            issue=watched.issue,
            pull_request=watch.pull_request.url,
            kinds=(kind.value,),
            result="exhausted",
        )
    )
    hold(state, watched.issue, HoldReason.REACTION_EXHAUSTED, detail, now)


def _look_soon(state: SchedulerState, watched: Watched, now: float) -> None:
    settings = state.policy.reactions
    watched.interval = settings.interval
    if watched.token is None:
        watched.due_at = now if watched.watch.errands else now + settings.interval
