"""Programs on a real host that outlive their links.

``SORTIE_TEST_CUTS`` says how many games of cuts are played.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import psutil
import pytest
import trio

from sortie.config.settings import Isolation
from sortie.model import HostError, HostTrouble, RunId, TransportError
from sortie.transports import Command, Exit, Process, Stdin
from sortie.transports.lost_links import Links
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.supervised_process import SupervisedProcess
from sortie.transports.remote.transport import ShellTransport, new_nonce
from sortie.transports.ssh import connection
from sortie.transports.ssh.asyncio_thread import AsyncioThread
from sortie.transports.ssh.connection_pool import ConnectionPool
from tests.transports.leftovers import holders
from tests.transports.ssh.sshd import Keys, Sshd, requires_sshd, sshd_running, until

pytestmark = [requires_sshd, pytest.mark.timeout(900), pytest.mark.full]

CUTS = int(os.environ.get("SORTIE_TEST_CUTS", "3"))
DAEMON = Path(__file__).with_name("former_daemon.py")
ECHO = "import os\nwhile chunk := os.read(0, 65536): os.write(1, chunk)\n"


class Story:
    """What was told of links."""

    def __init__(self) -> None:
        self.lost: list[str] = []
        self.restored: list[str] = []

    def links(self) -> Links:
        return Links(
            new_nonce=new_nonce,
            lost=lambda run, _: self.lost.append(run),
            restored=lambda run, _: self.restored.append(run),
        )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "tmp"
    made.mkdir()
    return made


@pytest.fixture
def host(tmp_path: Path, keys: Keys, place: Path) -> Iterator[Sshd]:
    """Give a host whose files for programs stand in a directory that has to be empty at the end."""
    directory = tmp_path / "host"
    with sshd_running(directory, keys) as made:
        made.options["SetEnv"] = f"HOME={made.home} SORTIE_TEST_SSHD={made.name} TMPDIR={place}"
        made.stop()
        made.start()
        yield made
    assert os.listdir(place) == []


@pytest.fixture
async def pool(host: Sshd, thread: AsyncioThread) -> AsyncIterator[ConnectionPool]:
    made = ConnectionPool(host.host, host.settings, thread)
    yield made
    await made.aclose()


@pytest.fixture
def run_id() -> Iterator[RunId]:
    cookie = RunId(str(uuid.uuid4()))
    yield cookie
    assert holders(cookie) == []


def transport_of(
    host: Sshd,
    pool: ConnectionPool,
    story: Story | None = None,
    *,
    reattach: float = 120.0,
    isolation: Isolation = Isolation.NONE,
) -> ShellTransport:
    links = (story or Story()).links()
    bounds = Bounds(handshake=30.0, reattach=reattach, lease=min(30.0, reattach))
    return ShellTransport(host.host, pool, bounds=bounds, links=links, isolation=isolation)


def command(run_id: RunId, *argv: str, stdin: Stdin | None = None) -> Command:
    env = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": run_id}
    return Command(argv=argv, cwd="/", env=env, stdin=stdin, grace=0.3)


async def write(process: Process, content: bytes) -> None:
    assert process.stdin is not None
    async with process.stdin as stdin:
        await stdin.send_all(content)


@pytest.mark.parametrize("seed", range(CUTS))
async def test_what_goes_both_ways_is_exact_while_links_are_cut(
    host: Sshd, pool: ConnectionPool, run_id: RunId, seed: int
) -> None:
    """The sessions' processes are killed at random moments; the caller notices nothing."""
    rng = random.Random(seed)
    content = rng.randbytes(300_000)
    story, read = Story(), bytearray()
    isolation = rng.choice([Isolation.NONE, Isolation.AUTO])
    transport = transport_of(host, pool, story, isolation=isolation)

    given = command(run_id, sys.executable, "-c", ECHO, stdin=Stdin.PIPE)
    async with transport.process(given) as process, trio.open_nursery() as nursery:
        nursery.start_soon(write, process, content)

        async def cut() -> None:
            for _ in range(3):
                size = len(read)
                with trio.move_on_after(rng.random()):
                    while len(read) < size + 60_000:
                        await trio.sleep(0.005)
                host.kill_links()

        nursery.start_soon(cut)
        async for number, chunk in process.output():
            assert number == 1
            read += chunk
        exit_ = await process.wait()

    assert bytes(read) == content
    assert exit_ == Exit(status=0)
    assert len(story.lost) == len(story.restored)
    assert {*story.lost, *story.restored} <= {run_id}


