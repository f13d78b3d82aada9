"""A scheduler that shares a process starts what it was granted, and tells what it wants."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from sortie.model import RunId
from sortie.scheduler import Policy, Scheduler
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler.grants import SlotGrant, SlotUse
from tests.scheduler.driver import POLICY, Driver, issue

LOCAL = "local"


def granted(slots: int, **hosts: int) -> ev.SlotsGranted:
    """Return the news of a grant."""
    return ev.SlotsGranted(SlotGrant(number=1, slots=slots, total=8, hosts=hosts or {LOCAL: 8}))


def sharing(policy: Policy = POLICY) -> Driver:
    """Return a driver whose scheduler may start nothing yet, with five issues."""
    driver = Driver(replace(policy, max_concurrent_agents=4))
    driver.put(*map(issue, "abcde"))
    driver.settle(driver.tell(granted(0)))
    driver.settle(driver.tell(ev.TimePassed()))
    return driver


def starts(decisions: Sequence[object]) -> list[str]:
    """Return which issues are started."""
    return [d.issue.id for d in decisions if isinstance(d, do.StartWorker)]


def use(scheduler: Scheduler) -> SlotUse:
    """Return what is used and wanted, at the beginning."""
    return scheduler.slot_use(0.0)


def test_nothing_is_started_before_a_grant() -> None:
    """Without slots there are no runs; what could start, within the own limit, is told."""
    driver = sharing()

    assert use(driver.scheduler).used == 0
    assert (use(driver.scheduler).more, use(driver.scheduler).more_by_host) == (4, {LOCAL: 4})
    backlog = driver.scheduler.backlog(driver.scheduler.snapshot(0.0), 1)
    assert backlog.first_queued[0].reason == (
        "all 8 slots of this process are taken or kept for others; its share is 0"
    )


def test_a_grant_starts_runs_and_a_smaller_one_ends_none() -> None:
    """Slots are used at once; those that are taken away are given back as runs end."""
    driver = sharing()

    assert starts(driver.settle(driver.tell(granted(3)))) == ["a", "b", "c"]
    assert driver.scheduler.snapshot(0.0).free == 0
    decisions = driver.settle(driver.tell(granted(1)))

    assert not any(isinstance(d, do.StopWorker | do.StartWorker | do.Poll) for d in decisions)
    assert (use(driver.scheduler).used, use(driver.scheduler).more) == (3, 1)


def test_a_choice_beyond_a_smaller_grant_is_put_back() -> None:
    """An issue that is being re-read counts, and does not start when its slot is gone."""
    driver = sharing()
    chosen = driver.tell(granted(2))
    assert use(driver.scheduler).used == 2

    driver.tell(granted(0))

    assert starts(driver.settle(chosen)) == []
    assert use(driver.scheduler).used == 0


def test_a_host_has_a_share_of_its_own() -> None:
    """No more runs are on a host than were granted there, and none on a host without a grant."""
    driver = sharing(replace(POLICY, hosts=("east", "west", "north")))
    assert use(driver.scheduler).more_by_host == {"east": 4, "west": 4, "north": 4}

    driver.settle(driver.tell(granted(4, east=1, west=2)))

    assert driver.scheduler.snapshot(0.0).by_host == {"east": 1, "west": 2}
    (reason,) = {
        verdict.reason
        for verdict in driver.scheduler.explain(issue("e"), 0.0)
        if verdict.gate == "host slot"
    }
    assert reason is not None
    assert "north has 0 runs of this workflow, whose share there is 0" in reason


def test_nothing_is_wanted_that_could_not_start() -> None:
    """Slots are not asked for by a workflow that is paused or stops."""
    driver = sharing()
    driver.settle(driver.tell(ev.PauseAsked(True, 1)))
    assert use(driver.scheduler).more == 0

    driver.settle(driver.tell(ev.PauseAsked(False, 2)))
    assert use(driver.scheduler).more == 4
    driver.settle(driver.tell(ev.ShutdownRequested()))
    assert use(driver.scheduler).more == 0


def test_a_usage_limit_wants_one_slot_to_try() -> None:
    """While a limit is in force nothing is wanted, and then one run that tries it."""
    driver = sharing()
    limit = ev.UsageLimitMet(RunId("of another"), POLICY.account, "no more")
    driver.settle(driver.tell(limit))
    assert use(driver.scheduler).more == 0

    driver.settle(driver.tell(ev.UsageLimitPassed(POLICY.account)))
    assert use(driver.scheduler).more == 1
