"""What ``sortie doctor`` finds in GitLab."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sortie.model import TrackerError
from sortie.model.checks import CheckOutcome
from sortie.testing.tracker import STATES
from sortie.trackers.gitlab.tracker import GitLabTracker
from tests.trackers.gitlab.conftest import Hub
from tests.trackers.gitlab.service import GitLabService


async def found_by(tracker: GitLabTracker) -> dict[str, tuple[CheckOutcome, str]]:
    """Return what each check finds, asked one after the other."""
    found = {}
    for check in tracker.checks():
        try:
            result = await check.ask()
            found[check.name] = result.outcome, f"{result.sentence}; {result.remedy}"
        except TrackerError as exc:
            found[check.name] = CheckOutcome.FAILED, str(exc)
    return found


@pytest.mark.parametrize(
    ("change", "name", "outcome", "told"),
    [
        ({"enterprise": False}, "reach", CheckOutcome.OK, "Community Edition"),
        ({"token": "another"}, "credential", CheckOutcome.FAILED, "401"),
        ({"seen": False}, "project", CheckOutcome.FAILED, "tracker.project"),
        ({"scopes": ("read_api",)}, "scopes", CheckOutcome.FAILED, "read_api, which is not enough"),
        ({"scopes": ("granular",)}, "scopes", CheckOutcome.WARNING, "rights of its own"),
        ({"scopes": ()}, "scopes", CheckOutcome.OK, "does not tell"),
        ({"role": 20}, "write", CheckOutcome.WARNING, "below Developer"),
        ({"role": 10}, "write", CheckOutcome.FAILED, "may not change issues"),
        ({"budget": 90}, "budget", CheckOutcome.WARNING, "of 2000 requests are left"),
        (
            {"expires_at": str((datetime.now(UTC) + timedelta(days=3)).date())},
            "credential",
            CheckOutcome.WARNING,
            "good until",
        ),
    ],
)
async def test_what_is_wrong_is_found(
    hub: Hub, change: dict[str, Any], name: str, outcome: CheckOutcome, told: str
) -> None:
    """Each by the check that is about it."""
    hub.world.web.labels += STATES.named
    for key, value in change.items():
        setattr(hub.world, key, value)

    async with hub.open() as tracker:
        found = await found_by(tracker)

    assert found[name][0] is outcome
    assert told in found[name][1]


def _archive(world: GitLabService) -> None:
    world.web.archived = True


def _switch_off(world: GitLabService) -> None:
    world.web.issues_enabled = False


@pytest.mark.parametrize(
    ("change", "told"), [(_archive, "archived"), (_switch_off, "switched off")]
)
async def test_a_project_that_takes_no_change_is_found(
    hub: Hub, change: Callable[[GitLabService], None], told: str
) -> None:
    """Before the first handoff fails."""
    change(hub.world)

    async with hub.open() as tracker:
        outcome, sentence = (await found_by(tracker))["project"]

    assert outcome is CheckOutcome.FAILED
    assert told in sentence


@pytest.mark.parametrize(
    ("visibility", "level", "public"),
    [
        ("public", "enabled", True),
        ("public", "private", False),
        ("internal", "enabled", False),
        ("private", "enabled", False),
        (None, "enabled", None),
    ],
)
async def test_it_is_told_whether_strangers_can_write(
    hub: Hub, visibility: str | None, level: str, public: bool | None
) -> None:
    """By the checks that see the project: issues of a public one may be its members' alone."""
    hub.world.web.visibility, hub.world.web.issues_access_level = visibility, level

    async with hub.open() as tracker:
        checks = {check.name: check for check in tracker.checks()}
        found = await checks["project"].ask()
        hub.world.web.labels += STATES.named
        read = await checks["read"].ask()

    assert found.public is public
    assert read.public in (None, public)


async def test_labels_that_are_missing_are_named_with_those_that_look_alike(hub: Hub) -> None:
    """A state whose label nobody has made is one that no issue is in."""
    hub.world.web.labels += ["todo", "In progres", "Review", "Done", "Dropped"]

    async with hub.open() as tracker:
        outcome, sentence = (await found_by(tracker))["states"]

    assert outcome is CheckOutcome.WARNING
    assert "no label In Progress; In progres look alike" in sentence


async def test_a_filter_that_finds_nothing_is_told(hub: Hub) -> None:
    """GitLab takes a label that does not exist for one that no issue has."""
    hub.world.put(labels=["Todo"])

    async with hub.open(query_filter="labels=backnd") as tracker:
        outcome, sentence = (await found_by(tracker))["filter"]

    assert outcome is CheckOutcome.WARNING
    assert "no open issue passes" in sentence
