"""What the doctor finds out about a Jira, and what it tells a person to do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from sortie.model import TrackerError
from sortie.model.checks import CheckOutcome
from sortie.trackers.jira.tracker import JiraTracker
from tests.trackers.jira.conftest import Jira
from tests.trackers.server.faults import Refuse


async def outcomes(tracker: JiraTracker) -> dict[str, str]:
    """Return what each check says, the failed ones with what can be done; it stops at none."""
    told = {}
    for check in tracker.checks():
        try:
            found = await check.ask()
            told[check.name] = f"{found.outcome}: {found.sentence} | {found.remedy}"
        except TrackerError as error:
            told[check.name] = f"{CheckOutcome.FAILED}: {error} | {check.remedy}"
    return told


async def test_all_is_well(jira: Jira) -> None:
    """Each check says what it found, and nothing was changed."""
    jira.service.put(1)

    told = await outcomes(jira.tracker)

    assert {text.partition(":")[0] for text in told.values()} == {"ok"}
    assert list(told) == [
        "reach",
        "clock",
        "credential",
        "project",
        "write",
        "states",
        "links",
        "filter",
        "budget",
    ]
    edition = "Jira Cloud" if jira.service.cloud else "Jira Data Center"
    assert told["reach"].startswith(f"ok: {edition}")
    assert "belongs to sortie" in told["credential"]
    posts = [r.path for r in jira.server.asked if r.method != "GET"]
    assert all("search" in path or "parse" in path for path in posts)


def _dead(jira: Jira) -> None:
    jira.service.anonymous = True


def _other_project(jira: Jira) -> None:
    del jira.service.projects["PROJ"]


def _reads_only(jira: Jira) -> None:
    jira.service.may_transition = False


def _renamed(jira: Jira) -> None:
    jira.service.statuses["In review"] = jira.service.statuses.pop("Review")
    jira.service.statuses["Geprüft"] = jira.service.statuses.pop("In review")


def _clock(jira: Jira) -> None:
    jira.server.skew = timedelta(minutes=9)


def _down(jira: Jira) -> None:
    jira.server.inject(Refuse(status=503), path="serverInfo")


FAULTS: dict[str, tuple[Callable[[Jira], None], str, str, str]] = {
    "a dead key": (_dead, "credential", "failed", "tracker.api_key"),
    "no such project": (_other_project, "project", "failed", "tracker.project"),
    "a key that may only read": (_reads_only, "write", "failed", "permissions"),
    "a status that was renamed": (_renamed, "states", "failed", "Geprüft"),
    "a clock that is wrong": (_clock, "clock", "warning", "clock"),
    "a Jira that is down": (_down, "reach", "failed", "tracker.endpoint"),
}


@pytest.mark.parametrize(("spoil", "name", "outcome", "remedy"), FAULTS.values(), ids=FAULTS)
async def test_each_fault_has_its_remedy(
    jira: Jira, spoil: Callable[[Jira], None], name: str, outcome: str, remedy: str
) -> None:
    """The check that finds it says what to do."""
    spoil(jira)

    told = await outcomes(jira.tracker)

    assert told[name].startswith(outcome)
    assert remedy in told[name].partition(" | ")[2]


async def test_a_filter_that_jira_does_not_understand_is_told(jira: Jira) -> None:
    """With what Jira says; nothing is listed for it in the cloud."""
    async with jira.opened(query_filter="sprint in openSprints()") as tracker:
        told = await outcomes(tracker)

    assert told["filter"].startswith("failed")
    assert "sprint" in told["filter"]
    assert "tracker.query_filter" in told["filter"].partition(" | ")[2]


async def test_a_link_that_nobody_knows_is_told(jira: Jira) -> None:
    """With those that there are."""
    async with jira.opened({"blocked_by": "wartet auf"}) as tracker:
        told = await outcomes(tracker)

    assert told["links"].startswith("warning")
    assert "is blocked by" in told["links"]
