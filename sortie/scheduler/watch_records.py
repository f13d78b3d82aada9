"""What is on record of watched pull requests."""

from __future__ import annotations

from msgspec.structs import replace

from sortie import facts
from sortie.model import Issue, PullRequest
from sortie.model.watches import REFUSED, Errand, LabelChange, Reaction, Watch
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Waiting
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.waits import end_wait
from sortie.scheduler.watch_table import Watched

DAY = 86_400.0


def record_watch(state: SchedulerState, watched: Watched, watch: Watch) -> None:
    """Replace what is on record of a watched pull request."""
    if watch != watched.watch:
        watched.watch = watch
        state.out.append(rec.RecordWatch(issue=watched.issue, watch=watch))


def forget_watch(state: SchedulerState, watched: Watched) -> None:
    """Watch a pull request no longer; remember what was answered, if it may be opened again."""
    issue, watch = watched.issue, watched.watch
    if state.watches.get(issue.id) is not watched:
        return
    del state.watches[issue.id]
    if watch.pull_request.state == "merged":
        state.out.append(rec.ForgetWatch(issue_id=issue.id))
        return
    former = state.former_watches[issue.id] = replace(watch, former=True, runs={}, exhausted=None)
    state.out.append(rec.RecordWatch(issue=issue, watch=former))


def forget_former(state: SchedulerState, now: float) -> None:
    """Forget what was watched before, and was not opened again for as long as it was watched."""
    before = state.epoch + now - 2 * state.policy.reactions.watch_days * DAY
    for issue_id in [i for i, watch in state.former_watches.items() if watch.since < before]:
        del state.former_watches[issue_id]
        state.out.append(rec.ForgetWatch(issue_id=issue_id))


def watch_of(state: SchedulerState, issue: Issue, request: PullRequest, now: float) -> Watch:
    """Return a new watch of an issue's pull request, which knows what was answered before, also in
    another one of the issue."""
    before = state.former_watches.pop(issue.id, None)
    new = Watch(pull_request=request, since=state.epoch + now)
    if before is None:
        return new
    if before.pull_request.id != request.id:
        return replace(new, causes=before.causes)
    return replace(new, causes=before.causes, heads=before.heads, reruns=before.reruns)


def leave(state: SchedulerState, issue: Issue) -> None:
    """Look a last time at the pull request of an issue that is finished."""
    watched = state.watches.get(issue.id)
    if watched is None or watched.watch.over is not None:
        return
    reason = f"the issue is {issue.state}"
    state.out.append(
        facts.WatchEnded(
            issue=issue,
            pull_request=watched.watch.pull_request.url,
            result="left",
            reason=reason,
        )
    )
    if watched.watch.reaction is not None:
        reaction_ended(state, watched, watched.watch.reaction, "dropped")
    watched.issue, watched.due_at, watched.ready = issue, 0.0, False
    record_watch(state, watched, replace(watched.watch, reaction=None, merging=None, over=reason))


def is_expired(state: SchedulerState, watched: Watched, now: float) -> bool:
    """Tell whether a pull request was watched for as long as any is."""
    days = state.policy.reactions.watch_days
    return state.epoch + now >= watched.watch.since + days * DAY


def forgiven(state: SchedulerState, watch: Watch) -> Watch:
    """Return a watch with all its runs still to be had, its merge to be tried, and without the call
    for a person."""
    errands = watch.errands
    causes = tuple(cause for cause in watch.causes if not cause.startswith(REFUSED))
    if watch.exhausted is not None or causes != watch.causes:
        label = state.policy.reactions.needs_human_label
        errands = (*errands, LabelChange(remove=(label,)))
    return replace(watch, causes=causes, runs={}, exhausted=None, errands=errands)


def reaction_ended(
    state: SchedulerState, watched: Watched, reaction: Reaction, result: facts.ReactionResult
) -> None:
    """Tell that a reaction is over."""
    state.out.append(
        facts.ReactionEnded(
            issue=watched.issue,
            pull_request=watched.watch.pull_request.url,
            kinds=reaction.words,
            result=result,
        )
    )


def end_watch(
    state: SchedulerState,
    watched: Watched,
    result: facts.WatchResult,
    reason: str,
    now: float,
    errands: tuple[Errand, ...] = (),
) -> None:
    """Watch a pull request no longer, once these errands are done."""
    watch = watched.watch
    if watch.reaction is not None:
        reaction_ended(state, watched, watch.reaction, "dropped")
        claim = state.claims.find(watched.issue.id)
        if isinstance(claim, Waiting):
            end_wait(state, claim, reason)
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


def look_backoff(state: SchedulerState, tries: int) -> float:
    """Return the seconds until a forge is asked again after so many failures in a row."""
    settings = state.policy.reactions
    return min(settings.interval * 2.0 ** min(tries - 1, 16), settings.longest_interval)
