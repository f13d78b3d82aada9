"""What follows the end of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sortie.model import (
    ErrorKind,
    Failed,
    Finish,
    Finished,
    HoldReason,
    KnownWorkspace,
    RunStatus,
    Stopped,
    StopReason,
    Streak,
    TrackerErrorKind,
    Trigger,
    WaitKind,
)
from sortie.scheduler import Memory, Policy
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Cleaning, HandingOff, Held, Stopping, Waiting
from tests.scheduler.driver import POLICY, Driver, issue, only, starts

HANDOFF = replace(POLICY, handoff_state="Review")
PORT_EXIT = Failed(kind=ErrorKind.PORT_EXIT, message="it broke")


def claim_of(driver: Driver, name: str = "a") -> object:
    return driver.scheduler.snapshot(driver.now).claims.get(issue(name).id)


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


def test_a_change_of_state_makes_continuations_quick_again() -> None:
    """A state change, seen by the worker, begins the count of continuations anew."""
    driver = Driver()
    (run,) = driver.start(issue())
    for _ in range(3):
        driver.end(run.run_id)
        (run,) = starts(driver.pass_time(10))
    moved = issue(state="Doing")
    driver.put(moved)
    driver.tell(ev.IssueMoved(run.run_id, moved))

    (retry,) = only(driver.end(run.run_id), rec.RecordRetry)

    assert isinstance(retry, rec.RecordRetry)
    assert (retry.delay, retry.streak) == (1, Streak(continuations=1))


def test_success_ends_with_the_handoff_and_the_claim_is_released() -> None:
    """A good run of a still active issue is handed off, once, and nothing waits after it."""
    driver = Driver(HANDOFF)
    (run,) = driver.start(issue())

    (question,) = only(driver.end(run.run_id), do.Transition)
    assert isinstance(question, do.Transition)
    driver.put(issue(state="Review"))
    answered = driver.settle(driver.tell(ev.TransitionAnswered(issue().id, question.token)))

    assert (question.issue, question.state) == (issue(), "Review")
    assert answered == [rec.ForgetRetry(issue_id=issue().id)]
    assert claim_of(driver) is None


def test_a_failing_handoff_is_tried_five_times_then_held() -> None:
    """The handoff is retried by itself with backoff; the agent does not run again for it."""
    driver = Driver(HANDOFF)
    (run,) = driver.start(issue())
    decisions = driver.end(run.run_id)
    delays = []

    for _ in range(5):
        (question,) = only(decisions, do.Transition)
        assert isinstance(question, do.Transition)
        unavailable = TrackerErrorKind.UNAVAILABLE
        answer = ev.TransitionAnswered(issue().id, question.token, unavailable, "500")
        decisions = driver.tell(answer)
        assert starts(decisions) == []
        for retry in only(decisions, rec.RecordRetry):
            assert isinstance(retry, rec.RecordRetry)
            delays.append(retry.delay)
            decisions = driver.pass_time(retry.delay)

    held = claim_of(driver)
    assert delays == [10, 20, 40, 80]
    assert isinstance(held, Held)
    assert held.reason is HoldReason.HANDOFF_FAILED


@pytest.mark.parametrize("kind", [TrackerErrorKind.NOT_FOUND, TrackerErrorKind.PERMISSION])
def test_a_hopeless_handoff_is_held_at_once(kind: TrackerErrorKind) -> None:
    """Where trying again cannot help, the issue is held after the first try."""
    driver = Driver(HANDOFF)
    (run,) = driver.start(issue())
    (question,) = only(driver.end(run.run_id), do.Transition)
    assert isinstance(question, do.Transition)

    driver.tell(ev.TransitionAnswered(issue().id, question.token, kind, "no"))

    assert isinstance(claim_of(driver), Held)


def test_a_handoff_overtaken_by_a_person_is_given_up() -> None:
    """When someone moved the issue meanwhile, their word counts."""
    driver = Driver(HANDOFF)
    (run,) = driver.start(issue())
    (question,) = only(driver.end(run.run_id), do.Transition)
    assert isinstance(question, do.Transition)

    answer = ev.TransitionAnswered(
        issue().id, question.token, TrackerErrorKind.CONFLICT, "it was moved"
    )
    decisions = driver.tell(answer)

    assert decisions == [
        rec.ForgetRetry(issue_id=issue().id),
        do.WaitOver(issue(), "it was moved"),
    ]
    assert claim_of(driver) is None


@pytest.mark.parametrize(
    ("policy", "end", "reason"),
    [
        (HANDOFF, Finished(finish=Finish.BLOCKED), HoldReason.AGENT_BLOCKED),
        (POLICY, Finished(finish=Finish.REVIEW), HoldReason.AGENT_BLOCKED),
        (
            HANDOFF,
            Failed(kind=ErrorKind.AGENT_NOT_FOUND, message="no kiro-cli"),
            HoldReason.AGENT_NOT_FOUND,
        ),
        (
            HANDOFF,
            Failed(kind=ErrorKind.INVALID_WORKSPACE_CWD, message="gone"),
            HoldReason.INVALID_WORKSPACE_CWD,
        ),
    ],
)
def test_ends_that_only_a_person_can_mend_are_held(
    policy: Policy, end: Finished | Failed, reason: HoldReason
) -> None:
    """Such an end is held at once and not retried."""
    driver = Driver(policy)
    (run,) = driver.start(issue())

    decisions = driver.end(run.run_id, end)
    later = driver.pass_time(4000)

    held = claim_of(driver)
    assert isinstance(held, Held)
    assert held.reason is reason
    assert only(decisions, rec.RecordRetry) == []
    assert starts(later) == []


@pytest.mark.parametrize(
    ("finish", "kinds"),
    [
        (Finish.GONE, []),
        (Finish.UNREADABLE, [WaitKind.CONTINUATION]),
        (Finish.REVIEW, [WaitKind.HANDOFF]),
        (Finish.TURNS_USED, [WaitKind.HANDOFF]),
        (Finish.LEFT_ACTIVE, [WaitKind.CONTINUATION]),  # it came back meanwhile
    ],
)
def test_each_finish_has_its_consequence(finish: Finish, kinds: list[WaitKind]) -> None:
    """What an active issue waits for after a good run depends on how the run finished."""
    driver = Driver(HANDOFF)
    (run,) = driver.start(issue())

    decisions = driver.end(run.run_id, Finished(finish=finish))

    assert [r.kind for r in decisions if isinstance(r, rec.RecordRetry)] == kinds


def test_the_session_budget_holds_the_issue() -> None:
    """After max_sessions runs in which a turn started, the issue is held; a raised limit ends
    the hold and the count begins anew."""
    driver = Driver(replace(POLICY, max_sessions=2))
    (run,) = driver.start(issue())
    driver.tell(ev.TurnStarted(run.run_id, 1))
    driver.tell(ev.TurnStarted(run.run_id, 2))
    driver.end(run.run_id)
    (run,) = starts(driver.pass_time(1))
    driver.tell(ev.TurnStarted(run.run_id, 1))
    driver.end(run.run_id)
    held = claim_of(driver)

    resumed = driver.tell(ev.PolicyChanged(replace(POLICY, max_sessions=3)))
    resumed += driver.pass_time()

    assert isinstance(held, Held)
    assert held.reason is HoldReason.SESSION_BUDGET_EXHAUSTED
    assert rec.ResetSessions(issue_id=issue().id) in resumed
    assert len(starts(resumed)) == 1


def test_a_run_without_a_turn_costs_no_session() -> None:
    """Runs that fail before their first turn do not count against the budget."""
    driver = Driver(replace(POLICY, max_sessions=1))
    (run,) = driver.start(issue())

    driver.end(run.run_id, Failed(kind=ErrorKind.HOOK_FAILED, message="no"))
    again = driver.pass_time(10)

    assert len(starts(again)) == 1


@pytest.mark.parametrize(
    ("state", "reason", "cleans"),
    [
        ("Done", StopReason.TERMINAL, True),
        ("Review", StopReason.INACTIVE, False),
    ],
)
def test_an_issue_that_left_its_active_states_is_stopped(
    state: str, reason: StopReason, cleans: bool
) -> None:
    """A terminal issue's run is stopped and its workspace removed; else it is kept."""
    driver = Driver()
    (run,) = driver.start(issue())
    known = KnownWorkspace(issue_id=issue().id, identifier="A", host="local", path="/w/A")
    driver.tell(ev.WorkspaceMade(run.run_id, known))
    driver.put(issue(state=state))

    decisions = driver.pass_time(30)
    stopping = claim_of(driver)
    ended = driver.end(run.run_id, Stopped())

    assert only(decisions, do.StopWorker) == [do.StopWorker(run.run_id, issue(state=state), reason)]
    assert isinstance(stopping, Stopping)
    assert [d.workspaces for d in ended if isinstance(d, do.CleanWorkspace)] == (
        [(known,)] if cleans else []
    )
    (exit_,) = only(ended, rec.RecordExit)
    assert isinstance(exit_, rec.RecordExit)
    assert (exit_.status, exit_.error_kind) == (RunStatus.CANCELLED, ErrorKind.TURN_CANCELLED)


