"""What agents use is limited, for an issue and for a day, and survives the daemon."""

from __future__ import annotations

import json
import signal

from tests.e2e.conftest import Start
from tests.e2e.place import Json, Place

HANDOFF = "handoff"


async def shown(place: Place, *command: str) -> Json:
    """Return what a command shows as JSON."""
    ran = await place.sortie(*command, "--format", "json")
    assert (ran.code, ran.err) == (0, ""), ran
    shown: Json = json.loads(ran.out)
    return shown


def shut(explanation: Json) -> dict[str, str]:
    """Return why an issue may not run, by gate."""
    return {gate["gate"]: gate["reason"] for gate in explanation["gates"] if not gate["open"]}


async def test_a_budget_of_a_day_stops_dispatch_until_it_is_raised(
    place: Place, start: Start
) -> None:
    """Once it is used up no run is started, a kill of the daemon included, and everybody who asks
    is told; a higher one lets the rest run, without a restart."""
    place.write_workflow(agent={"max_concurrent_agents": 1}, budget={"daily_credits": 5})
    place.add_issue("A", "credits=5.5", priority=1)

    async with start() as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle=HANDOFF)
        spent = await daemon.line("budget.spent")
        place.add_issue("B", "credits=1", priority=2)
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    async with start() as daemon:
        await daemon.ready()
        assert (await place.sortie("refresh")).code == 0
        status = await shown(place, "status")
        why = await shown(place, "explain", "B")
        before = daemon.lines("run.started")
        place.write_workflow(agent={"max_concurrent_agents": 1}, budget={"daily_credits": 50})
        await daemon.line("issue.moved", issue="B", lifecycle=HANDOFF)
    days = await shown(place, "stats")

    assert spent["key"] == "budget.daily_credits"
    assert before == []
    assert (status["today"]["credits"], status["today"]["daily_credits"]) == (5.5, 5)
    assert "budget.daily_credits" in " ".join(shut(why).values())
    assert json.dumps(days).count('"credits": 6.5') >= 1


async def test_a_limit_of_an_issue_holds_it_until_it_is_raised(place: Place, start: Start) -> None:
    """An issue that has used it up is held, over a kill of the daemon; others run on."""
    place.write_workflow(agent={"max_credits": 5, "max_turns": 3}, tracker={"handoff_state": None})
    place.add_issue("A", "credits=6")

    async with start() as daemon:
        held = await daemon.line("issue.held", issue="A")
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    async with start() as daemon:
        await daemon.ready()
        status = await shown(place, "status")
        before = daemon.lines("run.started", issue="A")
        place.write_workflow(
            agent={"max_credits": 20, "max_turns": 1}, tracker={"handoff_state": "Human Review"}
        )
        await daemon.line("issue.moved", issue="A", lifecycle=HANDOFF)
    rows = await place.history()

    assert held["reason"] == "usage_budget_exhausted"
    assert [(h["issue_identifier"], h["reason"]) for h in status["held"]] == [
        ("A", "usage_budget_exhausted")
    ]
    assert before == []
    assert [row["credits"] for row in rows] == [6.0, 6.0]
