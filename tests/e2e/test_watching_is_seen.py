"""A watched pull request is seen wherever somebody looks who is paged, or who reviews."""

from __future__ import annotations

import trio

from tests.e2e.conftest import Start
from tests.e2e.daemon import Daemon
from tests.e2e.place import PATIENCE, Json, Place
from tests.e2e.reviewed import reviewed_place
from tests.forges.service import TOKEN


async def until_it_stands(daemon: Daemon, stage: str, waits_for: str) -> Json:
    """Wait until the one watched pull request stands so, and return its entry in the state."""
    with trio.fail_after(PATIENCE):
        while True:
            for entry in (await daemon.state())["watched"]:
                if entry["stage"] == stage and waits_for in entry["waits_for"]:
                    return entry
            await trio.sleep(0.1)


async def test_a_watched_pull_request_is_seen_everywhere(place: Place, start: Start) -> None:
    """While it waits for an approval, and when the agent has had all its runs and a person is
    needed; before and after that there is no word of it."""
    with reviewed_place(place, "github") as reviewed:
        reviewed.write(reactions={"checks": {"max_runs": 1}})
        async with start(FORGE_TOKEN=TOKEN) as daemon:
            await daemon.ready()
            before = (await place.sortie("status")).out
            place.add_issue("T-1")
            request = await reviewed.opened("T-1")
            reviewed.service.set_check(request.branch, "ci", "success")

            entry = await until_it_stands(daemon, "watched", "0 of 1 approvals")
            shown = await seen(place, daemon)

            first = reviewed.head("T-1")
            reviewed.service.set_check(request.branch, "ci", "failure")
            await reviewed.until(lambda: reviewed.head("T-1") != first)
            reviewed.service.set_check(reviewed.head("T-1"), "ci", "failure")
            spent = await until_it_stands(daemon, "needs_person", "once about checks")
            needy = await seen(place, daemon)
            transcript = (await place.sortie("logs", "T-1")).out

    assert "pull request" not in before
    assert (entry["issue_identifier"], entry["number"]) == ("T-1", 1)
    assert entry["pull_request"] in shown["status"]
    assert "1 pull request watched" in shown["status"]
    assert "it has 0 of 1 approvals" in shown["status"]
    assert "closed: it has 0 of 1 approvals" in shown["explain"]
    assert "runs used: conflicts 0 of 2, checks 0 of 1" in shown["explain"]
    assert "it has 0 of 1 approvals" in shown["board"]
    assert "Gates of its merge" in shown["issue"]
    assert "it has 0 of 1 approvals" in shown["issue"]
    assert "Gates between the issue and a run" not in shown["issue"]
    assert "sortie_watched_pull_requests 1.0" in shown["metrics"]

    assert (spent["exhausted"], spent["held"]) == ("checks", "reaction_exhausted")
    assert spent["runs"] == {"checks": 1}
    assert "needs a person" in needy["status"]
    assert "a push to its pull request by somebody else" in needy["explain"]
    assert "runs used: conflicts 0 of 2, checks 1 of 1" in needy["explain"]
    assert "answered: check " in needy["explain"]
    assert '<span class="warn-text">checks 1 of 1</span>' in needy["issue"]
    assert 'sortie_reactions_total{kind="checks",result="exhausted"} 1.0' in needy["metrics"]
    assert "answers checks" in transcript
    assert TOKEN not in str((shown, needy))


async def seen(place: Place, daemon: Daemon) -> dict[str, str]:
    """Return what each way shows."""
    pages = {"board": "/", "issue": "/issues/T-1", "metrics": "/metrics"}
    return {
        "status": (await place.sortie("status")).out,
        "explain": (await place.sortie("explain", "T-1")).out,
        **{name: (await daemon.get(path)).text for name, path in pages.items()},
    }