def test_a_missing_issue_counts_only_after_two_reads() -> None:
    """One read that misses an issue proves nothing; the second, 5 s later, does."""
    driver = Driver()
    (run,) = driver.start(issue())
    driver.tracker.clear()

    first = driver.pass_time(30)
    second = driver.pass_time(5)

    assert only(first, do.StopWorker) == []
    assert only(second, do.StopWorker) == [do.StopWorker(run.run_id, issue(), StopReason.MISSING)]


def test_two_quick_reads_that_miss_an_issue_are_as_good_as_one() -> None:
    """A tracker that loses an issue for a moment stops no run."""
    driver = Driver()
    driver.start(issue())
    driver.tracker.clear()
    driver.pass_time(30)
    driver.now += 1

    quick = driver.settle(driver.tell(ev.RefreshRequested()))

    assert only(quick, do.StopWorker) == []


def test_the_answer_to_an_earlier_handoff_counts_for_nothing() -> None:
    """Only the answer to the handoff that is under way decides about it."""
    driver = Driver(HANDOFF)
    (run,) = driver.start(issue())
    (question,) = only(driver.end(run.run_id), do.Transition)
    assert isinstance(question, do.Transition)

    stale = driver.tell(ev.TransitionAnswered(issue().id, question.token - 1))

    assert stale == []
    assert isinstance(claim_of(driver), HandingOff)


