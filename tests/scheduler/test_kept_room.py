"""The room that is kept for an issue that was chosen, until its re-read is answered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sortie.model import Blocker, ErrorKind, Failed, Issue
from sortie.scheduler import Decision, Policy
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from tests.scheduler.driver import POLICY, Driver, issue, only, starts

ROOMS = {
    "in all": replace(POLICY, max_concurrent_agents=2),
    "in its state": replace(POLICY, max_by_state={"todo": 2}),
    "in the state it will be moved to": replace(
        POLICY, in_progress_state="Doing", max_by_state={"doing": 2}
    ),
    "on its host": replace(POLICY, hosts=("north", "south"), max_per_host=1),
}
ONE = replace(POLICY, max_concurrent_agents=1)
BLOCKED = (Blocker(identifier="B-1", state="Todo"),)


@pytest.mark.parametrize("policy", ROOMS.values(), ids=ROOMS)
def test_what_was_chosen_keeps_its_room_until_it_is_read(policy: Policy) -> None:
    """No limit has room for a third issue while two are being re-read that will use it up, so the
    tracker is not asked in vain."""
    driver = Driver(policy)
    driver.tell(ev.TimePassed())

    chosen = driver.tell(ev.CandidatesFetched((issue("a"), issue("b"), issue("c"))))
    again = driver.tell(ev.PolicyChanged(policy))

    assert asked(chosen) == [{"a", "b"}]
    assert asked(again) == []


@pytest.mark.parametrize(
    "now",
    [
        (),
        (issue("a", state="Done"),),
        (issue("a", state="Elsewhere"),),
        (issue("a", title=" "),),
        (issue("a", state="Doing"),),
    ],
    ids=["unknown", "terminal", "inactive", "incomplete", "in a full state"],
)
def test_room_that_a_fresh_issue_does_not_use_is_the_next_ones(now: tuple[Issue, ...]) -> None:
    """Whatever keeps a chosen issue from running, the next one is asked for in the same step and
    not only after another poll."""
    driver = Driver(replace(ONE, max_by_state={"doing": 0}))
    driver.tell(ev.TimePassed())
    driver.tell(ev.CandidatesFetched((issue("a"), issue("b"))))

    decisions = answer(driver, now)

    assert starts(decisions) == []
    assert asked(decisions) == [{"b"}]


@pytest.mark.parametrize(
    "now",
    [(), (issue("a", state="Done"),), (issue("a", blocked_by=BLOCKED),)],
    ids=["unknown", "terminal", "blocked"],
)
def test_room_that_a_retry_does_not_use_is_the_next_ones(now: tuple[Issue, ...]) -> None:
    """The same holds for an issue whose wait came due, also where it goes on waiting."""
    driver = Driver(ONE)
    (run,) = driver.start(issue("a"), issue("b"))
    driver.tell(ev.PauseAsked(True))
    driver.end(run.run_id, Failed(kind=ErrorKind.PORT_EXIT, message="it broke"))
    driver.pass_time(10)
    (question,) = asked(driver.tell(ev.PauseAsked(False)))

    decisions = answer(driver, now)

    assert question == {"a"}
    assert starts(decisions) == []
    assert asked(decisions) == [{"b"}]


def answer(driver: Driver, found: tuple[Issue, ...]) -> list[Decision]:
    """Answer the re-read of the one chosen issue."""
    token = driver.scheduler._state.token
    return driver.tell(ev.IssuesRefreshed(token, frozenset({issue("a").id}), found))


def asked(decisions: list[Decision]) -> list[frozenset[str]]:
    """Return the ids of each re-read that was asked for."""
    return [frozenset(q.ids) for q in only(decisions, do.Refresh) if isinstance(q, do.Refresh)]
