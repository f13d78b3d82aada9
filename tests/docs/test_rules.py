"""The examples on the page about rules are right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sortie.daemon.workflow_file import schemas
from sortie.workflow.loader import Workflow, load
from tests.docs.pages import code_blocks, page

EXAMPLES = [text for language, text in code_blocks(page("rules.md")) if language == "yaml"]
AROUND = """\
tracker:
  kind: file
  active_states: [Todo]
  terminal_states: [Done]
  handoff_state: Review
"""
REST = """\
file: {path: issues}
kiro: {trust_all_tools: true}
worker: {ssh_hosts: [build-1, build-2]}
"""


def loaded(path: Path, example: str) -> Workflow:
    """Load a workflow with an example in it, and the prompts that it names."""
    before = "" if "tracker:\n" in example else AROUND
    names = dict.fromkeys(re.findall(r"prompt: (\w+)", example))
    prompts = "".join(f"--- prompt: {name}\n{name} it\n" for name in names)
    path.write_text(f"---\n{before}{example}{REST}---\nDo it.\n{prompts}")
    env = {"HOME": "/home/me", "FORGE_TOKEN": "token-of-a-forge", "JIRA_TOKEN": "a-token"}
    return load(path, schemas=schemas(), env=env)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_can_be_used(example: str, tmp_path: Path) -> None:
    """Each has rules, and nothing about these is wrong or odd."""
    workflow = loaded(tmp_path / "WORKFLOW.md", example)

    assert workflow.settings.rules
    assert [w for w in workflow.warnings if w.key.startswith(("rules", "prompt"))] == []


def test_there_are_examples() -> None:
    """The page has not lost them."""
    assert len(EXAMPLES) >= 6
