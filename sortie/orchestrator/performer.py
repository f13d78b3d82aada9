"""The performer: starts effects and workers, publishes facts, answers operators' commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import assert_never

import trio
from msgspec import Struct, field

from sortie import facts
from sortie.config.settings import Settings
from sortie.model import Issue, WaitKind
from sortie.orchestrator import comment_texts, comments, effects, pull_requests
from sortie.orchestrator.context import OrchestratorContext
from sortie.orchestrator.workers import WorkerPool
from sortie.scheduler import Decision, Event, Policy, Record
from sortie.scheduler import decisions as do
from sortie.scheduler import records as rec
from sortie.scheduler.budgets import BudgetStanding
from sortie.scheduler.decisions import AnswerCommand
from sortie.store import HistoryRow
from sortie.worker import RunReporter


class Nurseries(Struct, frozen=True, kw_only=True):
    """Where effects and workers live; effects outlive the last worker for some seconds."""

    effects: trio.Nursery
    workers: trio.Nursery


class Performer:
    """Performs decisions under the ``settings`` and ``policy`` in force; answers go to ``tell``."""

    def __init__(
        self,
        context: OrchestratorContext,
        settings: Settings,
        policy: Policy,
        tell: Callable[[Event], None],
        commit: Callable[[Event], Awaitable[None]],
        budget: Callable[[Issue], BudgetStanding],
    ) -> None:
        self._context = context
        self._tell = tell
        self._commit = commit
        self._budget = budget
        self.settings = settings
        self.policy = policy
        self.workers = WorkerPool(context)
        self.commands = PendingCommands(tell)

    def is_urgent(self, decision: Decision) -> bool:
        """Tell whether a decision is performed although the disk fails: it depends on no record.

        A run whose start waits for the disk cannot be stopped before.
        """
        if isinstance(decision, do.StopWorker):
            return self.workers.works_on(decision.run_id)
        return isinstance(decision, do.Poll | do.Refresh)

    def perform(self, item: Decision | trio.Event, nurseries: Nurseries) -> None:
        """Perform a decision; an event is set, as all decisions before it are performed."""
        match item:
            case trio.Event():
                item.set()
            case _ if isinstance(item, Record):
                self._note_record(item)
            case facts.Fact():
                self._context.publish(item)
            case _:
                self._begin(item, nurseries)

    def _note_record(self, record: Record) -> None:
        if isinstance(record, rec.RecordExit):
            self.workers.finished(record)
        elif isinstance(record, rec.RecordSpending):
            self.workers.spent(record)
        elif (fact := _fact_of(record)) is not None:
            self._context.publish(fact)

    def _begin(self, decision: do.Effect, nurseries: Nurseries) -> None:
        context, start_soon = self._context, nurseries.effects.start_soon
        match decision:
            case do.Poll():
                states = self.settings.active_states
                start_soon(effects.poll, context, states, self._tell)
            case do.Refresh():
                start_soon(effects.refresh, context, decision, self._tell)
            case do.HandOff():
                start_soon(effects.hand_off, context, decision, self._tell)
            case do.CleanWorkspace():
                start_soon(effects.clean, context, decision, self._tell)
            case do.PostComment() | do.PostAgentComment() | do.PostQuestion():
                self.comment(comments.record_of(decision), nurseries, again=False)
            case do.LookAtPullRequests():
                start_soon(pull_requests.look, context, decision, self._tell)
            case do.RunErrand():
                start_soon(pull_requests.run_errand, context, decision, self._tell)
            case do.MergePullRequest():
                start_soon(pull_requests.merge, context, decision, self._tell)
            case do.StartWorker():
                self._start(decision, nurseries)
            case do.StopWorker():
                self.workers.stop(decision)
            case do.AnswerCommand():
                self.commands.answer(decision)
            case _:
                assert_never(decision)

    def comment(self, record: rec.RecordComment, nurseries: Nurseries, *, again: bool) -> None:
        """Begin to make a comment that is on record; ``again``: it may be there already."""
        remark = comments.remark_of(record, again=again)
        nurseries.effects.start_soon(comments.comment, self._context, record.issue, remark)

    def _start(self, start: do.StartWorker, nurseries: Nurseries) -> None:
        settings = self.settings.of_rule(start.rule)
        if settings.tracker.comments.on_dispatch and start.taken_over is None:
            remark = comments.Remark(
                run_id=start.run_id,
                lifecycle="dispatch",
                body=comment_texts.comment_on_dispatch(start.streak.failures, start.host),
            )
            nurseries.effects.start_soon(comments.comment, self._context, start.issue, remark)
        reports = RunReporter(
            tell=self._tell,
            commit=self._commit,
            publish=self._context.publish,
            is_active=lambda issue: self._is_worked_on(issue, start),
            budget=self._budget,
            history=self._history,
        )
        self.workers.start(start, settings, reports, nurseries.workers)

    async def _history(self, issue: Issue, limit: int) -> Sequence[HistoryRow]:
        return await self._context.store.history(issue=issue.identifier, limit=limit)

    def _is_worked_on(self, issue: Issue, start: do.StartWorker) -> bool:
        """Tell whether a run goes on, by where its issue stands now."""
        policy = self.policy.of_rule(start.rule)
        if start.reaction is not None and policy.is_handed_off(issue):
            return True
        return policy.is_active(issue)


def _fact_of(record: Record) -> facts.Fact | None:
    """Return the fact that a committed record makes true, or None where a sink needs none."""
    match record:
        case rec.RecordRetry(kind=WaitKind.HANDOFF, tries=0):
            return None  # the handoff is being made now; only trying again is a retry
        case rec.RecordRetry():
            attempt = record.tries if record.kind is WaitKind.HANDOFF else record.streak.failures
            return facts.RetryScheduled(
                issue=record.issue,
                kind=record.kind,
                trigger=record.trigger,
                attempt=attempt,
                delay=record.delay,
            )
        case rec.RecordHold(again=True):
            return None
        case rec.RecordHold(issue=issue, reason=reason, detail=detail):
            return facts.IssueHeld(issue=issue, reason=reason, detail=detail)
        case rec.RecordHandoff(issue=issue, state=state):
            return facts.IssueHandedOff(issue=issue, state=state)
        case rec.RecordNotification(notification=told, targets=targets):
            return facts.NotificationRecorded(about=told.event, targets=targets)
        case rec.RecordPause(paused=paused):
            return facts.PauseChanged(paused=paused)
        case _:
            return None


COMMAND_TIMEOUT = 7.0
"""Seconds in which a command must be on record; an HTTP client waits for 10."""


class _Pending(Struct):
    """A command whose operator waits."""

    answered: trio.Event = field(default_factory=trio.Event)
    answer: AnswerCommand | None = None


class PendingCommands:
    """Brings commands and answers together; ``tell`` takes a command's event."""

    def __init__(self, tell: Callable[[Event], None]) -> None:
        self._tell = tell
        self._pending: dict[int, _Pending] = {}
        self._count = 0

    async def ask(self, command: Callable[[int], Event]) -> AnswerCommand | None:
        """Tell the event that ``command`` makes of its number, and wait for the answer.

        None: there was none within COMMAND_TIMEOUT.
        """
        self._count += 1
        number = self._count
        pending = self._pending[number] = _Pending()
        self._tell(command(number))
        try:
            with trio.move_on_after(COMMAND_TIMEOUT):
                await pending.answered.wait()
        finally:
            del self._pending[number]
        return pending.answer

    def answer(self, answer: AnswerCommand) -> None:
        """Answer a command, if its operator still waits."""
        if (pending := self._pending.get(answer.ask)) is not None:
            pending.answer = answer
            pending.answered.set()
