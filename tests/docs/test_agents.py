"""The pages about agents: one for each kind, listed in an index."""

from __future__ import annotations

import re

import pytest

from sortie.agents import ADAPTERS
from tests.docs.pages import ROOT, page, table

INDEX = table(page("agents/README.md"), "kind")
TITLES = ("Setting it up", "Resuming", "What it costs", "What a stop does")


def test_the_index_names_every_kind_and_its_page() -> None:
    """Kiro first, then by their names; each with the command that is its default."""
    links = [re.fullmatch(r"\[`([a-z-]+)`\]\((.+)\)", row["kind"]) for row in INDEX]

    assert [(found[1], found[2]) for found in links if found] == [
        (kind, f"{kind}.md") for kind in sorted(ADAPTERS.built_in, key=_as_listed)
    ]
    for row, found in zip(INDEX, links, strict=True):
        assert found is not None
        assert f"`{ADAPTERS.load(found[1]).default_command}`" in row["program"]


@pytest.mark.parametrize("kind", ADAPTERS.built_in)
def test_every_page_answers_the_same_questions(kind: str) -> None:
    """Whoever changes the agent finds things where they were."""
    headings = re.findall(r"^## (.+)$", page(f"agents/{kind}.md"), re.MULTILINE)

    assert [title for title in TITLES if title not in headings] == []
    assert (ROOT / "sortie/agents" / kind.replace("-", "_") / "README.md").is_file()


def _as_listed(kind: str) -> tuple[bool, str]:
    return (kind != "kiro", kind)
