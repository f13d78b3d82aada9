"""What follows from the reports of workers under way."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from sortie import facts
from sortie.model import AgentSession, Issue, KnownWorkspace
from sortie.model.numbers import bytes_text
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Running, Starting, Stopping, Worked
from sortie.scheduler.decisions import PostAgentComment
from sortie.scheduler.holds import program_appeared
from sortie.scheduler.questions import taken_by_turn
from sortie.scheduler.spending import probe_worked
from sortie.scheduler.state import SchedulerState

WorkerReport = (
    ev.IssueMoved
    | ev.WorkspaceMade
    | ev.TurnStarted
    | ev.TurnUnderWayKnown
    | ev.RunLetGo
    | ev.ProcessLaunched
    | ev.AgentSessionKnown
    | ev.ContainerMade
    | ev.AgentActed
    | ev.AgentCommented
    | ev.DeliveryStepTaken
)
"""What a worker reports of its run, but for its end."""


def progressed(state: SchedulerState, event: WorkerReport, now: float) -> None:
    """Take in a worker's report; one of a run whose claim is over changes nothing."""
    claim = state.claims.worked_by(event.run_id)
    if claim is None:
        return
    state.in_hand = claim.issue
    match event:
        case ev.IssueMoved(_, issue, by_us):
            _moved(state, claim, issue, by_us=by_us)
        case ev.WorkspaceMade(run_id, workspace, new):
            if new:
                _forget_session(state, workspace)
            state.workspaces.keep(workspace, new=new)
            state.out.append(rec.RecordWorkspace(run_id=run_id, workspace=workspace))
        case ev.TurnStarted(_, turn):
            _turned(state, claim, turn, now)
        case ev.TurnUnderWayKnown(run_id, known):
            state.out.append(rec.RecordTurnUnderWay(run_id=run_id, turn=known))
        case ev.RunLetGo(run_id):
            state.out.extend(state.ledger.end(run_id))
            state.release(claim.issue.id)
        case ev.ProcessLaunched(run_id, process):
            host_reached(state, claim.host, launched=state.policy_for(claim.issue).account)
            state.out.append(rec.RecordProcess(run_id=run_id, process=process))
        case ev.AgentSessionKnown(run_id, agent, session_id):
            _keep_session(state, claim, agent, session_id)
            state.out.append(rec.RecordSession(run_id=run_id, session_id=session_id))
        case ev.ContainerMade(run_id, image, digest):
            state.out.append(rec.RecordImage(run_id=run_id, image=image, digest=digest))
        case ev.AgentActed(run_id, activity):
            state.out.append(rec.RecordActivity(run_id=run_id, activity=activity))
        case ev.AgentCommented(run_id, number, text):
            state.out.append(PostAgentComment(run_id, claim.issue, number, text))
        case ev.DeliveryStepTaken(run_id, delivery, diff):
            issue_id = claim.issue.id
            state.deliveries.pop(issue_id, None)
            if delivery.is_pending:
                state.deliveries[issue_id] = delivery
            state.out.append(
                rec.RecordDelivery(run_id=run_id, issue_id=issue_id, delivery=delivery, diff=diff)
            )


def _keep_session(state: SchedulerState, claim: Worked, agent: str, session_id: str) -> None:
    """Remember a session with the directory that the run was given last on its host."""
    issue_id = claim.issue.id
    paths = [known.path for known in state.workspaces.of(issue_id) if known.host == claim.host]
    if paths:
        state.agent_sessions[issue_id] = AgentSession(
            host=claim.host,
            agent=agent,
            workspace=paths[-1],
            session_id=session_id,
            rule=claim.rule,
        )


def _forget_session(state: SchedulerState, made: KnownWorkspace) -> None:
    """Forget the session of a directory that was lost and recreated."""
    session = state.agent_sessions.get(made.issue_id)
    if session is not None and (session.host, session.workspace) == (made.host, made.path):
        del state.agent_sessions[made.issue_id]
        state.out.append(rec.ForgetWorkspace(host=made.host, path=made.path))


def _moved(state: SchedulerState, claim: Worked, issue: Issue, *, by_us: bool) -> None:
    fresh = replace(claim, issue=issue, last_request=state.last_request, missing_since=None)
    if by_us:
        fresh = replace(fresh, began_in=issue.state)
    if isinstance(fresh, Starting):
        fresh = replace(fresh, bound_for=None)
    if isinstance(fresh, Running) and state.is_active(issue):
        fresh = replace(fresh, departure=None)
    state.claims[issue.id] = fresh
    state.dispatch_needed = True  # a slot of its former state may be free


def _turned(state: SchedulerState, claim: Worked, turn: int, now: float) -> None:
    issue_id = claim.issue.id
    if isinstance(claim, Running) and claim.departure is not None:
        state.stop_departed(claim, claim.departure)  # it was let end a turn, not begin another
        return
    taken_by_turn(state, claim, turn)
    if turn > 1:
        probe_worked(state, claim.run_id)
    else:
        state.limits.turn_began(claim.run_id, now)
    if turn == 1:
        state.sessions[issue_id] = state.sessions.get(issue_id, 0) + 1
    sessions = state.sessions.get(issue_id, 0)
    state.out.append(
        rec.RecordTurn(run_id=claim.run_id, issue_id=issue_id, turn=turn, sessions=sessions)
    )
    if isinstance(claim, Stopping):
        state.claims[issue_id] = replace(claim, turns=turn)
        return
    state.claims[issue_id] = Running(
        issue=claim.issue,
        run_id=claim.run_id,
        streak=claim.streak,
        host=claim.host,
        since=claim.since,
        rule=claim.rule,
        began_in=claim.began_in,
        turns=turn,
        last_request=claim.last_request,
        missing_since=claim.missing_since,
        taken_over=claim.taken_over if isinstance(claim, Running) else "",
    )
    state.dispatch_needed = True  # it needs no slot any more in the state that it was bound for


def workspaces_measured(state: SchedulerState, host: str, sizes: Mapping[str, int]) -> None:
    """Take over how much disk the workspaces of a host take, and tell where little is left."""
    limits = state.policy.space
    state.space.measured(host, sizes)
    low = dict(state.space.low(limits))
    for name in low.keys() - state.space_low:
        state.out.append(
            facts.BudgetRunsLow(
                key="workspace.max_bytes",
                used=f"{bytes_text(low[name])} on {name}",
                limit=bytes_text(limits.total),
            )
        )
    state.space_low = frozenset(low)
    state.dispatch_needed = True  # there may be room again


def pause_host(
    state: SchedulerState,
    host: str,
    message: str,
    now: float,
    *,
    lacking: str | None = None,
    at_least: float = 0.0,
) -> None:
    """Start no run on a host for a while, ``at_least`` these seconds; none of the account
    ``lacking`` where only its agent's program is missing."""
    if host not in state.policy.every_host:
        return
    rested = state.hosts.trouble(
        host, message, state.policy, now, lacking=lacking, at_least=at_least
    )
    if rested is not None:
        state.out.append(facts.HostPaused(host=host, error=message, seconds=rested.until - now))
        state.dispatch_needed = True


def host_reached(state: SchedulerState, host: str, *, launched: str | None = None) -> None:
    """End a host's trouble, and that it lacks the program of the account ``launched``."""
    trouble = state.hosts.all().get(host)
    if state.hosts.reached(host, state.policy, launched=launched):
        if launched is not None and trouble is not None and launched in trouble.lacks:
            found = (policy for policy in state.policy.every() if policy.account == launched)
            program_appeared(state, {policy.rule for policy in found})
        state.out.append(facts.HostBack(host=host))
        state.dispatch_needed = True
