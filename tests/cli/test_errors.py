"""How commands end."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import NoReturn

import pytest

from sortie.cli import errors, main, streams
from sortie.cli.output import ReaderGone
from sortie.model import Problem, SortieError, WorkflowError
from tests.cli.conftest import Cli
from tests.cli.world import Ran


def ends_with(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException | None,
    result: object = None,
) -> Ran:
    """Run a program whose one command ends as told."""

    def command() -> object:
        if error is not None:
            raise error
        return result

    monkeypatch.setattr(errors, "command_of", lambda _arguments: command)
    code = errors.run_command(["version"])
    out, err = capsys.readouterr()
    return Ran(code=code, out=out, err=err)


def test_the_commands_code_is_the_programs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a command returns is the exit code, and nothing is 0."""
    assert ends_with(monkeypatch, capsys, None, 3) == Ran(code=3, out="", err="")
    assert ends_with(monkeypatch, capsys, None) == Ran(code=0, out="", err="")


def test_an_expected_failure_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A SortieError becomes one harmless line on stderr and exit code 1."""
    error = SortieError("cannot\nread \x1b[31mthis; mend it")

    assert ends_with(monkeypatch, capsys, error) == Ran(
        code=1, out="", err="sortie: cannot read \\x1b[31mthis; mend it\n"
    )


def test_every_problem_of_a_workflow_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A WorkflowError lists all its problems, warnings included, and counts the errors."""
    problems = (
        Problem(path="W.md", line=2, column=3, key="a.b", message="is wrong"),
        Problem(path="W.md", line=0, column=0, key="", message="odd", severity="warning"),
    )

    assert ends_with(monkeypatch, capsys, WorkflowError(problems)) == Ran(
        code=1,
        out="",
        err="W.md:2:3: a.b: is wrong\nW.md: warning: odd\n"
        "sortie: W.md: 1 error; mend what is listed above and try again\n",
    )


def test_an_interrupt_is_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C ends a command quietly."""

    def interrupted(_arguments: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(errors, "command_of", interrupted)
    monkeypatch.setattr(streams, "guarded_streams", nullcontext)
    monkeypatch.setattr(sys, "argv", ["sortie", "version"])

    with pytest.raises(SystemExit) as ended:
        main()

    assert (ended.value.code, *capsys.readouterr()) == (130, "", "")


def test_a_reader_that_is_gone_is_no_news(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A closed pipe ends a command quietly with 1."""
    assert ends_with(monkeypatch, capsys, ReaderGone()) == Ran(code=1, out="", err="")


def test_a_bug_keeps_its_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What nobody expected is not turned into a line."""
    with pytest.raises(ZeroDivisionError):
        ends_with(monkeypatch, capsys, ZeroDivisionError())


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--colour"], "sortie: unrecognized arguments: --colour; see 'sortie --help'\n"),
        (["rnu"], "sortie: there is no command 'rnu', did you mean run?; see 'sortie --help'\n"),
        (
            ["history", "--limit", "0"],
            "sortie: argument -n/--limit: 0 is not from 1 to 1000000; see",
        ),
        (["history", "--limit", "x"], "sortie: argument -n/--limit: 'x' is no whole number; see"),
        (["history", "one.md", "two.md"], "sortie: unrecognized arguments: two.md; see"),
        (["history", "--lim", "3"], "sortie: unrecognized arguments: --lim"),
        (
            ["render"],
            "sortie: the following arguments are required: ISSUE; see 'sortie render --help'\n",
        ),
        (
            ["validate", "--format", "xml"],
            "sortie: argument -f/--format: invalid choice: 'xml' (choose from ",
        ),
        (["run", "--port", "65536"], "sortie: argument --port: 65536 is not from 0 to 65535; see"),
        (
            ["run", "--format", "json"],
            "sortie: argument --format: belongs to --dry-run; see 'sortie run --help'\n",
        ),
    ],
)
def test_wrong_usage_is_one_line_and_2(cli: Cli, arguments: list[str], complaint: str) -> None:
    """Wrong usage says what is wrong and where help is, in one line."""
    ran = cli(*arguments)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(complaint)
    assert ran.err.count("\n") == 1
