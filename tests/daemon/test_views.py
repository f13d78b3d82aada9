"""What the daemon shows of itself, while an orchestrator lives behind it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import trio
from trio.testing import MockClock

from sortie.config.rules import Conditions
from sortie.config.settings import Rule
from sortie.daemon.http_server import gauges_of
from sortie.model import LOCAL, Blocker, IssueId, RateBudget, StoreError, TrackerErrorKind
from sortie.orchestrator.context import Readiness
from sortie.scheduler import events as ev
from sortie.scheduler.events import HostTroubled
from sortie.telemetry import facts
from sortie.telemetry.metrics.gauges import Gauges
from sortie.web.health import Health
from sortie.web.issue import CandidateView
from sortie.web.state import (
    Counts,
    HostView,
    TrackerView,
    UnnamedStateView,
    WorkflowView,
)
from tests.agents.fake import Chats, Completes, Fails, Silent
from tests.orchestrator.daemon_view import view_of
from tests.orchestrator.world import World
from tests.worker.rig import ROOT, issue

SLACK = timedelta(seconds=1)


async def test_what_the_tracker_lets_it_ask_is_shown_everywhere(clock: MockClock) -> None:
    """State, gauges and health agree; a small remainder is no reason not to be ready."""
    world = World()
    world.tracker.limits = (RateBudget(name="requests", remaining=1, limit=5000),)

    async with world.life() as orchestrator:
        view = view_of(orchestrator, world)
        await world.until(facts.PollCompleted)
        state, gauges, health = view.state(), gauges_of(view), view.health()

    assert [budget.words for budget in state.tracker.budgets] == ["requests: 1 of 5,000 left"]
    assert gauges.tracker_budgets == {"requests": (1, 5000)}
    assert [reason for reason in health.reasons if "budget" in reason] == []
    assert health.details == ("the tracker's budget of requests: 1 of 5,000 left",)


async def test_a_run_shows_what_it_does(clock: MockClock) -> None:
    """Issue, place, phase, turn, last words and what was spent."""
    world = World(
        issue(url="https://x/a"), tracker={"in_progress_state": "Doing"}, agent={"max_turns": 3}
    )
    world.agent.scripts["A"] = [Completes(after=10, credits=0.5), Chats(every=10, times=9)]

    async with world.life() as orchestrator:
        view = view_of(orchestrator, world)
        await world.until(facts.TurnBegan, 2)
        await world.until(facts.AgentSpoke, 3)
        state = view.state()
        gauges = gauges_of(view)

    (run,) = state.running
    assert (run.issue_id, run.issue_identifier, run.issue_url, run.title, run.state) == (
        "a",
        "A",
        "https://x/a",
        "Mend a",
        "Doing",
    )
    assert (run.run_id, run.session_id, run.attempt) == (
        world.of(facts.RunStarted)[0].run_id,
        None,
        0,
    )
    assert (run.turn, run.max_turns, run.phase, run.host) == (2, 3, "turn", LOCAL)
    assert (run.workspace, run.last_message) == (f"{ROOT}/A", "still at it")
    assert (run.credits, run.tokens) == (0.5, None)
    assert run.started_at <= run.last_event_at <= datetime.now(UTC)
    assert state.totals.turns == 2
    assert state.totals.seconds_running == 30.0
    assert state.slots.free == 9
    assert gauges == Gauges(
        sessions_running=1,
        sessions_retrying=0,
        issues_held=0,
        slots_available=9,
        active_sessions_elapsed_seconds=30.0,
        dispatch_paused=False,
        workflow_valid=True,
        store_writable=True,
        spent_today={"credits": 0.5},
    )


async def test_waits_and_holds_are_shown_with_their_reasons(clock: MockClock) -> None:
    """A retry, a continuation, a failed handoff and a hold, each in its words and time."""
    world = World(issue("a"), issue("b"), issue("c"))
    world.agent.scripts["A"] = [Fails()]
    world.agent.scripts["B"] = [Completes(status="blocked")]
    world.agent.scripts["C"] = [Completes(after=2)]

    async with world.life() as orchestrator:
        view = view_of(orchestrator, world)
        await world.until(facts.RetryScheduled, 2)
        state, first = view.state(), view.overview(1)
        noticed_at = datetime.now(UTC)

    retry, continuation = sorted(state.waiting, key=lambda w: w.issue_id)
    assert (retry.issue_identifier, retry.kind, retry.attempt, retry.reason) == (
        "A",
        "retry",
        1,
        "after error",
    )
    assert abs(retry.due_at - noticed_at - timedelta(seconds=9)) < SLACK
    assert (continuation.issue_identifier, continuation.kind, continuation.attempt) == (
        "C",
        "continuation",
        0,
    )
    (held,) = state.held
    assert (held.issue_identifier, held.reason, held.detail) == (
        "B",
        "agent_blocked",
        "the agent says it is blocked",
    )
    assert abs(held.since - noticed_at + timedelta(seconds=1)) < SLACK
    assert state.counts == first.counts == Counts(running=0, waiting=2, held=1)
    assert first.waiting == (min(state.waiting, key=lambda w: w.due_at),)


async def polled(world: World, count: int) -> None:
    """Wait until so many polls were made, and their news is taken in."""
    await world.until(facts.PollCompleted, count)
    await trio.sleep(1)


async def test_readiness_follows_polls_disk_and_preflight(clock: MockClock) -> None:
    """Each fault is a reason, and goes when it is mended."""
    world = World()
    orchestrator = await world.born()
    view = view_of(orchestrator, world)
    unborn = view.health()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(orchestrator.run)
        await polled(world, 1)
        good = view.health()
        world.tracker.down = TrackerErrorKind.UNAVAILABLE
        await polled(world, 2)
        down = view.health()
        world.tracker.down = None
        world.readiness = Readiness(fault="no place")
        await polled(world, 3)
        placeless = view.health()
        world.readiness = Readiness(hindrance="no agent")
        await polled(world, 4)
        agentless = view.health()
        world.store.failing = StoreError("disk full")
        orchestrator.tell(ev.PauseAsked(True))
        await world.until(facts.StoreFailed)
        diskless = view.health()
        world.store.failing = None
        await world.until(facts.StoreRecovered)
        orchestrator.shut_down()
    stopping = view.health()

    assert unborn == Health(ready=False, reasons=("no preflight has been made yet",))
    assert good == Health(ready=True)
    assert down == Health(ready=False, reasons=("the fake tracker is unavailable",))
    assert placeless == Health(ready=False, reasons=("no place",))
    assert agentless == Health(ready=False, reasons=("no agent",))
    assert diskless == Health(ready=False, reasons=("disk full", "no agent"))
    assert stopping.reasons == ("no agent", "the daemon is stopping")


async def test_a_daemon_that_waits_is_not_overdue(clock: MockClock) -> None:
    """Neither a long wait for the next poll nor one for the disk counts as being stuck."""
    world = World(polling={"interval_ms": 3_600_000})

    async with world.life() as orchestrator:
        view = view_of(orchestrator, world)
        await trio.sleep(1800)
        waiting = view.health().overdue
        world.store.failing = StoreError("disk full")
        orchestrator.tell(ev.PauseAsked(True))
        await trio.sleep(1800)
        diskless = view.health().overdue
        world.store.failing = None

    assert (waiting, diskless <= 1.0) == (0.0, True)


async def test_a_loop_that_does_not_come_round_is_overdue(clock: MockClock) -> None:
    """A store that hangs for minutes shows as lateness."""
    world = World()
    hung = trio.Event()

    async def hang(*_args: object) -> None:
        await hung.wait()

    async with world.life() as orchestrator:
        view = view_of(orchestrator, world)
        await world.until(facts.PollCompleted)
        healthy = world.store.commit
        setattr(world.store, "commit", hang)  # noqa: B010
        orchestrator.tell(ev.PauseAsked(True))
        await trio.sleep(120)
        late = view.health().overdue
        setattr(world.store, "commit", healthy)  # noqa: B010
        hung.set()

    assert late == 120.0


async def test_pause_and_an_invalid_workflow_are_shown(clock: MockClock) -> None:
    """Status, gauges and the errors of the file."""
    world = World()
    broken = WorkflowView(path="/w/WORKFLOW.md", valid=False, errors=("oops",))

    async with world.life() as orchestrator:
        view = view_of(orchestrator, world, broken)
        orchestrator.tell(ev.PauseAsked(True))
        await world.until(facts.PauseChanged)
        state, gauges = view.state(), gauges_of(view)

    assert (state.status, state.workflow) == ("paused", broken)
    assert (gauges.dispatch_paused, gauges.workflow_valid) == (True, False)


async def test_hosts_in_trouble_are_told(clock: MockClock) -> None:
    """One that works is enough to be ready; each shows whether it is up and what runs there."""
    world = World(issue(), worker={"ssh_hosts": ["east", "west"]})
    world.agent.scripts["A"] = [Silent()]

    async with world.life() as orchestrator:
        view = view_of(orchestrator, world)
        await world.until(facts.AgentLaunched)
        (running,) = view.state().running
        usage = gauges_of(view).ssh_host_usage
        orchestrator.tell(HostTroubled("west", "west refused"))
        await trio.sleep(1)
        partly = (view.health().ready, gauges_of(view).ssh_host_up)
        told = view.health().details
        orchestrator.tell(HostTroubled("east", "east refused"))
        await trio.sleep(1)
        health = view.health()

    assert running.host == "east"
    assert usage == {"east": 1, "west": 0}
    assert partly == (True, {"east": True, "west": False})
    assert told == ("host west rests: west refused",)
    assert health.reasons == ("every host is in trouble: east refused; west refused",)


async def test_what_nobody_works_on_is_counted_and_shown(clock: MockClock) -> None:
    """Issues without room, blocked ones, unreadable ones and those in a state that no setting
    names are told from the last poll, with the reason."""
    world = World(
        issue("a", priority=1),
        issue("b"),
        issue("c", blocked_by=(Blocker(identifier="A"),)),
        issue("d", state="To-do"),
        issue("e", state="Icebox"),
        issue("f", state="Icebox"),
        issue("g"),
        agent={"max_concurrent_agents": 1},
    )
    world.tracker.unreadable[IssueId("g")] = TrackerErrorKind.INVALID
    world.agent.scripts["A"] = [Silent()]

    async with world.life() as orchestrator:
        view = view_of(orchestrator, world)
        await world.until(facts.AgentLaunched)
        state = view.state()

    counts = state.counts
    assert (counts.running, counts.queued, counts.blocked, counts.unreadable) == (1, 1, 1, 1)
    assert state.queued == (
        CandidateView(
            issue_id="b",
            issue_identifier="B",
            title=issue("b").title,
            state="Todo",
            reason="no available orchestrator slots",
        ),
    )
    assert [(v.issue_identifier, v.reason) for v in state.blocked] == [
        ("C", "it is blocked by A (Todo)")
    ]
    assert state.tracker == TrackerView(
        unreadable=("g: it is invalid",),
        unnamed_states=(
            UnnamedStateView(state="To-do", issues=1, first="D", near="Todo"),
            UnnamedStateView(state="Icebox", issues=2, first="E", near=None),
        ),
    )


async def test_all_that_is_kept_back_can_be_asked_for(clock: MockClock) -> None:
    """The state has the first of them, and a list of all has the rest."""
    names = [f"i{number:02}" for number in range(30)]
    world = World(*map(issue, names), agent={"max_concurrent_agents": 1})
    world.agent.scripts[names[0].upper()] = [Silent()]

    async with world.life() as orchestrator:
        view = view_of(orchestrator, world)
        await world.until(facts.AgentLaunched)
        shown, every = view.state(), view.whole_state()

    assert (len(shown.queued), len(every.queued)) == (20, 29)
    assert shown.counts == every.counts
    assert shown.queued == every.queued[:20]


async def test_each_host_is_shown_once_with_its_trouble(clock: MockClock) -> None:
    """What is wrong with a host stands with the host, and with no issue that waits for it."""
    world = World(
        issue("a"),
        issue("b"),
        worker={"ssh_hosts": ["east", "west"], "max_concurrent_agents_per_host": 1},
    )
    world.agent.scripts["A"] = world.agent.scripts["B"] = [Silent()]

    async with world.life() as orchestrator:
        view = view_of(orchestrator, world)
        orchestrator.tell(HostTroubled("west", "west refused"))
        await world.until(facts.AgentLaunched)
        state = view.state()
        noticed_at = datetime.now(UTC)

    east, west = state.hosts
    assert east == HostView(
        host="east", up=True, used=1, slots=1, since=None, rests_until=None, reason=None
    )
    assert (west.up, west.used, west.slots, west.reason) == (False, 0, 1, "west refused")
    assert west.rests_until is not None
    assert abs(west.rests_until - noticed_at - timedelta(seconds=10)) < SLACK
    (kept,) = state.queued
    assert kept.reason == "no host is free (east has 1 of 1 runs, west rests after trouble)"


async def test_the_rule_of_an_issue_is_shown_wherever_it_stands(clock: MockClock) -> None:
    """A run, a hold and a candidate name it, the rule's slots are counted, and so is its end."""
    world = World(
        issue(labels=("docs",)),
        issue("b", labels=("docs",)),
        issue("c"),
        agent={"max_concurrent_agents": 1},
    )
    top = world.settings
    rule = Rule(
        name="docs",
        when=Conditions(labels=("docs",)),
        settings=top.model_copy(update={"rule": "docs"}),
        max_concurrent_agents=3,
        guaranteed=1,
    )
    world.settings = top.model_copy(update={"rules": (rule,)})
    world.agent.scripts["A"] = [Completes(after=10)]

    async with world.life() as orchestrator:
        view = view_of(orchestrator, world)
        await world.until(facts.TurnBegan)
        state, gauges = view.state(), gauges_of(view)
        await view.stop("A")
        await world.until(facts.RunFinished)
        later = view.state()

    assert [(row.issue_identifier, row.rule) for row in state.running] == [("A", "docs")]
    assert [(row.issue_identifier, row.rule) for row in (*state.queued, *state.blocked)] == [
        ("B", "docs"),
        ("C", None),
    ]
    assert [share.words for share in state.slots.by_rule] == ["docs: 1 of 3, 1 guaranteed"]
    assert gauges.rule_slots == {"docs": (1, 1, 3), "default": (0, None, None)}
    assert [(row.issue_identifier, row.rule) for row in later.held] == [("A", "docs")]
    assert world.of(facts.RunFinished)[0].rule == "docs"
