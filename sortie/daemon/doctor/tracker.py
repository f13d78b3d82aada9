"""The checks of a tracker: the adapter's own, and what can be asked of any."""

from __future__ import annotations

from collections.abc import Mapping

from sortie.config.settings import Settings
from sortie.daemon.doctor.checkup import Diagnosis, Tell, remedy_of, run_checks
from sortie.daemon.doctor.trust import trust_check
from sortie.daemon.tracker import FreshSightings, open_tracker, states_of
from sortie.daemon.tracker_status import unnamed_states
from sortie.facts import AdapterCrashed, Fact
from sortie.model import TrackerError
from sortie.model.checks import Check, CheckResult, failed, passed, warned
from sortie.model.issues import natural_key
from sortie.orchestrator.guarded_tracker import GuardedTracker
from sortie.telemetry.log import LogSink
from sortie.trackers import ADAPTERS
from sortie.workflow.loader import Workflow


async def look_at_tracker(workflow: Workflow, environ: Mapping[str, str], tell: Tell) -> None:
    """Ask the tracker, and change nothing there."""
    sink, kind = LogSink(), workflow.settings.tracker.kind

    def publish(fact: Fact) -> None:
        if isinstance(fact, AdapterCrashed):  # what is told says the rest
            sink(fact)

    public: list[bool] = []

    def note(found: Diagnosis) -> None:
        if found.result.public is not None:
            public.append(found.result.public)
        tell(found)

    try:
        async with open_tracker(workflow, FreshSightings(), publish, environ) as tracker:
            settings, rights = workflow.settings, ADAPTERS.load(kind).rights
            general = (
                trust_check(settings, rights, lambda: any(public) if public else None),
                _candidates(settings, tracker),
                _other_states(settings, tracker),
            )
            await run_checks("tracker", (*tracker.checks(), *general), note)
    except TrackerError as error:
        sentence = f"the {kind} tracker cannot be used: {error}"
        tell(Diagnosis(name="tracker", result=failed(sentence, remedy_of(error))))


def _candidates(settings: Settings, tracker: GuardedTracker) -> Check:
    """Return the check that issues to work on can be listed; every tracker has it."""
    states = states_of(settings).active
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
        first = min(issues, key=lambda issue: natural_key(issue.identifier))
        many = "1 issue is" if len(issues) == 1 else f"{len(issues)} issues are"
        return passed(f"{many} in an active state ({spelled}), such as {first.identifier}")

    return Check(name="candidates", ask=ask, needs=("reach", "credential", "project", "read"))


def _other_states(settings: Settings, tracker: GuardedTracker) -> Check:
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
