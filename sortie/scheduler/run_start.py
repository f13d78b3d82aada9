"""The start of a run: its claim, its record, and what its worker is told."""

from __future__ import annotations

from sortie.model import AgentSession, Delivery, Issue, Streak, same_state
from sortie.model.watches import Reaction
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Rechecking, Starting
from sortie.scheduler.decisions import StartWorker
from sortie.scheduler.memory import TakenOver
from sortie.scheduler.questions import answer_for_run, granted
from sortie.scheduler.stages import begin_stage, previous_stage
from sortie.scheduler.state import SchedulerState


def start_run(
    state: SchedulerState, claim: Rechecking, issue: Issue, host: str, now: float
) -> None:
    """Start a run of an issue that was chosen and re-read."""
    run_id, waited = state.new_run_id(), claim.waited
    streak = waited.streak if waited is not None else Streak()
    begin_stage(state, issue)
    state.keep_rule(issue)
    policy, rule = state.policy_for(issue), state.rule_of(issue)
    in_progress = policy.in_progress_state
    moves = in_progress is not None and not same_state(in_progress, issue.state)
    state.claims[issue.id] = Starting(
        issue=issue,
        run_id=run_id,
        streak=streak,
        host=host,
        since=now,
        rule=rule,
        began_in=issue.state,
        bound_for=in_progress if moves else None,
        last_request=claim.token,
    )
    state.limits.try_with(policy.account, run_id)
    state.candidates.discard(issue.id)
    if waited is not None:
        state.out.append(rec.ForgetRetry(issue_id=issue.id))
    state.out.append(
        rec.RecordRun(
            run_id=run_id, issue=issue, streak=streak, host=host, agent=policy.agent, rule=rule
        )
    )
    state.out.append(
        StartWorker(
            run_id=run_id,
            issue=issue,
            streak=streak,
            host=host,
            rule=rule,
            fetched_at=now,
            resume=_resumable(state, issue, host),
            delivery=_half_done(state, issue, host),
            reaction=_reaction(state, issue),
            previous=previous_stage(state, issue),
            answered=answer_for_run(state, issue),
            granted=granted(state, issue),
        )
    )


def go_on_with(state: SchedulerState, taken: TakenOver, now: float) -> StartWorker:
    """Return what starts the worker of a run that was taken over, whose claim is there."""
    claim = taken.claim
    return StartWorker(
        run_id=claim.run_id,
        issue=claim.issue,
        streak=claim.streak,
        host=claim.host,
        rule=claim.rule,
        fetched_at=now,
        reaction=_reaction(state, claim.issue),
        previous=previous_stage(state, claim.issue),
        taken_over=taken,
    )


def _resumable(state: SchedulerState, issue: Issue, host: str) -> AgentSession | None:
    """Return the session that a run of the issue can go on with, if its directory is still the
    issue's."""
    session = state.agent_sessions.get(issue.id)
    if session is None or (session.host, session.agent) != (host, state.policy_for(issue).agent):
        return None
    rule = state.rule_of(issue)
    if session.rule != rule and not state.policy.goes_on_with_conversation(rule):
        return None
    known = {(workspace.host, workspace.path) for workspace in state.workspaces.of(issue.id)}
    return session if (host, session.workspace) in known else None


def _half_done(state: SchedulerState, issue: Issue, host: str) -> Delivery | None:
    """Return the delivery that a run of the issue goes on with, if it was begun on its host."""
    delivery = state.deliveries.get(issue.id)
    return delivery if delivery is not None and delivery.host == host else None


def _reaction(state: SchedulerState, issue: Issue) -> Reaction | None:
    """Return what a run of the issue is to answer."""
    watched = state.watches.get(issue.id)
    return None if watched is None else watched.watch.reaction
