"""``sortie render``."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from sortie.model import IssueId
from sortie.scheduler.records import RecordRule
from tests.cli.conftest import Cli
from tests.cli.test_history import record
from tests.cli.world import WORKFLOW, Ran, write_issue

TEMPLATE = "{{ issue.title }}|{{ workspace.path }}|{{ workspace.host }}|{{ run.turn_number }}\n"


@pytest.fixture(autouse=True)
def _workflow(here: Path) -> None:
    head = WORKFLOW.rpartition("---\n")[0]
    (here / "WORKFLOW.md").write_text(f"{head}---\n{TEMPLATE}")
    write_issue(here, "A-1", title="'{{ 7*7 }}'")


def test_the_first_turn_is_whole(cli: Cli, here: Path) -> None:
    """The prompt holds the workspace to come and the status lines; issue text stays text."""
    ran = cli("render", "A-1")

    assert (ran.code, ran.err) == (0, "")
    prompt = ran.out.partition("working directory.\n\n")[2]
    assert prompt.startswith(f"{{{{ 7*7 }}}}|{os.path.realpath(here)}/work/A-1|local|1\n\nWhen")
    assert "needs-human-review" in ran.out


def test_a_later_turn_says_only_how_to_finish(cli: Cli, here: Path) -> None:
    """A continuation is rendered as such."""
    ran = cli("render", "A-1", "--turn", "2")

    assert ran.out.partition("working directory.\n\n")[2] == (
        f"{{{{ 7*7 }}}}|{os.path.realpath(here)}/work/A-1|local|2\n\n"
        "When nothing is left to do, write the word done to the file .sortie/status, and stop.\n"
    )


def test_a_prompt_is_data_too(cli: Cli) -> None:
    """JSON names the issue and holds the same prompt."""
    text = _plain(cli("render", "A-1").out)

    found = json.loads(cli("render", "A-1", "--format", "json").out)
    found["prompt"] = _plain(found["prompt"])

    assert found == {
        "issue": "A-1",
        "issue_id": "A-1",
        "turn": 1,
        "attempt": 0,
        "rule": None,
        "prompt": text.removesuffix("\n"),
    }


def _plain(prompt: str) -> str:
    """Return a prompt without the random word of its fences."""
    return re.sub(r"[0-9a-f]{16}", "WORD", prompt)


RULES = """\
rules:
  - name: docs
    when: {labels: docs}
    prompt: docs
    agent: {max_turns: 3}
"""


def _with_rules(here: Path) -> None:
    path = here / "WORKFLOW.md"
    head, body = path.read_text().removeprefix("---\n").split("---\n", 1)
    path.write_text(
        f"---\n{head}{RULES}---\n{body}--- prompt: docs\nDocs {{{{ run.max_turns }}}}\n"
    )


def test_the_prompt_is_that_of_the_rule(cli: Cli, here: Path) -> None:
    """The rule that matches decides for prompt and turns, --rule names another or the top level."""
    _with_rules(here)
    write_issue(here, "A-2", labels="[docs]")

    plain, ruled = cli("render", "A-1"), cli("render", "A-2")
    forced, top = (
        json.loads(cli("render", issue, "--rule", rule, "--format", "json").out)
        for issue, rule in (("A-1", "docs"), ("A-2", "default"))
    )

    assert ("|local|1" in plain.out, "Docs 3" in plain.out) == (True, False)
    assert ("|local|1" in ruled.out, "Docs 3" in ruled.out) == (False, True)
    assert ("Docs 3" in forced["prompt"], forced["rule"]) == (True, "docs")
    assert ("Docs 3" in top["prompt"], top["rule"]) == (False, None)


def test_a_rule_that_was_chosen_stays_so(cli: Cli, here: Path) -> None:
    """The prompt is that of the rule on record, also where another one would match now."""
    _with_rules(here)
    record(here, (1.7e9, [RecordRule(issue_id=IssueId("A-1"), rule="docs")]))

    assert "Docs 3" in cli("render", "A-1").out


def test_an_unknown_rule_is_one_line(cli: Cli, here: Path) -> None:
    """A rule that the settings do not have is named, with one like it."""
    without = cli("render", "A-1", "--rule", "doc")
    _with_rules(here)
    misspelt = cli("render", "A-1", "--rule", "doc")

    assert without == Ran(
        code=1, out="", err="sortie: there is no rule doc; the settings have no rules\n"
    )
    assert (misspelt.code, misspelt.out, misspelt.err.count("\n")) == (1, "", 1)
    assert "docs" in misspelt.err


def test_nothing_is_written(cli: Cli, here: Path) -> None:
    """Rendering leaves no database, no workspace and no lock."""
    before = sorted(here.rglob("*"))

    assert cli("render", "A-1").code == 0
    assert sorted(here.rglob("*")) == before


def test_an_unknown_issue_is_one_line(cli: Cli) -> None:
    """An issue that the tracker does not have is named."""
    ran = cli("render", "A-2")

    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert ran.err.startswith("sortie: ")
    assert "A-2" in ran.err


def test_a_template_that_fails_says_where(cli: Cli, here: Path) -> None:
    """A mistake that only the issue brings to light is one line with the template's line."""
    path = here / "WORKFLOW.md"
    path.write_text(path.read_text().replace(TEMPLATE, "fine\n{{ 1 / (attempt * 0) }}\n"))

    ran = cli("render", "A-1")

    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "WORKFLOW.md" in ran.err


def test_no_workflow_is_a_hint(cli: Cli) -> None:
    """Without a workflow file newcomers are told how to get one."""
    assert cli("render", "A-1", "--workflow", "gone.md") == Ran(
        code=1,
        out="",
        err="sortie: there is no gone.md; name the workflow file, make one with 'sortie init', or "
        "look at 'sortie demo'\n",
    )
