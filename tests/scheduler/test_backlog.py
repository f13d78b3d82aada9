"""What the last poll found and nothing is done about."""

from __future__ import annotations

from msgspec.structs import replace

from sortie.model import Blocker
from sortie.scheduler import Backlog
from sortie.scheduler.snapshot import BacklogIssue
from sortie.scheduler.timing import NO_SLOT
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
        first_queued=(BacklogIssue(third, NO_SLOT), BacklogIssue(second, NO_SLOT)),
        first_blocked=(BacklogIssue(blocked, "it is blocked by Z (state unknown)"),),
    )
