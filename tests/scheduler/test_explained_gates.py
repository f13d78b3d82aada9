"""Why a candidate does not run, and how long it has to wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sortie.model import Blocker
from sortie.scheduler import Explanation, Policy
from sortie.scheduler import events as ev
from tests.scheduler import standings as at
from tests.scheduler.driver import POLICY, issue
from tests.scheduler.lives import Lives


def explained(driver: Lives, name: str = "a") -> Explanation:
    explanation = driver.scheduler.explain_issue(name, driver.now)
    assert isinstance(explanation, Explanation)
    return explanation


LIMITED = replace(POLICY, max_concurrent_agents=1)
CLOSED: list[tuple[Policy, dict[str, object], list[ev.Event], str, str, str]] = [
    (POLICY, {"title": ""}, [], "complete", "it has no title", "poll"),
    (
        POLICY,
        {"state": "Elsewhere"},
        [],
        "state",
        "its state Elsewhere is not active",
        "poll",
    ),
    (
        replace(POLICY, required_labels=frozenset({"ready"})),
        {},
        [],
        "labels",
        "it lacks the label ready",
        "poll",
    ),
    (
        POLICY,
        {"blocked_by": (Blocker(identifier="B-1"),)},
        [],
        "blockers",
        "it is blocked by B-1 (state unknown)",
        "poll",
    ),
    (POLICY, {}, [ev.PauseAsked(True)], "dispatch", "dispatch is paused", "queue"),
    (
        POLICY,
        {},
        [ev.StoreChanged("the disk is full")],
        "dispatch",
        "the disk is full",
        "queue",
    ),
    (POLICY, {}, [ev.ShutdownRequested()], "dispatch", "the daemon is stopping", "queue"),
    (LIMITED, {}, [], "slot", "no available orchestrator slots", "queue"),
    (
        replace(POLICY, max_by_state={"todo": 1}),
        {},
        [],
        "state slot",
        "no available orchestrator slots for state todo",
        "queue",
    ),
    (
        replace(POLICY, max_by_state={"doing": 1}, in_progress_state="Doing"),
        {},
        [],
        "state slot",
        "no available orchestrator slots for state doing",
        "queue",
    ),
    (
        replace(POLICY, hosts=("north",), max_per_host=1),
        {},
        [],
        "host slot",
        "no host is free (north has 1 of 1 runs)",
        "queue",
    ),
]


@pytest.mark.parametrize(("policy", "fields", "events", "gate", "reason", "waits"), CLOSED)
def test_a_candidate_behind_a_closed_gate_is_told_which(
    policy: Policy,
    fields: dict[str, object],
    events: list[ev.Event],
    gate: str,
    reason: str,
    waits: str,
) -> None:
    """The first closed gate gives the reason; what only an edit opens is told from what time
    does, and there the place in the queue is told too."""
    driver = Lives(policy)
    driver.start(issue("r"))
    for event in events:
        driver.tell(event)
    candidate = replace(issue(), **fields)  # type: ignore[arg-type]
    driver.tell(ev.CandidatesFetched((candidate, issue("b"))))

    told = explained(driver)

    closed = [v for v in told.gates if v.reason is not None]
    assert (closed[0].gate, closed[0].reason) == (gate, reason)
    assert told.next_at is None
    assert told.next_step == (
        f"a poll must find that this has changed: {reason}"
        if waits == "poll"
        else f"{reason}; it is the first of 2 in the queue"
    )


def test_the_place_in_the_queue_counts_what_comes_before() -> None:
    """Priority, then age, as the dispatch has it."""
    driver = Lives()
    driver.tell(ev.PauseAsked(True))
    driver.start(issue("b", priority=2), issue("a"), issue("c", priority=1))

    places = {name: explained(driver, name).next_step for name in "abc"}

    assert places == {
        "a": "dispatch is paused; 2 come before it of 3 in the queue",
        "b": "dispatch is paused; 1 come before it of 3 in the queue",
        "c": "dispatch is paused; it is the first of 3 in the queue",
    }


def test_an_unread_wait_says_so() -> None:
    """A due retry whose re-read failed says when it is asked for again, and why."""
    driver = at.rechecking_again()
    token = driver.scheduler._state.token
    asked = frozenset({issue().id})
    driver.tell(ev.IssuesRefreshed(token, asked, (), asked, "the tracker is down"))

    told = explained(driver)

    assert told.next_at == driver.now + POLICY.poll_interval
    assert told.next_step == "it could not be re-read: the tracker is down"


def test_what_is_not_known_is_explained_by_what_was_looked_at() -> None:
    """The number of candidates, and whether the last poll can be trusted."""
    driver = at.candidate()
    good = driver.scheduler.explain_issue("nothing", driver.now)
    driver.now += 30
    driver.tell(ev.TimePassed())
    driver.tell(ev.PollFailed("the tracker is down"))
    bad = driver.scheduler.explain_issue("nothing", driver.now)

    known = "nothing neither runs, waits nor is held, and is not among the 1 issues in an active"
    assert good == (
        f"{known} state that the last poll found; look at its spelling, and in the tracker at its"
        " state"
    )
    assert bad == (
        f"{known} state that the last poll found (the last poll failed: the tracker is down); look"
        " at its spelling, and in the tracker at its state"
    )


def test_an_explanation_changes_nothing() -> None:
    """Asking how things stand leaves them as they are."""
    driver = at.due()
    before = driver.scheduler.snapshot(driver.now)

    for name in ("a", "A", "b"):
        driver.scheduler.explain_issue(name, driver.now)

    assert driver.scheduler.snapshot(driver.now) == before
    assert driver.tell(ev.StoreChanged(None)) == []
