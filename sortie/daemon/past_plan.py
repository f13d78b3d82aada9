"""The plan of recorded days: what ran where, and what would have with other settings."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from msgspec import Struct

from sortie.daemon.estimates import Estimate, estimator
from sortie.daemon.plan import recorded_runs
from sortie.daemon.recorded_days import RecordedRun, stretches
from sortie.daemon.setting_changes import Difference, changed_settings
from sortie.daemon.what_if import ModelledStart, modelled
from sortie.model import Issue, IssueId
from sortie.scheduler import policy_of
from sortie.telemetry.event_log import directory_of
from sortie.telemetry.event_log.reader import EventLogError
from sortie.workflow.loader import Workflow

LIMITS = (
    "a model: runs take as long and end as the recorded ones of the same issue, or as their median;"
    " pull requests, operators, troubles of hosts and trackers, and daily budgets are left out"
)
"""What must be known of a comparison of recorded days."""

_SAME_TIME = 60.0  # seconds by which a start differs without being told


_Start = TypeVar("_Start", RecordedRun, ModelledStart)


class PastStart(Struct, frozen=True, kw_only=True):
    """A run that began."""

    at: datetime
    issue: Issue
    rule: str
    agent: str
    host: str
    estimate: Estimate | None


class StartDifference(Struct, frozen=True, kw_only=True):
    """A run of an issue, its ``number``-th, that goes elsewhere or begins at another time;
    ``seconds`` is how much later, None where one of the settings begins no such run."""

    issue: Issue
    number: int
    seconds: float | None
    differences: tuple[Difference, ...]


class PastPlan(Struct, frozen=True, kw_only=True):
    """What was recorded since ``since``. ``modelled`` and ``as_recorded`` say how many runs the
    model begins with the settings in force, and how many of these began about when recorded."""

    since: datetime
    covered: tuple[tuple[datetime, datetime], ...]
    starts: tuple[PastStart, ...]
    settings: tuple[Difference, ...] = ()
    differences: tuple[StartDifference, ...] = ()
    modelled: int = 0
    as_recorded: int = 0


def past_plan(workflow: Workflow, days: int, other: Workflow | None) -> PastPlan:
    """Plan the last days. Raises EventLogError where none of them is recorded, and StoreError."""
    db_path = workflow.settings.db_path
    since = time.time() - days * 86_400.0
    found = list(stretches(directory_of(db_path), since))
    if not found:
        raise EventLogError(
            f"nothing is recorded of the last {days} days in {directory_of(db_path)}; a daemon"
            " keeps an event log while journal.keep_days is more than 0"
        )
    estimate = estimator(recorded_runs(workflow.settings.database))
    runs = [run for stretch in found for run in stretch.runs]
    starts = tuple(
        PastStart(
            at=_time(run.at),
            issue=run.issue,
            rule=run.policy.rule,
            agent=run.policy.agent,
            host=run.host,
            estimate=estimate(run.policy),
        )
        for run in runs
    )
    plan = PastPlan(
        since=_time(since),
        covered=tuple((_time(each.begin), _time(each.end)) for each in found),
        starts=starts,
    )
    if other is None:
        return plan
    old, new = policy_of(workflow.settings), policy_of(other.settings)
    before = [start for stretch in found for start in modelled(stretch, old)]
    after = [start for stretch in found for start in modelled(stretch, new)]
    recorded, told = _by_number(runs), _by_number(before)
    return PastPlan(
        since=plan.since,
        covered=plan.covered,
        starts=starts,
        settings=tuple(changed_settings(workflow.settings, other.settings)),
        differences=tuple(_differences(before, after)),
        modelled=len(before),
        as_recorded=sum(
            key in recorded and abs(recorded[key].at - start.at) <= _SAME_TIME
            for key, start in told.items()
        ),
    )


def _by_number(starts: Iterable[_Start]) -> dict[tuple[IssueId, int], _Start]:
    """Return starts by their issue and the how manyth of it they are."""
    counts = Counter[IssueId]()
    found = {}
    for start in starts:
        counts[start.issue.id] += 1
        found[start.issue.id, counts[start.issue.id]] = start
    return found


def _differences(
    before: Sequence[ModelledStart], after: Sequence[ModelledStart]
) -> Iterator[StartDifference]:
    was, will = _by_number(before), _by_number(after)
    for key in {**was, **will}:
        one, other = was.get(key), will.get(key)
        known = one or other
        assert known is not None
        if one is None or other is None:
            more = Difference(what="runs", before=_yes(one), after=_yes(other))
            yield StartDifference(
                issue=known.issue, number=key[1], seconds=None, differences=(more,)
            )
            continue
        places = (
            ("rule", one.rule or "default", other.rule or "default"),
            ("agent", one.agent, other.agent),
            ("host", one.host, other.host),
        )
        changed = tuple(Difference(what=what, before=a, after=b) for what, a, b in places if a != b)
        later = other.at - one.at
        if changed or abs(later) > _SAME_TIME:
            yield StartDifference(
                issue=known.issue, number=key[1], seconds=later, differences=changed
            )


def _yes(start: ModelledStart | None) -> str:
    return "no" if start is None else "yes"


def _time(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
