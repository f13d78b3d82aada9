"""The prompts that pages and starters offer."""

from __future__ import annotations

import re

import pytest

from sortie.cli.demo.directory import WORKFLOW
from tests.docs.pages import PAGES, ROOT, code_blocks

_PROMPT = re.compile(r"\{\{ issue\.identifier \}\}: \{\{ issue\.title \}\}")
OTHERS = (
    "WORKFLOW.example.md",
    "sortie/cli/starter.md",
    f"sortie/cli/demo/directory/{WORKFLOW}",
    "deploy/kubernetes/sortie.yaml",
)


def offered() -> list[tuple[str, str]]:
    """Return each text that has a prompt for an issue, by where it stands."""
    texts = [(name, (ROOT / name).read_text("utf-8")) for name in OTHERS]
    for path in PAGES:
        blocks = code_blocks(path.read_text("utf-8").replace("\n   ", "\n"))
        texts += [(path.relative_to(ROOT).as_posix(), content) for _, content in blocks]
    return [(name, text) for name, text in texts if _PROMPT.search(text)]


@pytest.mark.parametrize(("name", "text"), offered(), ids=[name for name, _ in offered()])
def test_each_prompt_says_how_to_finish(name: str, text: str) -> None:
    """An agent that is not told so is prompted on although nothing is left to do."""
    assert re.search(r"write the word done to the file \.sortie/status", text), name


def test_the_pages_of_all_trackers_have_a_prompt() -> None:
    """None of them is missed by the test above."""
    names = {name for name, _ in offered()}

    assert {f"docs/trackers/{kind}.md" for kind in ("github", "gitlab", "jira", "linear")} < names
    assert {*OTHERS, "docs/agents/claude-code.md"} < names
