"""``sortie explain``."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sortie.cli.explain import explanation
from sortie.cli.output import UNLIMITED
from sortie.model import ErrorKind, RunStatus, Streak
from sortie.web.issue import BudgetView, ExplanationView, FailureView
from sortie.web.watches import GateAnswer
from tests.cli.conftest import Cli
from tests.cli.fake_daemon import TOKEN, Asked, FakeDaemon
from tests.cli.test_history import record
from tests.cli.world import WORKFLOW, Ran
from tests.store.records import an_issue, begin, end
from tests.web.dashboard.watched import watch, watched

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

next     somebody asks for a retry
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
        "gates": (GateAnswer(gate="claim", open=False, reason="it waits"),),
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
    assert explanation(view(), NOON, UNLIMITED).splitlines() == [
        "DEMO-3 (To Do): Paint",
        "waiting since 2026-01-01 11:56:55Z (3m05s): it failed twice",
        "attempt 2",
        "",
        "gate  claim  closed: it waits",
        "",
        "next  2026-01-01 12:00:40Z (in 40s): a slot has to be free then",
    ]


@pytest.mark.usefixtures("here")
def test_what_the_tracker_lets_sortie_ask_is_told() -> None:
    """Each budget is a line; what the tracker did not say is left out."""
    budgets = (
        BudgetView(name="requests", remaining=12, limit=5000, resets_at=NOON),
        BudgetView(name="search", remaining=None, limit=30, resets_at=None),
    )

    told = explanation(view(budgets=budgets), NOON, UNLIMITED).splitlines()

    assert told[-2:] == [
        "tracker  budget of requests: 12 of 5,000 left until 12:00:00Z",
        "tracker  budget of search: unknown of 30 left",
    ]


@pytest.mark.usefixtures("here")
def test_what_is_due_is_said_to_be() -> None:
    """A time that has passed is due, not negative."""
    told = explanation(view(next_run_at=NOON - timedelta(hours=1)), NOON, UNLIMITED).splitlines()

    assert told[-1] == "next  2026-01-01 11:00:00Z (due): a slot has to be free then"


def test_a_run_is_named() -> None:
    """Of a run its id, turn and attempt are told."""
    told = explanation(
        view(standing="running", run_id="r-1", turn=2, attempt=0), NOON, UNLIMITED
    ).splitlines()

    assert told[2] == "run r-1, turn 2, attempt 0"


def test_the_last_failure_is_told() -> None:
    """Why it failed stands with when, so that nobody has to look it up."""
    at = NOON - timedelta(minutes=2)
    failure = FailureView(kind="turn_failed", message="it said no", at=at, run_id="r-1")
    told = explanation(view(last_failure=failure), NOON, UNLIMITED).splitlines()

    assert told[3] == "last failure 2026-01-01 11:58:00Z (2m00s ago): turn_failed: it said no"


@pytest.mark.parametrize("width", [80, 40])
def test_an_explanation_fits_the_terminal(width: int) -> None:
    """At a terminal's width the sentences are wrapped under where they begin."""
    told = explanation(view(next_step="word " * 40), NOON, width).splitlines()

    assert max(map(len, told)) <= width
    after = told[next(n for n, line in enumerate(told) if line.startswith("next")) + 1]
    assert after.startswith("      word")


RUNS = """\
A-1 (Todo): Title of A-1
it is not in hand; when its last run ended at 2023-11-14 22:14:40Z, as failed, it was in Todo

started                took  issue  attempt  status     turns  used          host
2023-11-14 22:14:40Z   0.5s  A-1          2  failed         0                local
    turn_failed: no
2023-11-14 22:13:20Z  1m15s  A-1          0  succeeded      1  not reported  local
"""
T = 1_700_000_000.0


@pytest.fixture
def two_runs(here: Path) -> None:
    """Two runs of A-1 on record."""
    (here / "WORKFLOW.md").write_text(WORKFLOW)
    issue = an_issue("A-1")
    failed = end("r-2", RunStatus.FAILED, error_kind=ErrorKind.TURN_FAILED, error="no", turns=0)
    record(
        here,
        (T, [begin("r-1", an_issue("A-1", description="Mend\nit \x1b[31mwell."))]),
        (T + 75, [end("r-1", turns=1)]),
        (T + 80, [begin("r-2", issue, streak=Streak(failures=2))]),
        (T + 80.5, [failed]),
    )


@pytest.mark.usefixtures("two_runs")
def test_a_finished_issue_is_looked_up_in_history(cli: Cli, daemon: FakeDaemon) -> None:
    """What the daemon says of an issue that it does not have in hand is followed by its runs."""
    error = {"error": {"code": "not_found", "message": "no issue A-1; it is finished"}}
    daemon.answers["GET /api/v1/issues/A-1/explain"] = (404, error)

    assert cli("explain", "A-1") == Ran(code=0, out=RUNS, err="")
    document = json.loads(cli("explain", "A-1", "--format", "json").out)
    assert (document["issue_identifier"], document["standing"]) == ("A-1", None)
    assert document["detail"].startswith("it is not in hand; when its last run ended")
    assert [run["run_id"] for run in document["runs"]] == ["r-2", "r-1"]
    assert (document["title"], document["description"]) == ("Title of A-1", "")
    assert document["runs"][1]["description"] == "Mend\nit \x1b[31mwell."


def test_what_an_issue_asks_for_is_told(cli: Cli, daemon: FakeDaemon, here: Path) -> None:
    """Of one in hand and of one that was handed off; it stands on a line, bounded, and is
    harmless."""
    asked = "Mend\nit \x1b[31mwell." + " more" * 500
    document = DOCUMENT | {"description": asked}
    daemon.answers["GET /api/v1/issues/DEMO-3/explain"] = (200, document)
    (here / "WORKFLOW.md").write_text(WORKFLOW)
    record(here, (T, [begin("r-1", an_issue("A-1", description=asked)), end("r-1")]))

    for shown in (cli("explain", "DEMO-3").out, cli("explain", "A-1").out):
        (line,) = [line for line in shown.splitlines() if line.startswith("asks for: ")]
        assert line.startswith("asks for: Mend it \\x1b[31mwell. more")
        assert len(line) < 700


@pytest.mark.usefixtures("two_runs")
def test_without_a_daemon_the_runs_are_shown(cli: Cli, here: Path) -> None:
    """That no daemon runs is why nothing happens; what was before is on record."""
    ran = cli("explain", "A-1")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("no daemon runs for WORKFLOW.md")
    assert RUNS in ran.out


@pytest.mark.usefixtures("two_runs")
def test_an_issue_without_a_run_is_still_one_line(cli: Cli) -> None:
    """Nothing is on record of it, so there is nothing to show."""
    ran = cli("explain", "B-1")

    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)


def test_a_watched_pull_request_is_told_of() -> None:
    """How it stands, what was used and answered; gates once, where no table has them already."""
    told = watch(watched(NOON)[0])

    held = explanation(view(standing="held", watch=told), NOON, 200)
    alone = explanation(view(standing="watched", watch=told, gates=told.gates), NOON, 200)

    for shown in (held, alone):
        assert "watched  https://forge.example/shop/web/pull/71\n" in shown
        assert "needs a person, a draft: its issue is held: the agent was asked 3 times" in shown
        assert "a run answers: the failed check <b>ci</b>, a thread of alice about web/sho" in shown
        assert "runs used: checks 1 of 2, review 3 of 3, commands 1\n" in shown
        assert "check 12 at 0123456789ab, note in a review 8, and 7 before\n" in shown
    assert "watched  gate approvals: changes are requested by alice\n" in held
    assert alone.count("changes are requested by alice") == 1
