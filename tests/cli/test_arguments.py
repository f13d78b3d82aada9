"""What commands have in common on their command lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from sortie.daemon.options import RunOptions
from tests.cli.conftest import Cli
from tests.cli.world import WORKFLOW

TAKING_WORKFLOW = (
    "run --dry-run",
    "validate",
    "render A-1",
    "history",
    "status",
    "explain A-1",
    "refresh",
    "pause",
    "resume",
    "stop A-1",
    "retry A-1",
)


@pytest.mark.parametrize("command", TAKING_WORKFLOW)
@pytest.mark.parametrize("way", ["{}", "--workflow {}", "-w {}"])
def test_every_command_takes_the_workflow_in_each_way(
    cli: Cli, here: Path, command: str, way: str
) -> None:
    """As the last argument or as an option: the named file is read, wherever one works."""
    (here / "team.md").write_text(WORKFLOW.replace("kind: file", "kind: [file"))

    ran = cli(*command.split(), *way.format("team.md").split())

    assert ran.code != 2
    assert "team.md" in ran.out + ran.err


@pytest.mark.parametrize("command", [*TAKING_WORKFLOW, "init"])
def test_two_workflows_are_one_too_many(cli: Cli, here: Path, command: str) -> None:
    """Which of two files is meant is not guessed; one file twice is no question."""
    ran = cli(*command.split(), "one.md", "--workflow", "two.md")
    same = cli(*command.split(), "one.md", "--workflow", "one.md")

    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "name the workflow file once" in ran.err
    assert same.code != 2


@pytest.mark.parametrize(
    ("given", "level"),
    [
        ((), None),
        (("-q",), "warning"),
        (("--quiet",), "warning"),
        (("-v",), "debug"),
        (("--log-level", "error"), "error"),
    ],
)
def test_how_much_is_logged_can_be_said_in_short(
    cli: Cli,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: tuple[str, ...],
    level: str | None,
) -> None:
    """-q and -v stand for levels."""
    (here / "WORKFLOW.md").write_text(WORKFLOW)
    seen: list[RunOptions] = []

    def run_daemon(options: RunOptions) -> int:
        seen.append(options)
        return 0

    monkeypatch.setattr("sortie.daemon.process.run_daemon", run_daemon)

    assert cli("run", *given).code == 0
    assert [options.log_level for options in seen] == [level]


@pytest.mark.parametrize("given", ["-q -v", "-q --log-level info", "-v --log-level debug"])
def test_two_levels_are_one_too_many(cli: Cli, here: Path, given: str) -> None:
    """What contradicts itself is a usage error."""
    (here / "WORKFLOW.md").write_text(WORKFLOW)

    ran = cli("run", *given.split())

    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "takes one of --quiet, --verbose and --log-level" in ran.err
