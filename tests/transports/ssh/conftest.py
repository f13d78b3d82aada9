"""Hosts for the tests of the ssh transport."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sortie.transports.ssh.asyncio_thread import AsyncioThread, open_asyncio_thread
from tests.transports.ssh.sshd import Keys, Sshd, sshd_running


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    """Give a client that knows no host yet."""
    return Keys.make(tmp_path / "client")


@pytest.fixture
def sshd(tmp_path: Path, keys: Keys) -> Iterator[Sshd]:
    """Give a running host; nothing that it started may be left."""
    with sshd_running(tmp_path / "host", keys) as host:
        yield host


@pytest.fixture
async def thread() -> AsyncIterator[AsyncioThread]:
    """Give a running asyncio thread."""
    async with open_asyncio_thread() as opened:
        yield opened
