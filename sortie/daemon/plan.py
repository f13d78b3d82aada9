"""The plan: where the issues of the backlog would go, what that may cost, and what other settings
would change in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from sortie.config.settings import Settings
from sortie.daemon.dry_run import Survey, load_quietly, survey, verdicts_on
from sortie.daemon.estimates import Estimate, estimator
from sortie.daemon.options import RunOptions
from sortie.daemon.setting_changes import Difference, changed_settings
from sortie.daemon.tracker import states_of
from sortie.model import Issue
from sortie.scheduler import Policy, policy_of
from sortie.store import HistoryRow
from sortie.store.readonly import Place, can_be_read, read_history
from sortie.workflow.loader import Workflow

HISTORY = 2000
"""Runs that estimates stand on at most: the newest ones."""


class PlannedIssue(Struct, frozen=True, kw_only=True):
    """Where an issue would go, as the ``place``-th. ``host`` is None where it would not start now,
    and ``reasons`` say why; ``estimate`` is None where there is no such run in history."""

    place: int
    issue: Issue
    rule: str
    agent: str
    host: str | None
    hosts: tuple[str, ...]
    reasons: tuple[str, ...]
    prompt: str
    estimate: Estimate | None


class IssueDifference(Struct, frozen=True, kw_only=True):
    """What other settings change for an issue."""

    issue: Issue
    differences: tuple[Difference, ...]


class Comparison(Struct, frozen=True, kw_only=True):
    """What changes with the settings of another workflow file."""

    workflow: str
    settings: tuple[Difference, ...]
    issues: tuple[IssueDifference, ...]
    notes: tuple[str, ...]


class BacklogPlan(Struct, frozen=True, kw_only=True):
    """What would become of the backlog, by the settings in force and by others."""

    issues: tuple[PlannedIssue, ...]
    comparison: Comparison | None = None


def recorded_runs(database: Place) -> Sequence[HistoryRow]:
    """Return the newest runs of history. Raises StoreError."""
    return read_history(database, limit=HISTORY) if can_be_read(database) else ()


def plan(options: RunOptions, against: Path | None) -> BacklogPlan:
    """Ask the tracker once and plan. Raises SortieError."""
    workflow = load_quietly(options)
    other = None if against is None else other_workflow(options, against)
    more = () if other is None else tuple(states_of(other.settings).active)
    found = survey(options, workflow, more)
    estimate = estimator(recorded_runs(workflow.settings.database))
    issues = _planned(workflow, found, estimate)
    if other is None:
        return BacklogPlan(issues=issues)
    after = _planned(other, found, estimate)
    return BacklogPlan(issues=issues, comparison=_comparison(workflow, other, issues, after))


def other_workflow(options: RunOptions, path: Path) -> Workflow:
    """Load the file to compare with. Raises SortieError."""
    return load_quietly(replace(options, workflow=path, content=None))


def _planned(
    workflow: Workflow, found: Survey, estimate: Callable[[Policy], Estimate | None]
) -> tuple[PlannedIssue, ...]:
    policy = policy_of(workflow.settings)
    listed = tuple(i for i in found.issues if any(p.is_active(i) for p in policy.every()))
    verdicts = verdicts_on(
        listed, policy, found.memory, fault=found.fault, hindrance=found.hindrance
    )
    return tuple(
        PlannedIssue(
            place=place,
            issue=verdict.issue,
            rule=verdict.policy.rule,
            agent=verdict.policy.agent,
            host=verdict.host,
            hosts=verdict.policy.hosts,
            reasons=verdict.reasons,
            prompt=_prompt(workflow, verdict.policy),
            estimate=estimate(verdict.policy),
        )
        for place, verdict in enumerate(verdicts, 1)
    )


def _settings_of(workflow: Workflow, policy: Policy) -> Settings:
    rules = workflow.settings.rules
    return next((r.settings for r in rules if r.name == policy.rule), workflow.settings)


def _prompt(workflow: Workflow, policy: Policy) -> str:
    return workflow.prompt_of(_settings_of(workflow, policy)).source


def _comparison(
    workflow: Workflow,
    other: Workflow,
    before: Sequence[PlannedIssue],
    after: Sequence[PlannedIssue],
) -> Comparison:
    was, will = ({one.issue.id: one for one in every} for every in (before, after))
    issues = (one.issue for one in {**will, **was}.values())
    changed = (
        IssueDifference(
            issue=issue, differences=tuple(_differences(was.get(issue.id), will.get(issue.id)))
        )
        for issue in issues
    )
    notes = []
    if workflow.settings.tracker.kind != other.settings.tracker.kind or (
        workflow.settings.block(workflow.settings.tracker_block)
        != other.settings.block(other.settings.tracker_block)
    ):
        notes.append("the other file names another tracker; the issues are those of this one")
    return Comparison(
        workflow=str(other.path),
        settings=tuple(changed_settings(workflow.settings, other.settings)),
        issues=tuple(each for each in changed if each.differences),
        notes=tuple(notes),
    )


def _differences(was: PlannedIssue | None, will: PlannedIssue | None) -> Iterator[Difference]:
    if was is None or will is None:
        yield Difference(what="listed", before=_yes(was), after=_yes(will))
        return
    if was.prompt != will.prompt:
        yield Difference(what="prompt", before="", after="another text")
    for what, one, another in (
        ("rule", was.rule or "default", will.rule or "default"),
        ("agent", was.agent, will.agent),
        ("hosts", ", ".join(was.hosts), ", ".join(will.hosts)),
        ("place", str(was.place), str(will.place)),
        ("now", _now(was), _now(will)),
    ):
        if one != another:
            yield Difference(what=what, before=one, after=another)


def _yes(planned: PlannedIssue | None) -> str:
    return "no" if planned is None else "yes"


def _now(planned: PlannedIssue) -> str:
    if planned.reasons:
        return f"waits: {'; '.join(planned.reasons)}"
    return f"starts on {planned.host}" if planned.host else "starts"
