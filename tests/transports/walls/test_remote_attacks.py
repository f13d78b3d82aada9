"""Programs in bubblewrap on a host that try what those on this machine try: none gets out."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sortie.config.settings import Isolation
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.transport import ShellTransport
from sortie.transports.ssh.asyncio_thread import open_asyncio_thread
from sortie.transports.ssh.connection_pool import ConnectionPool
from tests.transports.endings import requires_namespaces
from tests.transports.sandboxes import remote_bubblewrap, requires_bubblewrap
from tests.transports.ssh.sshd import Keys, Sshd, requires_sshd, sshd_running
from tests.transports.walls import test_attacks
from tests.transports.walls.attacks import CANARY, CONNECTIONS, READS, SIGNALS, WRITES
from tests.transports.walls.test_attacks import Outside, requires_curl, said, victim

pytestmark = [requires_namespaces, requires_bubblewrap, requires_curl, requires_sshd]
servers = test_attacks.servers


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    place = tmp_path / "outside"
    place.mkdir()
    return Outside(place)


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    with sshd_running(tmp_path / "host", Keys.make(tmp_path / "client")) as host:
        yield host


@asynccontextmanager
async def connected(sshd: Sshd, *, reattach: float = 0.0) -> AsyncIterator[ShellTransport]:
    """Give the host, with a supervisor for each program where it may live without a link."""
    async with open_asyncio_thread() as thread:
        pool = ConnectionPool(sshd.host, sshd.settings, thread)
        try:
            yield ShellTransport(
                sshd.host, pool, bounds=Bounds(reattach=reattach), isolation=Isolation.AUTO
            )
        finally:
            await pool.aclose()


@pytest.mark.parametrize(
    "reattach", [0.0, pytest.param(30.0, id="reattach", marks=pytest.mark.full)]
)
async def test_none_of_the_attacks_gets_out(
    sshd: Sshd, outside: Outside, servers: dict[str, str], reattach: float
) -> None:
    """Nothing outside is read, changed, ended or reached, whatever was tried before."""
    attacks = {**READS, **SIGNALS, **CONNECTIONS, **WRITES}
    told = []
    pattern = Path("/proc/sys/kernel/core_pattern").read_text()
    async with connected(sshd, reattach=reattach) as host, victim(CANARY) as process:
        wall = remote_bubblewrap(host, hide=(str(outside.hidden),), has_network=False)
        env = {**servers, "VICTIM": str(process.pid)}
        for name, script in attacks.items():
            if CANARY in await said(wall, outside, script, **env):
                told.append(name)
        alive = process.poll() is None

    assert told == []
    assert alive
    assert outside.everything() == outside.before
    assert Path("/proc/sys/kernel/core_pattern").read_text() == pattern
    assert not os.path.islink(outside.workspace)
    assert not any(map(os.path.exists, ("/usr/written", "/tmp/written", "/etc/profile.d/x.sh")))


async def test_the_attacks_find_it_where_there_is_no_wall(
    sshd: Sshd, outside: Outside, servers: dict[str, str]
) -> None:
    """Or they would prove nothing: the same words, as programs of the host."""
    async with connected(sshd) as host:
        for script in (READS["key of the user"], CONNECTIONS["socket of unix"]):
            assert CANARY in await said(host, outside, script, **servers)
        assert CANARY in await said(host, outside, READS["hidden file"])
        await said(host, outside, WRITES["file beside the workspace"])

    assert outside.everything() != outside.before


async def test_with_the_network_of_the_host_servers_are_reached(
    sshd: Sshd, outside: Outside, servers: dict[str, str]
) -> None:
    """And files outside are not, all the same."""
    async with connected(sshd) as host:
        wall = remote_bubblewrap(host, hide=(str(outside.hidden),))
        found = await said(wall, outside, CONNECTIONS["server on this machine"], **servers)
        read = await said(wall, outside, READS["file beside the workspace"], **servers)

    assert CANARY in found
    assert CANARY not in read
