"""All that is outside the daemon, and lives of the daemon in it."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any
from uuid import UUID

import trio

from sortie.config.settings import Settings
from sortie.facts import Fact
from sortie.model import Issue, StoreError, WorkspaceError
from sortie.orchestrator import Orchestrator, OrchestratorContext
from sortie.orchestrator.context import Readiness
from sortie.orchestrator.guarded_tracker import GuardedTracker
from sortie.orchestrator.recovery import Recovery, recover
from sortie.scheduler import Decision, Memory, RunIds, policy_of
from sortie.worker import RunContext
from sortie.workflow.prompts import Prompt
from sortie.workspaces import Secrets, Workspaces
from tests.sim.recording import RecordedLife
from tests.sim.system.account import Account
from tests.sim.system.agent import Moods, SimAgent
from tests.sim.system.machine import Machine
from tests.sim.system.plug import Killed, Plug
from tests.sim.system.programs import Manners, Shell
from tests.sim.system.store import Drive, SimStore
from tests.sim.system.trace import Trace
from tests.sim.system.tracker import SimTracker, Tracked
from tests.sim.system.transport import SimTransport
from tests.sim.system.watching import PlannedBugError, WatchedScheduler
from tests.sim.system.witnesses import Witnesses
from tests.trackers.fake import FakeTracker
from tests.worker.rig import HOME, ROOT, settings_of

EPOCH = 1_700_000_000.0
POLITE_SECONDS, LAST_SECONDS = 22.0, 8.0
PROMPT = Prompt(source="Work on {{ issue.identifier }}.")
HOOKS = ("after_create", "before_run", "after_run", "before_remove")


@dataclass(slots=True)
class Life:
    """One life of the daemon, from its first step to its last."""

    plug: Plug
    transport: SimTransport
    orchestrator: Orchestrator
    scheduler: WatchedScheduler


@dataclass(slots=True)
class Chances:
    """What befalls the preflight: ``fault`` and ``hindrance`` are its answers."""

    fault: str | None = None
    hindrance: str | None = None
    crashes: bool = False


class SimWorld:
    """Tracker, machine, drive, clock and settings; ``live`` begins a life of the daemon."""

    def __init__(
        self, nursery: trio.Nursery, seed: int, path: str, trace: Trace, issues: list[Issue]
    ) -> None:
        self.trace = trace
        self.draw = Random(f"{seed} world")
        self.settings: Settings = sim_settings()
        self.tracked = Tracked(FakeTracker(issues), Random(f"{seed} tracker"), trace)
        self.compares = bool(seed % 2)
        self.manners = Manners(Random(f"{seed} programs"), self.move_issue)
        self.moods = Moods()
        self._agents = Random(f"{seed} agent")
        shell = Shell(self.manners)
        self.machine = shell.machine = Machine(nursery, shell, trace)
        self.machine.files.directories.add(HOME)
        self.drive = Drive(path, Random(f"{seed} drive"), trace)
        self.account = Account()
        self.witnesses = Witnesses(self.machine, self.drive.disk, self.account, trace)
        self.machine.started = self.witnesses.process_started
        self.machine.files.removed = self.witnesses.directory_removed
        self.drive.committed = self.witnesses.committed
        self.drive.recovered = self._begin_account
        self.tracked.moved = self.witnesses.transition_made
        self.tracked.heard = self.witnesses.transition_heard
        self.chances = Chances()
        self.lost: set[str] = set()
        self.bug: str | None = None
        self.ambush: Callable[[Decision], object] | None = None
        self.nursery = nursery
        self.wall_offset = 0.0
        self.lives = 0
        self.recorded = RecordedLife(seed)

    def wall(self) -> float:
        """Return the time of day, which somebody may set."""
        return EPOCH + trio.current_time() + self.wall_offset

    def move_issue(self, name: str, state: str) -> None:
        """Have somebody move an issue, if it is there."""
        if name and name not in self.lost:
            self.trace.note("tracker", f"{name} is moved to {state}")
            self.tracked.truth.edit(name, state=state)

    # Lives

    async def live(self, plug: Plug, going_on: Callable[[Life], Awaitable[object]]) -> None:
        """Run a daemon until ``going_on`` returns, then drain it; or until its plug is pulled."""
        self.ambush = None
        self.lives += 1
        self.recorded = RecordedLife(self.lives)
        self.trace.note("world", f"life {self.lives} begins")
        gave_up = False
        try:
            with plug.scope, self.drive.store(plug) as store:
                life = await self._born(plug, store)
                async with trio.open_nursery() as nursery:
                    over = trio.Event()
                    nursery.start_soon(self._run, life, over)
                    await going_on(life)
                    await self._drain(life, over)
        except* Killed:
            pass
        except* StoreError as group:
            gave_up = True
            self.trace.note("world", f"the daemon gives up: {group.exceptions[0]}")
        except* PlannedBugError:
            gave_up = True
        except* Exception as group:
            gave_up = True
            lines = "".join(traceback.format_exception(group))
            self.trace.wrong(f"the daemon crashed:\n{lines}")
        killed = plug.pulled or gave_up
        plug.pull()
        self.trace.note("world", f"life {self.lives} is over{', killed' if killed else ''}")
        self.witnesses.life_ended(killed=killed)
        if differs := self.recorded.replayed_otherwise():
            self.trace.wrong(f"decided otherwise when it was replayed: {differs}")
        if not killed:
            self.witnesses.assert_swept()

    def forget_accounts(self, life: Life) -> None:
        """Forget what judges keep of all that is over, in a life that is to be long."""
        self.witnesses.forget()
        life.scheduler.forget()

    async def _run(self, life: Life, over: trio.Event) -> None:
        await life.orchestrator.run()
        over.set()

    async def _drain(self, life: Life, over: trio.Event) -> None:
        """Ask the daemon to leave, and insist as the real one does."""
        self.trace.note("world", "drains the daemon")
        life.orchestrator.giving_up = True
        life.orchestrator.shut_down()
        with trio.move_on_after(POLITE_SECONDS):
            await over.wait()
        if not over.is_set():
            life.transport.hurry()
            life.orchestrator.cut()
            with trio.move_on_after(LAST_SECONDS):
                await over.wait()
        if not over.is_set():
            self.trace.wrong("the daemon is not gone 30 s after it was asked to leave")
            life.plug.pull()

    async def _born(self, plug: Plug, store: SimStore) -> Life:
        transport = SimTransport(self.machine, plug)
        memory = await self._recover(store, transport, plug)
        self.witnesses.recovered(memory)
        policy, now = policy_of(self.settings), trio.current_time()
        scheduler = WatchedScheduler(
            policy,
            now=now,
            new_run_id=RunIds(UUID(int=self.lives)),
            memory=memory,
            epoch=self.wall() - now,
        )
        scheduler.watch(policy, self.account, self.machine, self.trace)
        scheduler.bug = lambda: self.bug
        scheduler.ambush = self._spring
        scheduler.states_of = lambda issue_id: len(self.tracked.truth.journey(issue_id))
        publish = self._publisher(plug)
        tracker = GuardedTracker(SimTracker(self.tracked, plug), publish)
        agent = SimAgent(self._agents, self.moods, plug)

        def run_context() -> RunContext:
            return RunContext(
                settings=self.settings,
                prompt=PROMPT,
                agent=agent,
                transport=transport,
                workspaces=Workspaces(ROOT, transport),
                tracker=tracker,
                environ={"PATH": "/bin"},
                secrets=Secrets(),
                local=transport,
                workflow=f"{HOME}/WORKFLOW.md",
            )

        async def preflight() -> Readiness:
            return await self._preflight(store, run_context())

        context = OrchestratorContext(
            store=store,
            tracker=tracker,
            publish=publish,
            run_context_for=lambda _host, _rule: run_context(),
            preflight=preflight,
            wall=self.wall,
            compares=self.compares,
            decide=self.recorded.decide,
        )
        orchestrator = Orchestrator(scheduler, self.settings, context, due_comments=memory.comments)
        return Life(plug, transport, orchestrator, scheduler)

    async def _recover(self, store: SimStore, transport: SimTransport, plug: Plug) -> Memory:
        recovery = Recovery(
            store=store,
            transport_of=lambda _host: transport,
            publish=self._publisher(plug),
            wall=self.wall,
            grace=self.settings.agent.stop_grace,
            has_program=self._has_program,
        )
        return await recover(recovery, policy_of(self.settings))

    async def _has_program(self, _rule: str) -> bool:
        await trio.lowlevel.checkpoint()
        return self.chances.hindrance is None

    def _begin_account(self) -> None:
        now, wall = trio.current_time(), self.wall()
        waits = {
            retry.issue.id: now + min(max(0.0, retry.due_at - wall), retry.delay)
            for retry in self.drive.disk.retries.values()
        }
        self.account.begin_life(policy_of(self.settings), now, waits)

    def _spring(self, decision: Decision) -> None:
        if self.ambush is not None:
            self.ambush(decision)

    def _publisher(self, plug: Plug) -> Callable[[Fact], None]:
        def publish(fact: Fact) -> None:
            if not plug.pulled:
                self.witnesses.told(fact)

        return publish

    async def _preflight(self, store: SimStore, run: RunContext) -> Readiness:
        chances = self.chances
        try:
            await store.check()
            await run.workspaces.check()
        except (StoreError, WorkspaceError) as exc:
            return Readiness(fault=str(exc))
        if chances.crashes:
            raise LookupError("a bug of the preflight's")
        return Readiness(fault=chances.fault, hindrance=chances.hindrance)


def sim_settings(**sections: Mapping[str, Any]) -> Settings:
    """Return the settings of a day; sections change single keys."""
    tracker: dict[str, Any] = {
        "terminal_states": ["Done", "Dropped"],
        "handoff_state": "Review",
        "in_progress_state": "Doing",
        "comments": {"on_dispatch": True, "on_completion": True, "on_failure": True},
    }
    agent: dict[str, Any] = {
        "max_turns": 2,
        "max_concurrent_agents": 3,
        "turn_timeout_ms": 300_000,
        "stall_timeout_ms": 100_000,
    }
    hooks: dict[str, Any] = {name: name for name in HOOKS} | {"timeout_ms": 10_000}
    tree = {"tracker": tracker, "agent": agent, "hooks": hooks, "questions": {}}
    names = dict.fromkeys((*tree, *sections))
    return settings_of(**{k: {**tree.get(k, {}), **sections.get(k, {})} for k in names})
