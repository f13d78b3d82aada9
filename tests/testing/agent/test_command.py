"""``python -m sortie.testing.agent``: what it shows, and how it exits."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest
import toy_agent

from sortie.model import TurnOutcome, TurnResult
from sortie.testing.agent import CHECKS, SCENARIOS
from sortie.testing.agent.command import run_checks
from tests.transports.ssh.sshd import Keys, requires_sshd, sshd_running

TOY = Path(toy_agent.__file__).parent
KIT = ("--kind", "toy", "--scenarios", str(TOY))


class Ran(NamedTuple):
    """How the command ended, and what it wrote."""

    exit_code: int
    stdout: str
    stderr: str


def run(*words: str) -> Ran:
    """Run the command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run_checks(words)
    return Ran(code, out.getvalue(), err.getvalue())


def test_a_row_for_each_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its result, name, seconds and promise; a summary; exit code 0."""
    ran = run(*KIT, "--only", "turn.success", "--only", "turn.failure")

    heading, *rows, counts = ran.stdout.splitlines()
    assert ran.exit_code == 0, ran.stderr
    assert heading.split() == ["result", "check", "seconds", "promise"]
    assert [row.split()[:2] for row in rows] == [
        ["passed", "turn.success"],
        ["passed", "turn.failure"],
    ]
    assert all(CHECKS[row.split()[1]].promise in row for row in rows)
    assert counts == "2 passed, 0 failed, 0 not tried"


def test_a_check_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason stands below it, without the credential; exit code 1."""

    class Lying(toy_agent.ToySession):
        async def run_turn(self, prompt: str, on_events: object) -> TurnResult:
            return TurnResult(outcome=TurnOutcome.COMPLETED, message="sk-toy-secret is wrong")

    monkeypatch.setattr(toy_agent, "ToySession", Lying)

    ran = run(*KIT, "--only", "turn.failure")

    assert ran.exit_code == 1
    assert ran.stdout.splitlines()[1].startswith("failed")
    assert "a completed turn has an error" in ran.stdout.splitlines()[2]
    assert "*** is wrong" in ran.stdout
    assert "sk-toy" not in ran.stdout


def test_without_scenarios_only_words_are_tried() -> None:
    """What needs a program that misbehaves is not tried, and says so; that is no failure."""
    program = f"{sys.executable} {TOY / 'program.py'}"

    ran = run("--kind", "toy", "--command", program, "--only", "end.exit-1", "--format", "json")

    told = json.loads(ran.stdout)
    (check,) = told.pop("checks")
    assert ran.exit_code == 0
    assert told == {"kind": "toy", "host": "local", "passed": 0, "failed": 0, "not_tried": 1}
    assert (check["check"], check["status"]) == ("end.exit-1", "not tried")
    assert check["reason"].startswith("exit-1: it needs a program that misbehaves")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--kind", "tea"), "--kind tea: no adapter of kind 'tea'; known: "),
        ((*KIT, "--only", "turns"), "there is no check 'turns'; known: start.missing-workspace"),
        ((*KIT, "--settings", "{"), "--settings: Expecting property name"),
        ((*KIT, "--settings", "[]"), "--settings: a JSON object is expected"),
        ((*KIT, "--settings", '{"allow": 7}'), "toy_agent.allow: "),
        (("--kind", "toy", "--scenarios", "/none"), "/none: cannot be read"),
    ],
)
def test_what_cannot_begin_is_one_line(words: Sequence[str], told: str) -> None:
    """Exit code 2, and a line on stderr that says what is wrong."""
    ran = run(*words)

    assert ran.exit_code == 2, ran.stderr
    assert ran.stderr.startswith(told)
    assert len(ran.stderr.splitlines()) == 1


def test_the_list_has_all_checks_and_scenarios() -> None:
    """Whoever writes a scenarios.toml needs nothing else."""
    ran = run("--list")

    words = [line.split()[0] for line in ran.stdout.splitlines() if line.startswith("  ")]
    assert ran.exit_code == 0
    assert words == [*CHECKS, *SCENARIOS]


def test_an_adapter_that_blocks_the_process_is_given_up(tmp_path: Path) -> None:
    """Nothing in its process could say so any more but a thread."""
    (tmp_path / "main.py").write_text(
        "import time, toy_agent\n"
        "from sortie.testing.agent import command\n"
        "toy_agent.ToySession.greet = lambda self: time.sleep(600)\n"
        "command._BLOCKED_AFTER = -3.0\n"
        "command.main()\n"
    )
    env = {**os.environ, "PYTHONPATH": str(TOY.parent)}
    words = [*KIT, "--only", "turn.success", "--patience", "1"]

    ran = subprocess.run(
        [sys.executable, str(tmp_path / "main.py"), *words],
        capture_output=True,
        text=True,
        timeout=60,
        env=env,
    )

    assert ran.returncode == 3
    assert ran.stderr == "turn.success: the adapter blocks the process; given up after 1 s\n"


@requires_sshd
def test_it_runs_on_a_host(tmp_path: Path) -> None:
    """As a stranger runs it, with a host of his."""
    keys = Keys.make(tmp_path / "client")
    env = {**os.environ, "PYTHONPATH": str(TOY.parent)}
    with sshd_running(tmp_path / "host", keys) as host:
        ran = subprocess.run(
            [
                *(sys.executable, "-m", "sortie.testing.agent", *KIT, "--only", "turn.success"),
                *("--host", host.host, "--ssh-config", str(keys.config), "--format", "json"),
                *("--ssh-known-hosts", str(keys.known_hosts)),
                *("--ssh-identity-file", str(keys.key)),
            ],
            capture_output=True,
            text=True,
            timeout=90,
            env=env,
        )

    told = json.loads(ran.stdout)
    assert (ran.returncode, told["passed"], told["host"]) == (0, 1, host.host), ran.stderr
