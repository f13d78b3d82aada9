"""A newer leader goes on with a program that an older one has started on a host."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import trio

from sortie.config.settings import Isolation
from sortie.model import HostError, HostTrouble, TransportError
from sortie.resources.lease import LeaseLost
from sortie.transports import Command, Exit, Process
from sortie.transports.kept_programs import KeptProcess
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.supervisor_scripts import KEPT
from tests.transports.leftovers import holders
from tests.transports.ssh.leaders import Leader, leader_of
from tests.transports.ssh.sshd import Keys, Sshd, requires_sshd, sshd_running, until

pytestmark = [
    requires_sshd,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="/proc is looked at"),
]

full = pytest.mark.full
WAYS = [
    pytest.param(Isolation.NONE, id="plain", marks=full),
    pytest.param(Isolation.AUTO, id="namespaces"),
]
COUNT = """n=0
while [ ! -e "$1" ]; do echo "line $n"; n=$((n + 1)); sleep 0.05; done
echo end >&2; exit 3"""
TALK = 'head -c 1000000 /dev/zero; echo up >&2; while [ ! -e "$1" ]; do sleep 0.05; done'


class Place:
    """A host, a workspace root there, and a program that goes on until ``stop`` is there."""

    def __init__(self, sshd: Sshd, files: Path, root: Path) -> None:
        self.sshd = sshd
        self.files = files
        self.root = root
        self.stop = root / "stop"
        self.cookie = str(uuid.uuid4())
        self.names: list[str] = []

    def leader(
        self, token: int, isolation: Isolation = Isolation.NONE, kept: int = KEPT
    ) -> AbstractAsyncContextManager[Leader]:
        bounds = Bounds(handshake=60.0, start=120.0, reattach=300.0)
        return leader_of(
            self.sshd, str(self.root), token, bounds=bounds, isolation=isolation, kept=kept
        )

    def command(self, script: str = COUNT, cookie: str | None = None) -> Command:
        async def on_record(name: str) -> None:
            self.names.append(name)

        env = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": cookie or self.cookie}
        argv = ("sh", "-c", script, "sh", str(self.stop))
        return Command(argv=argv, cwd=str(self.root), env=env, grace=0.5, on_record=on_record)


@pytest.fixture
def place(tmp_path: Path, keys: Keys) -> Iterator[Place]:
    """Give a host on which nothing of a program may be left in the end."""
    files, root = tmp_path / "tmp", tmp_path / "root"
    files.mkdir()
    with sshd_running(tmp_path / "host", keys) as host:
        host.options["SetEnv"] = f"HOME={host.home} SORTIE_TEST_SSHD={host.name} TMPDIR={files}"
        host.stop()
        host.start()
        made = Place(host, files, root)
        yield made
        assert holders(made.cookie) == []
    assert os.listdir(files) == []


async def heard(process: Process, lines: int) -> bytes:
    """Read stdout until there are so many lines."""
    said = b""
    with trio.fail_after(120):
        async for stream, chunk in process.output():
            said += chunk if stream == 1 else b""
            if said.count(b"\n") >= lines:
                return said
    raise AssertionError(said)


async def to_the_end(process: Process) -> tuple[bytes, bytes, Exit]:
    """Read all of the output, and wait for the exit."""
    said = {1: b"", 2: b""}

    async def read() -> None:
        async for stream, chunk in process.output():
            said[stream] += chunk

    with trio.fail_after(120):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            found = await process.wait()
    return said[1], said[2], found


def counted(said: bytes) -> bool:
    """Tell whether the lines are those of the program, each once, from the first on."""
    lines = said.decode().splitlines()
    return lines == [f"line {number}" for number in range(len(lines))]


async def begun(leader: Leader, place: Place, command: Command, stack: AsyncExitStack) -> Process:
    """Start a program as a leader does, and hear of it."""
    with leader.leading() as transport:
        await transport.files.make_directory(str(place.root), "made")
        return await stack.enter_async_context(transport.process(command))


@asynccontextmanager
async def lost(leader: Leader, process: Process, stack: AsyncExitStack) -> AsyncIterator[None]:
    """Leave a program in the end that a newer leader has taken over."""
    yield
    with leader.leading(), pytest.raises((LeaseLost, TransportError)):
        with trio.fail_after(60):
            await process.wait()
    with pytest.raises((LeaseLost, TransportError)):
        await stack.aclose()
        raise LeaseLost("it was gone")


@pytest.mark.parametrize("isolation", WAYS)
async def test_a_newer_leader_goes_on_with_a_program(place: Place, isolation: Isolation) -> None:
    """Its output comes from the first byte on, and the older one, whose link stands, hears nothing
    more of it and cannot end it; what else that has started is ended."""
    other = str(uuid.uuid4())
    async with place.leader(7, isolation) as old, place.leader(8, isolation) as new:
        stack = AsyncExitStack()
        process = await begun(old, place, place.command(), stack)
        await begun(old, place, place.command(cookie=other), stack)
        await heard(process, 3)
        with new.leading() as transport:
            found = await transport.kept([place.names[0], "another"])
            rest = holders(other)
            async with lost(old, process, stack):
                pass
            async with transport.adopted(place.command(), place.names[0]) as adopted:
                place.stop.touch()
                said, errors, exited = await to_the_end(adopted)

    assert list(found) == [place.names[0]]
    assert rest == []
    assert counted(said)
    assert len(said.splitlines()) > 3
    assert (errors, exited) == (b"end\n", Exit(status=3))
    assert adopted.identity == process.identity


async def test_it_is_gone_on_with_twice_and_then_ended(place: Place) -> None:
    """By leaders of which the second lets it go, and the third ends it with its tree."""
    async with place.leader(1) as first, place.leader(2) as second, place.leader(3) as third:
        async with AsyncExitStack() as stack:
            process = await begun(first, place, place.command(), stack)
            await heard(process, 2)
            assert isinstance(process, KeptProcess)
            process.let_go()
        with second.leading() as transport:
            once = await transport.kept(place.names)
            async with transport.adopted(place.command(), place.names[0]) as adopted:
                said = await heard(adopted, 10)
                assert isinstance(adopted, KeptProcess)
                adopted.let_go()
        with third.leading() as transport:
            twice = await transport.kept(place.names)
            async with transport.adopted(place.command(), place.names[0]) as adopted:
                again = await heard(adopted, 20)
                exited = await adopted.end()

    assert (once, twice) == (place.names, place.names)
    assert counted(said)
    assert again.startswith(said)
    assert exited.by_us


async def test_what_has_ended_meanwhile_is_heard_to_its_end(place: Place) -> None:
    """Its exit and all of its output are kept."""
    async with place.leader(1) as old, place.leader(2) as new:
        async with AsyncExitStack() as stack:
            process = await begun(old, place, place.command(), stack)
            await heard(process, 2)
            assert isinstance(process, KeptProcess)
            process.let_go()
        place.stop.touch()
        await until(lambda: process.identity.pid not in holders(place.cookie))
        with new.leading() as transport:
            found = await transport.kept(place.names)
            async with transport.adopted(place.command(), place.names[0]) as adopted:
                said, errors, exited = await to_the_end(adopted)

    assert found == place.names
    assert counted(said)
    assert (errors, exited) == (b"end\n", Exit(status=3))


@full
async def test_what_has_said_too_much_is_ended(place: Place) -> None:
    """Its first output is not there any more."""
    async with place.leader(1, kept=1 << 16) as old, place.leader(2, kept=1 << 16) as new:
        stack = AsyncExitStack()
        process = await begun(old, place, place.command(TALK), stack)
        size = 0
        with trio.fail_after(120):
            async for stream, chunk in process.output():
                size += len(chunk) if stream == 1 else 0
                if size >= 1_000_000:
                    break
        await trio.sleep(1)  # what is heard is acknowledged, and then removed
        with new.leading() as transport:
            found = await transport.kept(place.names)
            with pytest.raises(HostError) as caught:
                async with transport.adopted(place.command(TALK), place.names[0]):
                    pass
            left = holders(place.cookie)
        async with lost(old, process, stack):
            pass

    assert (list(found), left) == ([], [])
    assert caught.value.trouble is HostTrouble.DISRUPTED
