"""The last lines of a run say what was not tried, and what it would take."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.skipped import FULL, lines_about

ROOT = Path(__file__).parents[1]


def test_a_run_that_skips_nothing_says_nothing() -> None:
    """No line is printed for what is not there."""
    assert lines_about([]) == []


def test_three_lines_say_all_of_it() -> None:
    """Slow ones, what is missing by who installs it, and what does not apply."""
    reasons = [FULL, FULL, "there is no sshd", "chromium is not installed", "there is no sshd"]
    reasons += ["no zsh", "needs kubernetes-validate, of the extra dev", "only root can do it"]
    reasons += ["root may read everything", "it does not declare find", "Skipped"]

    assert lines_about(reasons) == [
        "skipped 2: slow, run with --full",
        "skipped 7, which would need apt install chromium (1) openssh-server (2) zsh (1);"
        " pip install '.[dev]' (1); an ordinary user (1); root (1)",
        "skipped 2: they do not apply to this system or adapter; -rs tells all",
    ]


@pytest.mark.parametrize(
    ("reason", "needed"),
    [
        ("sshd passes no signals on to root's programs", "would need an ordinary user (1)"),
        ("there is no docker-registry, which images are pulled from", "install docker-registry"),
        ("there is no C compiler, for a clock that is off", "install gcc libc6-dev"),
        ("needs jq", "install jq (1)"),
    ],
)
def test_a_reason_with_several_words_is_told_by_the_one_that_counts(
    reason: str, needed: str
) -> None:
    """A program that is there is nothing to install."""
    assert needed in lines_about([reason])[0]


def test_every_package_that_the_tests_look_for_is_known() -> None:
    """A reason in the tests that names a program which is not there is told as something to
    install, and is not lost among what does not apply."""
    found = re.compile(
        r"(?:reason=|skip\()\s*f?\"([^\"]*(?:not installed|not on PATH|there is no ssh"
        r"|needs systemd|needs promtool|needs setpriv|no prlimit|no flock)[^\"]*)\""
    )
    reasons = {
        reason
        for path in (ROOT / "tests").rglob("*.py")
        if path != Path(__file__)
        for reason in found.findall(path.read_text())
    }

    lost = [reason for reason in reasons if not lines_about([reason])[0].startswith("skipped 1, w")]
    assert len(reasons) > 8
    assert lost == []


def test_a_run_ends_with_these_lines(tmp_path: Path) -> None:
    """They come after the failures, and after what ``-rs`` lists."""
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_terminal_summary\n")
    (tmp_path / "test_x.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('x', range(3))\n"
        "def test_x(x):\n    pytest.skip('no zsh')\n"
        "def test_y():\n    assert 0\n"
    )
    command = [sys.executable, "-m", "pytest", "-rfs", "-p", "no:cacheprovider", "-p", "no:xdist"]

    ran = subprocess.run(
        [*command, "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    lines = ran.stdout.splitlines()
    assert lines[-4].startswith("FAILED test_x.py::test_y"), ran.stdout + ran.stderr
    assert lines[-3].startswith("SKIPPED [3]")
    assert lines[-2] == "skipped 3, which would need apt install zsh (3)"
