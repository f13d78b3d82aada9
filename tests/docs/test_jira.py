"""The page about Jira: its example is valid, and its tables are those of the code."""

from __future__ import annotations

from pathlib import Path

from sortie.daemon.workflow_file import schemas
from sortie.trackers.jira import ADAPTER
from sortie.workflow import load
from tests.docs.pages import code_blocks, page, table, word

TEXT = page("trackers/jira.md")


def test_the_example_is_valid(tmp_path: Path) -> None:
    """It can be used as it is, and there is nothing to warn about."""
    text = "\n".join(line.removeprefix("   ") for line in TEXT.splitlines()) + "\n"
    (example,) = (code for _, code in code_blocks(text) if "kind: jira" in code)
    path = tmp_path / "WORKFLOW.md"
    path.write_text(example)

    workflow = load(path, schemas=schemas(), env={"HOME": "/home/me", "JIRA_TOKEN": "a-token"})

    assert workflow.warnings == ()
    assert workflow.settings.tracker.kind == "jira"


def test_every_setting_is_listed() -> None:
    """The table holds the keys that Jira knows, and no other."""
    written = {word(row["key"]) for row in table(TEXT, "key")}
    block = {f"jira.{name}" for name in ADAPTER.block.model_fields}

    assert written == {f"tracker.{key}" for key in ADAPTER.required | set(ADAPTER.optional)} | block
