"""Programs in a container of a host that try what those of this machine try: none gets out."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.transports.containers import (
    choice,
    know_engine,
    remote_container_transport,
    requires_containers,
    seen_by_tests,
)
from tests.transports.endings import requires_namespaces
from tests.transports.ssh.sshd import Keys, Sshd, requires_sshd, sshd_running
from tests.transports.walls import test_attacks
from tests.transports.walls.attacks import CANARY, CONNECTIONS, READS, SIGNALS, WRITES
from tests.transports.walls.test_attacks import Outside, requires_curl, said, victim
from tests.transports.walls.test_container import ATTACKS
from tests.transports.walls.test_remote_container import connected, said_by, sh

pytestmark = [requires_namespaces, requires_containers, requires_curl, requires_sshd]
servers = test_attacks.servers


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    place = tmp_path / "outside"
    place.mkdir()
    return Outside(place)


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    with sshd_running(tmp_path / "host", Keys.make(tmp_path / "client")) as host:
        (host.home / "ws").mkdir()
        know_engine(host)
        yield host


@pytest.mark.parametrize(
    "reattach", [0.0, pytest.param(30.0, id="reattach", marks=pytest.mark.full)]
)
async def test_none_of_the_attacks_gets_out(
    sshd: Sshd, outside: Outside, servers: dict[str, str], reattach: float
) -> None:
    """Nothing outside is read, changed, ended or reached, whatever was tried before."""
    attacks = {**READS, **SIGNALS, **CONNECTIONS, **WRITES}
    home = outside.place / "home"
    chosen = choice(
        read=(*seen_by_tests(), str(home / ".config/git")),
        hidden=(str(outside.hidden),),
        home=str(home),
    )
    told = []
    pattern = Path("/proc/sys/kernel/core_pattern").read_text()
    async with (
        connected(sshd, reattach=reattach) as host,
        victim(CANARY) as process,
        remote_container_transport(host, str(outside.workspace), chosen) as wall,
    ):
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


async def test_what_is_tried_from_a_container_fails(sshd: Sshd) -> None:
    """The command fails, whatever of the host or of its kernel it is for."""
    beside = sshd.home / "outside"
    beside.mkdir()
    (beside / "secret").write_text(CANARY)
    got_out = []
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        port = server.getsockname()[1]
        abstract.bind(f"\0sortie-test-{port}")
        abstract.listen()
        env = {
            "OUTSIDE": str(beside),
            "VICTIM": str(os.getpid()),
            "PORT": str(port),
            "ABSTRACT": f"sortie-test-{port}",
        }
        async with (
            connected(sshd) as host,
            remote_container_transport(host, f"{sshd.home}/ws") as wall,
        ):
            for name, script in ATTACKS.items():
                exit_, words = await said_by(wall, sh(sshd, script, **env))
                if exit_.status in (0, None) or CANARY in words:
                    got_out.append(name)

    assert got_out == []
    assert os.listdir(beside) == ["secret"]
