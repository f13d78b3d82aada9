"""Hosts for the tests of supervised programs."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.transports.remote.links import Host


@pytest.fixture(params=["dash", pytest.param("bash", marks=pytest.mark.full)])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
    """Give a host for each kind of shell, on which nothing may be left.

    The scripts are the same for both; games of cuts are played with both each time.
    """
    found = shutil.which(request.param)
    if found is None:
        pytest.skip(f"no {request.param}")
    directory = tmp_path / "with space"
    directory.mkdir()
    made = Host(directory, found)
    yield made
    left = made.running()
    for line in left:
        with suppress(ProcessLookupError):
            os.kill(int(line.split()[0]), signal.SIGKILL)
    assert left == []
