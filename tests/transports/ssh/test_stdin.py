"""A stdin that is written while its program lives on a host: what the contract suite cannot see."""

from __future__ import annotations

import os
import shutil
import sys
import tracemalloc
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest
import trio
import trio.abc
import trio.testing

from sortie.model import HostError, HostTrouble, ProgramNotFound, RunId, TransportError
from sortie.transports import Command, Process, Stdin
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.transport import ShellTransport
from sortie.transports.ssh.asyncio_thread import AsyncioThread
from sortie.transports.ssh.connection_pool import ConnectionPool
from tests.transports.leftovers import holders, is_alive
from tests.transports.ssh.pipes import Logins
from tests.transports.ssh.sshd import Keys, Sshd, requires_sshd, sshd_running, until

PROGRAMS = Path(__file__).parent.parent / "programs"
ESCAPE = (sys.executable, str(PROGRAMS / "escape.py"))
MiB = 1 << 20

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the host's /proc is looked at"),
]


@pytest.fixture
def run_id() -> Iterator[RunId]:
    """Give a run id, and check that nothing of the run is left."""
    cookie = RunId(str(uuid.uuid4()))
    yield cookie
    assert holders(cookie) == []


@pytest.fixture
def temporary(tmp_path: Path) -> Iterator[Path]:
    """Give the host's directory for temporary files, and check that none is left."""
    directory = tmp_path / "tmp"
    directory.mkdir()
    yield directory
    assert os.listdir(directory) == []


@pytest.fixture
def logins(tmp_path: Path, temporary: Path) -> Logins:
    return Logins(tmp_path, TMPDIR=str(temporary))


@pytest.fixture
async def connections(sshd: Sshd, thread: AsyncioThread) -> AsyncIterator[ConnectionPool]:
    made = ConnectionPool(sshd.host, sshd.settings, thread)
    yield made
    await made.aclose()


def command(run_id: RunId, *argv: str, grace: float = 0.3) -> Command:
    env = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": run_id}
    return Command(argv=argv, cwd="/", env=env, stdin=Stdin.PIPE, grace=grace)


def stdin_of(process: Process) -> trio.abc.SendStream:
    assert process.stdin is not None
    return process.stdin


async def until_broken(stdin: trio.abc.SendStream) -> None:
    with pytest.raises(trio.BrokenResourceError):
        while True:
            await stdin.send_all(bytes(65536))


@pytest.mark.parametrize("sh", ["dash", "bash"])
async def test_every_shell_passes_all_bytes_on(
    tmp_path: Path, logins: Logins, run_id: RunId, sh: str
) -> None:
    """However far a shell reads ahead, the program gets each byte, and then the end."""
    found = shutil.which(sh)
    if found is None:
        pytest.skip(f"no {sh}")
    logins.sh = str(tmp_path / "sh")
    os.symlink(found, logins.sh)
    content = bytes(range(256)) * 1000
    read = bytearray()

    transport = ShellTransport("h", logins.connections)
    async with transport.process(command(run_id, "cat")) as process, trio.open_nursery() as nursery:

        async def send() -> None:
            async with stdin_of(process) as stdin:
                await stdin.send_all(content)

        nursery.start_soon(send)
        async for number, chunk in process.output():
            assert number == 1, chunk
            read += chunk

    assert bytes(read) == content
    await logins.quiet()


async def test_the_pipe_has_no_name_when_the_program_begins(
    logins: Logins, temporary: Path, run_id: RunId
) -> None:
    """Nobody else can come to write or to read."""
    async with ShellTransport("h", logins.connections).process(command(run_id, "cat")) as process:
        named = os.listdir(temporary)
        await stdin_of(process).aclose()

    assert named == []


@requires_sshd
async def test_a_stdin_may_have_a_connection_of_its_own(
    tmp_path: Path, keys: Keys, thread: AsyncioThread, run_id: RunId
) -> None:
    """A host with room for one session on a connection has a stdin all the same."""
    with sshd_running(tmp_path / "host", keys, {"MaxSessions": 1}) as host:
        connections = ConnectionPool(host.host, host.settings, thread)
        transport = ShellTransport(host.host, connections)
        async with transport.process(command(run_id, "cat")) as process:
            links = connections.links
            await stdin_of(process).send_all(b"there")
            said = await anext(process.output())
        await connections.aclose()

    assert (links, said) == (2, (1, b"there"))


@requires_sshd
@pytest.mark.parametrize("how", ["kill_links", "crash"])
async def test_a_lost_link_ends_the_program_in_the_middle_of_a_write(
    sshd: Sshd, connections: ConnectionPool, run_id: RunId, how: str
) -> None:
    """Who writes learns it at once, and program and pipe end on the host without us."""
    transport = ShellTransport(sshd.host, connections)
    with pytest.raises(HostError) as caught:
        async with transport.process(command(run_id, *ESCAPE, "fork", "ignore")) as process:
            said = await anext(process.output())
            pids = [int(pid) for pid in said[1].split()]
            before = len(holders(run_id))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(until_broken, stdin_of(process))
                await trio.testing.wait_all_tasks_blocked(0.05)
                getattr(sshd, how)()
            await process.wait()

    await until(lambda: holders(run_id) == [] and not any(is_alive(pid) for pid in pids))
    assert caught.value.trouble is HostTrouble.DROPPED
    assert before >= 2  # the pipe's end among them


