"""The plan: where the issues of the backlog would go, what that may cost, and what other settings
would change in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel

from sortie.config.rules import StageSettings
from sortie.config.settings import Settings
from sortie.daemon.dry_run import Survey, load_quietly, survey, verdicts_on
from sortie.daemon.estimates import Estimate, estimator
from sortie.daemon.options import RunOptions
from sortie.daemon.tracker import states_of
from sortie.model import Issue
from sortie.scheduler import Policy, policy_of
from sortie.store import HistoryRow
from sortie.store.readonly import read_history
from sortie.workflow.loader import Workflow

HISTORY = 2000
"""Runs that estimates stand on at most: the newest ones."""

_FILE_KEYS = frozenset({"rules", "prompt", "secret_variables", "secret_parts", "remote_root"})


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


class Difference(Struct, frozen=True, kw_only=True):
    """Something that other settings change; an absent value is ""."""

    what: str
    before: str
    after: str


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


def recorded_runs(db_path: str) -> Sequence[HistoryRow]:
    """Return the newest runs of history. Raises StoreError."""
    return read_history(db_path, limit=HISTORY) if os.path.isfile(db_path) else ()


def plan(options: RunOptions, against: Path | None) -> BacklogPlan:
    """Ask the tracker once and plan. Raises SortieError."""
    workflow = load_quietly(options)
    other = None if against is None else other_workflow(options, against)
    more = () if other is None else tuple(states_of(other.settings).active)
    found = survey(options, workflow, more)
    estimate = estimator(recorded_runs(workflow.settings.db_path))
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


def changed_settings(old: Settings, new: Settings) -> Iterator[Difference]:
    """Yield the settings of the top level, and of each rule, that differ; secrets are hidden."""
    yield from _changed("", old, new)
    olds, news = ({rule.name: rule for rule in each.rules} for each in (old, new))
    for name in dict.fromkeys((*olds, *news)):
        if name not in olds or name not in news:
            here = [("yes" if name in each else "no") for each in (olds, news)]
            yield Difference(what=f"rule {name}", before=here[0], after=here[1])
            continue
        one, other = olds[name], news[name]
        yield from _changed(f"rule {name}: ", one.settings, other.settings)
        for key in ("when", "max_concurrent_agents", "guaranteed", "burst_to", "stage"):
            yield from _difference(f"rule {name}: {key}", getattr(one, key), getattr(other, key))
    kept = [name for name in olds if name in news]
    order = [name for name in news if name in olds]
    if kept != order:
        yield Difference(what="order of rules", before=", ".join(kept), after=", ".join(order))


def settings_of_a_rule(top: Settings, name: str) -> Iterator[Difference]:
    """Yield the settings that a rule changes; secrets are hidden."""
    of_rule = top.of_rule(name)
    if of_rule.prompt != top.prompt:
        yield Difference(what="prompt", before="that of the top level", after=of_rule.prompt or "")
    of_course = {("rule", name), ("stage_result", StageSettings().result)}
    for each in _changed("", top, of_rule):
        if (each.what, each.after) not in of_course:
            yield each


def _changed(prefix: str, old: Settings, new: Settings) -> Iterator[Difference]:
    for name in type(old).model_fields:
        if name in _FILE_KEYS:
            continue
        one, other = getattr(old, name), getattr(new, name)
        if isinstance(one, BaseModel) and type(one) is type(other):
            for key, info in type(one).model_fields.items():
                label = f"{prefix}{name}.{info.alias or key}"
                yield from _difference(label, getattr(one, key), getattr(other, key))
        elif name != "blocks":
            yield from _difference(f"{prefix}{name}", one, other)
        elif one != other:
            yield Difference(what=f"{prefix}the block of an adapter", before="", after="changed")


def _difference(what: str, one: Any, other: Any) -> Iterator[Difference]:
    if one != other:
        yield Difference(what=what, before=_text(one), after=_text(other))


def _text(value: Any) -> str:
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_defaults=True)
    text = str(value) if value is not None else "not set"
    return text if len(text) <= 80 else f"{text[:77]}..."