async def test_a_run_goes_on_while_its_host_cannot_be_reached(
    host: Sshd, pool: ConnectionPool, run_id: RunId, tmp_path: Path
) -> None:
    """What it writes and its exit are told when the host is back, and meanwhile that it is away."""
    story, away = Story(), list[bool]()
    transport = transport_of(host, pool, story)
    waiting = f"while [ ! -e {tmp_path}/gate ]; do sleep 0.02; done"
    script = f"echo begun; {waiting}; cat; echo bad >&2; : >{tmp_path}/ended; exit 7"
    given = command(run_id, "sh", "-c", script, stdin=Stdin.PIPE)
    async with AsyncExitStack() as stack:
        stack.enter_context(transport.following_links(run_id, away.append))
        process = await stack.enter_async_context(transport.process(given))
        output = process.output()
        assert await anext(output) == (1, b"begun\n")
        assert process.stdin is not None
        await process.stdin.send_all(b"before\n")
        host.crash()
        await until(lambda: story.lost == [run_id])
        await process.stdin.send_all(b"after\n")
        await process.stdin.aclose()
        (tmp_path / "gate").touch()
        await trio.sleep(1.0)
        host.start()
        rest = [item async for item in output]
        exit_ = await process.wait()

    assert b"".join(chunk for number, chunk in rest if number == 1) == b"before\nafter\n"
    assert b"".join(chunk for number, chunk in rest if number == 2) == b"bad\n"
    assert story.restored == [run_id]
    assert away == [True, False]
    assert exit_ == Exit(status=7)


async def test_a_host_that_stays_away_loses_the_run(
    host: Sshd, pool: ConnectionPool, run_id: RunId
) -> None:
    """When the time is over; the host has ended the program by then, or soon after."""
    transport, away = transport_of(host, pool, reattach=2.0), list[bool]()
    with pytest.raises(HostError) as caught, transport.following_links(run_id, away.append):
        async with transport.process(command(run_id, "sleep", "1000")) as process:
            host.crash()
            await process.wait()

    assert away == [True, False]
    assert caught.value.trouble is HostTrouble.DROPPED
    await until(lambda: holders(run_id) == [])
    await until(lambda: host.running() == [])


async def test_a_program_is_ended_though_its_link_is_lost(
    host: Sshd, pool: ConnectionPool, run_id: RunId
) -> None:
    """By a new link that is made for it."""
    async with transport_of(host, pool).process(command(run_id, "sleep", "1000")) as process:
        host.kill_links()
        exit_ = await process.end()

    assert exit_ == Exit(signal=signal.SIGTERM, by_us=True)


