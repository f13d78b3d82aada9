"""``sortie diff`` and ``sortie rescue``, without a daemon."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sortie.model import Stage
from sortie.scheduler.records import Record
from tests.cli.conftest import Cli
from tests.cli.test_history import T, record
from tests.cli.world import WORKFLOW
from tests.store.records import a_delivery, an_issue, begin, delivery, end

DIFF = "diff --git a/a.py b/a.py\n@@ -1 +1 @@\n-old\n+new \x1b[2J\n"


@pytest.fixture(autouse=True)
def _recorded(here: Path) -> None:
    (here / "WORKFLOW.md").write_text(WORKFLOW)
    first: list[Record] = [
        begin("r-1", an_issue("A")),
        delivery("r-1", an_issue("A"), a_delivery(), DIFF),
    ]
    dropped = delivery("r-2", an_issue("A"), a_delivery(Stage.DROPPED))
    second: list[Record] = [begin("r-2", an_issue("A")), dropped, end("r-2")]
    record(here, (T, [*first, end("r-1")]), (T + 1, second))


def test_the_newest_difference_is_shown(cli: Cli) -> None:
    """As it is, for other programs, below what it is of."""
    done = cli("diff", "A")

    assert done.code == 0
    assert done.out.endswith(f"\n\n{DIFF}")
    assert "branch sortie/A, commit bbbbbbbbbbbb: 1 file changed, +2 -1 against main" in done.out
    assert "pull request 7 (open): https://forge.example/team/thing/pulls/7" in done.out
    assert "verified: make: exit 0, 0.5s" in done.out


def test_programs_get_it_with_its_cli(cli: Cli) -> None:
    """In JSON."""
    done = cli("diff", "A", "--format", "json")

    assert json.loads(done.out) == {"issue": "A", "run_id": "r-1", "diff": DIFF}


def test_an_issue_without_one_is_an_error(cli: Cli) -> None:
    """So is a run of it that has none."""
    for command in (("diff", "B"), ("diff", "A", "--run", "r-2")):
        done = cli(*command)

        assert done.code == 1
        assert "no change of" in done.err


def test_rescue_needs_a_repository(cli: Cli) -> None:
    """And an issue, to show or restore."""
    done = cli("rescue", "list")
    assert (done.code, done.out) == (1, "")
    assert "repository.url is not set" in done.err
    assert cli("rescue", "show").code == 2
