"""The page about GitHub: its example is valid, and its tables are those of the code."""

from __future__ import annotations

from pathlib import Path

from sortie.config.fields import fields_of
from sortie.daemon.workflow_file import schemas
from sortie.trackers.github import ADAPTER
from sortie.workflow import load
from tests.docs.pages import code_blocks, page, table, word

TEXT = page("trackers/github.md")


def test_the_example_is_valid(tmp_path: Path) -> None:
    """It can be used as it is, and there is nothing to warn about."""
    (example,) = (
        code for language, code in code_blocks(indented_out(TEXT)) if "kind: github" in code
    )
    path = tmp_path / "WORKFLOW.md"
    path.write_text(example)

    workflow = load(
        path, schemas=schemas(), env={"HOME": "/home/me", "SORTIE_GITHUB_TOKEN": "ghp_example"}
    )

    assert workflow.warnings == ()
    assert workflow.settings.tracker.kind == "github"


def test_every_setting_is_listed() -> None:
    """The table holds the keys that GitHub knows, and no other."""
    written = {word(row["key"]) for row in table(TEXT, "key")}
    block = {f"github.{name}" for name in fields_of(ADAPTER.block)}

    assert written == {f"tracker.{key}" for key in ADAPTER.required | set(ADAPTER.optional)} | block


def indented_out(text: str) -> str:
    """Return a page with the blocks of its lists at the margin."""
    return "\n".join(line.removeprefix("   ") for line in text.splitlines()) + "\n"
