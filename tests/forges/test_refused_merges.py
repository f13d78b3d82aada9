"""What a forge does not merge, and what its refusals mean."""

from __future__ import annotations

import pytest

from sortie.model import LostAnswer, TrackerError, TrackerErrorKind
from tests.forges.rig import BRANCH, Rig
from tests.trackers.server.faults import Refuse


async def test_what_cannot_be_merged_is_refused(rig: Rig) -> None:
    """Conflicts, demanded checks."""
    head = rig.push(BRANCH, "README", "ours\n")
    rig.service.required = ("test",)
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        with pytest.raises(TrackerError) as unchecked:
            await forge.merge(opened, head, "merge")
        rig.service.set_check(BRANCH, "test", "success")
        rig.push("main", "README", "theirs\n")
        with pytest.raises(TrackerError) as conflicting:
            await forge.merge(opened, head, "merge")
        with pytest.raises(TrackerError) as stale:
            await forge.bring_up_to_date(opened, head)

    errors = (unchecked.value, conflicting.value, stale.value)
    assert [error.kind for error in errors] == [TrackerErrorKind.INVALID] * 3
    assert not any(isinstance(error, LostAnswer) for error in errors)


@pytest.mark.parametrize("allowed", [True, False])
async def test_auto_merge_that_github_refuses_is_invalid(github: Rig, allowed: bool) -> None:
    """Where nothing is in the way of a merge, or the repository has none."""
    head = github.push()
    github.service.automatic = allowed
    github.service.required = () if allowed else ("test",)
    async with github.opened() as forge:
        opened = await github.open_one(forge)
        state = (await forge.look([opened]))[opened.id]
        with pytest.raises(TrackerError) as refused:
            await forge.merge_when_ready(opened, head, "merge")

    assert state.automatic is allowed
    assert refused.value.kind is TrackerErrorKind.INVALID


async def test_what_github_forbids_is_not_closed(github: Rig) -> None:
    """A token that may not merge, or not read logs, may do the rest."""
    head = github.push()
    check = github.service.set_check(BRANCH, "test", "failure", log=b"bad")
    async with github.opened() as forge:
        opened = await github.open_one(forge)
        shown = (await forge.look([opened]))[opened.id].checks[0]
        github.server.inject(Refuse(status=403), path="/merge$|/update-branch$|/logs$", times=9)
        github.push("main", "other.txt")
        kinds = []
        for ask in (
            lambda: forge.merge(opened, head, "merge"),
            lambda: forge.bring_up_to_date(opened, head),
            lambda: forge.check_log(shown, 5),
        ):
            with pytest.raises(TrackerError) as refused:
                await ask()
            kinds.append(refused.value.kind)

    assert shown.id == str(check.id)
    assert kinds == [TrackerErrorKind.PERMISSION] * 3


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("head out of date", TrackerErrorKind.CONFLICT),
        ("merge push out of date", TrackerErrorKind.CONFLICT),
        ("PushRejected with remote message: not today", TrackerErrorKind.INVALID),
        ("", TrackerErrorKind.INVALID),
    ],
)
async def test_gitea_says_409_to_more_than_a_head_that_has_moved(
    gitea: Rig, message: str, kind: TrackerErrorKind
) -> None:
    """A hook of the base that refuses, or a rebase that conflicts, is not over in a minute."""
    head = gitea.push()
    async with gitea.opened() as forge:
        opened = await gitea.open_one(forge)
        gitea.server.inject(Refuse(status=409, body={"message": message}), path="/merge$")
        with pytest.raises(TrackerError) as refused:
            await forge.merge(opened, head, "rebase")

    assert refused.value.kind is kind


async def test_gitlab_that_forbids_the_merge_is_not_closed(gitlab: Rig) -> None:
    """It says 401 to one who may not merge, whose token is a good one all the same."""
    head = gitlab.push()
    async with gitlab.opened() as forge:
        opened = await gitlab.open_one(forge)
        gitlab.server.inject(Refuse(status=401), path="/merge$")
        with pytest.raises(TrackerError) as refused:
            await forge.merge(opened, head, "merge")

    assert refused.value.kind is TrackerErrorKind.PERMISSION
