"""Claude Code's pages: their settings, their workflow, and the tests that they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sortie.agents.claude_code.settings import ENV_NAMES, ClaudeCodeSettings
from sortie.daemon.workflow_file import schemas
from sortie.workflow.loader import load
from tests.docs.pages import ROOT, page, table, word, words

TEXT = page("agents/claude-code.md")
README = (ROOT / "sortie/agents/claude_code/README.md").read_text(encoding="utf-8")
TESTS = ROOT / "tests/agents/claude_code"


def test_every_setting_is_listed() -> None:
    """The table of keys holds each key of the block."""
    written = {word(row["key"]) for row in table(TEXT, "key")}

    assert written == {f"claude-code.{name}" for name in ClaudeCodeSettings.model_fields}


def test_what_a_remote_agent_is_handed_is_listed() -> None:
    """All variables of the table but those of AWS."""
    written = {
        name.partition("=")[0]
        for row in table(TEXT, "provider")
        for name in words(row["variables"])
        if name.isupper() or "=" in name
    }

    assert {name for name in written if not name.startswith("AWS")} <= set(ENV_NAMES)
    assert len(written) > len(ENV_NAMES) / 2


def test_its_workflow_is_right(tmp_path: Path) -> None:
    """It can be copied and run, and there is nothing to warn about."""
    (example,) = re.findall(r"^```markdown\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    path = tmp_path / "WORKFLOW.md"
    path.write_text(example)

    workflow = load(path, schemas=schemas(), env={"HOME": "/home/me"})

    assert workflow.settings.agent.kind == "claude-code"
    assert workflow.warnings == ()


@pytest.mark.parametrize("heading", ["trap", "contract"])
def test_every_line_names_tests_that_are_there(heading: str) -> None:
    """A line of the contract, or a trap, that nothing tests would say so here."""
    for row in table(README, heading):
        named = words(row["tested in"])
        assert named, row
        for name in named:
            there = ROOT / name if "/" in name else TESTS / f"{name}.py"
            assert there.exists(), row
