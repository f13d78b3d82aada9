"""What decides is a function of the state and the event, and a picture of the state is whole."""

from __future__ import annotations

from uuid import UUID

from sortie.model import IssueId
from sortie.scheduler import Policy, RunIds
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.checkpoint import checkpoint_of, state_of
from sortie.scheduler.state import SchedulerState
from tests.scheduler.driver import POLICY, Driver, issue

NAMES = [f"a{n}" for n in range(40)]


def state(policy: Policy = POLICY) -> SchedulerState:
    ids = RunIds(UUID(int=0))
    return SchedulerState(
        policy=policy,
        new_run_id=ids,
        epoch=0.0,
        poll_at=0.0,
        reconcile_at=0.0,
        check_workspaces_at=0.0,
    )


def test_rules_are_forgotten_in_the_order_in_which_they_were_chosen() -> None:
    """The order of records is no accident of a set: another process decides in the same one."""
    subject = state()
    subject.rules = {IssueId(name): "docs" for name in NAMES}

    subject.forget_rules()

    assert subject.out == [rec.ForgetRule(issue_id=IssueId(name)) for name in NAMES]


def test_what_is_pictured_does_not_change_with_the_scheduler() -> None:
    """A checkpoint is of its moment, also where it is looked at later."""
    driver = Driver()
    driver.start(*map(issue, NAMES))
    before = checkpoint_of(driver.scheduler._state)
    again = checkpoint_of(driver.scheduler._state)
    for claim in list(driver.scheduler.snapshot(0.0).worked):
        driver.end(claim.run_id)
    driver.pass_time(100)

    assert before == again
    assert checkpoint_of(driver.scheduler._state) != before
    assert checkpoint_of(state_of(before)) == again


def test_the_order_of_the_indexes_is_kept() -> None:
    """Runs are listed by their last change, also in the restored scheduler."""
    driver = Driver()
    started = driver.start(*map(issue, "abc"))
    for start in reversed(started):
        driver.tell(ev.TurnStarted(start.run_id, 1))
    picture = checkpoint_of(driver.scheduler._state)

    assert [*picture.order.runs] == [start.run_id for start in reversed(started)]
    assert checkpoint_of(state_of(picture)).order == picture.order
