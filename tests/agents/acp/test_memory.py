"""How large an agent's process tree is."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import psutil
import pytest
import trio

from sortie.agents.acp.memory import resident_mb, tree_mb
from sortie.transports import Command
from sortie.transports.remote.transport import ShellTransport
from sortie.transports.ssh.asyncio_thread import open_asyncio_thread
from sortie.transports.ssh.connection_pool import ConnectionPool
from tests.transports.endings import WAYS, local_transport
from tests.transports.ssh.sshd import Keys, requires_sshd, sshd_running


def test_the_memory_of_a_tree_is_summed_up() -> None:
    """Children of children too, and nobody else; without its root nothing is known."""
    table = "1 0 1024\n 7 1 2048\n 8 7 1024\n9 8 1024\n10 1 4096\n  PID PPID RSS\n11 7 12m\n8 9 1"

    assert tree_mb(table, 10) == 4.0
    assert tree_mb(table, 99) is None
    assert tree_mb("7 7 1024", 7) == 1.0


def test_where_there_is_no_ps_pages_are_counted() -> None:
    """By what the kernel tells of each process, whatever these call themselves."""
    stat = "{} ({}) S {} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77 4096000 {} 18446744073709551615 1\n"
    lines = [(1, "init", 0, 256), (10, "a) R 1 (b", 1, 512), (11, "child", 10, 256), (7, "x", 1, 1)]
    table = "4096\n" + "".join(stat.format(*line) for line in lines) + "12 (torn) S 10 1\n"

    assert tree_mb(table, 10) == 3.0
    assert tree_mb(table, 99) is None


@pytest.mark.parametrize("way", WAYS)
async def test_the_memory_of_a_program_on_this_machine_is_told(way: str, tmp_path: Path) -> None:
    """In whatever way it was started, with what it has started; and nothing once it is gone."""
    # Each holds 30 MB, and says so when it does.
    holds = "bytearray(30_000_000); os.write(1, b'x'); os.fork() and os.wait(); signal.pause()"
    command = Command(
        argv=(sys.executable, "-c", f"import os, signal; kept = {holds}"),
        cwd=str(tmp_path),
        env={"PATH": os.environ["PATH"]},
        grace=0.0,
    )
    async with local_transport(way) as transport:
        async with transport.process(command) as process:
            await anext(process.output())
            pid = process.identity.pid
            while len(psutil.Process(pid).children(recursive=True)) < 1:
                await trio.sleep(0.01)
            size = await resident_mb(transport, pid, str(tmp_path), command.env)
        after = await resident_mb(transport, pid, str(tmp_path), command.env)

    assert size is not None
    assert 30 < size < 1000
    assert after is None


@requires_sshd
async def test_a_host_tells_its_processes_with_ps_and_without(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Both accounts of one process agree in magnitude."""
    commands = tmp_path / "commands"
    commands.mkdir()
    for name in ("cat", "getconf"):
        (commands / name).symlink_to(shutil.which(name) or name)
    place = tmp_path_factory.mktemp("remote")
    with sshd_running(place / "host", Keys.make(place / "client")) as host:
        async with open_asyncio_thread() as thread:
            connections = ConnectionPool(host.host, host.settings, thread)
            transport = ShellTransport(host.host, connections)

            async def told(path: str) -> float | None:
                env = {"PATH": path}
                return await resident_mb(transport, os.getpid(), str(tmp_path), env)

            with_ps, without = await told(os.environ["PATH"]), await told(str(commands))
            await connections.aclose()

    assert with_ps is not None
    assert without is not None
    assert without / 2 < with_ps < without * 2