def test_a_failed_clean_up_is_tried_again() -> None:
    """A workspace that could not be removed is tried again later, and shown."""
    driver = Driver()
    known = KnownWorkspace(issue_id=issue().id, identifier="A", host="local", path="/w/A")
    driver = Driver(memory=Memory(workspaces=(known,)))
    driver.put(issue(state="Done"))

    first = driver.pass_time()
    driver.tell(ev.WorkspaceCleaned(issue().id, (), "directory not empty"))
    shown = claim_of(driver)
    again = driver.pass_time(10)
    done = driver.tell(ev.WorkspaceCleaned(issue().id, (known,)))

    assert len(only(first, do.CleanWorkspace)) == len(only(again, do.CleanWorkspace)) == 1
    assert isinstance(shown, Cleaning)
    assert shown.error == "directory not empty"
    assert done == [rec.ForgetWorkspace(issue_id=issue().id, host="local")]


def test_shutdown_stops_runs_and_keeps_their_attempt() -> None:
    """A drained run is recorded as interrupted and waits, due at once, with its attempt."""
    driver = Driver()
    (run,) = driver.start(issue())
    driver.end(run.run_id, PORT_EXIT)
    (run,) = starts(driver.pass_time(10))

    stopped = driver.tell(ev.ShutdownRequested())
    before = driver.scheduler.drained
    ended = driver.end(run.run_id, Stopped())

    (exit_,) = only(ended, rec.RecordExit)
    (retry,) = only(ended, rec.RecordRetry)
    assert isinstance(exit_, rec.RecordExit)
    assert isinstance(retry, rec.RecordRetry)
    assert stopped == [do.StopWorker(run.run_id, issue(), StopReason.SHUTDOWN)]
    assert exit_.status is RunStatus.INTERRUPTED
    assert (retry.streak.failures, retry.delay, retry.trigger) == (1, 0, Trigger.INTERRUPTED)
    assert (before, driver.scheduler.drained) == (False, True)


