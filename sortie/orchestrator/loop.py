"""The loop: events in, records on disk, decisions performed.

Rule 1: this task alone calls the scheduler, and never waits for a tracker or an agent.
Rule 2: a round's records are on disk before anything else of it is performed.
Rule 3: each StartWorker is answered by exactly one WorkerExited.
"""

from __future__ import annotations

from typing import assert_never

import trio

from sortie.config import Settings
from sortie.model import Issue, RunId, StoreError
from sortie.orchestrator import effects
from sortie.orchestrator.noting import fact_of_note, fact_of_record
from sortie.orchestrator.office import Office
from sortie.scheduler import Decision, Event, Note, Policy, Record, Scheduler, Snapshot
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.telemetry import facts
from sortie.worker import Assignment, Reports, Scopes, work

COMMIT_PAUSE = 1.0
"""Seconds between two tries to write records that could not be written."""

IDLE_POLLS = 2
"""Good polls in a row, with nothing to do or to wait for, after which the daemon is idle."""

EFFECTS_GRACE = 5.0
"""Seconds that handoffs and comments under way get once all runs are over."""


class Orchestrator:
    """Owns a Scheduler; ``run`` returns when it is drained.

    ``idle`` is set once there is nothing to do and nothing to wait for.
    """

    def __init__(self, scheduler: Scheduler, settings: Settings, office: Office) -> None:
        self._scheduler = scheduler
        self._settings = settings
        self._office = office
        self._scopes: dict[RunId, Scopes] = {}
        self._issues: dict[RunId, tuple[Issue, float]] = {}
        # Unbounded on purpose: producers must never block on, or drop, an exit. What agents say
        # does not come through here; what does is a few events a run.
        self._outbox, self._inbox = trio.open_memory_channel[tuple[Event, trio.Event | None]](
            float("inf")
        )
        self._policy: Policy = scheduler.snapshot(trio.current_time()).policy
        self._due_at = trio.current_time()
        self.idle = trio.Event()
        self.store_error: str | None = None
        self.giving_up = False

    @property
    def next_round_at(self) -> float:
        """When the loop means to come round, or began to, in trio's time."""
        return self._due_at

    def snapshot(self) -> Snapshot:
        """Return an immutable picture of the scheduler."""
        return self._scheduler.snapshot(trio.current_time())

    def explain(self, issue: Issue) -> tuple[str, ...]:
        """Return why an issue would not be started now; empty if it would."""
        return tuple(v.reason for v in self._scheduler.explain(issue) if v.reason is not None)

    def tell(self, event: Event) -> None:
        """Put an event into the inbox."""
        self._outbox.send_nowait((event, None))

    async def commit(self, event: Event) -> None:
        """Put an event into the inbox and return once what it records is on disk."""
        done = trio.Event()
        self._outbox.send_nowait((event, done))
        await done.wait()

    def apply(self, settings: Settings, policy: Policy) -> None:
        """Obey other settings; runs under way keep the rest of theirs."""
        self._settings = settings
        self._policy = policy
        self.tell(ev.PolicyChanged(policy))

    def shut_down(self) -> None:
        """Start no run any more and stop those under way politely."""
        self.tell(ev.ShutdownRequested())

    def cut(self) -> None:
        """End what runs do to clean up, hooks included."""
        for scopes in self._scopes.values():
            scopes.cut()

    async def run(self) -> None:
        """Feed the scheduler and perform its decisions until it is drained.

        Raises StoreError where records cannot be written and ``giving_up`` is set.
        """
        async with trio.open_nursery() as background:
            async with trio.open_nursery() as workers:
                while not self._scheduler.drained:
                    await self._round(await self._next_events(), background, workers)
            background.cancel_scope.deadline = trio.current_time() + EFFECTS_GRACE

    async def _next_events(self) -> list[tuple[Event, trio.Event | None]]:
        """Wait for an event or the scheduler's deadline, and take all that has queued up."""
        batch: list[tuple[Event, trio.Event | None]] = []
        self._due_at = self._scheduler.wakeup_at()
        with trio.move_on_at(self._due_at):
            batch.append(await self._inbox.receive())
        while True:
            try:
                batch.append(self._inbox.receive_nowait())
            except trio.WouldBlock:
                break
        if not batch or self._due_at <= trio.current_time():
            batch.append((ev.TimePassed(), None))
        return batch

    async def _round(
        self,
        batch: list[tuple[Event, trio.Event | None]],
        background: trio.Nursery,
        workers: trio.Nursery,
    ) -> None:
        self._due_at = trio.current_time()
        decisions: list[Decision] = []
        for event, _ in batch:
            self._remember(event)
            decisions += self._scheduler.handle(event, trio.current_time())
        records = [d for d in decisions if isinstance(d, Record)]
        await self._write(records)
        for decision in decisions:
            if isinstance(decision, Record):
                self._note_record(decision)
            elif isinstance(decision, Note):
                self._office.publish(fact_of_note(decision))
            else:
                self._perform(decision, background, workers)
        for _, done in batch:
            if done is not None:
                done.set()
        if self._scheduler.idle_polls >= IDLE_POLLS:
            self.idle.set()

    async def _write(self, records: list[Record]) -> None:
        """Commit records, trying again for as long as it takes: nothing overtakes the disk."""
        while records:
            try:
                await self._office.store.commit(records, self._office.wall())
            except StoreError as exc:
                self.store_error = str(exc)
                self._office.publish(facts.StoreFailed(error=str(exc)))
                if self.giving_up:
                    raise
                await trio.sleep(COMMIT_PAUSE)
                self._due_at = trio.current_time()  # it is not stuck: it waits for the disk
            else:
                if self.store_error is not None:
                    self.store_error = None
                    self._office.publish(facts.StoreRecovered())
                return

    def _remember(self, event: Event) -> None:
        """Keep the newest issue of each run, for the facts about its end."""
        if isinstance(event, ev.IssueMoved) and event.run_id in self._issues:
            self._issues[event.run_id] = (event.issue, self._issues[event.run_id][1])
            self._office.publish(facts.IssueMoved(run_id=event.run_id, issue=event.issue))

    def _note_record(self, record: Record) -> None:
        if isinstance(record, rec.RecordExit) and record.run_id in self._issues:
            issue, began = self._issues.pop(record.run_id)
            self._office.publish(
                facts.RunFinished(
                    run_id=record.run_id,
                    issue=issue,
                    status=record.status,
                    turns=record.turns or 0,
                    seconds=trio.current_time() - began,
                    error_kind=record.error_kind,
                    error=record.error,
                    credits=record.credits,
                )
            )
        elif (fact := fact_of_record(record)) is not None:
            self._office.publish(fact)

    def _perform(
        self, decision: do.Effect, background: trio.Nursery, workers: trio.Nursery
    ) -> None:
        office = self._office
        match decision:
            case do.Poll():
                states = self._settings.tracker.active_states
                background.start_soon(effects.poll, office, states, self.tell)
            case do.Refresh():
                background.start_soon(effects.refresh, office, decision, self.tell)
            case do.Transition():
                background.start_soon(effects.hand_off, office, decision, self.tell)
            case do.CleanWorkspace():
                background.start_soon(effects.clean, office, decision, self.tell)
            case do.Comment(issue, lifecycle, report):
                body = effects.comment_on_end(report)
                background.start_soon(effects.comment, office, issue, lifecycle, body)
            case do.StartWorker():
                self._start(decision, background, workers)
            case do.StopWorker(run_id, issue, reason):
                office.publish(facts.RunStopping(run_id=run_id, issue=issue, reason=reason))
                # It may have ended by itself while the stop was being recorded.
                if (scopes := self._scopes.get(run_id)) is not None:
                    scopes.stop.cancel()
            case _:
                assert_never(decision)

    def _start(
        self, start: do.StartWorker, background: trio.Nursery, workers: trio.Nursery
    ) -> None:
        settings, issue = self._settings, start.issue
        self._issues[start.run_id] = (issue, trio.current_time())
        self._office.publish(
            facts.RunStarted(
                run_id=start.run_id,
                issue=issue,
                attempt=start.streak.failures,
                host=start.host,
                agent=settings.agent.kind,
                max_turns=settings.agent.max_turns,
            )
        )
        if settings.tracker.comments.on_dispatch:
            body = effects.comment_on_dispatch(start.streak.failures, start.host)
            background.start_soon(effects.comment, self._office, issue, "dispatch", body)
        # The scopes are made here, not in the task, so that a StopWorker which overtakes the
        # task's first step has something to cancel.
        self._scopes[start.run_id] = Scopes()
        workers.start_soon(self._work, start)

    async def _work(self, start: do.StartWorker) -> None:
        run_id, scopes = start.run_id, self._scopes[start.run_id]
        job = Assignment(
            run_id=run_id,
            issue=start.issue,
            attempt=start.streak.failures,
            fetched_at=start.fetched_at,
        )
        reports = Reports(
            tell=self.tell,
            commit=self.commit,
            publish=self._office.publish,
            is_active=lambda issue: self._policy.is_active(issue),
        )
        report = await work(job, self._office.bench_for(start.host), reports, scopes)
        del self._scopes[run_id]
        self.tell(ev.WorkerExited(run_id, report))
