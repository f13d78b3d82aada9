"""What becomes of a turn, as ``sortie history`` and the API tell it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.e2e.conftest import Start
from tests.e2e.place import Json, Place

STALL, TURN = 10_000, 14_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What the simulator is told, and what must be on record then; no error kind: a success."""

    name: str
    directives: str
    status: str
    error_kind: str | None
    says: str | None = None


RETRIED = (
    Case(
        name="NO-TRAILER",
        directives="no_trailer=1",
        status="failed",
        error_kind="turn_failed",
        says="kiro exited without a credits trailer",
    ),
    Case(
        name="AUTHENTICATION",
        directives="auth_failure=1",
        status="failed",
        error_kind="response_error",
        says="kiro authentication failed",
    ),
    Case(
        name="EXIT-1",
        directives="exit=1",
        status="failed",
        error_kind="port_exit",
        says="kiro exited with a non-zero status: 1",
    ),
    Case(
        name="SIGKILL",
        directives="signal=KILL",
        status="cancelled",
        error_kind="turn_cancelled",
        says="SIGKILL",
    ),
    Case(
        name="SIGTERM",
        directives="signal=TERM",
        status="cancelled",
        error_kind="turn_cancelled",
        says="SIGTERM",
    ),
    Case(
        name="EXIT-143",
        directives="exit=143",
        status="cancelled",
        error_kind="turn_cancelled",
        says="SIGTERM",
    ),
    Case(
        name="SIGUSR1",
        directives="signal=USR1",
        status="failed",
        error_kind="port_exit",
        says="SIGUSR1",
    ),
    Case(
        name="SILENT",
        directives="hang=1",
        status="stalled",
        error_kind="turn_stalled",
        says="agent.stall_timeout_ms",
    ),
    Case(
        name="ENDLESS",
        directives="delay=600",
        status="timed_out",
        error_kind="turn_timeout",
        says="agent.turn_timeout_ms",
    ),
)
HELD = Case(
    name="EXIT-127",
    directives="exit=127",
    status="failed",
    error_kind="agent_not_found",
    says="kiro was not found (exit 127)",
)
DONE = Case(name="TRAILER", directives="credits=0.25", status="succeeded", error_kind=None)
CASES = (DONE, HELD, *RETRIED)
TRIGGERS = {"SILENT": "stall", "ENDLESS": "timeout"}


def by_name(entries: list[Json]) -> dict[str, Json]:
    """Arrange entries of the API by issue."""
    return {entry["issue_identifier"]: entry for entry in entries}


async def test_each_outcome_has_its_status_error_kind_and_consequence(
    place: Place, start: Start
) -> None:
    """Success is handed off, an agent that is not there is held, all else is tried again."""
    place.write_workflow(
        agent={
            "command": "sortie-kiro-sim",
            "max_turns": 1,
            "max_concurrent_agents": len(CASES),
            "stall_timeout_ms": STALL,
            "turn_timeout_ms": TURN,
            "stop_grace_ms": 500,
        }
    )
    for case in CASES:
        place.add_issue(case.name, case.directives)
    plans: dict[str, Json] = {}
    waiting: dict[str, Json] = {}

    async with start() as daemon:
        await daemon.line("issue.moved", issue=DONE.name, lifecycle="handoff")
        for case in RETRIED:
            plans[case.name] = await daemon.line("retry.scheduled", issue=case.name)
            if case.name not in waiting:
                now = by_name((await daemon.state())["waiting"])
                waiting = {n: now[n] for n in now.keys() & {c.name for c in RETRIED}} | waiting
        state = await daemon.state()
    first = {row["issue"]: row for row in await place.history() if row["attempt"] == 0}

    told = {
        name: (row["status"], row["error_kind"], row["turns"], row["host"], row["agent"])
        for name, row in first.items()
    }
    assert told == {c.name: (c.status, c.error_kind, 1, "local", "kiro") for c in CASES}
    for case in CASES:
        assert (case.says or "") in (first[case.name]["error"] or ""), case.name
        assert (first[case.name]["error"] is None) == (case.says is None)
    assert first[DONE.name]["credits"] == 0.25
    assert first["NO-TRAILER"]["credits"] == 0.05  # as Kiro has kept them
    assert {(n, p["kind"], p["attempt"], p["trigger"], p["delay"]) for n, p in plans.items()} == {
        (c.name, "retry", 1, TRIGGERS.get(c.name, "error"), 10.0) for c in RETRIED
    }
    assert {(n, w["kind"], w["attempt"]) for n, w in waiting.items()} == {
        (c.name, "retry", 1) for c in RETRIED
    }
    assert DONE.name not in by_name(state["waiting"])  # its handoff did, for a moment
    assert [(h["issue_identifier"], h["reason"]) for h in state["held"]] == [
        (HELD.name, "agent_not_found")
    ]
    assert place.state_of(DONE.name) == "Human Review"
    assert {place.state_of(c.name) for c in (HELD, *RETRIED)} == {"In Progress"}


@pytest.mark.parametrize(
    ("key", "says"),
    [
        (None, "KIRO_API_KEY is not set"),
        pytest.param("  ", "KIRO_API_KEY is not set", marks=pytest.mark.full),
        ("invalid", "invalid or expired"),
        pytest.param("bad-key", "invalid or expired", marks=pytest.mark.full),
    ],
    ids=["missing", "blank", "refused with exit 0", "refused with exit 1"],
)
async def test_a_credential_that_is_no_good_starts_no_turn(
    place: Place, start: Start, key: str | None, says: str
) -> None:
    """The run fails as ``response_error`` before any agent is started, and is tried again."""
    place.add_issue("A")

    async with start(KIRO_API_KEY=key) as daemon:
        plan = await daemon.line("retry.scheduled", issue="A")
        waiting = (await daemon.state())["waiting"]
    [row] = await place.history()

    assert (row["status"], row["error_kind"], row["turns"]) == ("failed", "response_error", 0)
    assert says in row["error"]
    assert (plan["kind"], plan["attempt"], plan["trigger"]) == ("retry", 1, "error")
    assert [(w["issue_identifier"], w["attempt"]) for w in waiting] == [("A", 1)]
    assert place.agents() == []


async def test_a_program_that_is_missing_is_held_not_retried(place: Place, start: Start) -> None:
    """One issue puts the fault on record, no other is touched, and mending it lets both go on."""
    place.write_workflow(agent={"command": "no-such-program", "max_turns": 1})
    place.add_issue("A", priority=1)
    place.add_issue("B", priority=2)

    async with start() as daemon:
        await daemon.line("issue.held", issue="A", reason="agent_not_found")
        state, ready = await daemon.state(), await daemon.get("/readyz")
        rows = await place.history()
        place.write_workflow()
        await daemon.line("hold.ended", issue="A")
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        await daemon.line("issue.moved", issue="B", lifecycle="handoff")

    assert [(r["issue"], r["status"], r["error_kind"], r["turns"]) for r in rows] == [
        ("A", "failed", "agent_not_found", 0)
    ]
    assert "no-such-program" in rows[0]["error"]
    assert state["waiting"] == []
    assert [(h["issue_identifier"], h["reason"]) for h in state["held"]] == [
        ("A", "agent_not_found")
    ]
    assert ready.status_code == 503
    assert "no-such-program" in ready.text
    assert place.state_of("B") == "Human Review"
