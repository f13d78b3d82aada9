"""Which issues are chosen, in which order, and which are not."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from sortie import facts
from sortie.model import (
    Blocker,
    ErrorKind,
    Failed,
    Finish,
    Finished,
    HoldReason,
    Issue,
)
from sortie.scheduler import Memory
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler.candidates import GateVerdict
from sortie.scheduler.claims import Held
from tests.scheduler.driver import POLICY, Driver, issue, only, starts


def names(runs: list[do.StartWorker]) -> list[str]:
    return [run.issue.id for run in runs]


def test_order_is_priority_then_age_then_identifier() -> None:
    """Priorities 1 to 4 lead, in order; everything else is equal; then age, then identifier, whose
    numbers count as numbers."""
    old, young = datetime(2020, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    driver = Driver(replace(POLICY, max_concurrent_agents=9))

    runs = driver.start(
        issue("none", priority=None, created_at=young),
        issue("zero", priority=0, created_at=old),
        issue("four", priority=4),
        issue("one", priority=1),
        issue("nine", priority=9, created_at=datetime(2021, 1, 1, tzinfo=UTC)),
        issue("a-10", priority=2, created_at=young),
        issue("a-2", priority=2, created_at=young),
        issue("c", priority=2, created_at=old),
        issue("ageless", priority=2, created_at=None),
    )

    assert names(runs) == ["one", "c", "a-2", "a-10", "ageless", "four", "zero", "nine", "none"]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (issue(state="Review"), "its state Review is not active"),
        (issue(state="Done"), "its state Done is terminal"),
        (issue(title=" "), "it has no title"),
        (issue(labels=("other",)), "it lacks the label ready"),
        (
            issue(labels=("ready",), blocked_by=(Blocker(identifier="B-1", state="doing"),)),
            "it is blocked by B-1 (doing)",
        ),
        (
            issue(labels=("ready",), blocked_by=(Blocker(identifier="B-2"),)),
            "it is blocked by B-2 (state unknown)",
        ),
    ],
)
def test_unfit_issues_are_not_started_and_say_why(bad: Issue, reason: str) -> None:
    """An issue that is not fit is never started, and the first closed gate names the reason."""
    driver = Driver(replace(POLICY, required_labels=frozenset({"ready"})))
    driver.put(bad)

    decisions = driver.settle(driver.tell(ev.RefreshRequested()))
    decisions += driver.settle(driver.tell(ev.CandidatesFetched((bad,))))
    reasons = [v.reason for v in driver.scheduler.explain(bad, driver.now) if v.reason is not None]

    assert starts(decisions) == []
    assert reasons[0] == reason


def test_a_chosen_issue_is_reread_and_dropped_if_it_changed() -> None:
    """An answer to an old poll starts nothing: the re-read decides."""
    driver = Driver()
    driver.put(issue("a", state="Done"))
    driver.tell(ev.TimePassed())

    decisions = driver.settle(driver.tell(ev.CandidatesFetched((issue("a"),))))

    assert starts(decisions) == []
    assert only(decisions, facts.DispatchDropped) == [
        facts.DispatchDropped(
            issue=issue("a", state="Done"), outcome="dropped", reason="its state Done is terminal"
        )
    ]


def test_continuations_queue_behind_older_issues_of_their_priority() -> None:
    """A continuation takes its due time as its age, so a waiting issue goes first."""
    driver = Driver(replace(POLICY, max_concurrent_agents=1))
    (first,) = driver.start(issue("a"))
    driver.put(issue("b"))
    driver.settle(driver.tell(ev.RefreshRequested()))

    driver.end(first.run_id, Finished(finish=Finish.TURNS_USED))
    driver.now += 2
    snapshot = driver.scheduler.snapshot(driver.now)

    assert [c.issue.id for c in snapshot.worked] == ["b"]


def test_a_missing_program_is_probed_once_and_stops_the_rest() -> None:
    """With no agent to launch, one issue is tried so that the fault is on record."""
    driver = Driver()
    driver.tell(ev.TimePassed())
    driver.put(issue("a"), issue("b"))

    decisions = driver.settle(
        driver.tell(ev.CandidatesFetched((issue("a"), issue("b")), "kiro-cli was not found"))
    )
    again = driver.settle(driver.tell(ev.TimePassed()))

    assert names(starts(decisions)) == ["a"]
    assert starts(again) == []


def test_a_shortage_lets_one_issue_after_the_other_run() -> None:
    """Also where an issue is held for want of the program; with the shortage over all may run."""
    held = issue("held")
    driver = Driver(
        memory=Memory(
            claims=(Held(issue=held, reason=HoldReason.AGENT_NOT_FOUND, detail="gone", since=0.0),)
        )
    )
    driver.put(held, *map(issue, "abc"))
    present = tuple(map(issue, "abc"))

    first = driver.settle(driver.tell(ev.CandidatesFetched(present, shortage="no more files")))
    (run,) = starts(first)
    why = driver.scheduler.explain(issue("b"), driver.now)
    driver.put(issue("a", state="Done"))
    then = driver.end(run.run_id)
    after = driver.settle(driver.tell(ev.CandidatesFetched(present)))

    assert names([run]) == ["a"]
    assert GateVerdict("agent", "no more files") in why
    assert names(starts(then)) == ["b"]
    assert names(starts(after)) == ["c"]


def test_reconciliation_goes_on_while_a_poll_hangs() -> None:
    """A poll that is never answered keeps no finished issue running."""
    driver = Driver()
    driver.start(issue())
    driver.put(issue(state="Done"))
    driver.now += 30
    hanging = driver.tell(ev.TimePassed())
    (question,) = only(hanging, do.Refresh)
    assert isinstance(question, do.Refresh)
    driver.tell(ev.IssuesRefreshed(question.token, question.ids, (), question.ids, "down"))

    driver.now = driver.scheduler.wakeup_at()
    (again,) = only(driver.tell(ev.TimePassed()), do.Refresh)
    assert isinstance(again, do.Refresh)
    stopped = driver.tell(ev.IssuesRefreshed(again.token, again.ids, (issue(state="Done"),)))

    assert only(hanging, do.Poll) == [do.Poll()]
    assert len(only(stopped, do.StopWorker)) == 1


def test_a_tracker_that_gives_no_answer_is_left_alone_for_a_while() -> None:
    """The next in the queue is not asked about at once; due waits and candidates wait alike."""
    driver = Driver(replace(POLICY, max_concurrent_agents=1))
    driver.put(issue("a"), issue("b"))
    driver.tell(ev.TimePassed())
    (asked,) = driver.tell(ev.CandidatesFetched((issue("a"), issue("b"))))
    assert isinstance(asked, do.Refresh)

    silence = driver.tell(
        ev.IssuesRefreshed(asked.token, asked.ids, (), asked.ids, "down", answered=False)
    )
    driver.now += 9.9
    early = driver.tell(ev.TimePassed())
    driver.now = driver.scheduler.wakeup_at()
    late = driver.tell(ev.TimePassed())

    assert only(silence, do.Refresh) + only(early, do.Refresh) == []
    assert driver.now == 10.0
    assert [q.ids for q in only(late, do.Refresh) if isinstance(q, do.Refresh)] == [{issue("b").id}]


def test_a_poll_is_put_off_and_nothing_else_is() -> None:
    """Where requests are short, issues start and end as ever; an operator's refresh is made."""
    driver = Driver(replace(POLICY, max_concurrent_agents=1))
    (first,) = driver.start(issue("a"), issue("b"))
    driver.tell(ev.PollsPutOff(600))
    driver.now += 100
    before = driver.tell(ev.TimePassed())

    ended = driver.end(first.run_id, Failed(kind=ErrorKind.AGENT_NOT_FOUND, message="gone"))
    refreshed = driver.tell(ev.RefreshRequested())

    assert only(before, do.Poll) == []
    assert {"b"} in [q.ids for q in ended if isinstance(q, do.Refresh)]
    assert len(only(refreshed, do.Poll)) == 1
