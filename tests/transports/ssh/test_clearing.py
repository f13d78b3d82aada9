"""What a run left in a directory of a host whose watchdog was killed as well."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from sortie.transports import Command
from sortie.transports.remote.remote_launch import RemoteLaunch
from sortie.transports.remote.transport import ShellTransport
from tests.transports.leftovers import is_alive
from tests.transports.ssh.pipes import Logins

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the mark is a limit of Linux")

_RLIMIT_LOCKS = 10
MARKER = RemoteLaunch(
    command=Command(argv=("x",), cwd="/", env={}), nonce="former", lease=30
).marker


@contextmanager
def left_in(directory: Path, marker: int | None) -> Iterator[list[int]]:
    """Give the pids of two processes with a mark, no environment and sessions of their own, the
    second of them elsewhere."""

    def mark() -> None:
        if marker is not None:
            resource.setrlimit(_RLIMIT_LOCKS, (marker, resource.RLIM_INFINITY))

    script = "trap '' TERM; (cd /; exec setsid sleep 1000) & echo $!; while :; do sleep 1; done"
    with subprocess.Popen(
        ["sh", "-c", script],
        cwd=directory,
        env={},
        stdout=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=mark,
    ) as process:
        assert process.stdout is not None
        other = int(process.stdout.readline())
        try:
            yield [process.pid, other]
        finally:
            process.kill()
            with suppress(ProcessLookupError):
                os.kill(other, signal.SIGKILL)


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[ShellTransport]:
    logins = Logins(tmp_path)
    yield ShellTransport("h", logins.connections)
    await logins.quiet()


async def test_what_a_launch_that_is_over_left_is_ended(
    host: ShellTransport, tmp_path: Path
) -> None:
    """With all that descends from it, wherever that lives; nothing but its mark tells whose."""
    with left_in(tmp_path, MARKER) as pids:
        ended = await host.clear(str(tmp_path), grace=0.2)
        alive = [is_alive(pid) for pid in pids]

    assert alive == [False, False]
    assert ended >= 2
    assert await host.clear(str(tmp_path), grace=0.2) == 0


async def test_who_forks_and_exits_all_the_time_is_told(
    host: ShellTransport, tmp_path: Path
) -> None:
    """Each link of the chain lives for some milliseconds, so that most are missed by a list."""
    home = tmp_path / "home"
    home.mkdir()
    flag = tmp_path / "flag"
    flag.touch()
    chain = (
        "import os, sys, time\n"
        "while os.path.exists(sys.argv[1]):\n"
        "    if os.fork():\n"
        "        os._exit(0)\n"
        "    os.setsid()\n"
        "    time.sleep(0.002)\n"
    )
    subprocess.run([sys.executable, "-c", chain, str(flag)], cwd=home, env={}, check=True)
    try:
        seen = [await host.occupied(str(home)) for _ in range(20)]
    finally:
        flag.unlink()

    assert [] not in seen
