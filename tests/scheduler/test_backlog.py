"""What the last poll found and nothing is done about."""

from __future__ import annotations

from dataclasses import replace

from sortie.model import Blocker
from sortie.scheduler import Backlog
from sortie.scheduler import events as ev
from sortie.scheduler.backlog import Kept
from sortie.scheduler.rules import NO_SLOT
from tests.scheduler.driver import POLICY, Driver, issue


def backlog_of(driver: Driver, shown: int) -> Backlog:
    return driver.scheduler.backlog(driver.scheduler.snapshot(driver.now), shown)


ONE_AT_A_TIME = replace(POLICY, max_concurrent_agents=1)
BLOCKED = (Blocker(identifier="Z"),)


def test_what_waits_for_room_and_what_waits_for_a_change_are_told_apart() -> None:
    """Each has its reason, the next to be served stands first; what is claimed is in neither."""
    driver = Driver(ONE_AT_A_TIME)
    first, second, third = issue("a", priority=1), issue("b"), issue("c", priority=2)
    blocked = issue("d", blocked_by=BLOCKED)

    driver.start(first, second, third, blocked)

    assert backlog_of(driver, 5) == Backlog(
        queued=2,
        blocked=1,
        first_queued=(Kept(third, NO_SLOT), Kept(second, NO_SLOT)),
        first_blocked=(Kept(blocked, "it is blocked by Z (state unknown)"),),
    )


def test_all_are_counted_and_the_first_are_shown() -> None:
    """However many issues there are, the answer is short."""
    driver = Driver(ONE_AT_A_TIME)
    driver.start(
        *(issue(f"a{n}") for n in range(9)),
        *(issue(f"b{n}", blocked_by=BLOCKED) for n in range(7)),
    )

    backlog = backlog_of(driver, 3)

    assert (backlog.queued, backlog.blocked) == (8, 7)
    assert [kept.issue.id for kept in backlog.first_queued] == ["a1", "a2", "a3"]
    assert [kept.issue.id for kept in backlog.first_blocked] == ["b0", "b1", "b2"]


def test_a_pause_is_the_reason_of_all() -> None:
    """What keeps every issue back is said of each."""
    driver = Driver()
    driver.tell(ev.PauseAsked(True))
    driver.start(issue("a"))

    (kept,) = backlog_of(driver, 5).first_queued

    assert kept.reason == "dispatch is paused"
