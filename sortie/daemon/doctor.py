"""What ``sortie doctor`` finds out: one check after the other, each with what can be done.

Nothing is started, made or changed. A part of the program that can be asked has a list of checks;
``diagnose`` runs those lists in the order in which their faults have to be mended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import trio

from sortie.config import Settings, TrackerSettings
from sortie.daemon.guards import expected_failures
from sortie.daemon.options import RunOptions
from sortie.daemon.run_contexts import secrets_of
from sortie.daemon.tracker import FreshSightings, open_tracker, states_of
from sortie.daemon.tracker_status import unnamed_states
from sortie.daemon.unusable_settings import unusable_settings
from sortie.daemon.workflow_file import load_workflow
from sortie.model import SortieError, TrackerError, TrackerErrorKind, WorkflowError
from sortie.model.checks import Check, CheckOutcome, CheckResult, failed, passed, warned
from sortie.model.secrets import redactor
from sortie.orchestrator.guarded_tracker import GuardedTracker
from sortie.telemetry.facts import AdapterCrashed, Fact
from sortie.telemetry.log import LogSink, configure
from sortie.workflow import Workflow

UNUSABLE = frozenset({CheckOutcome.FAILED, CheckOutcome.SKIPPED})
"""Outcomes after which the checks that need this one say nothing."""

_REMEDIES = {
    TrackerErrorKind.UNAVAILABLE: "see whether the tracker is up and can be reached from here, and "
    "try again later",
    TrackerErrorKind.NOT_FOUND: "look at tracker.project and tracker.endpoint, and whether the "
    "credential may see the project",
    TrackerErrorKind.PERMISSION: "give the credential the right that is missing",
    TrackerErrorKind.CLOSED: "look at tracker.api_key, and whether the tracker takes changes now",
    TrackerErrorKind.INVALID: "look at the settings of the tracker",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What became of one check; ``name`` is dotted, the part of the program first."""

    name: str
    result: CheckResult


Tell = Callable[[Diagnosis], None]


def diagnose(options: RunOptions, tell: Tell) -> None:
    """Run all checks and tell of each as soon as it is over."""
    try:
        workflow = load_workflow(options)
    except WorkflowError as error:
        for problem in error.problems:
            kind = warned if problem.severity == "warning" else failed
            tell(Diagnosis(name="workflow", result=kind(str(problem), "")))
        tell(_skipped("tracker", "workflow"))
        return
    for problem in workflow.warnings:
        tell(Diagnosis(name="workflow", result=warned(str(problem), "")))
    tell(Diagnosis(name="workflow", result=passed(f"{options.workflow} can be used")))
    settings = workflow.settings
    tell_safely = _without_secrets(tell, settings)
    _look_at_places(settings, tell_safely)
    configure(
        settings.logging.level,
        settings.logging.format,
        colours=options.colours,
        secrets=secrets_of(settings).values,
    )
    with expected_failures():
        trio.run(_look_at_tracker, workflow, tell_safely)


async def run_checks(part: str, checks: Sequence[Check], tell: Tell) -> None:
    """Run the checks of one part of the program in order and tell of each."""
    unusable: set[str] = set()
    for check in checks:
        name = f"{part}.{check.name}"
        missing = next((need for need in check.needs if need in unusable), None)
        if missing is not None:
            found = _skipped(name, f"{part}.{missing}")
        else:
            found = Diagnosis(name=name, result=await _asked(check))
        if found.result.outcome in UNUSABLE:
            unusable.add(check.name)
        tell(found)


async def _asked(check: Check) -> CheckResult:
    try:
        return await check.ask()
    except SortieError as error:
        return failed(str(error), check.remedy or _remedy(error))


def _remedy(error: SortieError) -> str:
    return _REMEDIES.get(error.kind, "") if isinstance(error, TrackerError) else ""


def _skipped(name: str, needed: str) -> Diagnosis:
    sentence = f"not looked at: mend {needed} first"
    return Diagnosis(name=name, result=CheckResult(outcome=CheckOutcome.SKIPPED, sentence=sentence))


def _without_secrets(tell: Tell, settings: Settings) -> Tell:
    """Return how to tell of what others have said, in which a secret may stand."""
    redacted = redactor(secrets_of(settings).values)

    def told(found: Diagnosis) -> None:
        result = found.result
        sentence, remedy = redacted(result.sentence), redacted(result.remedy)
        tell(replace(found, result=replace(result, sentence=sentence, remedy=remedy)))

    return told


def _look_at_places(settings: Settings, tell: Tell) -> None:
    flaws = list(unusable_settings(settings))
    for key, flaw in flaws:
        tell(Diagnosis(name=f"settings.{key}", result=failed(f"{key}: {flaw}", "")))
    if not flaws:
        usable = passed("the database and the workspaces can be where the settings have them")
        tell(Diagnosis(name="settings", result=usable))


async def _look_at_tracker(workflow: Workflow, tell: Tell) -> None:
    sink, kind = LogSink(), workflow.settings.tracker.kind

    def publish(fact: Fact) -> None:
        if isinstance(fact, AdapterCrashed):  # what is told says the rest
            sink(fact)

    try:
        async with open_tracker(workflow, FreshSightings(), publish) as tracker:
            settings = workflow.settings.tracker
            general = (_candidates(settings, tracker), _other_states(settings, tracker))
            await run_checks("tracker", (*tracker.checks(), *general), tell)
    except TrackerError as error:
        sentence = f"the {kind} tracker cannot be used: {error}"
        tell(Diagnosis(name="tracker", result=failed(sentence, _remedy(error))))


def _candidates(settings: TrackerSettings, tracker: GuardedTracker) -> Check:
    """Return the check that issues to work on can be listed; every tracker has it."""
    states = settings.active_states
    spelled = ", ".join(states)

    async def ask() -> CheckResult:
        issues = await tracker.fetch_candidates(states)
        unreadable = tracker.overview().unreadable
        if unreadable:
            many = f"{len(unreadable)} issue{'s' if len(unreadable) > 1 else ''} cannot be read"
            return warned(f"{many}: {unreadable[0].message}", "mend what is named there")
        if not issues:
            return warned(
                f"no issue is in an active state ({spelled})",
                "move an issue to one of them, or look at their spelling"
                " and at the other settings that choose issues",
            )
        first = min(issues, key=lambda issue: issue.identifier)
        many = "1 issue is" if len(issues) == 1 else f"{len(issues)} issues are"
        return passed(f"{many} in an active state ({spelled}), such as {first.identifier}")

    return Check(name="candidates", ask=ask, needs=("reach", "credential", "project", "read"))


def _other_states(settings: TrackerSettings, tracker: GuardedTracker) -> Check:
    """Return the check that no issue is in a state that is a spelling mistake of a named one."""

    async def ask() -> CheckResult:
        found = unnamed_states(tracker.overview().issues, states_of(settings).named)
        near = [
            f'"{each.state}" ({each.first}) is not "{each.near}"' for each in found if each.near
        ]
        if near:
            return warned(
                f"issues are in states that look like others: {'; '.join(near)}",
                "spell them alike in the tracker and in the workflow file",
            )
        if not found:
            return passed("no issue that is known is in a state that no setting names")
        names = ", ".join(each.state for each in found)
        return passed(f"issues in other states are left alone: {names}")

    return Check(name="other_states", ask=ask, needs=("candidates",))
