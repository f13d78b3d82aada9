"""``sortie explain``."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from sortie.cli.explain import lines
from sortie.web import ExplanationView, GateView
from tests.cli.conftest import Cli
from tests.cli.fake_daemon import TOKEN, Asked, FakeDaemon
from tests.cli.world import Ran

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DOCUMENT = {
    "issue_id": "3",
    "issue_identifier": "DEMO-3",
    "title": "Paint [red]\x1b[31mthe fence",
    "state": "To Do",
    "standing": "held",
    "detail": "an operator\nstopped it",
    "since": None,
    "run_id": None,
    "turn": None,
    "attempt": None,
    "gates": [
        {"gate": "state", "open": True, "reason": None},
        {"gate": "blockers", "open": False, "reason": "it is blocked by DEMO-1 (To Do)"},
    ],
    "next_run_at": None,
    "next_step": "somebody asks for a retry",
    "ways_out": ["sortie retry DEMO-3", "a change of its state"],
}
TEXT = """\
DEMO-3 (To Do): Paint [red]\\x1b[31mthe fence
held: an operator stopped it

gate  state     open
gate  blockers  closed: it is blocked by DEMO-1 (To Do)

next  somebody asks for a retry
way out  sortie retry DEMO-3
way out  a change of its state
"""


def view(**changes: object) -> ExplanationView:
    values: dict[str, object] = {
        "issue_id": "3",
        "issue_identifier": "DEMO-3",
        "title": "Paint",
        "state": "To Do",
        "standing": "waiting",
        "detail": "it failed twice",
        "since": NOON - timedelta(minutes=3, seconds=5),
        "run_id": None,
        "turn": None,
        "attempt": 2,
        "gates": (GateView(gate="claim", reason="it waits"),),
        "next_run_at": NOON + timedelta(seconds=40),
        "next_step": "a slot has to be free then",
        "ways_out": (),
    }
    return ExplanationView(**values | changes)  # type: ignore[arg-type]


def test_people_are_told_why_and_what_to_do(cli: Cli, daemon: FakeDaemon) -> None:
    """The headline comes first, then every gate, what is next, and the ways out; no text acts."""
    path = "/api/v1/issues/DEMO-3/explain"
    daemon.answers[f"GET {path}"] = (200, DOCUMENT)

    assert cli("explain", "DEMO-3") == Ran(code=0, out=TEXT, err="")
    assert daemon.asked == [Asked(method="GET", path=path, authorization=f"Bearer {TOKEN}")]


def test_programs_get_the_answer(cli: Cli, daemon: FakeDaemon) -> None:
    """JSON is what the API shows."""
    daemon.answers["GET /api/v1/issues/a%2Fb/explain"] = (200, DOCUMENT)

    ran = cli("explain", "a/b", "--format", "json")

    assert (ran.code, json.loads(ran.out)) == (0, DOCUMENT)


def test_an_unknown_issue_is_one_line(cli: Cli, daemon: FakeDaemon) -> None:
    """What the daemon says of an issue that it does not know is the complaint."""
    error = {"error": {"code": "not_found", "message": "no issue X; look at its spelling"}}
    daemon.answers["GET /api/v1/issues/X/explain"] = (404, error)

    assert cli("explain", "X") == Ran(
        code=1, out="", err="sortie: no issue X; look at its spelling\n"
    )


def test_an_answer_of_another_version_is_one_line(cli: Cli, daemon: FakeDaemon) -> None:
    """What cannot be laid out is told, and is no traceback."""
    daemon.answers["GET /api/v1/issues/X/explain"] = (200, {"message": "x"})

    ran = cli("explain", "X")

    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)


@pytest.mark.usefixtures("here")  # its time zone is UTC
def test_times_are_told_both_ways() -> None:
    """A time is shown as such and relative to now."""
    assert list(lines(view(), NOON)) == [
        "DEMO-3 (To Do): Paint",
        "waiting since 2026-01-01 11:56:55 (3m05s): it failed twice",
        "attempt 2",
        "",
        "gate  claim  closed: it waits",
        "",
        "next  2026-01-01 12:00:40 (in 40s): a slot has to be free then",
    ]


@pytest.mark.usefixtures("here")
def test_what_is_due_is_said_to_be() -> None:
    """A time that has passed is due, not negative."""
    told = list(lines(view(next_run_at=NOON - timedelta(hours=1)), NOON))

    assert told[-1] == "next  2026-01-01 11:00:00 (due): a slot has to be free then"


def test_a_run_is_named() -> None:
    """Of a run its id, turn and attempt are told."""
    told = list(lines(view(standing="running", run_id="r-1", turn=2, attempt=0), NOON))

    assert told[2] == "run r-1, turn 2, attempt 0"
