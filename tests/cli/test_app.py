"""The program as a whole: its commands and their help."""

from __future__ import annotations

import json
import sys

import pytest

from sortie import __version__
from sortie.cli.commands import COMMANDS
from tests.cli.conftest import Cli

PYTHON = ".".join(map(str, sys.version_info[:3]))


def test_nothing_asked_shows_help(cli: Cli) -> None:
    """Without arguments the help is shown, and it is no mistake."""
    ran = cli()

    assert ran.code == 0
    assert "Usage: sortie" in ran.out
    assert [name for name in COMMANDS if f"\n  {name} " not in ran.out] == []


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_every_command_has_help_with_examples(cli: Cli, command: str, flag: str) -> None:
    """Each command explains itself and shows how it is used."""
    ran = cli(command, flag)

    assert ran.code == 0
    assert f"Usage: sortie {command}" in ran.out
    assert f"Examples:\n  sortie {command}" in "\n".join(map(str.rstrip, ran.out.split("\n")))


def test_help_fits_a_terminal_of_80_columns(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for examples, which are copied whole."""
    monkeypatch.setenv("COLUMNS", "80")
    shown = [cli("--help").out, *(cli(command, "--help").out for command in COMMANDS)]

    lines = [line for text in shown for line in text.splitlines()]
    assert [line for line in lines if len(line) > 80 and "sortie" not in line] == []


def test_the_help_names_every_exit_code(cli: Cli) -> None:
    """Each code that the daemon or a command ends with is in the help."""
    codes = cli("--help").out.partition("Exit codes:")[2].partition("Documentation")[0].split()

    assert [code for code in ("0", "1", "2", "3", "70", "130") if code not in codes] == []


def test_version_for_people_and_programs(cli: Cli) -> None:
    """The version is told in four ways."""
    text = f"sortie {__version__} (Python {PYTHON})\n"

    assert cli("version").out == text
    assert cli("--version").out == text
    assert cli("-V").out == text
    assert json.loads(cli("version", "--format", "json").out) == {
        "version": __version__,
        "python_version": PYTHON,
    }
