"""What ``sortie doctor`` says of a GitHub with which something is wrong."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from sortie.model import TrackerError
from sortie.model.checks import CheckOutcome
from sortie.testing.tracker import STATES
from tests.trackers.github.opened import GitHub, github_opened


async def outcomes(hub: GitHub) -> dict[str, tuple[str, str]]:
    """Return what each check comes to, and its sentence; an error is a failure."""
    found: dict[str, tuple[str, str]] = {}
    for check in hub.tracker.checks():
        if any(name not in found or found[name][0] == "failed" for name in check.needs):
            continue
        try:
            result = await check.ask()
        except TrackerError as exc:
            assert check.remedy
            found[check.name] = (str(CheckOutcome.FAILED), str(exc))
        else:
            assert result.outcome is CheckOutcome.OK or result.remedy
            found[check.name] = (str(result.outcome), result.sentence)
    return found


def archived(hub: GitHub) -> None:
    hub.service.archived = True


def without_issues(hub: GitHub) -> None:
    hub.service.has_issues = False


def hidden(hub: GitHub) -> None:
    hub.service.visible = False


def read_only(hub: GitHub) -> None:
    hub.service.may_write = False


def dead(hub: GitHub) -> None:
    hub.service.tokens = set()


def without_labels(hub: GitHub) -> None:
    hub.service.labels.pop("todo")


def without_a_label_of_the_end(hub: GitHub) -> None:
    hub.service.labels.pop("done")


def late(hub: GitHub) -> None:
    hub.server.skew = timedelta(minutes=7)


def poor(hub: GitHub) -> None:
    hub.service.remaining = 400


@pytest.mark.parametrize(
    ("trouble", "name", "outcome", "words"),
    [
        (archived, "project", "failed", "is archived"),
        (without_issues, "project", "failed", "has no issues"),
        (hidden, "project", "failed", "tracker.project"),
        (read_only, "write", "failed", "may not label"),
        (dead, "reach", "failed", "Bad credentials"),
        (without_labels, "states", "failed", "no label for the active states 'Todo'"),
        (without_a_label_of_the_end, "states", "warning", "no label for 'Done'"),
        (late, "clock", "warning", "420 s behind"),
        (poor, "budget", "warning", " of 5000 core are left"),
    ],
)
async def test_each_trouble_is_found_by_its_check(
    hub: GitHub, trouble: Callable[[GitHub], None], name: str, outcome: str, words: str
) -> None:
    """With what can be done about it; nothing is changed."""
    trouble(hub)

    found = await outcomes(hub)

    assert found[name][0] == outcome
    assert words in found[name][1].replace("419", "420").replace("421", "420")
    assert {request.method for request in hub.server.asked} == {"GET"}


@pytest.mark.parametrize("private", [True, False])
async def test_it_is_told_whether_strangers_can_write(hub: GitHub, private: bool) -> None:
    """By the check of the project, with no request of its own."""
    hub.service.private = private
    check = next(check for check in hub.tracker.checks() if check.name == "project")

    found = await check.ask()

    assert found.public is not private
    assert len(hub.server.asked) == 1


async def test_a_filter_is_tried(tmp_path: Path) -> None:
    """It says how many issues it finds."""
    async with github_opened(tmp_path, query_filter="label:agent") as hub:
        hub.service.put(1, names=[STATES.active[0], "agent"])
        hub.service.put(2, names=["agent"], state="closed", state_reason="completed")

        found = await outcomes(hub)

    assert found["filter"] == ("ok", "the filter finds 1 open issues, of 1000 at most")
    assert {outcome for outcome, _ in found.values()} == {"ok"}
