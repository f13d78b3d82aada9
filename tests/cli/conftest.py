"""A command line in a directory of its own, with a quiet environment."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sortie.cli.errors import run_command
from tests.cli.fake_daemon import FakeDaemon, announce, serving
from tests.cli.world import WORKFLOW, Ran, is_ours

Cli = Callable[..., Ran]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The empty directory that commands run in."""
    for name in filter(is_ours, list(os.environ)):
        monkeypatch.delenv(name)
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(place)
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "UTC")
        time.tzset()
        yield place
    time.tzset()


@pytest.fixture
def cli(here: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command in this process."""

    def run(*arguments: str) -> Ran:
        capsys.readouterr()
        code = run_command(arguments)
        out, err = capsys.readouterr()
        return Ran(code=code, out=out, err=err)

    return run


@pytest.fixture
def daemon(here: Path) -> Iterator[FakeDaemon]:
    """A daemon that answers, whose workflow is the default one here."""
    (here / "WORKFLOW.md").write_text(WORKFLOW)
    with serving() as fake:
        announce(here, fake.endpoint())
        yield fake
