"""What Gitea is asked about pull requests that are commented on, and once a day about each."""

from __future__ import annotations

from trio.testing import MockClock

from sortie.forges.remembered import DAY, SETTLING
from tests.forges.rig import BRANCH, Rig
from tests.forges.test_changed_parts import looking
from tests.forges.test_costs import branches


async def test_comments_alone_cost_a_timeline(gitea: Rig, mock_clock: MockClock) -> None:
    """And no list has them read again, though nothing but the timeline was read."""
    async with gitea.opened() as forge:
        one = await looking(gitea, forge, mock_clock)
        for text in ("Hello", "Hello again"):
            gitea.service.add_comment(1, "ann", text)
            said = await one.look("talk")
            assert one.paths == ["timeline"]
        after = await one.look()
        assert one.paths == ["1"]

    assert [note.body for note in said.comments] == ["Hello", "Hello again"]
    assert after == said


async def test_what_else_a_timeline_shows_is_read(gitea: Rig, mock_clock: MockClock) -> None:
    """A label, a push and the end of a pull request, though only a comment was told."""
    async with gitea.opened() as forge:
        one = await looking(gitea, forge, mock_clock)
        gitea.service.add_comment(1, "ann", "Hello")
        gitea.service.set_labels(1, "sortie")
        labelled = await one.look("talk")
        head = gitea.push()
        pushed = await one.look("talk")
        gitea.service.close(1)
        closed = await one.look("talk")

    assert labelled.labels == ("sortie",)
    assert pushed.pull_request.head == head
    assert closed.pull_request.state == "closed"


async def test_a_check_that_is_pending_is_read_with_a_comment(
    gitea: Rig, mock_clock: MockClock
) -> None:
    """As with any look."""
    async with gitea.opened() as forge:
        one = await looking(gitea, forge, mock_clock)
        gitea.service.set_check(BRANCH, "test", "pending")
        await one.look("checks")
        gitea.service.set_check(BRANCH, "test", "failure")
        gitea.service.add_comment(1, "ann", "Hello")
        state = await one.look("talk")

    assert [check.state.value for check in state.checks] == ["failure"]


async def test_each_is_read_once_a_day_at_its_own_hour(gitea: Rig, mock_clock: MockClock) -> None:
    """Its checks and its timeline, so that a check of which no delivery has told is seen within a
    day."""
    names = branches(gitea, 48)
    async with gitea.opened() as forge:
        watched = [await gitea.open_one(forge, name) for name in names]
        gitea.service.set_check(names[0], "test", "success")
        await forge.look(watched, told=True)
        mock_clock.jump(SETTLING + 1)
        await forge.look(watched, told=True)
        gitea.service.set_check(names[0], "test", "failure")
        costs = []
        for _ in range(24):
            mock_clock.jump(DAY / 24)
            asked = len(gitea.server.asked)
            found = await forge.look(watched, told=True)
            paths = [one.path.rpartition("/")[2] for one in gitea.server.asked[asked:]]
            costs.append(sorted(path for path in paths if path not in ("pulls", "main")))

    assert [check.state.value for check in found[watched[0].id].checks] == ["failure"]
    assert costs == [["statuses"] * 2 + ["timeline"] * 2] * 24
