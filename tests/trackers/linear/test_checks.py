"""What ``sortie doctor`` finds out about Linear, and that it changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from sortie.daemon.doctor import Diagnosis, run_checks
from sortie.trackers import TrackerStates
from tests.trackers.linear.rig import opened
from tests.trackers.linear.service import API_KEY, STATES, LinearService
from tests.trackers.server.serving import TestServer

ALL = TrackerStates(active=("Todo", "In Progress"), terminal=("Done",), handoff="Review")


async def diagnosed(server: TestServer, **changes: Any) -> dict[str, tuple[str, str, str]]:
    """Return outcome, sentence and remedy of every check by its name."""
    found: list[Diagnosis] = []
    async with opened(server, **{"states": ALL, **changes}) as tracker:
        await run_checks("tracker", tracker.checks(), found.append)
    return {
        each.name.removeprefix("tracker."): (
            each.result.outcome.value,
            each.result.sentence,
            each.result.remedy,
        )
        for each in found
    }


async def test_where_all_is_well_it_is_said_what_there_is(
    service: LinearService, server: TestServer
) -> None:
    """Who, which team, which states, what may be done and what is left; nothing has changed."""
    issue = service.put()
    before = str(service.issues) + str(service.comments)

    found = await diagnosed(server, query_filter='{"title": {"contains": "Issue"}}')

    assert {name: outcome for name, (outcome, _, _) in found.items()} == dict.fromkeys(
        ("credential", "clock", "project", "states", "read", "write", "budget", "filter"), "ok"
    )
    assert found["credential"][1] == "the key is that of sortie, a member of Acme"
    assert found["project"][1] == "team ENG is Team ENG"
    assert "Backlog, Todo, In Progress" in found["states"][1]
    assert "of 5000 requests" in found["budget"][1]
    assert issue["title"] == "Issue 1"
    assert str(service.issues) + str(service.comments) == before


async def test_a_wrong_key_skips_all_else(service: LinearService, server: TestServer) -> None:
    """The remedy says where keys are made, and the key stands nowhere."""
    service.dead = True

    found = await diagnosed(server)

    assert found["credential"][0] == "failed"
    assert "personal API key" in found["credential"][2]
    assert {outcome for name, (outcome, _, _) in found.items() if name != "credential"} == {
        "skipped"
    }
    assert API_KEY not in str(found)


async def test_a_team_that_cannot_be_seen_is_told_with_those_that_can(
    service: LinearService, server: TestServer
) -> None:
    """Whether it does not exist or is not shown to this key."""
    service.add_team("OPS")

    found = await diagnosed(server, project="WEB")

    assert found["project"][:2] == (
        "failed",
        "no team with the key WEB can be seen; ENG (Team ENG), OPS (Team OPS) can",
    )
    assert found["states"][0] == "skipped"


@pytest.mark.parametrize(
    ("states", "outcome", "word"),
    [
        (TrackerStates(active=("Todo",), handoff="Human Review"), "failed", "Human Review"),
        (TrackerStates(active=("Todo", "Shipped")), "warning", "Shipped"),
    ],
)
async def test_states_that_do_not_fit_are_told(
    server: TestServer, states: TrackerStates, outcome: str, word: str
) -> None:
    """One that the team does not have, and an active one that is the end to Linear."""
    found = await diagnosed(server, states=states)

    assert found["states"][0] == outcome
    assert word in found["states"][1]
    assert all(name in found["states"][1] for name, _ in STATES) or outcome == "warning"


@pytest.mark.parametrize("scopes", [{"read"}, {"read", "comments:create"}])
async def test_a_key_that_may_not_write_is_told_before_it_has_to(
    service: LinearService, server: TestServer, scopes: set[str]
) -> None:
    """With the permissions that it needs."""
    service.scopes = frozenset(scopes)

    found = await diagnosed(server)

    assert found["write"][0] == "failed"
    assert "Read, Write and Create comments" in found["write"][2]


@pytest.mark.parametrize(
    ("text", "outcome"),
    [('{"title": {"contains": "nothing"}}', "warning"), ('{"titel": {"eq": "x"}}', "failed")],
)
async def test_a_filter_is_tried(
    service: LinearService, server: TestServer, text: str, outcome: str
) -> None:
    """One that finds nothing is a warning, one that Linear does not take is told."""
    found = await diagnosed(server, query_filter=text)

    assert found["filter"][0] == outcome
    if outcome == "failed":
        assert "titel" in found["filter"][1]
        server.violations.clear()
