"""What is on record of watched pull requests."""

from __future__ import annotations

from msgspec.structs import replace

from sortie import facts
from sortie.model import Issue
from sortie.model.watches import Errand, Reaction, Watch
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Waiting
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.watch_table import Watched


def record_watch(state: SchedulerState, watched: Watched, watch: Watch) -> None:
    """Replace what is on record of a watched pull request."""
    if watch != watched.watch:
        watched.watch = watch
        state.out.append(rec.RecordWatch(issue=watched.issue, watch=watch))


def forget_watch(state: SchedulerState, watched: Watched) -> None:
    """Watch a pull request no longer."""
    if state.watches.get(watched.issue.id) is watched:
        del state.watches[watched.issue.id]
        state.out.append(rec.ForgetWatch(issue_id=watched.issue.id))


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
    watched.issue, watched.due_at, watched.ready = issue, 0.0, False
    record_watch(state, watched, replace(watched.watch, reaction=None, merging=None, over=reason))


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


def look_backoff(state: SchedulerState, tries: int) -> float:
    """Return the seconds until a forge is asked again after so many failures in a row."""
    settings = state.policy.reactions
    return min(settings.interval * 2.0 ** min(tries - 1, 16), settings.longest_interval)
