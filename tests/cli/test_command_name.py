"""A hint names a program that the reader's shell finds."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from sortie.cli.program import command_name


@pytest.fixture
def program(here: Path) -> Path:
    """A program named sortie, in a directory with a blank in its name."""
    path = here / "its bin" / "sortie"
    path.parent.mkdir()
    path.touch(mode=0o755)
    return path


@pytest.mark.parametrize(
    ("search_path", "expected"),
    [
        ("{}", "sortie"),
        ("/nowhere", "'its bin/sortie'"),
        ("other:{}", "'its bin/sortie'"),
    ],
    ids=["on PATH", "not on PATH", "behind another"],
)
def test_it_is_the_name_only_where_that_is_found(
    program: Path, monkeypatch: pytest.MonkeyPatch, search_path: str, expected: str
) -> None:
    """The bare name is given where it means this program, else the path that was typed."""
    other = Path("other") / "sortie"
    other.parent.mkdir()
    other.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", ["its bin/sortie", "demo"])
    monkeypatch.setenv("PATH", search_path.format(program.parent))

    assert command_name() == expected


def test_a_module_is_run_by_its_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """What began as ``python -m sortie`` goes on so."""
    monkeypatch.setattr(sys, "argv", [os.path.join("sortie", "__main__.py"), "demo"])

    assert command_name() == f"{shlex.quote(sys.executable)} -m sortie"


def test_within_another_program_it_is_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the command line was called as a library there is no better name."""
    monkeypatch.setattr(sys, "argv", ["/usr/bin/pytest"])

    assert command_name() == "sortie"
