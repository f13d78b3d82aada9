"""Pull requests of one base are merged one after another, also by a daemon that is killed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.place import Place
from tests.e2e.reviewed import Reviewed, Steps, killed_at, reviewed_place
from tests.forges.service import ONE_KIND, TOKEN
from tests.properties import examples
from tests.workspaces.remotes import git

pytestmark = pytest.mark.portless

NAMES = [f"T-{number}" for number in range(1, 1 + examples(3, 5))]
STEPS: Steps = (
    ("merge.attempted", {"result": "updated"}),
    ("merge.attempted", {"result": "merged"}),
    ("watch.ended", {"result": "merged"}),
    ("daemon.started", {}),
)


@pytest.fixture(params=ONE_KIND)
def reviewed(request: pytest.FixtureRequest, place: Place) -> Iterator[Reviewed]:
    """A place with issues, on a forge of each kind."""
    with reviewed_place(place, request.param) as found:
        for name in NAMES:
            found.place.add_issue(name)
        yield found


async def opened(reviewed: Reviewed) -> None:
    """Wait for all pull requests, which are green and approved then."""
    for name in NAMES:
        request = await reviewed.opened(name)
        reviewed.service.set_check(request.branch, "ci", "success")
    for name in NAMES:
        reviewed.approve(name)


def expect_a_train(reviewed: Reviewed) -> None:
    """Each was merged once, with the ones before it in what was checked; no head was checked that
    could not be merged next."""
    checked = {check.commit for check in reviewed.service.made if check.state == "success"}
    base = git(reviewed.bare, "log", "--first-parent", "--format=%H %s", "main").splitlines()
    merges = [line.partition(" ") for line in base if "(#" in line]
    assert len(merges) == len(NAMES)
    for request in reviewed.service.requests:
        (commit,) = (commit for commit, _, subject in merges if f"(#{request.number})" in subject)
        assert request.seen in checked
        judged = git(reviewed.bare, "rev-parse", f"{request.seen}^{{tree}}")
        assert git(reviewed.bare, "rev-parse", f"{commit}^{{tree}}") == judged
        assert git(reviewed.bare, "rev-parse", "-q", "--verify", request.branch, ok=False) == ""
    assert len(checked) <= 2 * len(NAMES) - 1  # the first of the train is checked once
    assert all(len(reviewed.prompts(name)) == 1 for name in NAMES)


@pytest.mark.parametrize("automatic", [pytest.param(False, marks=pytest.mark.full), True])
async def test_a_train_merges_one_after_another(
    reviewed: Reviewed, start: Start, automatic: bool
) -> None:
    """Those of one base: each with the ones before it in it, and checked so, also where the forge
    merges by itself."""
    reviewed.service.automatic = automatic
    async with start(FORGE_TOKEN=TOKEN):
        await opened(reviewed)
        await reviewed.merged(NAMES)

    expect_a_train(reviewed)


@pytest.mark.parametrize("kills", [4, pytest.param(24, marks=pytest.mark.full)])
@pytest.mark.timeout(1800)
async def test_a_train_of_a_daemon_that_is_killed(
    reviewed: Reviewed, start: Start, kills: int
) -> None:
    """At whatever step of a merge: nothing is merged twice, nor with another base than checked."""
    async with start(FORGE_TOKEN=TOKEN):
        await opened(reviewed)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(reviewed.merged, NAMES, 600)
        await killed_at(start, STEPS, kills)
        async with start(FORGE_TOKEN=TOKEN) as daemon:
            await daemon.line("daemon.started")  # all may be done by now
            await reviewed.merged(NAMES)

    expect_a_train(reviewed)
