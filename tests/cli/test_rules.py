"""``sortie rules``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from sortie.model import HoldReason, IssueId
from sortie.scheduler.records import RecordHold, RecordRule
from sortie.store.sqlite import open_store
from tests.cli.conftest import Cli
from tests.cli.world import write_issue
from tests.store.records import an_issue, retry

T = 1_700_000_000.0
FRONT = """\
---
tracker: {kind: file, active_states: [Todo], terminal_states: [Done], handoff_state: Review}
file: {path: issues}
db_path: ./s.db
workspace: {root: ./ws}
kiro: {trust_all_tools: true}
rules:
  - {name: docs, when: {labels: docs}}
  - {name: urgent, when: {priority: {lte: 1}}, agent: {max_turns: 1}}
---
Do {{ issue.identifier }}
"""


@pytest.fixture
def backlog(here: Path) -> Path:
    (here / "WORKFLOW.md").write_text(FRONT)
    (here / "issues").mkdir(exist_ok=True)
    for name, fields in {
        "U-1": "priority: 1",
        "T-1": "priority: 3",
        "D-1": "labels: [docs]",
    }.items():
        text = f"---\nid: {name}\ntitle: x\nstate: Todo\n{fields}\n---\nx\n"
        (here / "issues" / f"{name}.md").write_text(text)
    return here


@pytest.mark.parametrize(
    ("issue", "rule", "passed_over"),
    [
        ("D-1", "docs", []),
        ("U-1", "urgent", ["docs: it has no label docs"]),
        (
            "T-1",
            None,
            ["docs: it has no label docs", "urgent: its priority is 3, not lte 1"],
        ),
    ],
)
def test_the_rule_of_an_issue_and_why_not_those_before_it(
    cli: Cli, backlog: Path, issue: str, rule: str | None, passed_over: list[str]
) -> None:
    """Programs are told the same as people."""
    ran = cli("rules", issue, "--format", "json")
    told = cli("rules", issue)

    assert json.loads(ran.out) == {
        "issue": issue,
        "state": "Todo",
        "active": True,
        "rule": rule,
        "passed_over": passed_over,
        "settings": [
            {"setting": "agent.max_turns", "top_level": "5", "rule": "1"},
        ]
        if rule == "urgent"
        else [],
        "would": [],
    }
    decides = f"rule {rule} decides" if rule else "the top level of the settings decides"
    assert told.out.splitlines() == [
        f"{issue} (Todo): {decides}",
        *(f"not {line}" for line in passed_over),
        *(["sets agent.max_turns: 1 instead of 5"] if rule == "urgent" else []),
    ]


def test_an_issue_that_is_not_there_is_told_so(cli: Cli, backlog: Path) -> None:
    """It is an error, with one line."""
    ran = cli("rules", "X-1")

    assert (ran.code, ran.err) == (
        1,
        "sortie: the tracker has no issue X-1; look at its spelling\n",
    )


def test_an_issue_that_is_not_active_is_found(cli: Cli, backlog: Path) -> None:
    """It is told which rule would decide in which active state."""
    write_issue(backlog, "D-2", state="Done", labels="[docs]")
    path = backlog / "WORKFLOW.md"
    path.write_text(
        path.read_text().replace(
            "rules:\n",
            "rules:\n  - {name: build, when: {}, tracker: {active_states: [To build]}}\n",
        )
    )

    ran = cli("rules", "D-2")
    document = json.loads(cli("rules", "D-2", "--format", "json").out)

    assert ran.out.splitlines() == [
        "D-2 (Done): no rule decides, as this is no active state",
        "in To build: rule build would",
        "in Todo: rule docs would",
    ]
    assert (document["active"], document["rule"]) == (False, None)
    assert document["would"] == [
        {"rule": "build", "states": ["To build"]},
        {"rule": "docs", "states": ["Todo"]},
    ]


def test_a_rule_that_was_chosen_decides_in_any_state(cli: Cli, backlog: Path) -> None:
    """As long as the issue is in hand."""
    write_issue(backlog, "D-2", state="Review", labels="[docs]")

    async def commit() -> None:
        async with open_store(str(backlog / "s.db")) as store:
            issue = replace(an_issue("D-2", state="Review"), id=IssueId("D-2"))
            chosen = RecordRule(issue_id=issue.id, rule="urgent")
            hold = RecordHold(issue=issue, reason=HoldReason.OPERATOR, detail="")
            await store.commit([chosen, hold], T)

    trio.run(commit)
    ran = cli("rules", "D-2")

    assert ran.out.splitlines() == [
        "D-2 (Review): rule urgent decides, as it was chosen when the issue was claimed",
        "not docs: the rule does not work on issues in the state Review",
        "sets agent.max_turns: 1 instead of 5",
    ]


def test_the_prompt_of_an_issue_is_that_of_its_rule(cli: Cli, backlog: Path) -> None:
    """So is how many turns there are."""
    path = backlog / "WORKFLOW.md"
    text = path.read_text().replace("agent: {max_turns: 1}", "prompt: hurry, agent: {max_turns: 1}")
    path.write_text(
        f"{text}--- prompt: hurry\nHurry {{{{ run.max_turns }}}} {{{{ stage.name }}}}\n"
    )

    assert "Hurry 1 urgent\n" in cli("render", "U-1").out
    assert "Do T-1\n" in cli("render", "T-1").out


def test_all_rules_have_their_issues_counted(cli: Cli, backlog: Path) -> None:
    """Those that wait, are held or could be started, and those without a rule; also on record."""
    waits, held = (an_issue(name, state="Todo") for name in ("W-1", "H-1"))
    hold = RecordHold(issue=held, reason=HoldReason.OPERATOR, detail="")

    async def commit() -> None:
        async with open_store(str(backlog / "s.db")) as store:
            chosen = RecordRule(issue_id=waits.id, rule="urgent")
            await store.commit([retry(waits), chosen, hold], T)

    trio.run(commit)
    told = cli("rules")

    assert json.loads(cli("rules", "--format", "json").out) == [
        {"rule": "docs", "candidates": 1, "running": 0, "waiting": 0, "held": 0},
        {"rule": "urgent", "candidates": 1, "running": 0, "waiting": 1, "held": 0},
        {"rule": None, "candidates": 1, "running": 0, "waiting": 0, "held": 1},
    ]
    assert [line.split() for line in told.out.splitlines()] == [
        ["rule", "candidates", "running", "waiting", "held"],
        ["docs", "1", "0", "0", "0"],
        ["urgent", "1", "0", "1", "0"],
        ["default", "1", "0", "0", "1"],
    ]


def test_a_workflow_file_in_the_place_of_the_issue_is_told_so(cli: Cli, backlog: Path) -> None:
    """The first word is the issue."""
    ran = cli("rules", "WORKFLOW.md")

    assert ran.code == 1
    assert ran.err.startswith("sortie: WORKFLOW.md is taken for an issue; name the workflow file")