def test_an_operators_stop_holds_until_retry_or_a_change_of_state() -> None:
    """An edit of the content does not end an operator's hold; `retry` does, with attempt 0."""
    driver = Driver()
    (run,) = driver.start(issue())
    driver.tell(ev.StopAsked(issue().id))
    driver.end(run.run_id, Stopped())
    driver.put(issue(description="edited"))

    edited = driver.pass_time(30)
    retried = driver.settle(driver.tell(ev.RetryAsked(issue().id)))

    assert only(edited, rec.ForgetHold) == []
    assert [s.streak for s in starts(retried)] == [Streak()]


def test_an_edit_of_the_content_ends_other_holds_but_a_comment_does_not() -> None:
    """What people write in comments, and Sortie itself, ends no hold; an edit does."""
    from sortie.model import Comment

    driver = Driver()
    (run,) = driver.start(issue())
    driver.end(run.run_id, Finished(finish=Finish.BLOCKED))
    driver.put(issue(comments=(Comment(author="x", body="?"),)))
    commented = driver.pass_time(30)
    driver.put(issue(description="now with details"))

    edited = driver.pass_time(30)

    assert only(commented, rec.ForgetHold) == []
    assert only(edited, rec.ForgetHold) == [rec.ForgetHold(issue_id=issue().id)]
    assert len(starts(edited)) == 1


def test_news_of_a_run_that_is_over_changes_nothing() -> None:
    """A late report of an earlier run is ignored."""
    driver = Driver()
    (run,) = driver.start(issue())
    driver.end(run.run_id, PORT_EXIT)
    before = claim_of(driver)

    late = driver.end(run.run_id, PORT_EXIT)

    assert late == []
    assert claim_of(driver) == before


def test_a_due_retry_whose_reread_fails_stays_due_without_a_storm() -> None:
    """It is asked for again at the pace of the polls, and its record stays."""
    driver = Driver()
    (run,) = driver.start(issue())
    driver.end(run.run_id, PORT_EXIT)
    driver.now += 10
    (question,) = only(driver.tell(ev.TimePassed()), do.Refresh)
    assert isinstance(question, do.Refresh)

    failed = driver.tell(ev.IssuesRefreshed(question.token, question.ids, (), question.ids, "down"))
    waiting = claim_of(driver)

    assert failed == []
    assert isinstance(waiting, Waiting)
    assert waiting.reason == "it could not be re-read: down"
    assert driver.scheduler.wakeup_at() > driver.now


def test_a_due_retry_without_a_slot_says_so() -> None:
    """It stays due, and the reason is shown."""
    driver = Driver(replace(POLICY, max_concurrent_agents=1))
    (run,) = driver.start(issue("a"), issue("b", priority=1))
    driver.end(run.run_id, PORT_EXIT)

    driver.pass_time(10)

    waiting = claim_of(driver, run.issue.id)
    assert isinstance(waiting, Waiting)
    assert waiting.reason == "no available orchestrator slots"


