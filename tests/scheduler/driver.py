"""A terse way to drive a scheduler in tables of tests."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from msgspec.structs import replace

from sortie.model import (
    Finish,
    Finished,
    Issue,
    IssueId,
    RunEnd,
    RunId,
    RunReport,
)
from sortie.scheduler import Decision, Event, Memory, Policy, RunIds, Scheduler
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from tests.typed import wrongly_typed

POLICY = Policy(
    active_states=frozenset({"todo", "doing"}), terminal_states=frozenset({"done", "dropped"})
)

EPOCH = datetime(2026, 6, 1, tzinfo=UTC).timestamp()


def issue(name: str = "a", state: str = "Todo", **fields: object) -> Issue:
    """Return an issue named after its id."""
    base = Issue(
        id=IssueId(name),
        identifier=name.upper(),
        title=f"Mend {name}",
        state=state,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return replace(base, **fields)


class Driver:
    """A scheduler, a clock and a tracker that answers truthfully when asked."""

    def __init__(self, policy: Policy = POLICY, memory: Memory | None = None) -> None:
        self.now = 0.0
        self.tracker: dict[IssueId, Issue] = {}
        ids = RunIds(UUID(int=1))
        self.scheduler = Scheduler(policy, now=0.0, new_run_id=ids, memory=memory, epoch=EPOCH)

    def put(self, *issues: Issue) -> None:
        """Let the tracker hold these issues."""
        self.tracker.update((i.id, i) for i in issues)

    def tell(self, event: Event) -> list[Decision]:
        """Give the scheduler one event."""
        decisions = self.scheduler.handle(event, self.now)
        snapshot = self.scheduler.snapshot(self.now)
        for thing in (*decisions, *snapshot.claims.values(), *snapshot.unfit.values()):
            assert wrongly_typed(thing) == []
        for trouble in snapshot.troubled.values():
            assert wrongly_typed(trouble) == []
        assert isinstance(self.scheduler.in_hand, Issue | None)
        return decisions

    def settle(self, decisions: list[Decision]) -> list[Decision]:
        """Answer every question truthfully until none is left; return all that was decided."""
        everything = list(decisions)
        queue = list(decisions)
        while queue:
            answer = self._answer(queue.pop(0))
            if answer is not None:
                more = self.tell(answer)
                everything += more
                queue += more
        return everything

    def _answer(self, decision: Decision) -> Event | None:
        match decision:
            case do.Poll():
                every = self.scheduler.snapshot(self.now).policy.every()
                listed = (i for i in self.tracker.values() if any(p.is_active(i) for p in every))
                return ev.CandidatesFetched(tuple(listed))
            case do.Refresh(token, ids):
                found = tuple(self.tracker[i] for i in sorted(ids) if i in self.tracker)
                return ev.IssuesRefreshed(token, ids, found)
            case _:
                return None

    def pass_time(self, seconds: float = 0.0) -> list[Decision]:
        """Let time pass, and answer what is asked because of it."""
        self.now += seconds
        return self.settle(self.tell(ev.TimePassed()))

    def start(self, *issues: Issue) -> list[do.StartWorker]:
        """Put issues into the tracker and poll at once; return what was started."""
        self.put(*issues)
        return starts(self.settle(self.tell(ev.RefreshRequested())))

    def end(self, run_id: RunId, end: RunEnd | None = None) -> list[Decision]:
        """Let a run end, by default with its turns used."""
        report = RunReport(end=end or Finished(finish=Finish.TURNS_USED), turns=1)
        return self.settle(self.tell(ev.WorkerExited(run_id, report)))


def starts(decisions: list[Decision]) -> list[do.StartWorker]:
    """Return the decisions to start a worker."""
    return [d for d in decisions if isinstance(d, do.StartWorker)]


def only(decisions: list[Decision], kind: type) -> list[Decision]:
    """Return the decisions of one kind."""
    return [d for d in decisions if isinstance(d, kind)]
