"""A line that is read without typer means what it means to typer."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import wraps
from importlib import import_module

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sortie.cli.commands import COMMANDS
from sortie.cli.parameters import WrongUsage
from sortie.cli.plain_words import plain_command
from sortie.cli.typer_program import run_typer
from tests.cli.conftest import Cli

WORDS = (
    *("WORKFLOW.md", "two words", "ümlaut", "", "-", "--", "json", "text", "xml", "JSON"),
    *("--workflow", "-w", "--workflow=W.md", "--workflow=", "-wW.md", "-w=W.md", "--env-file"),
    *("--format", "--format=json", "-f", "-fjson", "-f=json", "--form", "--formats"),
    *("--port", "--port=8080", "8080", "0", "-1", "65536", "1_0", "08", "１", " 1", "1.0"),
    *("--dry-run", "--dry-run=1", "--no-dry-run", "--quiet", "-q", "-qv", "--verbose", "-v"),
    *("--log-level", "debug", "DEBUG", "--exit-when-idle", "--host", "::1", "--limit", "-n"),
    *("--issue", "A-1", "--db", "--before", "--follow", "--watch", "--print", "--system"),
    *("--help", "-h", "--nonsense", "install", "uninstall", "--name=a b", "--turn", "2"),
)
PLAIN = (
    "validate",
    "validate team/WORKFLOW.md --env-file team/.env",
    "validate -",
    "validate --workflow=W.md -f json",
    "run",
    "run --port 8080 --log-level debug --log-format json",
    "run W.md --dry-run --format json -q",
    "history --issue A-1 --limit 5 W.md",
    "stop A-1",
    "service install --dry-run --name=mine",
)

Call = tuple[str, dict[str, object]]


@contextmanager
def recorded() -> Iterator[list[Call]]:
    """Replace every command by one that writes down what it was called with."""
    calls: list[Call] = []

    def recorder(name: str, command: Callable[..., object]) -> Callable[..., object]:
        @wraps(command)
        def record(**arguments: object) -> int:
            calls.append((name, arguments))
            return 0

        return record

    with pytest.MonkeyPatch.context() as patch:
        for name, (module, *_) in COMMANDS.items():
            place = import_module(module)
            patch.setattr(place, name, recorder(name, getattr(place, name)))
        yield calls


def by_typer(words: Sequence[str]) -> tuple[object, list[Call]]:
    """Return the exit code to which typer comes, and what it called."""
    with recorded() as calls, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return run_typer(list(words)), calls


def plainly(words: Sequence[str]) -> tuple[object, list[Call]] | None:
    """Return the same of the reader of plain lines, None where it leaves a line to typer."""
    with recorded() as calls:
        command = plain_command(words)
        if command is None:
            return None
        try:
            return command(), calls
        except WrongUsage:
            return 2, calls


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(COMMANDS)), st.lists(st.sampled_from(WORDS), max_size=4))
@example("run", ["-q", "-q"])
@example("run", ["a", "-w", "b"])
@example("stop", [" "])
def test_both_readers_agree(name: str, words: list[str]) -> None:
    """Or the line is left to typer."""
    found = plainly([name, *words])

    assert found is None or found == by_typer([name, *words])


@pytest.mark.parametrize("line", PLAIN)
def test_what_people_write_is_plain(line: str) -> None:
    """Else nothing would be gained."""
    found = plainly(line.split())

    assert found is not None
    assert found == by_typer(line.split())


@pytest.mark.parametrize(
    "line", ["", "--help", "rnu", "validate --help", "run --port 65536", "run -qv", "validate a b"]
)
def test_what_is_not_plain_is_left_to_typer(line: str) -> None:
    """Help and mistakes are told by it alone."""
    assert plain_command(line.split()) is None


def test_a_shell_is_answered_by_typer(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line that is being completed is no command, however plain it is."""
    for name, value in (("_SORTIE_COMPLETE", "complete_bash"), ("COMP_WORDS", "sortie sta")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COMP_CWORD", "1")

    with pytest.raises(SystemExit):
        cli("version")

    assert capsys.readouterr().out.split() == ["stats", "status"]
