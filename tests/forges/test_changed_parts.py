"""What is read again where a part of a pull request is known to have changed."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from sortie.forges import Forge
from sortie.forges.remembered import DAY, SETTLING, TOLD_LIFE
from sortie.model import PullRequest
from sortie.model.pull_requests import PullRequestState
from sortie.model.webhooks import Part
from tests.forges.rig import BRANCH, Rig


class Looking:
    """One pull request that is looked at, and what each look has asked for."""

    def __init__(self, rig: Rig, forge: Forge, request: PullRequest) -> None:
        self._rig, self._forge, self._request = rig, forge, request
        self.paths: list[str] = []

    async def look(self, part: Part | None = None) -> PullRequestState:
        """Look at it; webhooks tell of changes."""
        asked = len(self._rig.server.asked)
        changed: dict[str, Part] = {} if part is None else {self._request.id: part}
        found = await self._forge.look([self._request], changed=changed, told=True)
        self.paths = [one.path.rpartition("/")[2] for one in self._rig.server.asked[asked:]]
        return found[self._request.id]


async def looking(rig: Rig, forge: Forge, clock: MockClock) -> Looking:
    """Return one with a green check that was looked at and has settled."""
    rig.push()
    rig.service.set_check(BRANCH, "test", "success")
    made = Looking(rig, forge, await rig.open_one(forge))
    await made.look()
    clock.jump(SETTLING + 1)
    await made.look()
    return made


TALK = {"gitlab": ["graphql"], "gitea": ["timeline"], "github": ["graphql"]}
CHECKS = {"gitlab": ["graphql"], "gitea": ["1", "statuses"], "github": ["graphql"]}


async def test_a_change_costs_what_it_is_about(rig: Rig, mock_clock: MockClock) -> None:
    """A comment no checks, a check no comments; all else is what it was."""
    async with rig.opened() as forge:
        one = await looking(rig, forge, mock_clock)
        rig.service.add_comment(1, "ann", "Hello")
        said = await one.look("talk")
        assert one.paths == TALK[rig.kind]
        rig.service.set_check(BRANCH, "test", "failure")
        failed = await one.look("checks")
        assert one.paths == CHECKS[rig.kind]
        after = await one.look()

    assert [note.body for note in said.comments] == ["Hello"]
    assert [check.state.value for check in said.checks] == ["success"]
    assert [check.state.value for check in failed.checks] == ["failure"]
    assert after == failed


async def test_a_lost_delivery_loses_no_review(rig: Rig, mock_clock: MockClock) -> None:
    """What people say shows that somebody has reviewed, though only a comment was told."""
    async with rig.opened() as forge:
        one = await looking(rig, forge, mock_clock)
        rig.service.review(1, "ann", "changes_requested", "No")
        rig.service.add_comment(1, "bob", "Hello")
        first = await one.look("talk")
        rig.service.review(1, "ann", "approved", "Well")
        second = await one.look("talk")
        rig.service.add_comment(1, "bob", "Hello again")
        third = await one.look("talk")

    assert [said.state for said in first.reviews] == ["changes_requested"]
    assert [said.state for said in second.reviews] == ["approved"]
    assert third.reviews == second.reviews


async def test_an_answer_in_a_thread_is_seen(rig: Rig, mock_clock: MockClock) -> None:
    """And that a thread is resolved, though Gitea tells either as a comment, or not at all."""
    async with rig.opened() as forge:
        one = await looking(rig, forge, mock_clock)
        thread = rig.service.start_thread(1, "ann", "README", 1, "Why?")
        await one.look("talk")
        rig.service.say_in(1, thread, "bob", "So")
        answered = await one.look("talk")
        rig.service.resolve(1, thread)
        resolved = await one.look("talk")

    assert [note.body for note in answered.threads[0].notes] == ["Why?", "So"]
    assert [found.resolved for found in resolved.threads] == [True]


@pytest.mark.parametrize("part", ["talk", "checks"])
async def test_what_was_not_told_is_read_in_time(
    rig: Rig, mock_clock: MockClock, part: Part
) -> None:
    """A push changes all; a check that has changed unseen is read after some hours at the latest,
    though something else was told again and again."""
    async with rig.opened() as forge:
        one = await looking(rig, forge, mock_clock)
        for at in range(8):
            if at == 1:
                rig.service.set_check(BRANCH, "test", "failure")
            rig.service.add_comment(1, "ann", f"Hello {at}")
            rig.service.review(1, "bob", "approved")
            state = await one.look(part)
            mock_clock.jump((DAY if rig.kind == "gitea" else TOLD_LIFE) / 6)
        assert [check.state.value for check in state.checks] == ["failure"]
        assert len(state.comments) == 8
        rig.push()
        rig.service.set_check(BRANCH, "test", "pending")
        moved = await one.look(part)

    assert [check.state.value for check in moved.checks] == ["pending"]
    assert moved.pull_request.head != state.pull_request.head
