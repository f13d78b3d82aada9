"""Runs the simulator inside the test process, in a directory of its own."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

import pytest

from sortie.kiro.simulator.console import Console
from sortie.kiro.simulator.program import run


class Ran(NamedTuple):
    """What one run of the simulator gave."""

    status: int
    stdout: str
    stderr: str


class Simulator:
    """Runs commands with an environment that tests may change."""

    def __init__(self, home: Path) -> None:
        self.environment = {
            "HOME": str(home / "home"),
            "XDG_DATA_HOME": str(home / "data"),
            "KIRO_API_KEY": "sk-1",
        }
        self.database = home / "data" / "kiro-cli" / "data.sqlite3"

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Ran:
        with (
            TemporaryFile(buffering=0) as given,
            TemporaryFile(buffering=0) as out,
            TemporaryFile(buffering=0) as err,
        ):
            given.write(stdin)
            given.seek(0)
            status = run(arguments, self.environment, given, Console(out, err))
            out.seek(0)
            err.seek(0)
            return Ran(status, out.read().decode(), err.read().decode())

    def chat(self, prompt: str, *options: str) -> Ran:
        return self("chat", "--no-interactive", "--wrap", "never", *options, "--", prompt)


@pytest.fixture
def simulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Simulator:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return Simulator(tmp_path)
