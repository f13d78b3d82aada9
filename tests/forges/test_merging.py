"""What happens to a pull request until it is merged, in a repository of git."""

from __future__ import annotations

import pytest

from sortie.forges import Forge, Proposal
from sortie.model import LostAnswer, PullRequest, TrackerError, TrackerErrorKind
from sortie.model.pull_requests import MergeMethod
from tests.forges.rig import BRANCH, Rig
from tests.trackers.server.exchange import Received
from tests.trackers.server.faults import Reset
from tests.workspaces.remotes import git


def count(rig: Rig, what: str) -> int:
    """Return how many commits there are."""
    return int(git(rig.service.bare, "rev-list", "--count", what))


async def head_of(forge: Forge, one: PullRequest) -> str:
    """Return the head of a pull request now."""
    return (await forge.look([one], afresh=True))[one.id].pull_request.head or ""


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
async def test_a_merge_is_one_of_git(rig: Rig, method: MergeMethod) -> None:
    """With two parents, one commit, or the branch's own commits."""
    rig.push()
    head = rig.push(BRANCH, "second.txt")
    rig.push("main", "other.txt")
    before = count(rig, "main")
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        await forge.merge(opened, head, method)
        state = (await forge.look([opened]))[opened.id]

    assert state.pull_request.state == "merged"
    assert git(rig.service.bare, "show", "main:second.txt")
    assert git(rig.service.bare, "show", "main:other.txt")
    more = {"merge": 3, "squash": 1, "rebase": 2 if rig.kind != "gitlab" else 3}
    assert count(rig, "main") - before == more[method]


async def test_a_head_that_has_moved_is_not_merged(rig: Rig) -> None:
    """Nor brought up to date, nor merged by the forge itself."""
    head = rig.push()
    rig.push("main", "other.txt")
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        moved = rig.push()
        rig.service.set_check(BRANCH, "slow", "pending")
        kinds = []
        for change in (
            lambda: forge.merge(opened, head, "squash"),
            lambda: forge.merge_when_ready(opened, head, "squash"),
            lambda: forge.bring_up_to_date(opened, head),
        ):
            with pytest.raises(TrackerError) as refused:
                await change()
            kinds.append(refused.value.kind)

    assert kinds == [TrackerErrorKind.CONFLICT] * 3
    assert git(rig.service.bare, "rev-parse", BRANCH) == moved
    assert rig.service.requests[0].state == "open"


async def test_a_merge_whose_answer_is_lost_is_told_as_one(rig: Rig) -> None:
    """It was made all the same."""
    head = rig.push()
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        rig.server.inject(Reset(performed=True), path="/merge$")
        with pytest.raises(LostAnswer):
            await forge.merge(opened, head, "merge")
        state = (await forge.look([opened]))[opened.id]

    assert state.pull_request.state == "merged"


async def test_a_branch_is_brought_up_to_date_where_it_is_behind(rig: Rig) -> None:
    """Which makes a new head that holds its base."""
    head = rig.push()
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        assert not await forge.bring_up_to_date(opened, head)
        base = rig.push("main", "other.txt")
        assert await forge.bring_up_to_date(opened, head)
        made = await head_of(forge, opened)
        assert not await forge.bring_up_to_date(opened, made)

    assert made != head
    assert git(rig.service.bare, "merge-base", base, made) == base
    assert git(rig.service.bare, "show", f"{made}:{BRANCH}.txt")


async def test_the_forge_merges_by_itself_when_all_is_there(rig: Rig) -> None:
    """And shows until then that it was told so."""
    head = rig.push()
    service = rig.service
    service.required = ("test",)
    service.set_check(BRANCH, "test", "pending")
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        before = (await forge.look([opened]))[opened.id]
        await forge.merge_when_ready(opened, head, "squash")
        after = (await forge.look([opened]))[opened.id]
        service.set_check(BRANCH, "test", "success")
        done = (await forge.look([opened]))[opened.id]

    assert (before.automatic, before.queued) == (True, False)
    assert (after.queued, after.pull_request.state) == (True, "open")
    assert done.pull_request.state == "merged"


