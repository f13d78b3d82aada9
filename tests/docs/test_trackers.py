"""The pages about trackers: their examples are valid, and their tables are those of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from sortie.config.fields import fields_of
from sortie.daemon.workflow_file import schemas
from sortie.trackers import ADAPTERS
from sortie.workflow.loader import load
from tests.docs.pages import code_blocks, page, table, word

ENV = {
    "HOME": "/home/me",
    "SORTIE_GITHUB_TOKEN": "ghp_example",
    "GITLAB_TOKEN": "glpat-0123456789",
    "GITEA_TOKEN": "a-token-of-gitea",
    "JIRA_TOKEN": "a-token",
    "LINEAR_API_KEY": "lin_api_example",
}


@pytest.mark.parametrize("kind", sorted(ADAPTERS.built_in))
def test_the_example_is_valid(kind: str, tmp_path: Path) -> None:
    """It can be used as it is, and there is nothing to warn about."""
    margin = "\n".join(line.removeprefix("   ") for line in page(f"trackers/{kind}.md").split("\n"))
    (example,) = (code for _, code in code_blocks(margin) if f"kind: {kind}" in code)
    path = tmp_path / "WORKFLOW.md"
    path.write_text(example)
    env = {name: value for name, value in ENV.items() if name == "HOME" or name in example}

    workflow = load(path, schemas=schemas(), env=env)

    assert workflow.warnings == ()
    assert workflow.settings.tracker.kind == kind


@pytest.mark.parametrize("kind", sorted({*ADAPTERS.built_in} - {"file"}))
def test_every_setting_is_listed(kind: str) -> None:
    """The table holds the keys that the adapter knows, and no other."""
    adapter = ADAPTERS.load(kind)
    written = {word(row["key"]) for row in table(page(f"trackers/{kind}.md"), "key")}
    block = {f"{kind}.{name}" for name in fields_of(adapter.block)}

    assert written == {f"tracker.{key}" for key in adapter.required | set(adapter.optional)} | block
