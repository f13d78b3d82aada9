"""What follows when a worker has exited."""

from __future__ import annotations

from sortie.model import (
    LOCAL,
    ErrorKind,
    Failed,
    Finish,
    Finished,
    HoldReason,
    RunEnd,
    RunReport,
    RunStatus,
    Stage,
    Stopped,
    StopReason,
    Trigger,
    cut,
    same_state,
)
from sortie.model.questions import Question
from sortie.scheduler import records as rec
from sortie.scheduler.answers import ask, asked_by
from sortie.scheduler.claims import HandingOff, Stopping, Worked
from sortie.scheduler.clean_ups import finish
from sortie.scheduler.decisions import PostComment
from sortie.scheduler.events import WorkerExited
from sortie.scheduler.handoffs import drop_promise, keep_promise
from sortie.scheduler.holds import hold, hold_for_budget
from sortie.scheduler.progress import pause_host
from sortie.scheduler.questions import taken_by_run
from sortie.scheduler.spending import probe_ended, run_ended
from sortie.scheduler.stages import end_run, end_stage
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.timing import (
    OCCUPIED_DELAY,
    SHORTAGE_DELAY,
    adrift_delay,
    after_continuation,
    after_failure,
    after_interruption,
    backoff,
    continuation_delay,
    held_at_once,
    trigger_of,
)
from sortie.scheduler.waits import hand_off, try_handoff, wait_for_run
from sortie.scheduler.watching import delivered

HOLD_WORDS_LIMIT = 1000
"""Characters of an agent's own words in the detail of a hold."""

_DEPARTED = frozenset({StopReason.TERMINAL, StopReason.INACTIVE, StopReason.MISSING})
_GOES_ON = frozenset({StopReason.SHUTDOWN, StopReason.BUDGET})
"""Reasons to stop a run that say nothing of its issue's state."""


def exited(state: SchedulerState, event: WorkerExited, now: float) -> None:
    """Record how the run ended and decide what its issue does next."""
    claim = state.claims.worked_by(event.run_id)
    if claim is None:
        return  # the run's claim is over
    reason = claim.reason if isinstance(claim, Stopping) else None
    state.in_hand = claim.issue
    if not (isinstance(event.report.end, Failed) and event.report.end.unreached):
        state.workspaces.use(claim.issue.id, claim.host)
    run_ended(state, event.run_id, claim.issue.id, event.report.spent)
    if not is_usage_limit(event.report.end):
        probe_ended(state, event.run_id, took_turns=event.report.turns > 0)
    record = _record(state, claim, event)
    state.out.append(record)
    if record.status is not RunStatus.INTERRUPTED:
        state.forget_crashes(claim.issue.id)
    end_run(state, claim.issue, event.report)
    _comment(state, claim, event.report)
    _settle(state, claim, event.report, now)
    taken_by_run(state, claim, event.report)
    state.release(claim.issue.id)
    issue, policy = claim.issue, state.policy_for(claim.issue)
    if policy.is_terminal(issue):
        if reason is StopReason.OPERATOR:
            drop_promise(state, issue, f"it is {issue.state}")
        finish(state, issue)
    elif reason is StopReason.OPERATOR:
        keep_promise(state, issue, now)
    elif _is_over(claim, event.report) or not state.is_active(issue):
        state.candidates.discard(issue.id)
        if policy.handoff_state and same_state(issue.state, policy.handoff_state):
            state.out.append(rec.RecordHandoff(issue=issue, state=issue.state))
            end_stage(state, issue, issue.state)
    else:
        _follow(state, claim, event.report, now)


def _record(state: SchedulerState, claim: Worked, event: WorkerExited) -> rec.RecordExit:
    report, reason = event.report, claim.reason if isinstance(claim, Stopping) else None
    status, kind, error, stopped_for = RunStatus.SUCCEEDED, None, None, None
    match report.end:
        case Failed() as failed:
            status, kind, error = failed.status, failed.kind, failed.message
            if is_usage_limit(failed) or _is_disruption(failed, claim):
                status = RunStatus.INTERRUPTED  # it goes on, with its attempt
        case Stopped() if reason in (StopReason.SHUTDOWN, None):
            status = RunStatus.INTERRUPTED
        case Stopped(completed=True) if reason in _DEPARTED:
            pass  # the agent had done its work
        case Stopped():
            status, kind = RunStatus.CANCELLED, ErrorKind.TURN_CANCELLED
            used = state.used_up(claim.issue) if reason is StopReason.BUDGET else None
            why = reason if used is None else used.sentence
            error, stopped_for = f"the run was stopped: {why}", reason
        case Finished():
            pass
    return rec.RecordExit(
        run_id=event.run_id,
        status=status,
        error_kind=kind,
        error=error,
        turns=report.turns,
        stopped_for=stopped_for,
        state=claim.issue.state,
        summary=report.summary,
    )


