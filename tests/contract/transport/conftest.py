"""A transport of each kind, and the commands of a run on it."""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sortie.model import LOCAL, RunId
from sortie.transports import Transport
from sortie.transports.local import LocalTransport, become_subreaper
from sortie.transports.ssh.bridge import open_bridge
from sortie.transports.ssh.connections import Connections
from sortie.transports.ssh.transport import SshTransport
from tests.contract.transport.launching import Launch
from tests.transports.leftovers import foreign_children, holders
from tests.transports.ssh.sshd import MISSING, Keys, Sshd, requires_sshd, sshd_running

UPTIME = Path("/proc/uptime")


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd | None]:
    """Give a remote host, which is this machine behind an sshd of its own, where there is one."""
    if MISSING is not None:
        yield None
        return
    place = tmp_path_factory.mktemp("remote")
    with sshd_running(place / "host", Keys.make(place / "client")) as host:
        yield host


@pytest.fixture(params=["local", pytest.param("ssh", marks=requires_sshd)])
async def transport(
    request: pytest.FixtureRequest, remote: Sshd | None
) -> AsyncIterator[Transport]:
    """Give one transport of each kind."""
    if request.param == "local":
        become_subreaper()
        yield LocalTransport(os.environ["PATH"])
        return
    assert remote is not None
    async with open_bridge() as bridge:
        connections = Connections(remote.host, remote.settings, bridge)
        try:
            yield SshTransport(remote.host, connections)
        finally:
            await connections.aclose()


@pytest.fixture
def place(tmp_path: Path) -> str:
    """Give a directory on the transport's host."""
    return str(tmp_path)


def uptime() -> float:
    """Return the seconds since the machine was started; 0 where it does not tell."""
    return float(UPTIME.read_text().split()[0]) if UPTIME.exists() else 0.0


def started(pid: int) -> float:
    """Return how long after the machine a process was started; where nobody tells, for ever."""
    if not UPTIME.exists():
        return math.inf
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it is gone
        return -1.0
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def cookie(transport: Transport) -> Iterator[RunId]:
    """Give a run id, and check that no process of that run, and no zombie of ours, is left."""
    run_id = RunId(str(uuid.uuid4()))
    began = uptime()
    yield run_id
    assert holders(run_id) == []
    if transport.host == LOCAL:
        # What an earlier test had on a remote host may come to us late, as its machine is ours.
        assert [child for child in foreign_children() if started(child[0]) >= began - 0.02] == []


@pytest.fixture
def launch(cookie: RunId, place: str) -> Launch:
    return Launch(cookie, place)
