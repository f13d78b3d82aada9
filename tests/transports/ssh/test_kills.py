"""Agents that try to escape, ended in every way over two real hosts, again and again.

``SORTIE_TEST_KILLS`` says how often each way is tried on each host.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from sortie.config.settings import Isolation
from sortie.model import HostError, ProcessesLeft, RunId
from sortie.transports import Command
from sortie.transports.remote.transport import ShellTransport
from sortie.transports.ssh.asyncio_thread import AsyncioThread
from sortie.transports.ssh.connection_pool import ConnectionPool
from tests.transports.leftovers import bearers
from tests.transports.ssh.sshd import Keys, Sshd, requires_sshd, sshd_running

pytestmark = [requires_sshd, pytest.mark.full, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("SORTIE_TEST_KILLS", "4"))
NASTY = Path(__file__).parent.parent / "programs" / "nasty.py"
DAEMON = Path(__file__).with_name("former_daemon.py")
_PATIENCE = 30.0
_CHAIN = 0.1
"""Seconds in which a chain, each link of which lives for 3 ms, shows that it lives."""


@pytest.fixture
def hosts(tmp_path: Path, keys: Keys) -> Iterator[list[Sshd]]:
    with (
        sshd_running(tmp_path / "one", keys) as one,
        sshd_running(tmp_path / "two", keys) as two,
    ):
        yield [one, two]


class Round:
    """One agent: where it works, and what tells whether anything of it lives."""

    def __init__(self, place: Path) -> None:
        self.run_id = RunId(str(uuid.uuid4()))
        self.word = f"of-{self.run_id}"
        self.home = place / self.run_id
        self.home.mkdir()
        self.link = self.home / "link"

    def argv(self, *words: str) -> tuple[str, ...]:
        return (sys.executable, str(NASTY), str(self.link), self.word, *words)

    def command(self, *words: str) -> Command:
        env = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": self.run_id}
        return Command(argv=self.argv(*words), cwd=str(self.home), env=env, grace=0.1)

    async def left(self) -> list[str]:
        """Return who lives: pids, and the chain."""
        self.link.unlink(missing_ok=True)
        await trio.sleep(_CHAIN)
        chain = ["chain"] if self.link.exists() else []
        return chain + [str(pid) for pid in bearers(self.word)]

    async def nobody(self, within: float) -> float | None:
        """Wait until nobody lives; return the seconds, or None where somebody stays."""
        began = time.monotonic()
        while time.monotonic() - began < within:
            if not await self.left():
                return time.monotonic() - began - _CHAIN
        return None

    def clean_up(self) -> None:
        """End by hand what has escaped; the chain ends where it cannot write."""
        self.link.unlink(missing_ok=True)
        self.home.rename(self.home.with_name(f"over-{self.run_id}"))
        for pid in bearers(self.word):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


async def ready(output: AsyncIterator[tuple[int, bytes]]) -> None:
    with trio.fail_after(_PATIENCE):
        number, chunk = await anext(output)
    assert (number, chunk) == (1, b"ready\n"), chunk


async def play(
    way: str, host: Sshd, transport: ShellTransport, one: Round, isolation: Isolation
) -> None:
    """Start an agent and end it in one way."""
    if way == "killed":
        await kill_the_daemon(host, one, isolation)
        return
    words = ("exit",) if way == "exit" else ()
    try:
        async with transport.process(one.command(*words)) as process:
            await ready(process.output())
            match way:
                case "exit":
                    await process.wait()
                case "stop":
                    await process.end()
                case "cut":
                    host.kill_links()
                    await process.wait()
    except ProcessesLeft:
        raise
    except HostError:
        assert way == "cut"


async def kill_the_daemon(host: Sshd, one: Round, isolation: Isolation) -> None:
    keys = host.keys
    words = (
        host.host,
        keys.config,
        keys.known_hosts,
        keys.key,
        isolation.value,
        one.home,
        one.run_id,
    )
    process = await trio.lowlevel.open_process(
        [sys.executable, str(DAEMON), *map(str, words), *one.argv()],
        stdout=-1,
    )
    assert process.stdout is not None
    async with process.stdout:
        with trio.fail_after(_PATIENCE):
            assert await process.stdout.receive_some() == b"ready\n"
        process.kill()
        await process.wait()


@pytest.mark.parametrize("way", ["exit", "stop", "cut", "killed"])
async def test_is_survived_by_none_an_end_with_namespaces(
    tmp_path: Path, hosts: list[Sshd], thread: AsyncioThread, way: str
) -> None:
    """Whatever the agent does to escape; a run that begins there next needs no search."""
    took = []
    for host in hosts:
        pool = ConnectionPool(host.host, host.settings, thread)
        transport = ShellTransport(host.host, pool, isolation=Isolation.PID_NAMESPACE)
        for _ in range(KILLS):
            one = Round(tmp_path)
            await play(way, host, transport, one, Isolation.PID_NAMESPACE)
            seconds = await one.nobody(_PATIENCE)
            left = await one.left()
            one.clean_up()
            assert left == []
            assert seconds is not None
            took.append(seconds)
        await pool.aclose()

    sys.stdout.write(f"{way}: {len(took)} ends, nobody {max(took):.2f} s after it at most\n")


@pytest.mark.parametrize("way", ["exit", "stop", "cut", "killed"])
async def test_who_outlives_an_end_without_namespaces_keeps_its_workspace(
    tmp_path: Path, hosts: list[Sshd], thread: AsyncioThread, way: str
) -> None:
    """Who lives in it is named, and it is not taken for empty; who lives elsewhere is counted."""
    told: Counter[str] = Counter()
    for host in hosts:
        pool = ConnectionPool(host.host, host.settings, thread)
        transport = ShellTransport(host.host, pool, isolation=Isolation.NONE)
        for _ in range(KILLS):
            one = Round(tmp_path)
            try:
                await play(way, host, transport, one, Isolation.NONE)
            except ProcessesLeft:
                told["said that somebody is left"] += 1
            await trio.sleep(1.0)
            await transport.sweep([one.run_id], grace=0.0)
            left = await one.left()
            told["rounds with somebody left"] += bool(left)
            if "chain" in left:
                assert await transport.occupied(str(one.home)) != []
                told["chains left, and named"] += 1
            one.clean_up()
        await pool.aclose()

    sys.stdout.write(f"{way}: {dict(told)} of {KILLS * len(hosts)}\n")
