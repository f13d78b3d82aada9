"""What a hold is compared with: nothing that Sortie or the run itself wrote may end it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sortie.model import (
    Comment,
    ErrorKind,
    Failed,
    Finish,
    Finished,
    HoldReason,
    Issue,
    RunEnd,
    RunReport,
    Stopped,
)
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Held
from tests.scheduler.driver import issue, starts
from tests.scheduler.lives import A, Lives
from tests.scheduler.parking import AFTER_A_RUN, PARKING, edit, finish, parked

after_a_run = pytest.mark.parametrize("reason", AFTER_A_RUN)
WRITTEN: list[dict[str, object]] = [
    {"state": "Doing"},
    {"state": "Doing", "comments": (Comment(author="sortie", body="The run ended."),)},
    {"description": "[x] the agent ticked a box", "labels": ("touched",)},
    {"state": "Blocked", "title": "Mend a (the agent moved it)"},
]
written = pytest.mark.parametrize("changes", WRITTEN, ids=lambda c: ",".join(c))
CUT_SHORT = [(reason, False) for reason in AFTER_A_RUN] + [
    (reason, True)
    for reason in AFTER_A_RUN
    if reason is not HoldReason.HANDOFF_FAILED  # a draining daemon hands nothing off
]
ACTIVE = replace(PARKING, active_states=frozenset({"todo", "doing", "blocked"}))


def question_about(decisions: list[do.Decision]) -> do.Refresh:
    """Return the last question that was asked."""
    question = [d for d in decisions if isinstance(d, do.Refresh)][-1]
    assert A in question.ids
    return question


def answer(question: do.Refresh, *issues: Issue) -> ev.IssuesRefreshed:
    return ev.IssuesRefreshed(question.token, question.ids, issues)


@after_a_run
@written
def test_what_was_written_before_the_first_read_ends_no_hold(
    reason: HoldReason, changes: dict[str, object]
) -> None:
    """The move to in-progress, comments, and what the agent did to its issue are the baseline, and
    what a person does to it afterwards is a change."""
    driver = Lives(ACTIVE)
    run_id = driver.begin()
    edit(driver, **changes)

    decisions = driver.settle(finish(driver, run_id, reason))
    decisions += driver.pass_time(30) + driver.pass_time(30)
    before = driver.holds()
    edit(driver, state="Todo" if driver.tracker[A].state != "Todo" else "Doing")
    driver.pass_time(30)

    assert starts(decisions) == []
    assert (before, driver.holds()) == (reason, None)


@pytest.mark.parametrize(("reason", "drained"), CUT_SHORT)
@written
def test_a_hold_that_was_never_read_is_not_ended_by_what_its_run_wrote(
    reason: HoldReason, changes: dict[str, object], drained: bool
) -> None:
    """A daemon that ends between a hold and its first read makes the first read in the next life
    the baseline, and later changes count there as ever."""
    driver = Lives(ACTIVE)
    run_id = driver.begin()
    edit(driver, **changes)
    if reason is HoldReason.OPERATOR:
        driver.tell(ev.StopAsked("a"))
    if drained:
        driver.tell(ev.ShutdownRequested())
    finish(driver, run_id, reason)

    driver.die()
    decisions = driver.pass_time() + driver.pass_time(30)
    before = driver.holds()
    driver.die()
    driver.pass_time()
    again = driver.holds()
    edit(driver, state="Todo" if driver.tracker[A].state != "Todo" else "Doing")
    driver.pass_time(30)

    assert starts(decisions) == []
    assert (before, again, driver.holds()) == (reason, reason, None)


@after_a_run
def test_a_change_while_the_daemon_is_down_ends_a_settled_hold(reason: HoldReason) -> None:
    """Only a hold that was never read takes what it finds; else a person's move counts."""
    driver = parked(reason)
    edit(driver, state="Todo")

    driver.die()
    decisions = driver.pass_time()

    assert driver.holds() is None
    assert len(starts(decisions)) == 1


@after_a_run
@written
def test_an_answer_asked_for_before_the_hold_says_nothing_about_it(
    reason: HoldReason, changes: dict[str, object]
) -> None:
    """A late answer from the time of the run neither ends the hold nor becomes its baseline."""
    driver = Lives(ACTIVE)
    run_id = driver.begin()
    driver.now += 30
    old = question_about(driver.tell(ev.TimePassed()))
    stale = driver.tracker[A]
    edit(driver, **changes)
    first = question_about(finish(driver, run_id, reason))

    late = driver.tell(answer(old, replace(stale, title="as it was", state="Review")))
    unread = driver.claim()
    driver.tell(answer(first, driver.tracker[A]))
    driver.pass_time(30)

    assert late == []
    assert isinstance(unread, Held)
    assert not unread.baseline_final
    assert driver.holds() is reason


@after_a_run
@pytest.mark.parametrize("state", ["Review", "Elsewhere"])
def test_a_first_read_in_an_inactive_state_ends_the_hold(reason: HoldReason, state: str) -> None:
    """Where the run or a person left nothing to hold, nothing is held."""
    driver = Lives(ACTIVE)
    run_id = driver.begin()
    edit(driver, state=state)

    driver.settle(finish(driver, run_id, reason))

    assert (driver.holds(), driver.claim()) == (None, None)


@pytest.mark.parametrize(
    "end",
    [
        Stopped(),
        Finished(finish=Finish.BLOCKED),
        Failed(kind=ErrorKind.PORT_EXIT, message="it broke"),
    ],
)
def test_a_stop_is_kept_over_the_daemons_death(end: RunEnd) -> None:
    """A run that an operator stopped does not come back when the daemon dies before it is over,
    whatever the move to in-progress changed meanwhile; nor when it is over."""
    driver = Lives(PARKING)
    run_id = driver.begin()
    edit(driver, state="Doing")
    driver.tell(ev.StopAsked("a", 1))
    if not isinstance(end, Stopped):
        driver.tell(ev.WorkerExited(run_id, RunReport(end=end)))

    driver.die()
    decisions = driver.pass_time() + driver.pass_time(3600)

    assert starts(decisions) == []
    assert driver.holds() is HoldReason.OPERATOR


def test_a_hold_for_a_crash_takes_the_state_that_the_cut_run_left() -> None:
    """The daemon's own move to in-progress in a run that it crashed in does not end the hold."""
    driver = Lives(PARKING)
    driver.begin()
    edit(driver, state="Doing")
    for _ in range(2):
        driver.disk.write(rec.RecordCrash(issue=issue()), driver.now)

    driver.die()
    driver.pass_time()

    assert driver.holds() is HoldReason.INTERNAL_ERROR


def test_a_hold_for_what_a_run_left_takes_the_state_that_it_left() -> None:
    """Nor does it end one for processes that could not be ended."""
    driver = Lives(PARKING)
    run_id = driver.begin()
    edit(driver, state="Doing")

    driver.die(left={run_id: "process 7"})
    driver.pass_time()

    assert driver.holds() is HoldReason.INTERNAL_ERROR


def test_a_fix_while_the_daemon_is_down_ends_a_hold_for_a_crash() -> None:
    """An issue that was not running when the daemon crashed is compared with what broke it."""
    driver = Lives(PARKING)
    driver.put(issue(description="mended"))
    for _ in range(2):
        driver.disk.write(rec.RecordCrash(issue=issue(description="poison")), driver.now)

    driver.die()
    decisions = driver.pass_time()

    assert driver.holds() is None
    assert len(starts(decisions)) == 1
