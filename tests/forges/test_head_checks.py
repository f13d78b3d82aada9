"""The checks of a head, as every forge tells them."""

from __future__ import annotations

import pytest

from sortie.model.pull_requests import CheckState
from tests.forges.rig import BRANCH, Rig
from tests.forges.test_looking import look


async def test_checks_are_those_of_the_head(rig: Rig) -> None:
    """What was cancelled or skipped is neutral; another push has checks of its own."""
    head = rig.push()
    service = rig.service
    service.required = ("test", "license")
    service.set_check(BRANCH, "test", "failure", log=b"no")
    service.set_check(BRANCH, "lint", "success")
    service.set_check(BRANCH, "old", "cancelled")
    service.set_check(BRANCH, "docs", "skipped")
    service.set_check(BRANCH, "slow", "pending")
    service.set_check(BRANCH, "ci/other", "success", status=True)
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        state = await look(forge, opened)
        rig.push()
        moved = await look(forge, opened)

    assert state.pull_request.head == head
    found = {check.name: check for check in state.checks}
    assert {name: check.state.value for name, check in found.items() if name != "license"} == {
        "test": "failure",
        "lint": "success",
        "old": "neutral",
        "docs": "neutral",
        "slow": "pending",
        "ci/other": "success",
    }
    if rig.kind != "gitlab":
        assert found["license"].id == "expected:license"
        assert found["license"].state is CheckState.PENDING
        assert (found["license"].required, found["test"].required) == (True, True)
        assert not found["lint"].required
        assert {check.id for check in moved.checks} == {"expected:test", "expected:license"}
    else:
        assert moved.checks == ()
    assert moved.pull_request.head != head


@pytest.mark.parametrize(
    ("rule", "required"),
    [((), None), (("test",), True), (("lint",), False), (("ci/*",), None), (("test", "*"), True)],
)
async def test_gitea_says_which_checks_it_demands_where_a_rule_names_them(
    gitea: Rig, rule: tuple[str, ...], required: bool | None
) -> None:
    """A pattern names none."""
    gitea.push()
    gitea.service.required = rule
    gitea.service.set_check(BRANCH, "test", "success")
    async with gitea.opened() as forge:
        state = await look(forge, await gitea.open_one(forge))

    checks = {check.name: check for check in state.checks}
    assert checks["test"].required is required
    assert set(checks) == {"test", *(name for name in rule if name == "lint")}


async def test_checks_of_another_commit_are_not_believed(rig: Rig) -> None:
    """They say no more than that some for the head are to come. Gitea is asked by commit."""
    rig.push()
    rig.service.set_check(BRANCH, "test", "success")
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        green = await look(forge, opened)
        rig.push()
        rig.service.observe()
        rig.service.request(1).lagging = True
        lagging = await look(forge, opened)

    expected = {
        "github": [("expected:checks of the new head", CheckState.PENDING)],
        "gitlab": [("expected:pipeline", CheckState.PENDING)],
        "gitea": [],
    }
    assert [check.state for check in green.checks] == [CheckState.SUCCESS]
    assert [(check.id, check.state) for check in lagging.checks] == expected[rig.kind]


async def test_a_pipeline_of_the_merge_is_one_of_the_head(gitlab: Rig) -> None:
    """Where GitLab runs it on what a merge would make; after a push it is to come."""
    head = gitlab.push()
    service = gitlab.service
    service.merged_results = True
    main = service.git.heads()["main"]
    service.set_check(service.git.merged(main, head), "test", "failure")
    async with gitlab.opened() as forge:
        opened = await gitlab.open_one(forge)
        state = await look(forge, opened)
        gitlab.push()
        service.observe()
        service.request(1).lagging = True
        moved = await look(forge, opened)

    assert [(check.name, check.state.value) for check in state.checks] == [("test", "failure")]
    assert [(check.id, check.state.value) for check in moved.checks] == [
        ("expected:pipeline", "pending")
    ]
