"""What is on record of watched pull requests."""

from __future__ import annotations

from msgspec.structs import replace

from sortie import facts
from sortie.model import Issue
from sortie.model.watches import Watch
from sortie.scheduler import records as rec
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
