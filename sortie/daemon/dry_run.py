"""The dry run: what a start would do now, found without changing anything."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar
from uuid import UUID

import trio
from msgspec import Struct
from msgspec.structs import replace

from sortie import agents
from sortie.agents.launch import resolve_command
from sortie.config.settings import Settings
from sortie.daemon.day_clock import day_of
from sortie.daemon.guards import expected_failures
from sortie.daemon.locks import database_lock_path, holder_of
from sortie.daemon.options import RunOptions
from sortie.daemon.secrets_in_settings import secrets_of
from sortie.daemon.tracker import FreshSightings, open_tracker, states_of
from sortie.daemon.unusable_settings import unusable_settings
from sortie.daemon.workflow_file import load_workflow
from sortie.facts import AdapterCrashed, Fact
from sortie.model import NOTHING, AgentError, Issue, SortieError
from sortie.orchestrator.recall import recall
from sortie.orchestrator.recovery import let_go
from sortie.scheduler import Memory, Policy, RunIds, Scheduler, policy_of
from sortie.scheduler import events as ev
from sortie.scheduler.claims import Claim, Rechecking, Running
from sortie.scheduler.timing import order_key
from sortie.store.readonly import can_be_read, read_state
from sortie.telemetry.log import LogSink, configure
from sortie.trackers import Tracker
from sortie.transports.local import LocalTransport
from sortie.workflow.loader import Workflow

_T = TypeVar("_T")


class CandidateVerdict(Struct, frozen=True):
    """A candidate and why it would not be started now; no reason: it would.

    ``policy`` is that of its rule, and ``host`` where it would start, None where it would not.
    """

    issue: Issue
    reasons: tuple[str, ...]
    policy: Policy
    host: str | None = None


class Survey(Struct, frozen=True, kw_only=True):
    """What a start by some settings would find now."""

    issues: tuple[Issue, ...]
    memory: Memory
    fault: str
    hindrance: str | None


def dry_run(options: RunOptions) -> list[CandidateVerdict]:
    """Poll once and return every candidate with its verdict, in the order of dispatch.

    It is what a start would do now, or, where a daemon runs, what that one has on record. Nothing
    is made or written.
    """
    workflow = load_quietly(options)
    found = survey(options, workflow)
    policy = policy_of(workflow.settings)
    return verdicts_on(
        found.issues, policy, found.memory, fault=found.fault, hindrance=found.hindrance
    )


def survey(options: RunOptions, workflow: Workflow, other_states: tuple[str, ...] = ()) -> Survey:
    """Poll once, also for issues in other states, and read what is on record."""
    settings = workflow.settings
    states = tuple(dict.fromkeys((*states_of(settings).active, *other_states)))
    issues = _ask(options, workflow, lambda tracker: tracker.fetch_candidates(states))
    policy = policy_of(settings)
    faults = [
        f"{key}: {flaw}" for key, flaw in unusable_settings(settings) if key != "agent.command"
    ]
    missing = _run(lambda: missing_program(options, settings))
    memory = recorded_memory(settings, policy, has_program=missing is None)
    return Survey(issues=tuple(issues), memory=memory, fault="; ".join(faults), hindrance=missing)


def verdicts_on(
    issues: tuple[Issue, ...],
    policy: Policy,
    memory: Memory | None = None,
    *,
    fault: str = "",
    hindrance: str | None = None,
) -> list[CandidateVerdict]:
    """Let a scheduler of its own decide about candidates, with what an earlier daemon recorded.

    ``fault`` forbids every start, ``hindrance`` says why no agent could be launched; see Readiness.
    """
    scheduler = Scheduler(
        policy, now=0.0, new_run_id=RunIds(UUID(int=0)), memory=memory, epoch=time.time()
    )
    scheduler.handle(ev.TimePassed(), 0.0)
    scheduler.handle(ev.CandidatesFetched(issues, hindrance), 0.0)
    if fault:
        scheduler.handle(ev.PollFailed(fault, skipped=True), 0.0)
    snapshot = scheduler.snapshot(0.0)

    def verdict(issue: Issue) -> CandidateVerdict:
        claim = snapshot.claims.get(issue.id)
        reasons = _reasons(scheduler, issue, claim, fault, hindrance)
        host = claim.host if isinstance(claim, Rechecking | Running) else None
        return CandidateVerdict(
            issue, reasons, policy.of_rule(snapshot.rules.get(issue.id, "")), host
        )

    return [verdict(issue) for issue in sorted(issues, key=order_key)]


def _reasons(
    scheduler: Scheduler, issue: Issue, claim: Claim | None, fault: str, hindrance: str | None
) -> tuple[str, ...]:
    if isinstance(claim, Rechecking):  # it was chosen
        tried = f"it would be tried, and held: {hindrance}" if hindrance else ""
        return tuple(filter(None, (fault or tried,)))
    return tuple(v.reason for v in scheduler.explain(issue, 0.0) if v.reason is not None)


def recorded_memory(settings: Settings, policy: Policy, *, has_program: bool) -> Memory:
    """Return what is on record; the runs of a daemon that is at work are under way."""
    if not can_be_read(settings.database):
        return Memory()
    recorded, wall = read_state(settings.database), time.time()

    async def is_found(_rule: str) -> bool:
        await trio.lowlevel.checkpoint()
        return has_program

    day = day_of(settings.budget.timezone, wall)
    today = recorded.days.get(day, NOTHING)
    if holder_of(database_lock_path(settings.db_path)) is None:
        memory, _ = recall(recorded, policy, now=0.0, wall=wall)
        memory, _ = _run(lambda: let_go(memory, policy, is_found))
        return replace(memory, day=day, spent_today=today)
    idle = replace(recorded, unfinished=())
    memory, _ = recall(idle, policy, now=0.0, wall=wall)
    running = tuple(
        Running(
            issue=run.issue,
            run_id=run.run_id,
            streak=run.streak,
            host=run.host,
            since=0.0,
            rule=recorded.rules.get(run.issue.id, ""),
            began_in=run.issue.state,
            turns=run.turns,
        )
        for run in recorded.unfinished
    )
    known = {run.issue.id for run in recorded.unfinished}
    rest = tuple(claim for claim in memory.claims if claim.issue.id not in known)
    return replace(memory, claims=(*rest, *running), day=day, spent_today=today)


async def missing_program(options: RunOptions, settings: Settings) -> str | None:
    """Say why no agent could be launched on this machine, None where one could."""
    if settings.worker.hosts:
        return None
    adapter, path = agents.ADAPTERS.load(settings.agent.kind), options.environ.get("PATH")
    transport = LocalTransport(path or "")
    try:
        await resolve_command(settings.agent.command, adapter.default_command, transport, path)
    except AgentError as exc:
        return str(exc)
    return None


def read_issue(options: RunOptions, identifier: str) -> Issue:
    """Return the issue of that identifier or id. Raises SortieError where there is none."""
    return find_issue(options, load_quietly(options), identifier)


def find_issue(options: RunOptions, workflow: Workflow, identifier: str) -> Issue:
    """Return the issue of that identifier or id. Raises SortieError where there is none."""
    issue = _ask(options, workflow, lambda tracker: tracker.find(identifier))
    if issue is None:
        raise SortieError(f"the tracker has no issue {identifier}; look at its spelling")
    return issue


def load_quietly(options: RunOptions) -> Workflow:
    """Read WORKFLOW.md, and have what is logged go where the settings say."""
    workflow = load_workflow(options)
    settings = workflow.settings
    configure(
        settings.logging.level,
        settings.logging.format,
        colours=options.colours,
        secrets=secrets_of(settings).values,
    )
    return workflow


def _ask(
    options: RunOptions, workflow: Workflow, request: Callable[[Tracker], Awaitable[_T]]
) -> _T:
    """Make one request to the tracker, as the daemon would. Raises SortieError."""
    sink = LogSink()

    def publish(fact: Fact) -> None:
        if isinstance(fact, AdapterCrashed):  # the answer tells the rest
            sink(fact)

    async def ask() -> _T:
        async with open_tracker(workflow, FreshSightings(), publish, options.environ) as tracker:
            return await request(tracker)

    with expected_failures():
        return trio.run(ask)


def _run(ask: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    return trio.run(ask)
