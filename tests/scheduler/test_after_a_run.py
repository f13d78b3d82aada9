"""What follows the end of a run."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sortie.model import (
    Blocker,
    ErrorKind,
    Failed,
    Finish,
    Finished,
    RunEnd,
    RunReport,
    RunStatus,
    RunSummary,
    Spending,
    Stopped,
    Streak,
    WaitKind,
)
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.timing import SHORTAGE_DELAY
from tests.scheduler.driver import POLICY, Driver, issue, only, starts

PORT_EXIT = Failed(kind=ErrorKind.PORT_EXIT, message="it broke")


def test_failures_wait_ever_longer_up_to_the_cap() -> None:
    """The n-th failure in a row waits min(10 s * 2^(n-1), cap) and the attempt grows."""
    driver = Driver(replace(POLICY, max_retry_backoff=60.0))
    (run,) = driver.start(issue())
    delays, attempts = [], []

    for _ in range(5):
        (retry,) = only(driver.end(run.run_id, PORT_EXIT), rec.RecordRetry)
        assert isinstance(retry, rec.RecordRetry)
        delays.append(retry.delay)
        (run,) = starts(driver.pass_time(retry.delay))
        attempts.append(run.streak.failures)

    assert delays == [10, 20, 40, 60, 60]
    assert attempts == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(("cap", "delay"), [(300.0, 60.0), (5.0, 5.0)])
def test_an_occupied_workspace_costs_no_attempt(cap: float, delay: float) -> None:
    """Nothing was begun: the issue looks again after a while, as often as it takes, and nobody is
    told by a comment."""
    driver = Driver(replace(POLICY, max_retry_backoff=cap, comment_on_failure=True))
    (run,) = driver.start(issue())
    driver.end(run.run_id, PORT_EXIT)
    (run,) = starts(driver.pass_time(cap))
    occupied = Failed(kind=ErrorKind.WORKSPACE_ERROR, message="bash lives there", occupied=True)
    delays, attempts = [], []

    for _ in range(3):
        decisions = driver.end(run.run_id, occupied)
        (retry,) = only(decisions, rec.RecordRetry)
        assert isinstance(retry, rec.RecordRetry)
        delays.append(retry.delay)
        (run,) = starts(driver.pass_time(retry.delay))
        attempts.append(run.streak.failures)
        assert only(decisions, do.PostComment) == []

    assert (delays, attempts) == ([delay] * 3, [1] * 3)


def test_continuations_are_quick_twice_then_wait_like_failures() -> None:
    """From the third continuation in a row without a change of state, the wait grows."""
    driver = Driver()
    (run,) = driver.start(issue())
    delays = []

    for _ in range(5):
        (retry,) = only(driver.end(run.run_id), rec.RecordRetry)
        assert isinstance(retry, rec.RecordRetry)
        assert retry.kind is WaitKind.CONTINUATION
        delays.append(retry.delay)
        (run,) = starts(driver.pass_time(retry.delay))

    assert delays == [1, 1, 10, 20, 40]


def test_a_due_retry_is_chosen_as_soon_as_a_read_opens_its_gates() -> None:
    """Whatever question the tracker answered, no other poll is waited for."""
    driver = Driver()
    (run,) = driver.start(issue())
    driver.end(run.run_id, PORT_EXIT)
    driver.put(issue(blocked_by=(Blocker(identifier="B-1", state="Todo"),)))
    driver.pass_time(10)
    driver.now += 30
    (question,) = only(driver.tell(ev.TimePassed()), do.Refresh)
    assert isinstance(question, do.Refresh)

    decisions = driver.tell(ev.IssuesRefreshed(question.token, question.ids, (issue(),)))

    assert [q.ids for q in decisions if isinstance(q, do.Refresh)] == [{"a"}]


def test_what_a_run_has_used_is_on_record() -> None:
    """Turns, what was used and what is left of the worker's report are those of the records."""
    driver = Driver()
    (run,) = driver.start(issue())
    end = Finished(finish=Finish.TURNS_USED)

    spent = Spending(credits=1.5, output_tokens=700)
    left = RunSummary(answer="Done.", commits=1)
    report = RunReport(end=end, turns=3, spent=spent, summary=left)
    decisions = driver.tell(ev.WorkerExited(run.run_id, report))

    assert decisions[:2] == [
        rec.RecordSpending(run_id=run.run_id, spent=spent),
        rec.RecordExit(
            run_id=run.run_id,
            status=RunStatus.SUCCEEDED,
            turns=3,
            state=issue().state,
            summary=left,
        ),
    ]


