"""What it costs to watch many pull requests for an hour, with webhooks and without."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sortie.config.reactions import ChecksReaction, ReactionsSettings, ReviewReaction
from sortie.forges import Forge
from sortie.forges.remembered import SETTLING
from sortie.model import IssueId, PullRequest
from sortie.model.watches import Watch
from sortie.model.webhooks import Mention, Part, place_key
from sortie.scheduler import Decision, Memory, RunIds, Scheduler
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler.webhook_scope import WebhookScope
from tests.forges.rig import Rig
from tests.forges.service import PATH
from tests.forges.test_costs import branches
from tests.scheduler.driver import EPOCH, POLICY, issue

HOUR = 3600.0
WATCHED = 200
REACTIONS = ReactionsSettings(checks=ChecksReaction(), review=ReviewReaction())


class Watcher:
    """A scheduler that watches pull requests at a test server; its tracker has nothing."""

    def __init__(
        self, rig: Rig, forge: Forge, requests: list[PullRequest], *, hooked: bool
    ) -> None:
        place = place_key(PATH)
        scope = WebhookScope(forge=rig.kind, repository=place) if hooked else WebhookScope()
        policy = replace(POLICY, reactions=REACTIONS, handoff_state="Review", webhooks=scope)
        watches = [
            (issue(f"i{one.number}", "Review"), Watch(pull_request=one, since=EPOCH))
            for one in requests
        ]
        self._rig, self._forge, self._place = rig, forge, place
        self.scheduler = Scheduler(
            policy,
            now=trio.current_time(),
            new_run_id=RunIds(UUID(int=1)),
            memory=Memory(watches=tuple(watches)),
            epoch=EPOCH - trio.current_time(),
        )

    async def tell(self, event: ev.Event) -> None:
        """Tell of something, and have done what follows."""
        todo: list[Decision] = self.scheduler.handle(event, trio.current_time())
        while todo:
            answer = await self._answer(todo.pop(0))
            if answer is not None:
                todo += self.scheduler.handle(answer, trio.current_time())

    async def _answer(self, decision: Decision) -> ev.Event | None:
        match decision:
            case do.Poll():
                return ev.CandidatesFetched(())
            case do.LookAtPullRequests(token, asked, _, named, told):
                parts = {asked[issue_id].id: part for issue_id, part in named.items()}
                found = await self._forge.look(tuple(asked.values()), changed=parts, told=told)
                seen = {issue_id: found[one.id] for issue_id, one in asked.items()}
                return ev.PullRequestsSeen(token, frozenset(asked), seen)
            case _:
                return None

    async def deliver(self, number: int, part: Part = "all") -> None:
        """Tell what a service tells of a change."""
        mention = Mention(places=(self._place,), numbers=(number,), part=part)
        await self.tell(ev.DeliveriesSeen(self._rig.kind, (mention,), waited=1.0))

    async def work(self, clock: MockClock, until: float) -> None:
        """Do what is due until a time."""
        while (due := self.scheduler.wakeup_at()) <= until:
            clock.jump(max(0.0, due - trio.current_time()))
            await self.tell(ev.TimePassed())
        clock.jump(until - trio.current_time())


async def requests_an_hour(
    rig: Rig, clock: MockClock, change: str, changes: int, *, hooked: bool, hours: int = 24
) -> float:
    """Return the requests of an hour, on average, in which so many pull requests change."""
    names = branches(rig, WATCHED, alike=True)
    async with rig.opened() as forge:
        requests = [await rig.open_one(forge, name) for name in names]
        rig.service.set_check(names[0], "test", "success")
        watcher = Watcher(rig, forge, requests, hooked=hooked)
        await watcher.tell(ev.TimePassed())
        if hooked:
            await watcher.deliver(requests[0].number)
        await watcher.work(clock, trio.current_time() + 2 * SETTLING)
        asked = len(rig.server.asked)
        for turn in range(hours * changes):
            number = requests[turn * 7 % WATCHED].number
            part = CHANGES[change](rig, number, turn)
            if hooked:
                await watcher.deliver(number, part)
            await watcher.work(clock, trio.current_time() + HOUR / changes)
        shown = watcher.scheduler.snapshot(trio.current_time()).watched
    assert len(shown) == WATCHED
    assert {IssueId(f"i{one.number}") for one in requests} == {one.issue.id for one in shown}
    return (len(rig.server.asked) - asked) / hours


def _comment(rig: Rig, number: int, turn: int) -> Part:
    rig.service.add_comment(number, "ann", f"Hello {turn}")
    return "talk"


def _review(rig: Rig, number: int, turn: int) -> Part:
    rig.service.review(number, f"ann{turn}", "approved")
    return "talk"


def _check(rig: Rig, number: int, turn: int) -> Part:
    branch = rig.service.request(number).branch
    rig.service.set_check(branch, f"test {turn % 5}", "success")
    return "checks"


def _mixed(rig: Rig, number: int, turn: int) -> Part:
    return (_comment, _check, _comment, _review)[turn % 4](rig, number, turn)


CHANGES: dict[str, Callable[[Rig, int, int], Part]] = {
    "comments": _comment,
    "reviews": _review,
    "checks": _check,
    "all": _mixed,
}


@pytest.mark.full
@pytest.mark.parametrize("kind", ["github", "gitlab", "gitea"])
@pytest.mark.parametrize("changes", [5, 20])
async def test_two_hundred_cost_less_than_fifty_requests_an_hour(
    request: pytest.FixtureRequest, mock_clock: MockClock, kind: str, changes: int
) -> None:
    """While deliveries come, over a day in which each is read whole now and then."""
    rig: Rig = request.getfixturevalue(kind)

    assert await requests_an_hour(rig, mock_clock, "comments", changes, hooked=True) < 50
