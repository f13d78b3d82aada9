"""The last hours of the daemon, kept for the dashboard: runs that ended, turns, credits, polls.

Rule 1: runs of earlier lives are counted once, from history; ``_ended`` are the runs of this life
that history holds too.
Rule 2: what is not known is None, never 0.
Rule 3: an issue may be handed off long after its last run; what that has left is kept till then,
in ``_ready``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from sortie.facts import Fact
from sortie.model import RunId, RunStatus, Spending, Stage, StoreError
from sortie.store import HistoryRow, Store
from sortie.telemetry import facts
from sortie.web.dashboard.activity import (
    BUCKET,
    BUCKETS,
    ActivityView,
    Bucket,
    HandedOff,
    PastRun,
    PollView,
    past_run,
)
from sortie.web.issue import HandedOffView
from sortie.web.runs import run_view

SHOWN_RUNS = 20
"""Runs that are shown."""

SHOWN_HANDOFFS = 20
"""Issues that were handed off lately and are shown."""

_RECALLED_RUNS = 1000
_KEPT_ENDS = 200
_SUCCEEDED = frozenset({RunStatus.SUCCEEDED})
_FAILURES = frozenset({RunStatus.FAILED, RunStatus.TIMED_OUT, RunStatus.STALLED})


class RecentActivity:
    """A sink; ``clock`` gives aware wall-clock time."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._ended: set[RunId] | None = set()
        self._buckets: dict[int, Bucket] = {}
        self._runs: deque[PastRun] = deque(maxlen=SHOWN_RUNS)
        self._handed_off: deque[HandedOff] = deque(maxlen=SHOWN_HANDOFFS)
        self._hosts: dict[RunId, str] = {}
        self._delivered: dict[RunId, facts.DeliveryAdvanced] = {}
        self._ready: dict[str, HandedOff] = {}  # were it handed off now; the newest end last
        self._poll: PollView | None = None

    def __call__(self, fact: Fact) -> None:
        """Note what a fact tells."""
        match fact:
            case facts.RunStarted(run_id=run_id, host=host):
                self._hosts[run_id] = host
            case facts.TurnCompleted(seconds=seconds, spent=spent):
                self._count_turns(self._clock(), 1, seconds, spent)
            case facts.RunFinished():
                self._finished(fact)
            case facts.DeliveryAdvanced(stage=Stage.DELIVERED):
                self._delivered[fact.run_id] = fact
            case facts.IssueHandedOff():
                self._moved(fact)
            case facts.PollCompleted(result=result, error=error):
                self._poll = _poll(self._clock(), result, error)
            case _:
                pass

    def view(self) -> ActivityView:
        """Return the last hours as they stand now."""
        now = _bucket(self._clock())
        first = now - BUCKET * (BUCKETS - 1)
        buckets = (self._at(begins_at) for begins_at in range(first, now + 1, BUCKET))
        return ActivityView(
            runs=tuple(self._runs),
            buckets=tuple(buckets),
            poll=self._poll,
            handed_off=tuple(self._handed_off),
        )

    def handed_off(self) -> tuple[HandedOffView, ...]:
        """Return the issues that were handed off lately, the newest first."""
        return tuple(map(_view, self._handed_off))

    async def recall(self, store: Store) -> None:
        """Add the runs of history; once, when recovery is over."""
        try:
            rows = await store.history(limit=_RECALLED_RUNS)
        except StoreError:
            rows = ()  # the charts begin empty; the next write reports the trouble
        known, self._ended = self._ended or set(), None
        recent = self._clock() - timedelta(seconds=BUCKET * BUCKETS)
        new = [row for row in rows if row.run_id not in known]
        for row in new:
            at = row.finished_at
            if at is None:
                continue
            if len(self._runs) < SHOWN_RUNS:
                self._runs.append(past_run(run_view(row)))
            if at >= recent:
                self._count_end(at, row.status)
                seconds = (at - row.started_at).total_seconds()
                self._count_turns(at, row.turns, seconds if row.turns else 0.0, row.spent)
        ends, earlier = _handed_off(new)
        self._keep_ends({**ends, **self._ready})
        for each in sorted(earlier, key=lambda handoff: handoff.at, reverse=True):
            names = {known.issue_identifier for known in self._handed_off}
            if len(self._handed_off) < SHOWN_HANDOFFS and each.issue_identifier not in names:
                self._handed_off.append(each)

    def _moved(self, fact: facts.IssueHandedOff) -> None:
        """Note a handoff, with what is known of the run before it."""
        name, now = fact.issue.identifier, self._clock()
        ready = self._ready.pop(name, None) or HandedOff(issue_identifier=name, at=now)
        self._forget_handoff(name)
        self._handed_off.appendleft(
            replace(ready, title=fact.issue.shown_title, state=fact.state, at=now)
        )

    def _forget_handoff(self, name: str) -> None:
        """Let an issue that is handed off again stand in the list once."""
        kept = [each for each in self._handed_off if each.issue_identifier != name]
        self._handed_off = deque(kept, maxlen=SHOWN_HANDOFFS)

    def _finished(self, fact: facts.RunFinished) -> None:
        now = self._clock()
        if self._ended is not None:
            self._ended.add(fact.run_id)
        self._count_end(now, fact.status)
        self._end(fact, now)
        self._runs.appendleft(
            PastRun(
                run_id=fact.run_id,
                issue_identifier=fact.issue.identifier,
                title=fact.issue.shown_title,
                status=fact.status.value,
                error_kind=None if fact.error_kind is None else fact.error_kind.value,
                error=fact.error,
                host=self._hosts.pop(fact.run_id, ""),
                turns=fact.turns,
                credits=fact.spent.credits,
                cost_usd=fact.spent.cost_usd,
                tokens=fact.spent.tokens,
                started_at=now - timedelta(seconds=fact.seconds),
                finished_at=now,
                answer=fact.summary.answer,
                rule=fact.rule or None,
            )
        )

    def _end(self, fact: facts.RunFinished, now: datetime) -> None:
        """Keep what a run has left, or with it what an earlier one has delivered."""
        name = fact.issue.identifier
        before = self._ready.pop(name, None) or HandedOff(issue_identifier=name, at=now)
        ready = replace(before, run_id=fact.run_id, answer=fact.summary.answer)
        work = self._delivered.pop(fact.run_id, None)
        if work is not None:
            ready = replace(
                ready,
                branch=work.branch,
                files_changed=work.files_changed,
                added=work.added,
                removed=work.removed,
                pull_request=work.pull_request,
            )
        self._keep_ends({**self._ready, name: ready})

    def _keep_ends(self, ends: dict[str, HandedOff]) -> None:
        self._ready = dict(list(ends.items())[-_KEPT_ENDS:])

    def _count_end(self, at: datetime, status: RunStatus) -> None:
        bucket = self._at(_bucket(at))
        self._keep(
            replace(
                bucket,
                succeeded=bucket.succeeded + (status in _SUCCEEDED),
                failed=bucket.failed + (status in _FAILURES),
                stopped=bucket.stopped + (status not in _SUCCEEDED | _FAILURES),
            )
        )

    def _count_turns(self, at: datetime, turns: int, seconds: float, spent: Spending) -> None:
        bucket = self._at(_bucket(at))
        self._keep(
            replace(
                bucket,
                turns=bucket.turns + turns,
                turn_seconds=bucket.turn_seconds + seconds,
                spent=bucket.spent + spent,
            )
        )

    def _keep(self, bucket: Bucket) -> None:
        """Keep a bucket, and drop those that are too old to be shown."""
        if bucket.begins_at not in self._buckets:
            first = _bucket(self._clock()) - BUCKET * (BUCKETS - 1)
            for old in [begins_at for begins_at in self._buckets if begins_at < first]:
                del self._buckets[old]
        self._buckets[bucket.begins_at] = bucket

    def _at(self, begins_at: int) -> Bucket:
        return self._buckets.get(begins_at) or Bucket(begins_at=begins_at)