def _comment(state: SchedulerState, claim: Worked, report: RunReport) -> None:
    if isinstance(report.end, Failed) and report.end.occupied:
        return  # nothing was begun that could have failed
    if is_usage_limit(report.end) or _is_disruption(report.end, claim):
        return  # it goes on
    here = [known for known in state.workspaces.of(claim.issue.id) if known.host == claim.host]
    place = here[-1] if here else None
    policy = state.policy_for(claim.issue)
    is_told = policy.comment_on_completion or report.summary.opened
    if isinstance(report.end, Finished) and is_told:
        state.out.append(PostComment(claim.run_id, claim.issue, "completion", report, place))
    elif isinstance(report.end, Failed) and policy.comment_on_failure:
        state.out.append(PostComment(claim.run_id, claim.issue, "failure", report, place))


def _settle(state: SchedulerState, claim: Worked, report: RunReport, now: float) -> None:
    """Leave nothing to go on with where a run has delivered its work and come to its own end."""
    known = state.deliveries.get(claim.issue.id)
    if known is not None and known.stage is Stage.DELIVERED and isinstance(report.end, Finished):
        del state.deliveries[claim.issue.id]
        state.out.append(rec.SettleDelivery(issue_id=claim.issue.id))
        delivered(state, claim.issue, known, report, now)


def _is_over(claim: Worked, report: RunReport) -> bool:
    """Tell whether the run ended because its issue was no longer to be worked on."""
    if isinstance(claim, Stopping) and claim.reason not in _GOES_ON:
        return True
    return isinstance(report.end, Finished) and report.end.finish is Finish.GONE


def _follow(state: SchedulerState, claim: Worked, report: RunReport, now: float) -> None:
    """Plan what a still active issue does after this run."""
    issue, policy = claim.issue, state.policy_for(claim.issue)
    match report.end:
        case Stopped() if isinstance(claim, Stopping) and claim.reason is StopReason.BUDGET:
            _follow_budget(state, claim, now)
        case Stopped():
            wait_for_run(state, issue, claim.streak, Trigger.INTERRUPTED, now, delay=0.0)
        case Failed(occupied=True):
            delay = min(OCCUPIED_DELAY, policy.max_retry_backoff)
            wait_for_run(state, issue, claim.streak, Trigger.ERROR, now, delay=delay)
        case Failed(shortage=True):
            state.uncount_session(issue.id, claim.turns)
            wait_for_run(state, issue, claim.streak, Trigger.ERROR, now, delay=SHORTAGE_DELAY)
        case Failed() if claim.host != LOCAL and _is_the_hosts(report.end):
            _follow_host(state, claim, report.end, now)
        case Failed() if _is_disruption(report.end, claim):
            _follow_disruption(state, claim, now)
        case Failed(adrift=True) if not claim.streak.interruptions:
            _follow_cut(state, claim, report.end, now)
        case Failed() if is_usage_limit(report.end):
            state.uncount_session(issue.id, claim.turns)
            wait_for_run(state, issue, claim.streak, Trigger.USAGE_LIMIT, now, delay=0.0)
        case Failed(kind=kind, message=message) if why := held_at_once(kind):
            hold(state, issue, why, message, now)
        case Finished(finish=Finish.ASKED, question=Question()) if policy.questions:
            ask(state, claim, asked_by(claim, report), now)
        case Finished(finish=Finish.ASKED, question=Question(text=text)):
            detail = f"the agent has a question, and the settings allow none: {text}"
            hold(state, issue, HoldReason.AGENT_BLOCKED, detail, now)
        case Finished(finish=Finish.BLOCKED):
            detail = _in_its_words("the agent says it is blocked", report)
            hold(state, issue, HoldReason.AGENT_BLOCKED, detail, now)
        case Finished(finish=Finish.TURNS_USED | Finish.DONE | Finish.REVIEW) if (
            policy.handoff_state
        ):
            hand_off(state, issue, claim.streak, now, tries=0, delay=0.0)
            handing = state.claims[issue.id]
            assert isinstance(handing, HandingOff)
            if not state.draining and now >= state.tracker_paused_until:
                try_handoff(state, handing)
        case Finished(finish=Finish.DONE | Finish.REVIEW as finish):
            says = "says it is done" if finish is Finish.DONE else "asks for a review"
            detail = f"the agent {says}, and no handoff state is configured"
            detail = _in_its_words(detail, report)
            hold(state, issue, HoldReason.AGENT_BLOCKED, detail, now)
        case _ if state.over_budget(issue):
            hold_for_budget(state, issue, now)
        case Failed(status=status):
            streak = after_failure(claim.streak)
            delay = backoff(streak.failures, policy)
            if report.end.adrift:
                delay = max(delay, adrift_delay(policy))
            wait_for_run(state, issue, streak, trigger_of(status), now, delay=delay)
        case Finished():
            changed = not same_state(claim.began_in, issue.state)
            streak = after_continuation(claim.streak, state_changed=changed)
            delay = continuation_delay(streak, policy)
            wait_for_run(state, issue, streak, Trigger.CONTINUATION, now, delay=delay)


