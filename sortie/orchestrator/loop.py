"""The loop: events in, records on disk, decisions performed.

Rule 1: this task alone calls the scheduler, and never waits for a tracker or an agent.
Rule 2: a round's records are on disk before anything else of it is performed.
Rule 3: while the disk fails, what runs goes on and can be stopped, and nothing is started.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

import trio

from sortie.config.settings import Settings
from sortie.model import Issue, IssueId, KnownWorkspace, StoreError
from sortie.notifications.maker import KnownIssues
from sortie.orchestrator.context import OrchestratorContext
from sortie.orchestrator.crash_log import logged_at_once
from sortie.orchestrator.journal import Journal
from sortie.orchestrator.performer import Nurseries, Performer
from sortie.orchestrator.recovery import crashed_over
from sortie.scheduler import (
    Backlog,
    Decision,
    Event,
    Explanation,
    Policy,
    Scheduler,
    Snapshot,
)
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler.grants import SlotUse
from sortie.scheduler.memory import TakenOver
from sortie.scheduler.records import RecordComment
from sortie.scheduler.usage_limits import UsageLimit
from sortie.store import RecordRefused

Queued = tuple[Event, trio.Event | None]
"""An event, and what is set once all that follows from it is on disk and performed, if wanted."""

IDLE_POLLS = 2
"""Good polls in a row, with nothing to do or to wait for, after which the daemon is idle."""

EFFECTS_GRACE = 5.0
"""Seconds that handoffs and comments under way get once all runs are over."""


class Orchestrator:
    """Owns a Scheduler; ``run`` returns when it is drained.

    ``crashing`` is called as soon as ``run`` cannot end in good order any more, before it waits
    for the ends of runs. ``idle`` is set once there is nothing to do and nothing to wait for.
    ``due_comments`` are those of an earlier daemon that may have been made or not, ``taken_over``
    its runs that go on.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        settings: Settings,
        context: OrchestratorContext,
        crashing: Callable[[], object] = lambda: None,
        due_comments: Sequence[RecordComment] = (),
        taken_over: Sequence[TakenOver] = (),
    ) -> None:
        self._scheduler = scheduler
        self._taken_over = taken_over
        self._due_comments = due_comments
        self._context = context
        # Unbounded on purpose: a producer must never wait, and no exit may be lost. An agent's
        # output does not come through here; a run sends a few events in all.
        self._events_in, self._events = trio.open_memory_channel[Queued](math.inf)
        self._due_at = trio.current_time()
        self._journal = Journal(context.store, context.wall, context.publish, self._wake)
        policy = scheduler.snapshot(trio.current_time()).policy
        self._performer = Performer(
            context, settings, policy, self.tell, self.commit, scheduler.budget_of
        )
        self._known = KnownIssues(self._performer.workers.run_of, scheduler.rule_of)
        self.idle = trio.Event()
        self._crashing = crashing
        self.giving_up = False

    @property
    def next_round_at(self) -> float:
        """When the loop means to come round, or began to, or began a commit, in trio's time."""
        return min(self._due_at, self._journal.committing_since)

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._performer.settings

    @property
    def store_error(self) -> str | None:
        """Why records cannot be written now, None where they can."""
        return self._journal.error

    @property
    def usage_limit(self) -> UsageLimit | None:
        """The usage limit of the agent's account, None where none is known."""
        return self._scheduler.usage_limit

    def account_limits(self) -> Mapping[str, UsageLimit | None]:
        """Return the accounts that the settings name, each with its usage limit if it has one."""
        return self._scheduler.account_limits()

    def slot_use(self) -> SlotUse:
        """Return what is used of the slots that several schedulers share, and what is wanted."""
        return self._scheduler.slot_use(trio.current_time())

    def snapshot(self) -> Snapshot:
        """Return an immutable picture of the scheduler."""
        return self._scheduler.snapshot(trio.current_time())

    def backlog(self, snapshot: Snapshot, shown: int) -> Backlog:
        """Return what the last poll found and nothing is done about, the first ``shown`` of it."""
        return self._scheduler.backlog(snapshot, shown)

    def explain_issue(self, name: str) -> Explanation | str:
        """Return how an issue stands, by identifier or id; a sentence where it is not known."""
        return self._scheduler.explain_issue(name, trio.current_time())

    def workspaces_of(self, issue_id: IssueId) -> tuple[KnownWorkspace, ...]:
        """Return the directories of an issue, also of one that is not in hand; the newest last."""
        return self._scheduler.workspaces_of(issue_id)

    async def ask(self, command: Callable[[int], Event]) -> do.AnswerCommand | None:
        """Have an operator's command obeyed, and return the answer once it is on record.

        ``command`` makes the event of its number. None: it was not on record in time;
        it takes effect once records can be written.
        """
        return await self._performer.commands.ask(command)

    def tell(self, event: Event) -> None:
        """Put an event into the queue."""
        self._events_in.send_nowait((event, None))

    def _wake(self) -> None:
        """Let the loop come round."""
        self.tell(ev.TimePassed())

    async def commit(self, event: Event) -> None:
        """Put an event into the queue and return once what it records is on disk."""
        done = trio.Event()
        self._events_in.send_nowait((event, done))
        await done.wait()

    def apply(self, settings: Settings, policy: Policy) -> None:
        """Apply other settings; runs under way keep those that they began with."""
        self._performer.settings, self._performer.policy = settings, policy
        self.tell(ev.PolicyChanged(policy))

    def shut_down(self) -> None:
        """Start no run any more and stop those under way politely."""
        self.tell(ev.ShutdownRequested())

    @property
    def can_be_let_go(self) -> int:
        """How many runs are under way with which another daemon can go on."""
        return self._performer.workers.can_be_let_go

    def let_go(self) -> None:
        """Leave runs to another daemon where that can go on with them."""
        self._performer.workers.let_go()

    def cut(self) -> None:
        """End what runs do to clean up, hooks included."""
        self._performer.workers.cut()

    async def run(self) -> None:
        """Feed the scheduler and perform its decisions until it is drained and all is on disk.

        Raises StoreError where records cannot be written and ``giving_up`` is set.
        """
        async with trio.open_nursery() as background:
            async with trio.open_nursery() as workers:
                nurseries = Nurseries(effects=background, workers=workers)
                for record in self._due_comments:
                    self._performer.comment(record, nurseries, again=True)
                for taken in self._taken_over:
                    start = self._scheduler.going_on(taken, trio.current_time())
                    self._performer.perform(start, nurseries)
                with logged_at_once(self._crashing, self._context.publish):
                    await self._rounds(nurseries)
            background.cancel_scope.deadline = trio.current_time() + EFFECTS_GRACE
        # Record the results of handoffs, or the next daemon would make them again.
        answers = [item for item in self._queued() if isinstance(item[0], ev.TransitionAnswered)]
        if answers:
            async with trio.open_nursery() as nursery:
                await self._round(answers, Nurseries(effects=nursery, workers=nursery))

    async def _rounds(self, nurseries: Nurseries) -> None:
        while not (self._scheduler.drained and self._journal.is_empty):
            if self._is_stuck_at_the_end():
                await self._give_up(nurseries)
            else:
                await self._round(await self._next_events(), nurseries)

    def _is_stuck_at_the_end(self) -> bool:
        """Tell whether only records that cannot be written keep the loop from its end.

        A run whose start waits for its record has no worker that could exit.
        """
        if not (self.giving_up and self._journal.error and self._performer.workers.is_empty):
            return False  # as in nearly every round: a picture of all candidates is not for each
        return self._scheduler.snapshot(trio.current_time()).draining

    async def _give_up(self, nurseries: Nurseries) -> None:
        """Try to write a last time what could not be written until now."""
        self._journal.hurry()
        await self._round([], nurseries)
        if self._journal.error is not None:
            raise StoreError(self._journal.error)

    async def _next_events(self) -> list[Queued]:
        """Wait for an event or for the next deadline, and return all queued events.

        The last is TimePassed where the deadline has come.
        """
        self._due_at = min(self._scheduler.wakeup_at(), self._journal.again_at)
        batch: list[Queued] = []
        with trio.move_on_at(self._due_at):
            batch.append(await self._events.receive())
        batch += self._queued()
        if not batch or self._due_at <= trio.current_time():
            batch.append((ev.TimePassed(), None))
        return batch

    def _queued(self) -> Iterator[Queued]:
        """Take all events out of the queue."""
        while self._events.statistics().current_buffer_used:
            yield self._events.receive_nowait()

    async def _round(self, batch: list[Queued], nurseries: Nurseries) -> None:
        self._due_at = trio.current_time()
        for event, done in batch:
            if isinstance(event, ev.IssueMoved):
                self._performer.workers.remember(event)
            self._journal.add(await self._decide(event))
            if done is not None:
                self._journal.add([done])
        if self._scheduler.drained:
            self._journal.wait_no_longer()
        worked = self._journal.error is None
        if await self._write(nurseries.effects):
            for item in self._journal.take():
                self._performer.perform(item, nurseries)
        else:
            for item in self._journal.take_urgent(self._performer.is_urgent):
                self._performer.perform(item, nurseries)
        if worked != (self._journal.error is None):
            self.tell(ev.StoreChanged(self._journal.error))
        if self._scheduler.idle_polls >= IDLE_POLLS:
            self.idle.set()

    async def _decide(self, event: Event) -> list[Decision]:
        """Have the scheduler decide; a crash of it is put on record and ends the daemon."""
        try:
            decisions = self._context.decide(self._scheduler, event, trio.current_time())
            return self._context.notify(decisions, self._known)
        except Exception:
            await self._record_crash(self._scheduler.in_hand)
            raise

    async def _write(self, nursery: trio.Nursery) -> bool:
        try:
            return await self._journal.write(nursery)
        except RecordRefused as exc:
            run_id = getattr(exc.record, "run_id", None)
            known = self._performer.workers.issue_of(run_id) if run_id is not None else None
            await self._record_crash(known or getattr(exc.record, "issue", None))
            raise

    async def _record_crash(self, issue: Issue | None) -> None:
        """Note which issue was being handled, so that a second crash over it parks it."""
        self._crashing()  # first, as the disk may hang
        if issue is not None:
            with suppress(StoreError), trio.CancelScope(shield=True):
                await self._context.store.commit(crashed_over(issue), self._context.wall())
