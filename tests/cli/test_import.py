"""``sortie import``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

OLD = """\
---
tracker: {kind: file, active_states: [Todo], terminal_states: [Done], handoff_state: Review}
file: {path: issues}
agent: {kind: mock}
workspace: {retention_days: 30}
---
Do {{ .issue.identifier }}
"""


@pytest.fixture
def old(here: Path) -> Path:
    """Return a file of another program."""
    path = here / "old.md"
    path.write_text(OLD)
    return path


def test_the_new_file_is_printed_and_the_report_goes_to_stderr(cli: Cli, old: Path) -> None:
    """So that the one can go into a file."""
    ran = cli("import", "old.md")

    assert ran.code == 0
    assert ran.out.startswith("---\ntracker: {kind: file,")
    assert ran.out.endswith("---\n\nDo {{ issue.identifier }}\n")
    assert "old.md:4:9: agent.kind: changed: mock is run as kiro here\n" in ran.err
    assert "old.md:5:13: workspace.retention_days: lost: " in ran.err
    assert "imported old.md as a workflow of go" in ran.err


def test_a_file_is_written_that_is_valid(cli: Cli, old: Path, here: Path) -> None:
    """The report is on stdout then; an existing file is never overwritten."""
    ran = cli("import", "old.md", "--output", "WORKFLOW.md")

    assert ran.code == 0
    assert "old.md:5:13: workspace.retention_days: lost: " in ran.out
    assert cli("validate").code == 0
    again = cli("import", "old.md", "--output", "WORKFLOW.md")
    assert (again.code, again.out) == (1, "")
    assert "WORKFLOW.md is there already and is never overwritten" in again.err


def test_programs_get_both_in_one(cli: Cli, old: Path) -> None:
    """As JSON."""
    ran = cli("import", "old.md", "--format", "json")
    answer = json.loads(ran.out)

    assert answer["program"] == "go"
    assert answer["text"].startswith("---\n")
    (lost,) = [row for row in answer["keys"] if row["outcome"] == "lost"]
    assert (lost["line"], lost["column"], lost["key"]) == (5, 13, "workspace.retention_days")


def test_templates_are_read_from_beside_the_file_only(cli: Cli, here: Path) -> None:
    """A file of somebody else's reads nothing of the machine."""
    (here / "outside.md").write_text("outside\n")
    inner = here / "inner"
    inner.mkdir()
    (inner / "docs.md").write_text("Write {{ .issue.title }}\n")
    rules = (
        "dispatch:\n  rules:\n    - {name: a, match: {labels: docs}, template: docs.md}\n"
        "    - {name: b, match: {labels: x}, template: ../outside.md}\n---\n"
    )
    (inner / "old.md").write_text(OLD.replace("---\nDo", f"{rules}Do"))

    ran = cli("import", "inner/old.md")

    assert "--- prompt: docs\nWrite {{ issue.title }}\n" in ran.out
    assert "outside" not in ran.out
    assert "dispatch.rules[1].template: lost: cannot be read" in ran.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["gone.md"], 1, "gone.md: "),
        (["none.md"], 1, "none.md: is it Go's or Symphony's? it has no sign of either"),
        (["old.md", "--from", "ruby"], 2, "is go or symphony, not 'ruby'"),
        (["old.md", "-o", "gone/W.md"], 1, "make the directory gone first"),
        (["broken.md"], 1, "broken.md:3:1: invalid YAML"),
    ],
)
def test_what_cannot_be_imported_is_one_clear_error(
    cli: Cli, old: Path, here: Path, arguments: list[str], code: int, message: str
) -> None:
    """With its place where it has one, and nothing is printed."""
    (here / "none.md").write_text("Do it\n")
    (here / "broken.md").write_text("---\ntracker: [\n---\n")

    ran = cli("import", *arguments)

    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err
