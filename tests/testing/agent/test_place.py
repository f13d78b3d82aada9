"""Where the checks run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from sortie.testing.agent.place import temporary_directory
from sortie.transports.local import LocalTransport


async def test_a_directory_among_those_of_others_is_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Though no ordinary user owns the directory for temporary files."""
    monkeypatch.setattr(os, "geteuid", lambda: os.stat("/tmp").st_uid + 1000)

    async with temporary_directory(LocalTransport(os.defpath)) as path:
        Path(path, "inner").mkdir()

    assert not Path(path).exists()


async def test_a_directory_is_removed_when_the_checks_are_cut_short() -> None:
    """A cancelled run leaves nothing."""
    with trio.CancelScope() as scope:
        async with temporary_directory(LocalTransport(os.defpath)) as path:
            scope.cancel()
            await trio.lowlevel.checkpoint()

    assert not Path(path).exists()
