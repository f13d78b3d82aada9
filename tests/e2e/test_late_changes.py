"""What a leader has sent when its cable is pulled never arrives later, wherever it was sent."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.e2e.machines import Machine, machine
from tests.kubernetes_api.server import cluster_running
from tests.transports.ssh.sshd import Keys, requires_sshd, sshd_running

LIMIT = 120.0

_GONE = 25.0
"""Seconds in which a kernel has given up what it kept; by itself it would do so after minutes, and
a request to an API server is cut after 30."""


class Sender:
    """The program on its machine, and what it says; see late_sender."""

    def __init__(self, process: trio.Process, on: Machine) -> None:
        self._process = process
        self._on = on

    async def says(self, word: str) -> None:
        """Wait until it says so."""
        assert self._process.stdout is not None
        heard = b""
        with trio.fail_after(LIMIT):
            while word.encode() not in heard:
                heard += await self._process.stdout.receive_some() or self._ended(heard)

    def _ended(self, heard: bytes) -> bytes:
        raise AssertionError(f"it has ended, and said {heard!r}")

    async def send(self) -> None:
        """Have it send while its cable is pulled, so that its kernel keeps that."""
        assert self._process.stdin is not None
        self._on.cut()
        await self._process.stdin.send_all(b"\n")
        await self.says("sending")
        with trio.fail_after(LIMIT):
            while not self.kept():
                await trio.sleep(0.02)

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def kept(self) -> Sequence[str]:
        """Return the connections of its machine with something that was not taken."""
        words = [*self._on.words, "cat", "/proc/net/tcp"]
        _, *lines = subprocess.check_output(words, text=True).splitlines()
        return [line for line in lines if not line.split()[4].startswith("00000000:")]

    async def nothing_is_kept(self) -> None:
        """Wait until the kernel has given up what it kept."""
        with trio.fail_after(_GONE):
            while self.kept():
                await trio.sleep(0.05)


@asynccontextmanager
async def sender(on: Machine, *words: str) -> AsyncIterator[Sender]:
    """Have the program run, and ready, on a machine for the length of a block."""
    command = [*on.words, sys.executable, "-m", "tests.e2e.late_sender", *words]
    async with trio.open_nursery() as nursery:
        process = await nursery.start(
            lambda task_status: trio.run_process(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                check=False,
                task_status=task_status,
            )
        )
        made = Sender(process, on)
        await made.says("ready")
        yield made
        nursery.cancel_scope.cancel()


@requires_sshd
async def test_nothing_reaches_a_host_from_a_leader_that_has_ended(tmp_path: Path) -> None:
    """Its watchdog kills it before its lease is over, and its kernel forgets what it has sent."""
    keys, file = Keys.make(tmp_path / "client"), tmp_path / "file"
    with sshd_running(tmp_path / "host", keys) as host, machine() as on:
        known = (str(keys.config), str(keys.known_hosts), str(keys.key))
        async with sender(on, "host", host.host, *known, str(file)) as made:
            await made.send()
            made.kill()
            await made.nothing_is_kept()
            on.mend()

        assert file.read_bytes() == b""


@requires_sshd
@pytest.mark.full
async def test_nothing_reaches_a_host_late_from_a_leader_that_lives(tmp_path: Path) -> None:
    """The link is given up before the lease would be."""
    keys, file = Keys.make(tmp_path / "client"), tmp_path / "file"
    with sshd_running(tmp_path / "host", keys) as host, machine() as on:
        known = (str(keys.config), str(keys.known_hosts), str(keys.key))
        async with sender(on, "host", host.host, *known, str(file)) as made:
            await made.send()
            await made.nothing_is_kept()
            on.mend()

        assert file.read_bytes() == b""


async def test_nothing_reaches_a_cluster_late(tmp_path: Path) -> None:
    """A request that the API server has not taken is given up, with its connection."""
    async with cluster_running() as api:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(api.kubeconfig())
        with machine() as on:
            async with sender(on, "cluster", str(kubeconfig)) as made:
                await made.send()
                await made.nothing_is_kept()
                on.mend()
                await made.says("could not delete a pod")

        assert ("DELETE", "/api/v1/namespaces/agents/pods/late") not in api.requests
        assert ("GET", "/api/v1/namespaces/agents/pods") in api.requests