@pytest.mark.parametrize("finish", [Finish.BLOCKED, Finish.REVIEW, Finish.DONE])
@pytest.mark.parametrize(
    ("reason", "answer", "said"),
    [
        ("the key is missing", "I stop.", ": the key is missing"),
        ("", "I have\nno key.", ": I have no key."),
        ("", None, ""),
    ],
)
def test_a_hold_says_why_the_agent_asks_for_a_person(
    finish: Finish, reason: str, answer: str | None, said: str
) -> None:
    """In the agent's words: those of its status file, or else what it said last."""
    driver = Driver()
    (run,) = driver.start(issue())
    report = RunReport(
        end=Finished(finish=finish, reason=reason), summary=RunSummary(answer=answer)
    )

    decisions = driver.tell(ev.WorkerExited(run.run_id, report))

    (record,) = only(decisions, rec.RecordHold)
    assert isinstance(record, rec.RecordHold)
    sentence = {
        Finish.BLOCKED: "the agent says it is blocked",
        Finish.DONE: "the agent says it is done, and no handoff state is configured",
        Finish.REVIEW: "the agent asks for a review, and no handoff state is configured",
    }[finish]
    assert record.detail == sentence + said


def test_idle_is_two_good_polls_with_nothing_to_do_or_to_wait_for() -> None:
    """Held issues do not count as work; running and waiting ones, and failed polls, do."""
    driver = Driver()
    (run,) = driver.start(issue())
    counts: list[int] = []

    for step in ("running", "waiting", "held", "held", "failed", "held"):
        if step == "waiting":
            driver.end(run.run_id, PORT_EXIT)
        elif step == "held" and not counts[-1]:
            driver.tell(ev.StopAsked(issue().id))
        if step == "failed":
            driver.now += 30
            driver.tell(ev.TimePassed())
            driver.tell(ev.PollFailed("down"))
        else:
            driver.settle(driver.tell(ev.RefreshRequested()))
        counts.append(driver.scheduler.idle_polls)

    assert counts == [0, 0, 1, 2, 0, 1]


@pytest.mark.parametrize("kind", [ErrorKind.PORT_EXIT, ErrorKind.INVALID_WORKSPACE_CWD])
def test_a_shortage_of_the_machine_neither_counts_nor_holds(kind: ErrorKind) -> None:
    """The run is tried again soon and for ever, with the attempt that it had."""
    driver = Driver()
    (run,) = driver.start(issue())
    driver.end(run.run_id, PORT_EXIT)
    (run,) = starts(driver.pass_time(10.0))
    waits, attempts = [], []

    for _ in range(4):
        decisions = driver.end(run.run_id, Failed(kind=kind, message="no files", shortage=True))
        (retry,) = only(decisions, rec.RecordRetry)
        assert isinstance(retry, rec.RecordRetry)
        waits.append(retry.delay)
        (run,) = starts(driver.pass_time(retry.delay))
        attempts.append(run.streak)

    assert waits == [SHORTAGE_DELAY] * 4
    assert attempts == [Streak(failures=1)] * 4


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (PORT_EXIT, ["failure"]),
        (Finished(finish=Finish.TURNS_USED), ["completion"]),
        (Stopped(), []),
    ],
    ids=["failed", "finished", "stopped"],
)
def test_each_end_is_commented_on_as_what_it_was(end: RunEnd, told: list[str]) -> None:
    """Where both comments are wanted, a run that was stopped gets neither."""
    driver = Driver(replace(POLICY, comment_on_failure=True, comment_on_completion=True))
    (run,) = driver.start(issue())

    comments = only(driver.end(run.run_id, end), do.PostComment)

    assert [c.lifecycle for c in comments if isinstance(c, do.PostComment)] == told
