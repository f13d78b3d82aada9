"""A scheduler that keeps account of its questions and answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sortie.scheduler import Decision, Event, Scheduler
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev

Key = tuple[str, object]


class AuditedScheduler(Scheduler):
    """Decides as any Scheduler; ``events`` and ``decisions`` are all that went in and out.

    Its verdict is ``assert_answered_once``: no effect was answered twice or unasked, and those
    that are not answered yet are the ones that are allowed to be.
    """

    def handle(self, event: Event, now: float) -> list[Decision]:
        """Apply one event, on record."""
        self.events.append(event)
        decisions = super().handle(event, now)
        self.decisions += decisions
        return decisions

    def audit(self) -> AuditedScheduler:
        """Begin the account; call it once, before the first event."""
        self.events: list[Event] = []
        self.decisions: list[Decision] = []
        return self

    def assert_answered_once(self, *, open_allowed: bool) -> None:
        """Fail unless each question has exactly one answer (or none, where that is allowed)."""
        asked = Counter(key for d in self.decisions for key in _question(d))
        answered = Counter(key for e in self.events for key in _answer(e))
        unasked = answered - asked
        assert not unasked, f"answered twice or unasked: {unasked}"
        if not open_allowed:
            assert asked == answered, f"never answered: {asked - answered}"


def _question(decision: Decision) -> Iterator[Key]:
    match decision:
        case do.Poll():
            yield "poll", None
        case do.Refresh(token):
            yield "refresh", token
        case do.HandOff(token):
            yield "transition", token
        case do.CleanWorkspace(issue):
            yield "clean", issue.id
        case do.StartWorker(run_id=run_id):
            yield "worker", run_id
        case _:
            pass


def _answer(event: Event) -> Iterator[Key]:
    match event:
        case ev.CandidatesFetched() | ev.PollFailed():
            yield "poll", None
        case ev.IssuesRefreshed(token):
            yield "refresh", token
        case ev.TransitionAnswered(_, token):
            yield "transition", token
        case ev.WorkspaceCleaned(issue_id):
            yield "clean", issue_id
        case ev.WorkerExited(run_id):
            yield "worker", run_id
        case _:
            pass
