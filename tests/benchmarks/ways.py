"""The ways to run a program that are compared: ours, its floor, and the ``ssh`` program.

Each runs the same program, which writes one byte, and takes its output and its exit.
"""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import trio

from sortie.transports import Command, Transport
from sortie.transports.local import LocalTransport, become_subreaper
from sortie.transports.ssh.asyncio_thread import open_asyncio_thread
from sortie.transports.ssh.connection_pool import ConnectionPool
from sortie.transports.ssh.settings import SshSettings
from sortie.transports.ssh.transport import SshTransport

PROGRAM = ("printf", "x")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A host on loopback, and how it is reached; its key is in ``settings.known_hosts``."""

    port: int
    settings: SshSettings
    place: str  # a directory


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """Seconds of one turn: until the program runs, until its exit is known, until all is gone."""

    start: float
    run: float
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to run the program once; ``settle`` waits for what is still done when it has run."""

    name: str
    once: Callable[[], Awaitable[None]]
    settle: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
    helpers: tuple[int, ...] = ()
    phases: list[Phases] = field(default_factory=list)


@asynccontextmanager
async def open_ways(target: Target) -> AsyncIterator[list[Way]]:
    """Make all ways ready: connections are kept, a master runs."""
    become_subreaper()  # as the daemon does
    async with open_asyncio_thread() as thread, _master(target) as (path, pid):
        connections = ConnectionPool(f"127.0.0.1:{target.port}", target.settings, thread)

        async def floor() -> None:
            async with connections.channel(" ".join(PROGRAM)) as channel:
                said = b"".join([chunk async for number, chunk in channel.output() if number == 1])
                _check(said, channel.exit_status)

        async def settle() -> None:
            while connections.sessions:
                await trio.sleep(0.001)

        remote = SshTransport(f"127.0.0.1:{target.port}", connections)
        local = LocalTransport(os.environ["PATH"])
        try:
            yield [
                _turns("turn", remote, target, settle),
                Way(name="channel", once=floor, settle=settle),
                Way(name="ssh", once=partial(_run, ssh_command(target))),
                Way(
                    name="ssh-master", once=partial(_run, ssh_command(target, path)), helpers=(pid,)
                ),
                _turns("local", local, target, trio.lowlevel.checkpoint),
                Way(name="bare", once=partial(_run, [])),
            ]
        finally:
            await connections.aclose()


def _turns(
    name: str, transport: Transport, target: Target, settle: Callable[[], Awaitable[None]]
) -> Way:
    """Return the way that the daemon goes: a run's program, from its start to its certain end."""
    phases: list[Phases] = []

    async def once() -> None:
        env = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": str(uuid.uuid4())}
        command = Command(argv=PROGRAM, cwd=target.place, env=env)
        began = trio.current_time()
        async with transport.process(command) as process:
            started = trio.current_time()
            said = b"".join([chunk async for number, chunk in process.output() if number == 1])
            _check(said, (await process.wait()).status)
            exited = trio.current_time()
        over = trio.current_time()
        phases.append(Phases(start=started - began, run=exited - started, end=over - exited))

    return Way(name=name, once=once, settle=settle, phases=phases)


def ssh_command(target: Target, master: str | None = None) -> list[str]:
    """Return the arguments of OpenSSH for the host, with the keys that we use ourselves."""
    options = {
        "BatchMode": "yes",
        "IdentitiesOnly": "yes",
        "IdentityFile": target.settings.identity_files[0],
        "UserKnownHostsFile": target.settings.known_hosts,
        "StrictHostKeyChecking": "yes",
        "ControlPath": master or "none",
        "Port": target.port,
    }
    given = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    return ["ssh", "-F", str(target.settings.config), *given, "127.0.0.1"]


async def _run(argv: list[str]) -> None:
    done = await trio.run_process(
        [*argv, *PROGRAM], stdin=subprocess.DEVNULL, capture_stdout=True, capture_stderr=True
    )
    _check(done.stdout, done.returncode)


@asynccontextmanager
async def _master(target: Target) -> AsyncIterator[tuple[str, int]]:
    """Run an OpenSSH master; give its socket and its pid.

    In the foreground: with ControlPersist it would leave the process that we know.
    """
    path = f"{target.place}/master"
    argv = ssh_command(target, path)
    process = await trio.lowlevel.open_process(
        [*argv[:-1], "-o", "ControlMaster=yes", "-N", argv[-1]],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with trio.fail_after(10):
            while not Path(path).is_socket():
                await trio.sleep(0.01)
        yield path, process.pid
    finally:
        process.terminate()
        with trio.CancelScope(shield=True):
            await process.wait()


def _check(said: bytes, status: int | None) -> None:
    assert (said, status) == (b"x", 0), f"the program did not run as it should: {said!r}, {status}"
