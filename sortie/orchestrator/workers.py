"""The workers under way: they are started, stopped and cut here, and their facts published.

Rule: each StartWorker is answered by exactly one WorkerExited, or by one RunLetGo where another
daemon goes on with the run.
"""

from __future__ import annotations

import trio
from msgspec.structs import asdict

from sortie.config.settings import Settings
from sortie.model import NOTHING, ErrorKind, Failed, Issue, RunId, Spending
from sortie.model.traces import RunTrace
from sortie.orchestrator.context import OrchestratorContext
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.memory import TakenOver
from sortie.scheduler.policy import account_of
from sortie.telemetry import facts
from sortie.transports.rank import ranked
from sortie.worker import Assignment, RunReporter, RunScopes, work


class WorkerPool:
    """Knows each run's scopes and newest issue, from its start until its end is on record."""

    def __init__(self, context: OrchestratorContext) -> None:
        self._context = context
        self._scopes: dict[RunId, RunScopes] = {}
        self._issues: dict[RunId, tuple[Issue, float, str]] = {}
        self._spent: dict[RunId, Spending] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no worker is under way."""
        return not self._scopes

    def works_on(self, run_id: RunId) -> bool:
        """Tell whether a run's worker was started and is not gone."""
        return run_id in self._scopes

    def run_of(self, run_id: RunId) -> tuple[Issue, str] | None:
        """Return the issue of a run whose end is not on record yet, and the rule that decides."""
        known = self._issues.get(run_id)
        return None if known is None else (known[0], known[2])

    def issue_of(self, run_id: RunId) -> Issue | None:
        """Return the issue of a run whose end is not on record yet."""
        known = self._issues.get(run_id)
        return None if known is None else known[0]

    def start(
        self,
        start: do.StartWorker,
        settings: Settings,
        reports: RunReporter,
        nursery: trio.Nursery,
    ) -> None:
        """Start a worker; ``reports`` takes its exit."""
        taken = start.taken_over
        since = trio.current_time() - (0.0 if taken is None else taken.seconds)
        self._issues[start.run_id] = (start.issue, since, start.rule)
        started = facts.RunStarted(
            run_id=start.run_id,
            issue=start.issue,
            attempt=start.streak.failures,
            host=start.host,
            rule=start.rule,
            agent=settings.agent.kind,
            max_turns=settings.agent.max_turns,
            reaction=start.reaction.words if start.reaction is not None else (),
            traced=settings.traces is not None,
        )
        self._context.publish(started if taken is None else _taken_over(started, taken))
        # The scopes are made here, not in the task, so that a StopWorker which overtakes the
        # task's first step has something to cancel.
        self._scopes[start.run_id] = RunScopes()
        with ranked():  # the order of dispatch is the issues' priority
            nursery.start_soon(self._work, start, reports, settings)

    async def _work(self, start: do.StartWorker, reports: RunReporter, settings: Settings) -> None:
        run_id, scopes, traces = start.run_id, self._scopes[start.run_id], settings.traces
        begun = 0 if start.taken_over is None else start.taken_over.turn.number - 1
        job = Assignment(
            run_id=run_id,
            issue=start.issue,
            attempt=start.streak.failures,
            fetched_at=start.fetched_at,
            resume=start.resume,
            delivery=start.delivery,
            reaction=start.reaction,
            previous=start.previous,
            trace=None if traces is None else RunTrace(run_id, traces.sample, begun),
            taken_over=start.taken_over,
            answered=start.answered,
            granted=start.granted,
        )
        report = await work(
            job, self._context.run_context_for(start.host, start.rule), reports, scopes
        )
        del self._scopes[run_id]
        if scopes.is_let_go:
            issue = self._issues.pop(run_id)[0]
            self._context.publish(facts.RunHandedOver(run_id=run_id, issue=issue))
            reports.tell(ev.RunLetGo(run_id))
            return
        if isinstance(report.end, Failed) and report.end.kind is ErrorKind.USAGE_LIMIT:
            reports.tell(self._limit_met(run_id, account_of(settings.agent), report.end))
        reports.tell(ev.WorkerExited(run_id, report))

    def _limit_met(self, run_id: RunId, account: str, end: Failed) -> ev.UsageLimitMet:
        seconds = None
        if end.resets_at is not None:
            seconds = end.resets_at.timestamp() - self._context.wall()
        return ev.UsageLimitMet(run_id, account, end.message, end.resets_at, seconds)

    def stop(self, stop: do.StopWorker) -> None:
        """Stop a worker politely; it may have ended by itself meanwhile."""
        self._context.publish(
            facts.RunStopping(run_id=stop.run_id, issue=stop.issue, reason=stop.reason)
        )
        if (scopes := self._scopes.get(stop.run_id)) is not None:
            scopes.stop()

    @property
    def can_be_let_go(self) -> int:
        """How many runs are under way with which another daemon can go on."""
        return sum(scopes.can_be_let_go for scopes in self._scopes.values())

    def let_go(self) -> None:
        """Leave runs to another daemon where that can go on with them."""
        for scopes in self._scopes.values():
            scopes.let_go()

    def cut(self) -> None:
        """End what runs do to clean up, hooks included."""
        for scopes in self._scopes.values():
            scopes.cut()

    def remember(self, moved: ev.IssueMoved) -> None:
        """Keep the newest issue of a run, for the facts about its end."""
        if moved.run_id in self._issues:
            self._issues[moved.run_id] = (moved.issue, *self._issues[moved.run_id][1:])
            self._context.publish(facts.IssueRead(run_id=moved.run_id, issue=moved.issue))

    def spent(self, record: rec.RecordSpending) -> None:
        """Keep what a run has used, for the facts about its end."""
        if record.run_id in self._issues:
            self._spent[record.run_id] = record.spent

    def finished(self, record: rec.RecordExit) -> None:
        """Tell of a run's end, now that it is on record."""
        if record.run_id not in self._issues:
            return
        issue, began, rule = self._issues.pop(record.run_id)
        self._context.publish(
            facts.RunFinished(
                run_id=record.run_id,
                issue=issue,
                status=record.status,
                turns=record.turns or 0,
                seconds=trio.current_time() - began,
                error_kind=record.error_kind,
                error=record.error,
                stopped_for=record.stopped_for,
                spent=self._spent.pop(record.run_id, NOTHING),
                summary=record.summary,
                rule=rule,
            )
        )


def _taken_over(started: facts.RunStarted, taken: TakenOver) -> facts.RunTakenOver:
    return facts.RunTakenOver(
        **asdict(started),
        daemon=taken.turn.daemon,
        turn=taken.turn.number,
        seconds=taken.seconds,
        counted=taken.spent - taken.turn.spent,
    )
