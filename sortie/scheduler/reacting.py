"""What a look at a pull request calls for: obedience, a further run, a merge."""

from __future__ import annotations

from msgspec.structs import replace

from sortie import facts
from sortie.config.reactions import MergeReaction
from sortie.model import HoldReason, Streak, Trigger
from sortie.model.pull_requests import PullRequestState
from sortie.model.watches import (
    CAUSES_KEPT,
    Acknowledgement,
    CheckRerun,
    Errand,
    LabelChange,
    PullRequestComment,
    Reaction,
    ReactionKind,
    Watch,
)
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Held
from sortie.scheduler.commands import stop
from sortie.scheduler.holds import end_hold, hold
from sortie.scheduler.merging import merge_if_ready, merge_is_wanted, without_merge
from sortie.scheduler.reactions import Causes, call_for, causes_of, commands_in, rerun_key
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.timing import RERUN_PATIENCE
from sortie.scheduler.waits import wait_for_run
from sortie.scheduler.watch_records import forgiven, reaction_ended, record_watch
from sortie.scheduler.watch_table import Watched


def obey(state: SchedulerState, watched: Watched, found: PullRequestState, now: float) -> None:
    """Obey ``/sortie stop`` and ``/sortie retry``, each once."""
    for command in list(commands_in(watched.watch, found, watched.writers, state.policy.reactions)):
        claim = state.claims.find(watched.issue.id)
        if command.word == "fix":
            if isinstance(claim, Held) and claim.reason is HoldReason.REACTION_EXHAUSTED:
                end_hold(state, claim, f"{command.note.author} asks for more")
            continue
        watch = watched.watch
        causes = (*watch.causes, f"comment:{command.note.id}")
        errands = (*watch.errands, Acknowledgement(note=command.note))
        watch = replace(watch, errands=errands)
        if command.word == "retry":
            pending = () if watch.reaction is None else watch.reaction.causes
            causes = tuple(c for c in causes if c.startswith("comment:") or c in pending)
            watch, watched.refused = forgiven(state, watch), 0
            if isinstance(claim, Held):
                end_hold(state, claim, f"{command.note.author} asked for a retry")
                if watch.reaction is not None:  # the run that was held goes on
                    wait_for_run(state, watched.issue, Streak(), Trigger.REACTION, now, delay=0.0)
        record_watch(state, watched, replace(watch, causes=causes[-CAUSES_KEPT:]))
        if command.word == "stop":
            stop(state, watched.issue.id, now)


def react(state: SchedulerState, watched: Watched, found: PullRequestState, now: float) -> None:
    """Start a further run where something calls for it, else merge what is ready."""
    settings, issue = state.policy.reactions, watched.issue
    claim, watch = state.claims.find(issue.id), watched.watch
    watched.ready = False
    if claim is not None:
        watched.waits_for = _busy_with(claim, watch)
        return
    if watch.reaction is not None:  # its wait was ended from outside
        reaction_ended(state, watched, watch.reaction, "dropped")
        record_watch(state, watched, replace(watch, reaction=None))
    if watch.exhausted is not None:  # its hold was ended
        record_watch(state, watched, forgiven(state, watched.watch))
    head = found.pull_request.head
    merge = settings.merge or MergeReaction()
    settled = now >= watched.head_since + merge.settle
    happened = causes_of(watched.watch, found, watched.writers, settings, settled=settled)
    causes = _ripe(state, watched, happened, head, now)
    call = call_for(watched.watch, head, causes, settings)
    if call.exhausted is not None:
        _exhaust(state, watched, call.exhausted, now)
    elif call.reaction is not None:
        _begin(state, watched, call.reaction, now)
    elif causes.again:
        _rerun(state, watched, causes, head, now)
    elif happened.review:
        watched.waits_for = "a review is under way; it is answered once nothing more comes"
    elif merge_is_wanted(state, watched):
        merge_if_ready(state, watched, found, now)
    else:
        watched.waits_for = "it is merged, closed, or something happens to it"


def _busy_with(claim: object, watch: Watch) -> str:
    if isinstance(claim, Held):
        return f"its issue is held: {claim.detail}"
    kinds = ", ".join(watch.reaction.words) if watch.reaction is not None else ""
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
            errands=(*watched.watch.errands, *(CheckRerun(check=check) for check in checks)),
        ),
    )


def _begin(state: SchedulerState, watched: Watched, reaction: Reaction, now: float) -> None:
    watch, issue_id = watched.watch, watched.issue.id
    if state.deliveries.pop(issue_id, None) is not None:
        # Work of a stopped run would be delivered without its agent, who has to be told of this.
        state.out.append(rec.SettleDelivery(issue_id=issue_id))
    runs = {**watch.runs, **{kind: watch.runs.get(kind, 0) + 1 for kind in reaction.kinds}}
    errands: list[Errand] = [Acknowledgement(note=note) for note in reaction.comments]
    commands = state.policy.reactions.commands
    if reaction.labelled and commands is not None:
        errands.append(LabelChange(remove=(commands.label,)))
    record_watch(
        state,
        watched,
        without_merge(
            watched,
            replace(
                watch,
                causes=(*watch.causes, *reaction.causes)[-CAUSES_KEPT:],
                runs=runs,
                reaction=reaction,
                errands=(*watch.errands, *errands),
            ),
        ),
    )
    state.out.append(
        facts.ReactionPlanned(
            issue=watched.issue,
            pull_request=watch.pull_request.url,
            kinds=reaction.words,
            head=reaction.head,
        )
    )
    wait_for_run(state, watched.issue, Streak(), Trigger.REACTION, now, delay=0.0)
    watched.waits_for = _busy_with(None, watched.watch)


def _exhaust(state: SchedulerState, watched: Watched, kind: ReactionKind, now: float) -> None:
    """Hold an issue for which there were enough runs, and call for a person."""
    settings, watch = state.policy.reactions, watched.watch
    count = watch.runs.get(kind, 0)
    times = "once" if count == 1 else f"{count} times"
    detail = f"the agent was asked {times} about {kind} of {watch.pull_request.url}"
    body = (
        f"Sortie has asked its agent {times} about {kind}, which is all that"
        f" `reactions.{kind}.max_runs` allows. A person is needed: push to the branch"
    )
    # Without the block no comment is listened to.
    body += "." if settings.commands is None else ", or say `/sortie retry`."
    errands: tuple[Errand, ...] = (
        LabelChange(add=(settings.needs_human_label,)),
        PullRequestComment(
            body=body, key=f"{watch.pull_request.id}:{kind}:{watch.pull_request.head}"
        ),
    )
    record_watch(
        state,
        watched,
        without_merge(watched, replace(watch, exhausted=kind, errands=(*watch.errands, *errands))),
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
