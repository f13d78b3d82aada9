"""Looking at the tracker without touching anything: no database, no workspace, no agent."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

import trio

from sortie.daemon.loading import load_workflow
from sortie.daemon.options import RunOptions
from sortie.daemon.tracking import FreshSightings, make_tracker
from sortie.model import Issue, SortieError
from sortie.scheduler import Policy, Scheduler, policy_of, run_ids
from sortie.scheduler import events as ev
from sortie.scheduler.rules import order_key
from sortie.telemetry.log import configure
from sortie.trackers import Tracker
from sortie.workflow import Workflow

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Surveyed:
    """A candidate and why it would not be started now; no reason: it would."""

    issue: Issue
    reasons: tuple[str, ...]


def survey(options: RunOptions) -> list[Surveyed]:
    """Poll once and return every candidate with its verdict, in the order of dispatch."""
    workflow = _load(options)
    tracker = make_tracker(workflow, FreshSightings())
    states = workflow.settings.tracker.active_states
    issues = _run(lambda: tracker.fetch_candidates(states))
    return judge(tuple(issues), policy_of(workflow.settings))


def judge(issues: tuple[Issue, ...], policy: Policy) -> list[Surveyed]:
    """Let a scheduler of its own decide about candidates, with every slot free at first."""
    scheduler = Scheduler(policy, now=0.0, new_run_id=run_ids(UUID(int=0)))
    scheduler.handle(ev.TimePassed(), 0.0)
    scheduler.handle(ev.CandidatesFetched(issues), 0.0)
    chosen = scheduler.snapshot(0.0).claims
    return [
        Surveyed(
            issue,
            ()
            if issue.id in chosen
            else tuple(v.reason for v in scheduler.explain(issue, 0.0) if v.reason is not None),
        )
        for issue in sorted(issues, key=order_key)
    ]


def read_issue(options: RunOptions, identifier: str) -> Issue:
    """Return the issue of that identifier or id. Raises SortieError where there is none."""
    workflow = _load(options)
    tracker = make_tracker(workflow, FreshSightings())
    settings = workflow.settings.tracker
    states = (*settings.active_states, *settings.terminal_states)
    if settings.handoff_state is not None:
        states += (settings.handoff_state,)
    return _run(lambda: _find(tracker, states, identifier))


def _load(options: RunOptions) -> Workflow:
    """Read WORKFLOW.md, and have what the tracker logs go where the settings say."""
    workflow = load_workflow(options)
    settings = workflow.settings
    configure(settings.logging.level, settings.logging.format, colours=options.colours)
    return workflow


async def _find(tracker: Tracker, states: tuple[str, ...], identifier: str) -> Issue:
    for issue in await tracker.fetch_by_states(states):
        if identifier in (issue.identifier, issue.id):
            return issue
    raise SortieError(
        f"the tracker has no issue {identifier} in a state that WORKFLOW.md names; "
        "look at its spelling and state"
    )


def _run(ask: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    return trio.run(ask)
