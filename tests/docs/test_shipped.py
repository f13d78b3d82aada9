"""The pages are installed with the program, and it says where."""

from __future__ import annotations

import tomllib
from pathlib import Path

from sortie.cli.documentation import pages
from tests.cli.conftest import Cli, cli, here
from tests.docs.pages import PAGES, ROOT

__all__ = ["cli", "here"]


def test_help_names_the_page_to_begin_with(cli: Cli) -> None:
    """The last line of the help is a path that can be opened."""
    page = pages()

    assert page == ROOT / "README.md"
    assert cli("--help").out.split("Documentation:")[1].split() == [str(page)]


def test_the_pages_of_a_wheel_stand_in_the_package(tmp_path: Path) -> None:
    """Installed, the pages are beside the modules; without any, nothing is named."""
    package = tmp_path / "sortie"
    before = pages(package)
    (package / "docs").mkdir(parents=True)
    (package / "docs" / "operating.md").touch()

    assert before is None
    assert pages(package) == package / "README.md"


def test_a_wheel_has_every_page_where_the_links_expect_it() -> None:
    """Pages keep their places among each other, so that the links between them hold."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    included = wheel["force-include"]

    for page in PAGES:
        relative = page.relative_to(ROOT).as_posix()
        top = relative.split("/")[0]
        assert included.get(top) == f"sortie/{top}", relative
