"""The page about GitLab: its example is valid, and its tables are those of the code."""

from __future__ import annotations

from pathlib import Path

from sortie.daemon.workflow_file import schemas
from sortie.trackers.gitlab import ADAPTER
from sortie.trackers.gitlab.links import LINKS_A_LIST
from sortie.workflow import load
from tests.docs.pages import code_blocks, page, table, word

TEXT = page("trackers/gitlab.md")


def test_the_example_is_valid(tmp_path: Path) -> None:
    """It can be used as it is, and there is nothing to warn about."""
    margin = "\n".join(line.removeprefix("   ") for line in TEXT.splitlines()) + "\n"
    (example,) = (code for _, code in code_blocks(margin) if "kind: gitlab" in code)
    path = tmp_path / "WORKFLOW.md"
    path.write_text(example)

    environ = {"HOME": "/home/me", "GITLAB_TOKEN": "glpat-0123456789"}
    workflow = load(path, schemas=schemas(), env=environ)

    assert workflow.warnings == ()
    assert workflow.settings.tracker.kind == "gitlab"


def test_every_setting_is_listed() -> None:
    """The table holds the keys that GitLab's adapter knows, and no other."""
    written = {word(row["key"]) for row in table(TEXT, "key")}
    block = {f"gitlab.{name}" for name in ADAPTER.block.model_fields}

    assert written == {f"tracker.{key}" for key in ADAPTER.required | set(ADAPTER.optional)} | block


def test_what_links_cost_is_what_the_code_asks() -> None:
    """The number that bounds it stands in the page."""
    assert f"at most {LINKS_A_LIST} a poll" in TEXT
