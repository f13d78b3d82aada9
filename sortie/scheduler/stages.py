"""Stages: rules with states of their own, which an issue passes one after the other."""

from __future__ import annotations

from msgspec.structs import replace

from sortie.model import Issue, RunReport, same_state
from sortie.model.stages import PassedStage
from sortie.scheduler import records as rec
from sortie.scheduler.state import SchedulerState

_NONE = PassedStage()


def begin_stage(state: SchedulerState, issue: Issue) -> None:
    """Count a stage that begins where the one before has moved the issue."""
    if issue.id in state.rules or issue.id not in state.stages:
        return  # it goes on, or no stage has been passed
    passed = state.stages[issue.id]
    hops = passed.hops + 1 if same_state(passed.state, issue.state) else 0
    _keep(state, issue, replace(passed, hops=hops, draft=""))


def goes_in_circles(state: SchedulerState, issue: Issue) -> str | None:
    """Say that an issue has passed too many stages without a person, None where it has not."""
    passed, most = state.stages.get(issue.id), state.policy_for(issue).max_hops
    if passed is None or issue.id in state.rules or not same_state(passed.state, issue.state):
        return None
    if passed.hops < most:
        return None
    return (
        f"it has passed {passed.hops + 1} stages in a row without a person, and agent.max_hops"
        f" allows {most}; the last was {passed.rule}"
    )


def end_run(state: SchedulerState, issue: Issue, report: RunReport) -> None:
    """Keep what a run has left for the next stage."""
    if not state.rule_of(issue) or report.stage_result is None:
        return
    _keep(state, issue, replace(state.stages.get(issue.id, _NONE), draft=report.stage_result))


def end_stage(state: SchedulerState, issue: Issue, to: str) -> None:
    """Note that an issue was moved out of its stage."""
    rule = state.rule_of(issue)
    if rule:
        known = state.stages.get(issue.id, _NONE)
        _keep(state, issue, replace(known, rule=rule, state=to, result=known.draft, draft=""))


def forgive_hops(state: SchedulerState, issue: Issue) -> None:
    """Count from the beginning again, as a person has looked at the issue."""
    passed = state.stages.get(issue.id)
    if passed is not None and passed.hops:
        _keep(state, issue, replace(passed, hops=0))


def forget_stages(state: SchedulerState, issue: Issue) -> None:
    """Know nothing of an issue's stages any more."""
    if state.stages.pop(issue.id, None) is not None:
        state.out.append(rec.ForgetStages(issue_id=issue.id))


def previous_stage(state: SchedulerState, issue: Issue) -> PassedStage | None:
    """Return what the run of an issue is told of the stage before."""
    passed = state.stages.get(issue.id)
    return passed if passed is not None and passed.rule else None


def _keep(state: SchedulerState, issue: Issue, passed: PassedStage) -> None:
    if state.stages.get(issue.id) != passed:
        state.stages[issue.id] = passed
        state.out.append(rec.RecordStage(issue_id=issue.id, passed=passed))
