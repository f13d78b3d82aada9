"""``sortie stats`` as its users see it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from sortie.model import Spending
from sortie.scheduler.records import RecordDay
from tests.cli.conftest import Cli
from tests.cli.test_history import record
from tests.cli.world import WORKFLOW, Ran
from tests.store.records import an_issue, begin, end, spending

TABLE = """\
day         agent  runs  turns   took       credits        tokens               cost
2026-11-23  kiro      1      1  1m15s          0.25  not reported       not reported
2026-11-22  other     1      3  1m15s  not reported        12,345  $1.50 (estimated)
all                   2      4  2m30s          0.25        12,345  $1.50 (estimated)
"""
T = 1_700_000_000.0


@pytest.fixture
def two_days(here: Path) -> None:
    """Two agents, of which each tells something else."""
    (here / "WORKFLOW.md").write_text(WORKFLOW)
    used = Spending(input_tokens=12_000, output_tokens=345, cost_usd=1.5, estimated_usd=1.5)
    first, second = an_issue("A-1"), an_issue("B-2")
    record(
        here,
        (T, [RecordDay(day="2026-11-22"), begin("r-1", first, agent="other")]),
        (T + 75, [spending("r-1", used), end("r-1", turns=3)]),
        (T + 80, [RecordDay(day="2026-11-23"), begin("r-2", second)]),
        (T + 155, [spending("r-2", Spending(credits=0.25)), end("r-2", turns=1)]),
    )


@pytest.mark.usefixtures("two_days")
def test_days_and_agents_are_told_apart(cli: Cli) -> None:
    """Newest first, with a sum below; what is not told is not reported, and never 0."""
    assert cli("stats") == Ran(code=0, out=TABLE, err="")


@pytest.mark.usefixtures("two_days")
def test_programs_get_null_for_what_is_unknown(cli: Cli) -> None:
    """Each row has every amount, and days can be limited."""
    (row,) = json.loads(cli("stats", "--days", "1", "--format", "json").out)

    assert (row["day"], row["agent"], row["runs"]) == ("2026-11-23", "kiro", 1)
    assert (row["credits"], row["tokens"], row["cost_usd"]) == (0.25, None, None)


def test_without_a_database_there_is_nothing(cli: Cli, here: Path) -> None:
    """That is no failure, and a line says why."""
    (here / "WORKFLOW.md").write_text(WORKFLOW)

    ran, programs = cli("stats"), cli("stats", "--format", "json")

    missing = f"there is no database {here / '.sortie.db'} yet: no daemon has run here\n"
    assert ran == Ran(code=0, out="", err=missing)
    assert programs == Ran(code=0, out="[]\n", err=missing)


def test_a_run_that_has_not_ended_is_not_denied(cli: Cli, here: Path) -> None:
    """What is recorded so far is said, and not that there was no run."""
    (here / "WORKFLOW.md").write_text(WORKFLOW)
    record(here, (T, [RecordDay(day="2026-11-22"), begin("r-1", an_issue("A-1"))]))

    ran = cli("stats")

    said = "no run has ended yet, and none under way has told that it used anything\n"
    assert ran == Ran(code=0, out="", err=said)


def test_rules_are_told_apart(cli: Cli, here: Path) -> None:
    """Of the runs that ended in the last days; default is the top level of the settings."""
    (here / "WORKFLOW.md").write_text(WORKFLOW)
    now, issue = time.time(), an_issue("A-1")
    record(
        here,
        (T, [replace(begin("r-0", issue), rule="docs")]),
        (T + 5, [end("r-0", turns=7)]),
        (now - 200, [replace(begin("r-1", issue), rule="docs")]),
        (now - 125, [spending("r-1", Spending(credits=0.25)), end("r-1", turns=1)]),
        (now - 120, [begin("r-2", issue)]),
        (now - 60, [end("r-2", turns=2)]),
        (now - 50, [replace(begin("r-3", issue), rule="slow")]),
    )

    rows = json.loads(cli("stats", "--by-rule", "--format", "json").out)

    assert [(row["rule"], row["runs"], row["turns"], row["credits"]) for row in rows] == [
        (None, 1, 2, None),
        ("docs", 1, 1, 0.25),
    ]
    assert [line.split()[:2] for line in cli("stats", "--by-rule").out.splitlines()] == [
        ["rule", "runs"],
        ["default", "1"],
        ["docs", "1"],
    ]