def _handed_off(rows: Sequence[HistoryRow]) -> tuple[dict[str, HandedOff], list[HandedOff]]:
    """Return what the last runs have left, the newest last, and what was handed off; of rows from
    the newest on."""
    ends: dict[str, HandedOff] = {}
    moved: list[HandedOff] = []
    for row in reversed(rows):
        if row.finished_at is not None:
            ends[row.issue] = shown = _shown(row, row.finished_at, ends.pop(row.issue, None))
            if row.handed_off_at is not None:
                moved.append(replace(shown, at=row.handed_off_at))
    return ends, moved


def _shown(row: HistoryRow, at: datetime, before: HandedOff | None) -> HandedOff:
    """Return what a run has left, or with it what one before it has delivered."""
    shown = replace(
        before or HandedOff(issue_identifier=row.issue, at=at),
        title=row.title,
        state=row.state,
        at=at,
        run_id=row.run_id,
        answer=row.summary.answer,
    )
    work = row.delivery
    if work is None or work.stage is not Stage.DELIVERED:
        return shown
    return replace(
        shown,
        branch=work.branch,
        files_changed=work.files_changed,
        added=work.added,
        removed=work.removed,
        pull_request=None if work.pull_request is None else work.pull_request.url,
    )


def _view(shown: HandedOff) -> HandedOffView:
    return HandedOffView(
        issue_identifier=shown.issue_identifier,
        title=shown.title,
        state=shown.state,
        at=shown.at,
        run_id=shown.run_id,
        branch=shown.branch,
        files_changed=shown.files_changed,
        added=shown.added,
        removed=shown.removed,
        pull_request=shown.pull_request,
    )


def _bucket(at: datetime) -> int:
    return int(at.timestamp()) // BUCKET * BUCKET


def _poll(at: datetime, result: str, error: str | None) -> PollView:
    match result:
        case "success" | "error" | "skipped":
            return PollView(at=at, result=result, error=error)
        case _:
            raise ValueError(f"a poll cannot end with {result!r}")
