"""The last hours: what facts add to them, and what history tells of the time before."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from sortie.daemon.recent_activity import RecentActivity
from sortie.model import RunId, RunStatus, Spending, Stage, StoreError, TurnOutcome
from sortie.scheduler.outcome_records import RecordHandoff
from sortie.scheduler.records import RecordExit
from sortie.store import HistoryRow
from sortie.telemetry import facts
from sortie.web.dashboard.activity import BUCKET, BUCKETS, Bucket
from tests.growth import held
from tests.scheduler.driver import issue
from tests.store.inline import MemoryStore
from tests.store.records import a_delivery, begin, delivery, end

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


class BrokenStore(MemoryStore):
    """A store whose history cannot be read."""

    async def history(self, **_: object) -> Sequence[HistoryRow]:
        """Fail."""
        raise StoreError("the disk is away")


def finished(run: str, status: RunStatus) -> facts.RunFinished:
    return facts.RunFinished(
        run_id=RunId(run), issue=issue("a"), status=status, turns=2, seconds=60.0
    )


def started(run: str, host: str) -> facts.RunStarted:
    return facts.RunStarted(
        run_id=RunId(run), issue=issue("a"), attempt=0, host=host, max_turns=3, agent="kiro"
    )


def turn(seconds: float, used: float | None) -> facts.TurnCompleted:
    return facts.TurnCompleted(
        run_id=RunId("r"),
        agent="kiro",
        turn=1,
        outcome=TurnOutcome.COMPLETED,
        seconds=seconds,
        spent=Spending(credits=used),
    )


def test_what_ends_is_counted_in_its_quarter_of_an_hour() -> None:
    """By outcome; turns with their duration; credits where some were told."""
    activity = RecentActivity(clock := Clock())

    activity(started("1", "east"))
    activity(turn(10.0, None))
    activity(finished("1", RunStatus.SUCCEEDED))
    clock.now += timedelta(seconds=BUCKET)
    activity(turn(20.0, 0.5))
    activity(turn(30.0, 0.25))
    activity(finished("2", RunStatus.STALLED))
    activity(finished("3", RunStatus.CANCELLED))
    view = activity.view()

    first = int(NOON.timestamp())
    assert len(view.buckets) == BUCKETS
    assert view.buckets[-2] == Bucket(begins_at=first, succeeded=1, turns=1, turn_seconds=10.0)
    assert view.buckets[-1] == Bucket(
        begins_at=first + BUCKET,
        failed=1,
        stopped=1,
        turns=2,
        turn_seconds=50.0,
        spent=Spending(credits=0.75),
    )
    assert [(run.run_id, run.status, run.host) for run in view.runs] == [
        ("3", "cancelled", ""),
        ("2", "stalled", ""),
        ("1", "succeeded", "east"),
    ]
    assert view.runs[-1].started_at == NOON - timedelta(seconds=60)


def test_a_run_that_ends_is_shown_with_its_rule() -> None:
    """None is the top level of the settings."""
    recent = RecentActivity(Clock())

    recent(replace(finished("r1", RunStatus.SUCCEEDED), rule="docs"))
    recent(finished("r2", RunStatus.SUCCEEDED))

    assert [(run.run_id, run.rule) for run in recent.view().runs] == [("r2", None), ("r1", "docs")]


def test_what_nobody_looks_at_is_forgotten_too() -> None:
    """A daemon that runs for weeks without a view keeps no more than one with many."""
    activity = RecentActivity(clock := Clock())
    for number in range(3 * BUCKETS):
        clock.now += timedelta(seconds=BUCKET)
        activity(turn(1.0, None))
        activity(finished(str(number), RunStatus.SUCCEEDED))

    assert len(activity._buckets) == BUCKETS
    assert [bucket.succeeded for bucket in activity.view().buckets] == [1] * BUCKETS


async def test_runs_that_are_over_leave_what_is_shown_of_them_alone() -> None:
    """Whether history could be read or not: a thousand runs take no more than a hundred."""
    for store in (MemoryStore(), BrokenStore()):
        activity = RecentActivity(Clock())
        activity(started("0", "east"))
        activity(finished("0", RunStatus.SUCCEEDED))
        await activity.recall(store)
        sizes = []
        for number in range(1, 1001):
            activity(started(str(number), "east"))
            activity(turn(1.0, None))
            activity(finished(str(number), RunStatus.SUCCEEDED))
            if number % 100 == 0:
                sizes.append(held(activity))

        assert sizes == sizes[:1] * 10


async def test_history_fills_the_hours_before() -> None:
    """Runs of earlier lives count, also one that a crash cut short, and none counts twice."""
    store = MemoryStore()
    early = (NOON - timedelta(hours=1)).timestamp()
    await store.commit([begin("old", issue("a"))], early)
    await store.commit(
        [RecordExit(run_id=RunId("old"), status=RunStatus.SUCCEEDED, turns=3)], early + 30
    )
    await store.commit([begin("live", issue("b"))], early)
    await store.commit([begin("cut", issue("c")), begin("new", issue("d"))], early)
    cut = RecordExit(run_id=RunId("cut"), status=RunStatus.INTERRUPTED)
    again = RecordExit(run_id=RunId("new"), status=RunStatus.FAILED)
    await store.commit([cut, again], NOON.timestamp())
    activity = RecentActivity(Clock())
    activity(finished("new", RunStatus.FAILED))

    await activity.recall(store)
    view = activity.view()

    assert {run.run_id for run in view.runs} == {"new", "cut", "old"}
    assert len(view.runs) == 3
    assert [(b.failed, b.stopped) for b in view.buckets if b.failed or b.stopped] == [(1, 1)]
    (bucket,) = [bucket for bucket in view.buckets if bucket.succeeded]
    assert bucket == Bucket(begins_at=int(early), succeeded=1, turns=3, turn_seconds=30.0)


def delivered(run: str, number: int) -> facts.DeliveryAdvanced:
    return facts.DeliveryAdvanced(
        run_id=RunId(run),
        stage=Stage.DELIVERED,
        branch=f"sortie/{run}",
        files_changed=number,
        added=number,
        removed=0,
        pull_request=f"https://forge.example/{number}",
    )


def handed_off(name: str) -> facts.IssueHandedOff:
    return facts.IssueHandedOff(issue=issue(name), state="Review")


def test_a_handoff_that_comes_late_still_tells_of_the_work() -> None:
    """As after an outage of the tracker, when many other runs have ended meanwhile."""
    activity = RecentActivity(Clock())
    activity(delivered("1", 7))
    activity(finished("1", RunStatus.SUCCEEDED))
    for number in range(2, 60):
        other = finished(str(number), RunStatus.SUCCEEDED)
        activity(delivered(str(number), 1))
        activity(replace(other, issue=issue(f"x{number}")))

    activity(handed_off("a"))

    (shown,) = activity.handed_off()
    assert (shown.branch, shown.added, shown.pull_request) == (
        "sortie/1",
        7,
        "https://forge.example/7",
    )
    assert shown.run_id == "1"
    assert (shown.issue_identifier, shown.state) == ("A", "Review")


async def test_so_it_does_after_a_restart() -> None:
    """The work that an earlier life delivered is known, also where a run followed that found
    nothing left to do; a life after the handoff tells the same."""
    store = MemoryStore()
    work = a_delivery(Stage.DELIVERED, added=7)
    at = NOON.timestamp() - 100
    await store.commit([begin("1", issue("a")), delivery("1", issue("a"), work), end("1")], at)
    activity = RecentActivity(Clock())
    await activity.recall(store)
    activity(finished("2", RunStatus.SUCCEEDED))

    activity(handed_off("a"))

    (shown,) = activity.handed_off()
    assert (shown.run_id, shown.branch, shown.added) == ("2", work.branch, 7)
    assert work.pull_request is not None
    assert shown.pull_request == work.pull_request.url
    await store.commit([RecordHandoff(issue=issue("a"), state="Review")], at + 50)
    later = RecentActivity(Clock())
    await later.recall(store)
    (again,) = later.handed_off()
    assert (again.branch, again.added, again.state) == (work.branch, 7, "Review")
    assert again.pull_request == work.pull_request.url


async def test_so_it_does_where_a_later_run_has_delivered_nothing() -> None:
    """A life that reads both runs from history tells what the one that saw them did."""
    store = MemoryStore()
    work = a_delivery(Stage.DELIVERED, added=7)
    at = NOON.timestamp() - 100
    await store.commit([begin("1", issue("a")), delivery("1", issue("a"), work), end("1")], at)
    await store.commit([begin("2", issue("a")), end("2")], at + 10)
    activity = RecentActivity(Clock())
    await activity.recall(store)

    activity(handed_off("a"))
    await store.commit([RecordHandoff(issue=issue("a"), state="Review")], at + 50)
    later = RecentActivity(Clock())
    await later.recall(store)

    for shown in (*activity.handed_off(), *later.handed_off()):
        assert (shown.run_id, shown.branch, shown.added) == ("2", work.branch, 7)
    assert len(later.handed_off()) == 1


def test_what_runs_have_left_is_forgotten_too() -> None:
    """As many issues as ever end: what is kept of them is bounded."""
    activity = RecentActivity(Clock())
    for number in range(1000):
        run = replace(finished(str(number), RunStatus.SUCCEEDED), issue=issue(f"x{number}"))
        activity(delivered(str(number), 1))
        activity(run)

    assert len(activity._ready) == 200
    assert activity._delivered == {}
