"""Removing the workspaces of finished issues, unless they hold work that is nowhere else."""

from __future__ import annotations

from msgspec.structs import replace

from sortie import facts
from sortie.model import Issue, KnownWorkspace
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Cleaning
from sortie.scheduler.decisions import CleanWorkspace
from sortie.scheduler.events import WorkspaceCleaned
from sortie.scheduler.questions import forget_question
from sortie.scheduler.stages import forget_stages
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.timing import backoff, kept_delay
from sortie.scheduler.watch_records import leave


def finish(state: SchedulerState, issue: Issue) -> None:
    """Clean up after an unclaimed issue that is terminal: its budget and its workspaces."""
    state.candidates.discard(issue.id)
    state.agent_sessions.pop(issue.id, None)
    state.deliveries.pop(issue.id, None)
    state.reset_budget(issue.id)
    forget_stages(state, issue)
    forget_question(state, issue)
    leave(state, issue)
    workspaces = state.workspaces.of(issue.id)
    if workspaces and not state.draining:  # else the next start sees to it
        state.claims[issue.id] = Cleaning(issue=issue, last_request=state.last_request)
        why = f"it is {issue.state}"
        state.out.append(facts.IssueReconciled(action="cleanup", issue=issue, reason=why))
        over = () if state.policy.keep_unsaved else workspaces
        state.out.append(CleanWorkspace(issue, workspaces, over))


def drop_reopened(state: SchedulerState) -> None:
    """Stop cleaning up after issues that the settings no longer call terminal."""
    for claim in state.claims.of_kind(Cleaning):
        state.in_hand = claim.issue
        if not claim.busy and not state.policy.is_terminal(claim.issue):
            state.release(claim.issue.id)


def clean_again(state: SchedulerState, claim: Cleaning, now: float) -> None:
    """Try again to remove an issue's workspaces.

    Those that were kept for ``keep_unsaved`` are removed with the work in them.
    """
    workspaces = state.workspaces.of(claim.issue.id)
    if not workspaces:  # another issue has the directory now
        state.release(claim.issue.id)
        return
    state.claims[claim.issue.id] = replace(claim, busy=True)
    over = tuple(known for known in workspaces if _kept_until(state, known, now) <= now)
    state.out.append(CleanWorkspace(claim.issue, workspaces, over))


def cleaned(state: SchedulerState, event: WorkspaceCleaned, now: float) -> None:
    """Forget removed workspaces; plan another try for what stays."""
    for workspace in event.removed:
        state.out.append(rec.ForgetWorkspace(host=workspace.host, path=workspace.path))
        state.workspaces.forget(workspace)
    claim = state.claims.find(event.issue_id)
    if not isinstance(claim, Cleaning):
        return
    state.in_hand = claim.issue
    if event.error is None and not event.kept:
        state.release(event.issue_id)
        return
    tries = claim.tries + 1
    delay = kept_delay(tries) if event.error is None else backoff(tries, state.policy)
    since = min((_unsaved_since(state, kept.workspace, now) for kept in event.kept), default=now)
    until = max(now, since + state.policy.keep_unsaved)
    news = [kept for kept in event.kept if kept not in claim.kept]
    state.out.extend(
        facts.WorkspaceKept(
            issue_id=claim.issue.id,
            issue_identifier=claim.issue.identifier,
            path=kept.workspace.path,
            host=kept.workspace.host,
            reason=kept.reason,
            seconds=until - now,
        )
        for kept in news
    )
    state.claims[event.issue_id] = replace(
        claim,
        tries=tries,
        busy=False,
        due_at=min(now + delay, until) if event.kept else now + delay,
        error=event.error,
        kept=event.kept,
        kept_since=since,
        last_request=state.last_request,
    )


def _unsaved_since(state: SchedulerState, known: KnownWorkspace, now: float) -> float:
    """Return since when a workspace counts as unsaved; put it on record where that is now."""
    since = state.workspaces.unsaved_since(known)
    if since is not None:
        return since
    state.workspaces.note_unsaved(known, now)
    state.out.append(rec.RecordUnsaved(host=known.host, path=known.path))
    return now


def _kept_until(state: SchedulerState, known: KnownWorkspace, now: float) -> float:
    """Return until when a finished issue's workspace is kept where it holds unsaved work."""
    since = state.workspaces.unsaved_since(known)
    return (now if since is None else since) + state.policy.keep_unsaved
