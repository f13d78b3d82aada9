"""Further runs for what has happened to a pull request."""

from __future__ import annotations

from msgspec.structs import replace

from sortie.config.reactions import ChecksReaction, ReactionsSettings
from sortie.model import LOCAL, Delivery, Finish, Stage
from sortie.model.pull_requests import PullRequestState
from sortie.model.watches import Watch
from sortie.scheduler import decisions as do
from sortie.scheduler import records as rec
from sortie.scheduler.memory import Memory
from sortie.scheduler.pull_request_events import PullRequestsSeen
from tests.scheduler.driver import EPOCH, POLICY, Driver, issue, only, starts
from tests.store.watches import CHECK, REQUEST


def test_an_agent_is_asked_although_a_delivery_was_left_half_done() -> None:
    """Its run was stopped, and what happened since is not answered by pushing what it had done."""
    one = issue(state="Review")
    left = Delivery(
        branch="sortie/a", base="main", host=LOCAL, stage=Stage.FINISHED, finish=Finish.DONE
    )
    watch = Watch(pull_request=REQUEST, since=EPOCH)
    policy = replace(
        POLICY, reactions=ReactionsSettings(checks=ChecksReaction()), handoff_state="review"
    )
    driver = Driver(policy, Memory(watches=((one, watch),), deliveries={one.id: left}))
    driver.put(one)
    (look,) = only(driver.pass_time(), do.LookAtPullRequests)
    assert isinstance(look, do.LookAtPullRequests)
    seen = PullRequestState(pull_request=REQUEST, checks=(CHECK,))

    decided = driver.settle(
        driver.tell(PullRequestsSeen(look.token, frozenset({one.id}), {one.id: seen}))
    )
    decided += driver.pass_time(1.0)

    (start,) = starts(decided)
    assert start.reaction is not None
    assert start.delivery is None
    assert rec.SettleDelivery(issue_id=one.id) in decided
