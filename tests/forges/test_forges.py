"""What every forge does, on a server of its kind."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sortie.forges import CommitState, CommitStatus, GitCredential
from sortie.model import LostAnswer, TrackerError, TrackerErrorKind
from sortie.model.pull_requests import CheckState
from tests.forges.rig import BRANCH, PROPOSAL, Rig
from tests.forges.service import TOKEN
from tests.trackers.server.faults import Reset


async def test_a_pull_request_is_opened_found_and_brought_up_to_date(rig: Rig) -> None:
    """With labels and people, as far as the forge knows them."""
    head = rig.push()
    async with rig.opened() as forge:
        assert await forge.find(BRANCH) is None
        opened = await forge.open(PROPOSAL)
        found = await forge.find(BRANCH)
        again = await forge.update(opened, replace(PROPOSAL, title="T-1: Mend it well"))

    (known,) = rig.service.requests
    assert found == opened
    assert (opened.number, opened.state, opened.branch, opened.base) == (1, "open", BRANCH, "main")
    assert (opened.head, opened.draft) == (head, False)
    assert opened.url.endswith("/pulls/1")
    assert again.title == "T-1: Mend it well"
    assert known.labels == ["sortie"]
    assert known.assignees == ["bob"]
    assert "@ann" not in known.body
    if rig.service.kind == "gitlab":
        assert not [line for line in known.body.splitlines() if line.startswith("/")]
        assert known.reviewers == ["ann"]


async def test_assignees_that_the_forge_does_not_know_are_left_out(rig: Rig) -> None:
    """The pull request is opened without them; none of those that it has is taken away."""
    rig.push()
    unknown = replace(PROPOSAL, assignees=("absent",))
    async with rig.opened() as forge:
        opened = await forge.open(unknown)
        rig.service.requests[0].assignees = ["ann"]
        await forge.update(opened, unknown)

    (known,) = rig.service.requests
    assert known.assignees == ["ann"]


async def test_a_branch_of_the_same_name_in_a_fork_is_another_one(rig: Rig) -> None:
    """Nobody else's pull request is taken for ours: it would be changed, watched and merged."""
    rig.push()
    async with rig.opened() as forge:
        await forge.open(PROPOSAL)
        rig.service.requests[0].fork = True
        assert await forge.find(BRANCH) is None
        rig.service.requests[0].fork = False
        assert await forge.find(BRANCH) is not None


async def test_a_second_one_is_a_conflict(rig: Rig) -> None:
    """As when the answer to the first was lost."""
    rig.push()
    async with rig.opened() as forge:
        await forge.open(PROPOSAL)
        with pytest.raises(TrackerError) as refused:
            await forge.open(PROPOSAL)
        with pytest.raises(TrackerError) as invalid:
            await forge.open(replace(PROPOSAL, branch="absent"))

    assert refused.value.kind is TrackerErrorKind.CONFLICT
    assert invalid.value.kind is TrackerErrorKind.INVALID
    assert len(rig.service.requests) == 1


async def test_a_lost_answer_is_told_as_one(rig: Rig) -> None:
    """It was opened all the same."""
    rig.push()
    rig.server.inject(Reset(performed=True), method="POST")
    async with rig.opened() as forge:
        with pytest.raises(LostAnswer):
            await forge.open(PROPOSAL)


async def test_a_draft_stays_one_until_a_person_says_otherwise(rig: Rig) -> None:
    """An update does not change it."""
    rig.push()
    async with rig.opened() as forge:
        opened = await forge.open(replace(PROPOSAL, draft=True))
        await forge.update(opened, PROPOSAL)
        still = await forge.find(BRANCH)

    assert still is not None
    assert (opened.draft, still.draft) == (True, True)
    assert opened.title == still.title == "T-1: Mend it"


async def test_a_status_is_told_and_read(rig: Rig) -> None:
    """Twice is no error; and the state of the pull request has it among its checks."""
    head = rig.push()
    status = CommitStatus(
        commit=head, context="sortie/verify", state=CommitState.SUCCESS, sentence="2 commands"
    )
    async with rig.opened() as forge:
        opened = await forge.open(PROPOSAL)
        await forge.set_status(status)
        await forge.set_status(status)
        state = (await forge.look([opened]))[opened.id]

    assert [(check.name, check.state) for check in state.checks] == [
        ("sortie/verify", CheckState.SUCCESS)
    ]
    assert state.pull_request.number == 1
    assert not state.conflicts


async def test_a_comment_is_made_once(rig: Rig) -> None:
    """By its key."""
    rig.push()
    async with rig.opened() as forge:
        opened = await forge.open(PROPOSAL)
        await forge.comment(opened, "One", "key-1")
        await forge.comment(opened, "One", "key-1")
        await forge.comment(opened, "Two", "key-2")

    assert len(rig.service.requests[0].comments) == 2


async def test_a_merge_names_the_head(rig: Rig) -> None:
    """Another head is a conflict, and a draft cannot be merged."""
    head = rig.push()
    async with rig.opened() as forge:
        opened = await forge.open(PROPOSAL)
        with pytest.raises(TrackerError) as moved:
            await forge.merge(opened, "0" * 40, "squash")
        rig.service.requests[0].draft = True
        with pytest.raises(TrackerError) as draft:
            await forge.merge(opened, head, "squash")
        rig.service.requests[0].draft = False
        await forge.merge(opened, head, "squash")

    assert moved.value.kind is TrackerErrorKind.CONFLICT
    assert draft.value.kind is TrackerErrorKind.INVALID
    assert rig.service.requests[0].state == "merged"


async def test_git_gets_the_token(rig: Rig) -> None:
    """And it stands in no text."""
    async with rig.opened() as forge:
        credential = await forge.git_credential()
        shown = f"{forge!r} {credential!r}"

    assert isinstance(credential, GitCredential)
    assert credential.password == TOKEN
    assert TOKEN not in shown
