"""Watching pull requests: when it ends."""

from __future__ import annotations

from msgspec.structs import replace

from sortie.config.reactions import ChecksReaction, ReactionsSettings
from sortie.model import Issue
from sortie.scheduler import Decision
from sortie.scheduler.decisions import LookAtPullRequests
from sortie.scheduler.memory import Memory
from sortie.scheduler.pull_request_events import PullRequestsSeen
from sortie.telemetry import facts
from tests.scheduler.driver import EPOCH, POLICY, Driver, only
from tests.scheduler.test_watch_standing import watched

DAY = 86_400.0


def failed_look(driver: Driver, asked: Issue) -> list[Decision]:
    """Have the next look fail, and return what follows."""
    (look,) = only(driver.pass_time(), LookAtPullRequests)
    assert isinstance(look, LookAtPullRequests)
    ids = frozenset({asked.id})
    return driver.tell(PullRequestsSeen(look.token, ids, {}, error="no such repository"))


def test_one_that_cannot_be_looked_at_is_not_watched_for_ever() -> None:
    """As where its repository is gone: it ends with its days, and not before."""
    settings = ReactionsSettings(checks=ChecksReaction(), watch_days=14)
    policy = replace(POLICY, reactions=settings, handoff_state="review")
    ended = []
    for days in (13, 15):
        one = watched("one", since=EPOCH - days * DAY)
        handed_off = replace(one.issue, state="Review")
        driver = Driver(policy, Memory(watches=((handed_off, one.watch),)))
        driver.put(handed_off)
        told = only(failed_look(driver, one.issue), facts.WatchEnded)
        ended.append([fact.result for fact in told if isinstance(fact, facts.WatchEnded)])

    assert ended == [[], ["expired"]]
