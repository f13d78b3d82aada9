"""The page about agents that speak ACP: its settings and its workflows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sortie.agents.acp.agent import UNATTENDED
from sortie.agents.acp.settings import AcpSettings
from sortie.agents.permissions import TOOL_KINDS
from sortie.daemon.workflow_file import schemas
from sortie.workflow.loader import load
from tests.docs.pages import ROOT, page, section, table, word, words

TEXT = page("agents/acp.md")
README = (ROOT / "sortie/agents/acp/README.md").read_text(encoding="utf-8")
FENCES = re.findall(r"^```yaml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def _keys() -> set[str]:
    permissions = {f"permissions.{place}" for place in ("inside", "outside")}
    return (set(AcpSettings.model_fields) | permissions) - {"permissions"}


def test_every_setting_is_listed() -> None:
    """Both tables of keys hold each key of the block."""
    written = {name for row in table(TEXT, "key") for name in words(row["key"])}

    assert written == {f"acp.{key}" for key in _keys()}
    assert {word(row["key"]) for row in table(README, "key")} == _keys()


def test_kinds_and_variables_are_named() -> None:
    """Every kind of tool that a rule can name, and every variable that is set for the agents."""
    may_do, setting_up = section(TEXT, "What it may do"), section(TEXT, "Setting it up")

    assert [kind for kind in TOOL_KINDS if f"`{kind}`" not in may_do] == []
    assert [name for name in UNATTENDED if f"`{name}`" not in setting_up] == []


@pytest.mark.parametrize("number", range(len(FENCES)))
def test_its_workflows_are_right(number: int, tmp_path: Path) -> None:
    """Without an error and without a warning; a part is tried within the whole."""
    (tmp_path / "issues").mkdir()
    whole, part = FENCES[0], FENCES[number]
    text = whole if part == whole else whole[: whole.index("acp:\n")] + part
    file = tmp_path / "WORKFLOW.md"
    file.write_text(f"---\n{text}---\nWork on {{{{ issue.identifier }}}}.\n", encoding="utf-8")

    loaded = load(file, schemas=schemas(), env={"HOME": str(tmp_path)})

    assert loaded.warnings == ()
