"""What the gates say of an issue that has a claim."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args, get_type_hints

import pytest

from sortie.model import (
    ErrorKind,
    Failed,
    HoldReason,
    KnownWorkspace,
    Stopped,
    Streak,
    Trigger,
    WaitKind,
)
from sortie.scheduler import Explanation, Memory, Snapshot
from sortie.scheduler import events as ev
from sortie.scheduler.claims import HandingOff, Held, Waiting
from sortie.scheduler.explanation import Standing
from sortie.web.issue import ExplanationView
from tests.scheduler.driver import Driver, issue

HELD = Held(issue=issue(), reason=HoldReason.OPERATOR, detail="an operator stopped it", since=0.0)
WAITING = Waiting(
    issue=issue(),
    kind=WaitKind.RETRY,
    trigger=Trigger.ERROR,
    streak=Streak(failures=1),
    due_at=60.0,
)
HANDING = HandingOff(issue=issue(), streak=Streak(), tries=1, token=None, due_at=60.0)


def claim_verdict(driver: Driver) -> str | None:
    (verdict,) = [v for v in driver.scheduler.explain(issue(), driver.now) if v.gate == "claim"]
    return verdict.reason


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (HELD, "it is held (operator): an operator stopped it"),
        (WAITING, "it waits for its retry (after error)"),
        (HANDING, "it is being handed off"),
    ],
)
def test_a_remembered_claim_closes_its_gate(
    claim: Held | Waiting | HandingOff, reason: str
) -> None:
    """Whatever an earlier life left is named as what keeps the issue from a run."""
    driver = Driver(memory=Memory(claims=(claim,)))

    assert claim_verdict(driver) == reason


def test_the_claim_gate_follows_an_issue_from_choice_to_clean_up() -> None:
    """Each claim on the way is named; an unclaimed issue's gate is open."""
    driver = Driver()
    driver.put(issue())
    seen = [claim_verdict(driver)]

    driver.tell(ev.TimePassed())
    chosen = driver.tell(ev.CandidatesFetched((issue(),)))
    seen.append(claim_verdict(driver))
    driver.settle(chosen)
    (run,) = driver.scheduler.snapshot(0.0).worked
    seen.append(claim_verdict(driver))
    known = KnownWorkspace(issue_id=issue().id, identifier="A", host="local", path="/w/A")
    driver.tell(ev.WorkspaceMade(run.run_id, known))
    driver.put(issue(state="Done"))
    driver.pass_time(30)
    driver.end(run.run_id, Stopped())
    seen.append(claim_verdict(driver))

    assert seen == [
        None,
        "it was chosen and is being re-read",
        f"it runs ({run.run_id})",
        "its workspace is being removed",
    ]


def test_a_snapshot_sorts_the_claims() -> None:
    """Runs, waits and holds are told apart, and the free slots follow from the claims."""
    memory = Memory(claims=(HELD, replace(WAITING, issue=issue("b"))), paused=True)
    driver = Driver(memory=memory)

    snapshot: Snapshot = driver.scheduler.snapshot(driver.now)

    assert [c.issue.id for c in snapshot.held] == ["a"]
    assert [c.issue.id for c in snapshot.waiting] == ["b"]
    assert (snapshot.worked, snapshot.cleaning) == ((), ())
    assert (snapshot.status, snapshot.free) == ("paused", 10)


def test_a_first_reread_of_a_run_that_finds_its_issue_again_forgets_the_miss() -> None:
    """A run whose issue was missed once and is there again goes on."""
    driver = Driver()
    driver.start(issue())
    driver.tracker.clear()
    driver.pass_time(30)
    driver.put(issue())

    driver.pass_time(5)

    (run,) = driver.scheduler.snapshot(driver.now).worked
    assert run.missing_since is None


def test_a_wait_and_a_hold_end_with_their_issue() -> None:
    """What the tracker no longer knows, twice, is neither waited for nor held any more."""
    driver = Driver()
    runs = driver.start(issue("a"), issue("b"))
    driver.end(runs[0].run_id, Failed(kind=ErrorKind.PORT_EXIT, message="it broke"))
    driver.tell(ev.StopAsked(issue("b").id))
    driver.end(runs[1].run_id, Stopped())
    driver.tracker.clear()

    driver.settle(driver.tell(ev.RefreshRequested()))
    driver.pass_time(5)

    assert driver.scheduler.snapshot(driver.now).claims == {}


@pytest.mark.parametrize(
    ("trigger", "why"),
    [
        (Trigger.ERROR, "after a failure"),
        (Trigger.CONTINUATION, "after a run that ended well"),
        (Trigger.HANDOFF, "after a handoff"),
        (Trigger.STALL, "after a stall"),
        (Trigger.TIMEOUT, "after a turn that took too long"),
        (Trigger.INTERRUPTED, "as its run was interrupted"),
        (Trigger.OPERATOR, "as an operator asked"),
    ],
)
def test_a_wait_is_told_with_its_cause(trigger: Trigger, why: str) -> None:
    """Whatever an issue is tried again for is named in words."""
    waiting = replace(WAITING, trigger=trigger, streak=Streak())
    driver = Driver(memory=Memory(claims=(waiting,)))

    told = driver.scheduler.explain_issue("a", driver.now)

    assert isinstance(told, Explanation)
    assert told.detail == f"it waits for its retry, {why}"


def test_standings_are_the_words_of_the_api() -> None:
    """Each standing is one of the words that are promised to those who ask."""
    words = get_args(get_type_hints(ExplanationView)["standing"])

    assert [str(standing) for standing in Standing] == list(words)
