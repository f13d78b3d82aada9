"""A look at the tracker that touches nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from sortie.daemon.options import RunOptions
from sortie.daemon.surveying import Surveyed, judge, read_issue, survey
from sortie.model import Blocker, SortieError
from sortie.scheduler import Policy
from tests.worker.rig import issue

POLICY = Policy(active_states=frozenset({"todo"}), terminal_states=frozenset({"done"}))
WORKFLOW = """\
---
tracker:
  kind: file
  active_states: [Todo]
  terminal_states: [Done]
file:
  path: issues
agent:
  max_concurrent_agents: 1
---
Work.
"""


def test_issues_are_judged_in_their_order() -> None:
    """Room goes to the first; every other one says what it lacks."""
    urgent, first, second = issue("u", priority=1), issue("a"), issue("b")
    blocked = issue("c", blocked_by=(Blocker(identifier="X"),))
    policy = Policy(
        active_states=POLICY.active_states,
        terminal_states=POLICY.terminal_states,
        max_concurrent_agents=2,
    )

    judged = judge((second, blocked, first, urgent), policy)

    assert judged == [
        Surveyed(urgent, ()),
        Surveyed(first, ()),
        Surveyed(second, ("no available orchestrator slots",)),
        Surveyed(
            blocked, ("it is blocked by X (state unknown)", "no available orchestrator slots")
        ),
    ]


def test_nothing_to_judge_is_nothing() -> None:
    """No candidate, no verdict."""
    assert judge((), POLICY) == []


@pytest.fixture
def options(tmp_path: Path) -> RunOptions:
    """Give a workflow with three issues."""
    (tmp_path / "WORKFLOW.md").write_text(WORKFLOW)
    issues = tmp_path / "issues"
    issues.mkdir()
    for name, state in (("T-1", "Todo"), ("T-2", "Todo"), ("T-3", "Done"), ("T-4", "Later")):
        (issues / f"{name}.md").write_text(
            f"---\ntitle: Mend {name}\nstate: {state}\n"
            "created_at: 2026-01-01T00:00:00Z\n---\nPlease.\n"
        )
    return RunOptions(workflow=tmp_path / "WORKFLOW.md", environ={"HOME": str(tmp_path)})


def test_a_survey_changes_nothing(options: RunOptions, tmp_path: Path) -> None:
    """Candidates come with their verdicts, and no file is made or touched."""
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}

    surveyed = survey(options)

    assert [(s.issue.identifier, s.reasons) for s in surveyed] == [
        ("T-1", ()),
        ("T-2", ("no available orchestrator slots",)),
    ]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("name", ["T-1", "T-3"])
def test_an_issue_is_read_by_its_identifier(options: RunOptions, name: str) -> None:
    """Active and terminal issues are found."""
    assert read_issue(options, name).title == f"Mend {name}"


@pytest.mark.parametrize("name", ["T-4", "T-9", ""])
def test_an_issue_that_is_not_there_is_an_error(options: RunOptions, name: str) -> None:
    """One that is unknown, or in no state of interest, is said not to be found."""
    with pytest.raises(SortieError, match="has no issue"):
        read_issue(options, name)