def test_a_handoff_survives_a_restart_without_another_run() -> None:
    """A recorded handoff is tried at the next start; the agent is not run for it."""
    due = HandingOff(issue=issue(), streak=Streak(), tries=1, token=None, due_at=0.0)
    driver = Driver(HANDOFF, Memory(claims=(due,)))
    driver.put(issue())

    decisions = driver.pass_time()

    assert len(only(decisions, do.Transition)) == 1
    assert starts(decisions) == []


def test_a_lowered_budget_holds_a_candidate_before_it_runs() -> None:
    """An issue that had its sessions already is held when it would be started."""
    driver = Driver(memory=Memory(sessions={issue().id: 2}))
    driver.tell(ev.PolicyChanged(replace(POLICY, max_sessions=2)))

    started = driver.start(issue())

    held = claim_of(driver)
    assert started == []
    assert isinstance(held, Held)
    assert held.detail == "it had 2 sessions, as many as agent.max_sessions allows"


def test_an_operator_may_stop_what_is_being_stopped() -> None:
    """The operator's word counts for what follows a stop that is under way."""
    driver = Driver()
    (run,) = driver.start(issue())
    driver.put(issue(state="Review"))
    driver.pass_time(30)

    driver.tell(ev.StopAsked(issue().id))
    driver.end(run.run_id, Stopped())

    held = claim_of(driver)
    assert isinstance(held, Held)
    assert held.reason is HoldReason.OPERATOR


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


def test_what_the_agent_wrote_last_does_not_end_the_hold_after_its_run() -> None:
    """The first read after a run is the baseline: only what changes after it ends the hold."""
    driver = Driver(replace(POLICY, max_sessions=1))
    (run,) = driver.start(issue())
    driver.tell(ev.TurnStarted(run.run_id, 1))
    driver.put(issue(description="[x] the agent ticked a box"))

    driver.end(run.run_id, PORT_EXIT)
    later = driver.pass_time(30)
    driver.put(issue(description="a person answers"))
    edited = driver.pass_time(30)

    assert only(later, rec.ForgetHold) == []
    assert only(edited, rec.ForgetHold) == [rec.ForgetHold(issue_id=issue().id)]


def test_a_miss_is_forgotten_when_a_waiting_handoff_is_found_again() -> None:
    """A tracker that loses an issue for a moment is not asked for it again and again."""
    due = HandingOff(issue=issue(), streak=Streak(), tries=1, token=None, due_at=300.0)
    driver = Driver(HANDOFF, Memory(claims=(due,)))
    driver.pass_time()
    driver.put(issue())

    driver.pass_time(5)

    assert driver.scheduler.wakeup_at() > driver.now


def test_a_clean_up_that_cannot_be_done_keeps_nobody_from_being_idle() -> None:
    """It is tried again and listed, and the daemon may leave."""
    known = KnownWorkspace(issue_id=issue().id, identifier="A", host="local", path="/w/A")
    driver = Driver(memory=Memory(workspaces=(known,)))
    driver.put(issue(state="Done"))
    driver.pass_time()
    driver.tell(ev.WorkspaceCleaned(issue().id, (), "a shell lives in it"))

    driver.settle(driver.tell(ev.RefreshRequested()))
    driver.settle(driver.tell(ev.RefreshRequested()))

    assert driver.scheduler.idle_polls == 2


def test_known_workspaces_are_looked_at_again_after_a_failed_look() -> None:
    """A tracker that is down at the start costs no hour."""
    known = KnownWorkspace(issue_id=issue().id, identifier="A", host="local", path="/w/A")
    driver = Driver(memory=Memory(workspaces=(known,)))
    driver.put(issue(state="Done"))
    (question,) = only(driver.tell(ev.TimePassed()), do.Refresh)
    assert isinstance(question, do.Refresh)
    driver.tell(ev.IssuesRefreshed(question.token, question.ids, (), question.ids, "down"))

    again = driver.pass_time(30)

    assert len(only(again, do.CleanWorkspace)) == 1