@pytest.mark.parametrize("moment", ["here", "root", "started", "attached"])
async def test_a_link_that_is_lost_in_the_start_is_an_error_or_survived(
    host: Sshd,
    pool: ConnectionPool,
    run_id: RunId,
    moment: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing runs there afterwards, and no caller waits for ever."""
    expect = SupervisedProcess._expect
    cuts = iter([True])

    async def cut(self: SupervisedProcess, expected: str, bound: float) -> str:
        if expected == moment and next(cuts, False):
            host.kill_links()
        return await expect(self, expected, bound)

    monkeypatch.setattr(SupervisedProcess, "_expect", cut)
    transport = transport_of(host, pool)
    error = None
    try:
        async with transport.process(command(run_id, "sleep", "0.3")) as process:
            assert await process.wait() == Exit(status=0)
    except TransportError as exc:
        error = exc
    await transport.sweep([run_id], grace=0.1)

    assert holders(run_id) == []
    assert isinstance(error, HostError) or moment != "here"


async def test_a_killed_daemon_leaves_what_the_next_one_ends(
    host: Sshd, pool: ConnectionPool, run_id: RunId, place: Path
) -> None:
    """Its program lives on without a link, with its supervisor, until the run is swept."""
    keys = host.keys
    words = (host.host, keys.config, keys.known_hosts, keys.key, "none", "/", run_id, "sh", "-c")
    script = "echo ready; exec sleep 1000"
    environ = {**os.environ, "SORTIE_TEST_REATTACH": "120"}
    process = await trio.lowlevel.open_process(
        [sys.executable, str(DAEMON), *map(str, words), script], stdout=-1, env=environ
    )
    assert process.stdout is not None
    async with process.stdout:
        with trio.fail_after(60):
            assert await process.stdout.receive_some() == b"ready\n"
        process.kill()
        await process.wait()
    await trio.sleep(1.0)
    before, kept = len(holders(run_id)), os.listdir(place)

    await transport_of(host, pool).sweep([run_id], grace=0.1)

    assert (before, len(kept)) == (1, 1)
    assert holders(run_id) == []
    assert os.listdir(place) == []
    await pool.aclose()
    await until(lambda: host.running() == [])


async def test_what_waits_for_a_program_and_is_killed_is_no_fault_of_the_login(
    host: Sshd, pool: ConnectionPool, run_id: RunId, place: Path
) -> None:
    """How the program ended is not known, and the message says what to look for."""
    with pytest.raises(HostError, match="look at what has killed it") as caught:
        async with transport_of(host, pool).process(command(run_id, "sleep", "1000")) as process:
            (note,) = place.glob("sortie-run.*/supervisor")
            os.kill(int(note.read_text().split()[0]), signal.SIGKILL)
            await process.wait()

    assert caught.value.trouble is HostTrouble.DROPPED


async def test_a_host_without_a_tool_says_which(
    host: Sshd, pool: ConnectionPool, run_id: RunId, tmp_path: Path
) -> None:
    """Nothing is started, and the message names the setting."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "dd", "mkfifo", "rm", "sleep", "wc", "setsid"):
        (tools / name).symlink_to(f"/usr/bin/{name}")
    (host.home / ".bashrc").write_text(f"PATH={tools}\n")

    with pytest.raises(HostError, match=r"lacks timeout.*ssh_reattach") as caught:
        async with transport_of(host, pool).process(command(run_id, "true")):
            pass

    assert caught.value.trouble is HostTrouble.UNREACHABLE


async def test_a_link_that_falls_silent_is_followed_by_another(
    host: Sshd, pool: ConnectionPool, run_id: RunId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is told that it is lost; when it comes back to life, it writes nothing."""
    monkeypatch.setattr(connection, "_KEEPALIVE", 0.5)
    story, read = Story(), b""
    given = command(run_id, sys.executable, "-c", ECHO, stdin=Stdin.PIPE)
    async with transport_of(host, pool, story).process(given) as process:
        output = process.output()
        assert process.stdin is not None
        await process.stdin.send_all(b"one ")
        assert await anext(output) == (1, b"one ")
        silent = host.link_processes()
        for link in silent:
            link.suspend()
        await process.stdin.send_all(b"two ")
        await until(lambda: story.restored == [run_id])
        for link in silent:
            with suppress(psutil.NoSuchProcess):
                link.resume()
        await process.stdin.send_all(b"three")
        await process.stdin.aclose()
        read = b"".join([chunk async for _, chunk in output])
        exit_ = await process.wait()

    assert read == b"two three"
    assert exit_ == Exit(status=0)
