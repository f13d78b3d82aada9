"""``sortie help``: pages by their names, and commands."""

from __future__ import annotations

import pytest

from sortie.cli.help import topics
from tests.cli.conftest import Cli
from tests.docs.pages import PAGES, ROOT


def test_every_page_is_a_topic() -> None:
    """Each page can be shown, the README included."""
    assert sorted(topics().values()) == sorted(PAGES)


@pytest.mark.parametrize(
    ("topic", "page"),
    [
        ("operating", "docs/operating.md"),
        ("operating.md", "docs/operating.md"),
        ("trackers/github", "docs/trackers/github.md"),
        ("github", "docs/trackers/github.md"),
        ("trackers", "docs/trackers/README.md"),
        ("readme", "README.md"),
        ("5", "docs/decisions/0005-ending-processes.md"),
        ("0005-ending-processes", "docs/decisions/0005-ending-processes.md"),
    ],
)
def test_a_page_is_shown_as_it_is_written(cli: Cli, topic: str, page: str) -> None:
    """By its file, by the end of that, or by the number of a decision."""
    ran = cli("help", topic)

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (ROOT / page).read_text(encoding="utf-8")


def test_pages_are_listed_with_their_titles(cli: Cli) -> None:
    """Without a topic; the decision records are one line."""
    lines = cli("help").out.splitlines()

    assert "operating               Operating" in lines
    assert sum("decision" in line for line in lines) == 1


def test_a_command_shows_its_own_help(cli: Cli) -> None:
    """As with --help."""
    assert cli("help", "pause").out == cli("pause", "--help").out


@pytest.mark.parametrize(
    ("topic", "hint"), [("operatng", "operating"), ("xyzzy", "'sortie help' lists")]
)
def test_an_unknown_topic_is_told_with_one_like_it(cli: Cli, topic: str, hint: str) -> None:
    """One line, and exit code 1."""
    ran = cli("help", topic)

    assert ran.code == 1
    assert hint in ran.err
    assert len(ran.err.splitlines()) == 1
