"""The commands of operators over HTTP: put to the orchestrator, and answered with a status."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sortie.daemon.records import records_of
from sortie.daemon.views import DaemonView
from sortie.daemon.wall_time import wall_time
from sortie.model import cut
from sortie.scheduler import Event, Explanation
from sortie.scheduler import events as ev
from sortie.store import Store
from sortie.web.controls import CommandAnswer, CommandStatus, Controls, ExplanationView, GateView
from sortie.web.state import BudgetView, FailureView
from sortie.web.transcript_view import TranscriptSource

_LABELS, _LABEL_LIMIT, _DESCRIPTION_LIMIT = 50, 100, 8192
"""How much of an issue is shown: labels, and characters of a label and of the description."""

_STATUSES: dict[str, CommandStatus] = {"done": 200, "unknown": 404, "conflict": 409}


def controls_of(view: DaemonView, store: Store, transcripts: TranscriptSource) -> Controls:
    """Return the commands of a running daemon, and questions about what is on record."""
    orchestrator, tracker, failures = view.orchestrator, view.tracker, view.failures

    def unknown(name: str, sentence: str) -> str:
        snapshot = orchestrator.snapshot()
        known = {issue.identifier for issue in snapshot.candidates}
        known |= {claim.issue.identifier for claim in snapshot.claims.values()}
        return tracker.explain_unknown(name, sentence, known)

    async def run(command: Callable[[int], Event], done: CommandStatus = 200) -> CommandAnswer:
        answer = await orchestrator.ask(command)
        if answer is None:
            return CommandAnswer(status=503, message=_pending(orchestrator.store_error))
        status = done if answer.verdict == "done" else _STATUSES[answer.verdict]
        return CommandAnswer(status=status, message=answer.message)

    async def run_for_issue(name: str, command: Callable[[int], Event]) -> CommandAnswer:
        answer = await run(command)
        if answer.status == 404:
            return CommandAnswer(status=404, message=unknown(name, answer.message))
        return answer

    async def explain(name: str) -> ExplanationView | str:
        found = orchestrator.explain_issue(name)
        if isinstance(found, str):
            return unknown(name, found)
        view_of = _view(found, failures.of(found.issue), tracker.budgets())
        return replace(view_of, workspace=view.workspace(found.issue.id))

    return Controls(
        refresh=lambda: run(lambda ask: ev.RefreshRequested(ask), 202),
        pause=lambda: run(lambda ask: ev.PauseAsked(True, ask)),
        resume=lambda: run(lambda ask: ev.PauseAsked(False, ask)),
        stop=lambda name: run_for_issue(name, lambda ask: ev.StopAsked(name, ask)),
        retry=lambda name: run_for_issue(name, lambda ask: ev.RetryAsked(name, ask)),
        explain=explain,
        days=store.days,
        records=records_of(view, store, explain),
        transcripts=transcripts,
    )


def _pending(store_error: str | None) -> str:
    trouble = f": {store_error}" if store_error else ""
    return (
        f"it could not be recorded yet{trouble}; it takes effect once it is, unless the daemon is"
        " restarted before"
    )


def _view(
    found: Explanation, failure: FailureView | None, budgets: tuple[BudgetView, ...]
) -> ExplanationView:
    return ExplanationView(
        issue_id=found.issue.id,
        issue_identifier=found.issue.identifier,
        title=found.issue.shown_title,
        state=found.issue.state,
        standing=found.standing.value,
        detail=found.detail,
        since=None if found.since is None else wall_time(found.since),
        run_id=found.run_id,
        turn=found.turn,
        attempt=found.attempt,
        gates=tuple(GateView(gate=v.gate, reason=v.reason) for v in found.gates),
        next_run_at=None if found.next_at is None else wall_time(found.next_at),
        next_step=found.next_step,
        ways_out=found.ways_out,
        last_failure=failure,
        budgets=budgets,
        issue_url=found.issue.url,
        labels=tuple(cut(label, _LABEL_LIMIT) for label in found.issue.labels[:_LABELS]),
        description=cut(found.issue.description, _DESCRIPTION_LIMIT),
    )