def _in_its_words(sentence: str, report: RunReport) -> str:
    """Return a sentence with why the agent asks for a person, or what it said last."""
    reason = report.end.reason if isinstance(report.end, Finished) else ""
    said = reason or " ".join((report.summary.answer or "").split())
    return f"{sentence}: {cut(said, HOLD_WORDS_LIMIT)}" if said else sentence


def _follow_budget(state: SchedulerState, claim: Stopping, now: float) -> None:
    """Park an issue that has used too much, unless it may use more by now."""
    if state.over_budget(claim.issue):
        hold_for_budget(state, claim.issue, now)
    else:
        wait_for_run(state, claim.issue, claim.streak, Trigger.INTERRUPTED, now, delay=0.0)


def is_usage_limit(end: RunEnd) -> bool:
    """Tell whether a run ended because its account may use no more for now."""
    return isinstance(end, Failed) and end.kind is ErrorKind.USAGE_LIMIT


def _is_disruption(end: RunEnd, claim: Worked) -> bool:
    """Tell whether a run has lost its pod, and was not interrupted before.

    The second in a row counts as a failure, as the agent itself may be why its pod is evicted.
    """
    return isinstance(end, Failed) and end.disrupted and not claim.streak.interruptions


def _follow_disruption(state: SchedulerState, claim: Worked, now: float) -> None:
    """Run an issue again, with its attempt, in a new pod, which is made when the old one has gone;
    other pods are not concerned."""
    streak, delay = after_interruption(claim.streak, state.policy_for(claim.issue))
    state.uncount_session(claim.issue.id, claim.turns)
    wait_for_run(state, claim.issue, streak, Trigger.INTERRUPTED, now, delay=delay)


def _is_the_hosts(end: Failed) -> bool:
    """Tell whether a run failed by its host, before anything had run there."""
    return end.unreached or end.kind is ErrorKind.AGENT_NOT_FOUND


def _follow_host(state: SchedulerState, claim: Worked, end: Failed, now: float) -> None:
    """Pause the host and let the issue run elsewhere, with the same attempt.

    Hold the issue where no host has the agent's program.
    """
    lacks_agent = end.kind is ErrorKind.AGENT_NOT_FOUND
    policy = state.policy_for(claim.issue)
    lacking = policy.account if lacks_agent else None
    state.uncount_session(claim.issue.id, claim.turns)
    pause_host(state, claim.host, end.message, now, lacking=lacking)
    if lacks_agent and state.hosts.all_lack_agent(policy.hosts, policy.account):
        hold(state, claim.issue, HoldReason.AGENT_NOT_FOUND, end.message, now)
    else:
        wait_for_run(state, claim.issue, claim.streak, Trigger.ERROR, now, delay=0.0)


def _follow_cut(state: SchedulerState, claim: Worked, end: Failed, now: float) -> None:
    """Try a run again that lost its host, with its attempt, when nothing of it can live any more.

    The second in a row counts as a failure, as after a crash of the daemon: the agent itself may
    be what brings the host down.
    """
    policy = state.policy_for(claim.issue)
    streak, delay = after_interruption(claim.streak, policy)
    state.uncount_session(claim.issue.id, claim.turns)
    delay = max(delay, adrift_delay(policy))
    pause_host(state, claim.host, end.message, now)
    wait_for_run(state, claim.issue, streak, Trigger.INTERRUPTED, now, delay=delay)