async def test_a_merge_that_is_scheduled_again_is_no_error(rig: Rig) -> None:
    """As after a lost answer."""
    head = rig.push()
    rig.service.required = ("test",)
    rig.service.set_check(BRANCH, "test", "pending")
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        told = "mutation|auto_merge|merge_when_checks_succeed"
        rig.server.inject(Reset(performed=True), body=told)
        with pytest.raises(LostAnswer):
            await forge.merge_when_ready(opened, head, "merge")
        assert rig.service.requests[0].queued
        await forge.merge_when_ready(opened, head, "merge")
        state = (await forge.look([opened]))[opened.id]

    assert state.queued


async def test_a_merge_is_taken_back(rig: Rig) -> None:
    """It is no error where the forge would not merge it by itself, as after a lost answer."""
    head = rig.push()
    service = rig.service
    service.required = ("test",)
    service.set_check(BRANCH, "test", "pending")
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        await forge.cancel_merge(opened)
        await forge.merge_when_ready(opened, head, "merge")
        told = (await forge.look([opened]))[opened.id]
        await forge.cancel_merge(opened)
        await forge.cancel_merge(opened)
        service.set_check(BRANCH, "test", "success")
        state = (await forge.look([opened]))[opened.id]

    assert told.queued
    assert (state.queued, state.pull_request.state) == (False, "open")


async def test_a_head_that_moves_at_the_last_moment_is_a_conflict(github: Rig) -> None:
    """Between the look at it and the change, whatever GitHub says then."""
    head = github.push()
    github.service.required = ("test",)
    async with github.opened() as forge:
        opened = await github.open_one(forge)

        def push_first(request: Received) -> None:
            if b"enablePullRequestAutoMerge" in request.body:
                github.push()

        github.server.before = push_first
        with pytest.raises(TrackerError) as moved:
            await forge.merge_when_ready(opened, head, "merge")

    assert moved.value.kind is TrackerErrorKind.CONFLICT


async def test_a_push_ends_what_github_was_told(github: Rig) -> None:
    """It has to be told again."""
    head = github.push()
    github.service.required = ("test",)
    async with github.opened() as forge:
        opened = await github.open_one(forge)
        await forge.merge_when_ready(opened, head, "merge")
        github.push()
        state = (await forge.look([opened]))[opened.id]

    assert not state.queued


async def test_a_merge_queue_is_used_where_there_is_one(github: Rig) -> None:
    """A direct merge is refused there."""
    head = github.push()
    service = github.service
    service.queue, service.automatic = True, False
    service.required = ("test",)
    service.set_check(BRANCH, "test", "pending")
    async with github.opened() as forge:
        opened = await github.open_one(forge)
        before = (await forge.look([opened]))[opened.id]
        with pytest.raises(TrackerError) as direct:
            await forge.merge(opened, head, "merge")
        await forge.merge_when_ready(opened, head, "merge")
        await forge.cancel_merge(opened)
        taken_back = (await forge.look([opened]))[opened.id]
        await forge.merge_when_ready(opened, head, "merge")
        queued = (await forge.look([opened]))[opened.id]
        service.set_check(BRANCH, "test", "success")
        done = (await forge.look([opened]))[opened.id]

    assert direct.value.kind is TrackerErrorKind.INVALID
    assert (before.automatic, before.has_queue) == (True, True)
    assert (before.queued, taken_back.queued, queued.queued) == (False, False, True)
    assert done.pull_request.state == "merged"


async def test_a_branch_is_deleted_and_never_a_base(rig: Rig) -> None:
    """One that is not there is no error."""
    head = rig.push()
    rig.push("release/1")
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        await forge.merge(opened, head, "merge")
        await forge.delete_branch(BRANCH)
        await forge.delete_branch(BRANCH)
        with pytest.raises(TrackerError) as refused:
            await forge.delete_branch("main")
        with pytest.raises(TrackerError):
            await forge.delete_branch(" ")
        state = (await forge.look([opened]))[opened.id]
    rig.push("sortie/T-2")
    async with rig.opened() as forge:
        with pytest.raises(TrackerError) as default:  # of no pull request that was seen
            await forge.delete_branch("main")
        proposal = Proposal(branch="sortie/T-2", base="release/1", title="Mend", body="")
        await forge.open(proposal)
        with pytest.raises(TrackerError) as base:
            await forge.delete_branch("release/1")

    assert {default.value.kind, base.value.kind} == {TrackerErrorKind.INVALID}
    assert sorted(rig.service.git.heads()) == ["main", "release/1", "sortie/T-2"]
    assert refused.value.kind is TrackerErrorKind.INVALID
    assert state.pull_request.state == "merged"
