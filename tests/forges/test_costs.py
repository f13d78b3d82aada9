"""What it costs to watch pull requests, in requests."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from sortie.forges.remembered import LIFE, SETTLING
from tests.forges.rig import Rig
from tests.forges.service import KINDS
from tests.trackers.server.faults import Refuse
from tests.workspaces.remotes import git

MANY = {"github": 26, "gitlab": 101, "gitea": 51}
"""One more than is asked for at once: batches of 25, lists of 100, pages of 50."""
UNMOVED = 2
"""Requests for so many that have not moved."""


def branches(rig: Rig, count: int, *, alike: bool = False) -> list[str]:
    """Have many branches, each with a commit of its own, or all with one: the forge asks git about
    each commit."""
    names = [f"sortie/M-{at}" for at in range(count)]
    main = git(rig.seed, "rev-parse", "origin/main")
    tree = git(rig.seed, "rev-parse", "origin/main^{tree}")
    made = ""
    for name in names:
        if not (alike and made):
            made = git(rig.service.bare, "commit-tree", tree, "-p", main, "-m", name)
        git(rig.service.bare, "update-ref", f"refs/heads/{name}", made)
    return names


async def test_many_that_have_not_moved_cost_a_list(rig: Rig, mock_clock: MockClock) -> None:
    """And one that has costs its details."""
    names = branches(rig, MANY[rig.kind], alike=True)
    async with rig.opened() as forge:
        watched = [await rig.open_one(forge, name) for name in names]
        rig.service.set_check(names[5], "test", "success")
        first = await forge.look(watched)
        mock_clock.jump(SETTLING + 1)
        asked = len(rig.server.asked)
        second = await forge.look(watched)
        unmoved = len(rig.server.asked) - asked
        rig.service.add_comment(7, "ann", "Hello")
        third = await forge.look(watched)
        moved = len(rig.server.asked) - asked - unmoved
        mock_clock.jump(LIFE)
        await forge.look(watched[:1])

    assert first == second
    assert len(second) == MANY[rig.kind]
    assert unmoved == UNMOVED
    assert third[watched[6].id].comments[0].body == "Hello"
    assert moved <= UNMOVED + 5
    assert set(MANY) == set(KINDS)


async def test_a_push_to_the_base_costs_no_details(rig: Rig, mock_clock: MockClock) -> None:
    """Though the forge computes anew whether each can be merged; conflicts are seen."""
    rig.push("sortie/T-1", "README", "ours\n")
    names = [*branches(rig, 20), "sortie/T-1"]
    async with rig.opened() as forge:
        watched = [await rig.open_one(forge, name) for name in names]
        await forge.look(watched)
        mock_clock.jump(SETTLING + 1)
        rig.push("main", "README", "theirs\n")
        for one in rig.service.requests:
            one.computing = True
        asked = len(rig.server.asked)
        computing = await forge.look(watched)
        for one in rig.service.requests:
            one.computing = False
        mock_clock.jump(5)
        found = await forge.look(watched)
        cost = len(rig.server.asked) - asked

    conflicting = {state.pull_request.branch for state in found.values() if state.conflicts}
    assert conflicting == {"sortie/T-1"}
    assert not any(state.conflicts for state in computing.values())
    assert cost <= 2 + (5 if rig.kind == "gitlab" else 0)  # of the one that changed its status


async def test_what_no_list_shows_is_read_again(rig: Rig, mock_clock: MockClock) -> None:
    """A check that is pending, a new head, a check that has failed after a while, after an hour
    everything, and at once where that is asked for."""
    rig.push()
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)

        async def check() -> list[str]:
            found = (await forge.look([opened]))[opened.id]
            return [check.state.value for check in found.checks]

        assert await check() == []
        rig.service.set_check(opened.branch, "test", "pending")  # registers late
        assert await check() == ["pending"]
        mock_clock.jump(SETTLING + 1)
        rig.service.set_check(opened.branch, "test", "failure")
        assert await check() == ["failure"]
        rig.service.set_check(opened.branch, "test", "success")
        mock_clock.jump(SETTLING + 1)
        assert await check() == ["success"]
        rig.service.set_check(opened.branch, "test", "failure")
        afresh = (await forge.look([opened], afresh=True))[opened.id]
        assert [check.state.value for check in afresh.checks] == ["failure"]
        rig.service.set_check(opened.branch, "test", "success")
        mock_clock.jump(SETTLING + 1)
        assert await check() == ["success"]
        rig.service.set_check(opened.branch, "test", "failure")
        remembered = ["success" if rig.kind == "gitea" else "failure"]  # others tell all at once
        assert await check() == remembered
        mock_clock.jump(LIFE + 1)
        assert await check() == ["failure"]


async def test_a_check_that_is_made_again_is_read_again(gitlab: Rig, mock_clock: MockClock) -> None:
    """Though the list shows no change, and the check had failed."""
    gitlab.push()
    gitlab.service.set_check("sortie/T-1", "test", "failure")
    async with gitlab.opened() as forge:
        opened = await gitlab.open_one(forge)
        await forge.look([opened])
        mock_clock.jump(SETTLING + 1)
        before = (await forge.look([opened]))[opened.id].checks
        assert await forge.rerun(before[0])
        after = (await forge.look([opened]))[opened.id].checks

    assert [check.state.value for check in (*before, *after)] == ["failure", "pending"]


@pytest.mark.parametrize("count", [30])
async def test_one_that_waits_for_a_check_reads_no_talk(
    gitlab: Rig, mock_clock: MockClock, count: int
) -> None:
    """Where GraphQL is refused: the request and its statuses, not its discussions."""
    gitlab.server.inject(Refuse(status=404), path="graphql", times=2)
    names = branches(gitlab, count)
    async with gitlab.opened() as forge:
        watched = [await gitlab.open_one(forge, name) for name in names]
        gitlab.service.set_check(names[0], "test", "pending")
        await forge.look(watched)
        mock_clock.jump(SETTLING + 1)
        asked = len(gitlab.server.asked)
        await forge.look(watched)
        paths = [request.path for request in gitlab.server.asked[asked:]]
    await trio.lowlevel.checkpoint()

    assert len(paths) == 3
    assert not [path for path in paths if "discussions" in path]