@requires_sshd
@pytest.mark.parametrize("writes", [True, False])
async def test_without_a_sign_of_life_program_and_pipe_end(
    sshd: Sshd, connections: ConnectionPool, run_id: RunId, writes: bool
) -> None:
    """A lease that runs out ends what waits to read, and what waits to be read."""
    bounds = Bounds(beat=1000, lease=4.0)
    transport = ShellTransport(sshd.host, connections, bounds=bounds)

    async with transport.process(command(run_id, "sleep", "1000")) as process:
        await until(lambda: len(holders(run_id)) == 2)
        if writes:
            await until_broken(stdin_of(process))
        with pytest.raises(HostError, match="heard nothing"):
            await process.wait()
        await until(lambda: holders(run_id) == [])
        with pytest.raises(trio.BrokenResourceError):
            await stdin_of(process).send_all(b"more")


async def test_without_the_mark_the_pipe_is_found_by_the_cookie(
    tmp_path: Path, temporary: Path, run_id: RunId
) -> None:
    """A host that lets us set no limit has nothing left when the lease is over."""
    if shutil.which("prlimit") is None:
        pytest.skip("no prlimit")
    login = ("prlimit", "--locks=1000:1000", "sh")
    logins = Logins(tmp_path, login, TMPDIR=str(temporary))
    transport = ShellTransport("h", logins.connections, bounds=Bounds(beat=1000, lease=1.0))

    async with transport.process(command(run_id, "sleep", "1000")) as process:
        with pytest.raises(HostError, match="heard nothing"):
            await process.wait()
        await until(lambda: holders(run_id) == [])
    await logins.quiet()


async def test_a_program_nobody_comes_to_write_to_never_begins(
    tmp_path: Path, temporary: Path, run_id: RunId
) -> None:
    """A second login that hangs is the host's trouble; what waits for it is ended there."""
    (tmp_path / "login").write_text(
        '#!/bin/sh\n[ ! -e second ] || sleep 1000\n>second\nexec sh "$@"\n'
    )
    (tmp_path / "login").chmod(0o755)
    logins = Logins(tmp_path, (str(tmp_path / "login"),), TMPDIR=str(temporary))
    transport = ShellTransport("h", logins.connections, bounds=Bounds(handshake=3.0))

    with pytest.raises(HostError, match="did not answer") as caught:
        async with transport.process(command(run_id, "touch", str(tmp_path / "ran"))):
            pass

    assert caught.value.trouble is HostTrouble.UNREACHABLE
    assert os.listdir(temporary) == []
    assert not (tmp_path / "ran").exists()
    for pid in [int(entry.split()[0]) for entry in logins.running()]:
        os.kill(pid, 9)  # the login that hangs, which no host can be told to kill
    await logins.quiet()


async def test_a_lost_lease_ends_what_waits_for_its_pipe(
    tmp_path: Path, temporary: Path, run_id: RunId
) -> None:
    """A daemon that is killed between the two logins leaves nothing: no directory, no process."""
    (tmp_path / "login").write_text(
        '#!/bin/sh\n[ ! -e second ] || { read x; exit 1; }\n>second\nexec sh "$@"\n'
    )
    (tmp_path / "login").chmod(0o755)
    logins = Logins(tmp_path, (str(tmp_path / "login"),), TMPDIR=str(temporary))
    transport = ShellTransport("h", logins.connections, bounds=Bounds(beat=1000, lease=1.0))

    with pytest.raises(TransportError):
        async with transport.process(command(run_id, "touch", str(tmp_path / "ran"))):
            pass

    assert os.listdir(temporary) == []
    assert not (tmp_path / "ran").exists()
    await logins.quiet()


async def test_a_host_that_makes_no_pipe_says_so(
    tmp_path: Path, logins: Logins, run_id: RunId
) -> None:
    """Without room in TMPDIR nothing is started, and nothing is left there."""
    logins.env = {**logins.env, "TMPDIR": str(tmp_path / "none")}
    transport = ShellTransport("h", logins.connections)

    with pytest.raises(TransportError, match=r"FIFO.*TMPDIR") as caught:
        async with transport.process(command(run_id, "cat")):
            pass

    assert not isinstance(caught.value, ProgramNotFound)
    await logins.quiet()


@requires_sshd
async def test_who_gives_up_to_send_leaves_little_in_memory(
    sshd: Sshd, connections: ConnectionPool, run_id: RunId
) -> None:
    """However often one tries to write to a program that does not read."""
    content = bytes(64 * MiB)
    transport = ShellTransport(sshd.host, connections)

    async with transport.process(command(run_id, "sleep", "1000")) as process:
        tracemalloc.start()
        try:
            for _ in range(50):
                with trio.move_on_after(0.02):
                    await stdin_of(process).send_all(content)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert peak < 4 * MiB


@requires_sshd
async def test_nothing_that_is_said_stands_on_a_command_line(
    sshd: Sshd, connections: ConnectionPool, run_id: RunId
) -> None:
    """Neither what is written nor what the run is given can be seen in a list of processes."""
    given = command(run_id, "cat")
    given = Command(
        argv=given.argv,
        cwd=given.cwd,
        env={**given.env, "TOKEN": "tk-0123456789"},
        stdin=Stdin.PIPE,
        grace=0.3,
    )
    async with ShellTransport(sshd.host, connections).process(given) as process:
        await stdin_of(process).send_all(b"tk-0123456789")
        await anext(process.output())
        run = [psutil.Process(pid).cmdline() for pid in holders(run_id)]
        host = sshd.running()

    assert [len(arguments) for arguments in run] == [1, 1]
    assert not [entry for entry in host if "tk-0123456789" in entry]
