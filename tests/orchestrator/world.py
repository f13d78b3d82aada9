"""What a daemon lives in, all in memory: it outlives any number of the daemon's lives."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from uuid import UUID

import trio

from sortie.config.settings import Settings
from sortie.facts import Fact
from sortie.model import Issue
from sortie.orchestrator import Orchestrator, OrchestratorContext
from sortie.orchestrator.context import Readiness, tell_nobody
from sortie.orchestrator.guarded_tracker import GuardedTracker
from sortie.orchestrator.recall import recall
from sortie.scheduler import RunIds, policy_of
from sortie.store import HistoryRow
from sortie.telemetry import facts
from sortie.worker import RunContext
from sortie.workflow.prompts import Prompt
from sortie.workspaces import Secrets, Workspaces
from tests.agents.fake import FakeAgent
from tests.orchestrator.ledger import AuditedScheduler
from tests.store.inline import MemoryStore
from tests.trackers.fake import FakeTracker
from tests.transports.fake import Does, FakeTransport
from tests.worker.rig import HOME, ROOT, settings_of

EPOCH = 1_700_000_000.0
HANDOFF = {"handoff_state": "Review"}
_F = TypeVar("_F", bound=Fact)


class World:
    """A tracker, an agent, a transport and a store, and lives of an orchestrator among them.

    ``hooks`` says what each hook's script does. ``preflight`` is what the next ones find.
    ``sinks`` get each fact, as ``facts`` does. ``compares`` is what the orchestrator is told of
    the tracker, which does compare.
    """

    compares = False

    def __init__(
        self, *issues: Issue, hooks: Mapping[str, Does] | None = None, **sections: Mapping[str, Any]
    ) -> None:
        sections["hooks"] = {name: name for name in hooks or {}}
        self.settings: Settings = settings_of(**sections)
        self.tracker = FakeTracker(issues)
        self.guarded = GuardedTracker(self.tracker, self.publish)
        self.agent = FakeAgent()
        self.resumes = True
        self.transport = FakeTransport(hooks, directories=[HOME])
        self.store = MemoryStore()
        self.facts: list[Fact] = []
        self.sinks: list[Callable[[Fact], object]] = []
        self.readiness = Readiness()
        self.preflight_error: Exception | None = None
        self.lives = 0
        self.notify = tell_nobody
        self.scheduler = AuditedScheduler(
            policy_of(self.settings), now=0.0, new_run_id=RunIds(UUID(int=0))
        ).audit()
        self._news = trio.Event()

    # Lives

    @asynccontextmanager
    async def life(self) -> AsyncIterator[Orchestrator]:
        """Run an orchestrator while the block lasts, then drain it and check its account."""
        orchestrator = await self.born()
        began = len(self.facts)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(orchestrator.run)
            yield orchestrator
            orchestrator.giving_up = True
            orchestrator.shut_down()
        self.scheduler.assert_answered_once(open_allowed=True)
        self.assert_told_once(self.facts[began:])
        self.assert_quiet()

    @asynccontextmanager
    async def life_cut_short(self) -> AsyncIterator[Orchestrator]:
        """Run an orchestrator while the block lasts, then end it: nothing more is recorded."""
        orchestrator = await self.born()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(orchestrator.run)
            yield orchestrator
            nursery.cancel_scope.cancel()
        self.scheduler.assert_answered_once(open_allowed=True)

    async def born(self) -> Orchestrator:
        """Recover what is stored, and return the orchestrator of a new life."""
        self.lives += 1
        self.guarded = GuardedTracker(self.tracker, self.publish)
        policy = policy_of(self.settings)
        recovered = await self.store.recover()
        now = trio.current_time()
        memory, records = recall(recovered, policy, now=now, wall=self.wall())
        await self.store.commit(records, self.wall())
        ids = RunIds(UUID(int=self.lives))
        self.scheduler = AuditedScheduler(policy, now=now, new_run_id=ids, memory=memory).audit()
        context = OrchestratorContext(
            store=self.store,
            tracker=self.guarded,
            publish=self.publish,
            run_context_for=self.run_context_for,
            preflight=lambda: self._preflight(),
            wall=self.wall,
            compares=self.compares,
            notify=self.notify,
        )
        return Orchestrator(self.scheduler, self.settings, context, due_comments=memory.comments)

    def run_context_for(self, host: str, _rule: str = "") -> RunContext:
        """Return the tools of a run."""
        return RunContext(
            settings=self.settings,
            prompt=Prompt(source="Work on {{ issue.identifier }}."),
            agent=self.agent,
            transport=self.transport,
            workspaces=Workspaces(ROOT, self.transport),
            tracker=self.guarded,
            environ={"PATH": "/bin"},
            secrets=Secrets(),
            local=self.transport,
            workflow=f"{HOME}/WORKFLOW.md",
            resumes=self.resumes,
        )

    def wall(self) -> float:
        """Return the time of day, which passes as trio's does."""
        return EPOCH + trio.current_time()

    async def _preflight(self) -> Readiness:
        await trio.lowlevel.checkpoint()
        if self.preflight_error is not None:
            raise self.preflight_error
        return self.readiness

    # Facts

    def publish(self, fact: Fact) -> None:
        """Take a fact."""
        self.facts.append(fact)
        for sink in self.sinks:
            sink(fact)
        self._news.set()
        self._news = trio.Event()

    def of(self, kind: type[_F]) -> list[_F]:
        """Return the facts of one kind."""
        return [fact for fact in self.facts if isinstance(fact, kind)]

    async def until(
        self, kind: type[_F], count: int = 1, where: Callable[[_F], bool] = lambda _fact: True
    ) -> _F:
        """Wait until there are ``count`` such facts since the beginning; return the last."""
        while True:
            found = [fact for fact in self.of(kind) if where(fact)]
            if len(found) >= count:
                return found[count - 1]
            await self._news.wait()

    # Verdicts

    async def history(self) -> Sequence[HistoryRow]:
        """Return the recorded runs, oldest first."""
        return tuple(reversed(await self.store.history(limit=100_000)))

    def assert_told_once(self, told: Sequence[Fact]) -> None:
        """Fail unless each run and turn of these facts began once and ended once."""
        runs = Counter(f.run_id for f in told if isinstance(f, facts.RunStarted))
        over = Counter(f.run_id for f in told if isinstance(f, facts.RunFinished))
        turns = Counter((f.run_id, f.turn) for f in told if isinstance(f, facts.TurnBegan))
        done = Counter((f.run_id, f.turn) for f in told if isinstance(f, facts.TurnCompleted))
        assert runs == over == Counter(set(runs))
        assert turns == done == Counter(set(turns))

    def assert_quiet(self) -> None:
        """Fail where a session, turn or process is left."""
        self.agent.assert_over()
        assert self.transport.alive == []
