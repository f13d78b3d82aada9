"""A host behind a real sshd: lost links, killed daemons, and nothing left."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from sortie.model import HostError, HostTrouble, RunId
from sortie.transports import Command, Exit
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.transport import ShellTransport
from sortie.transports.ssh.asyncio_thread import AsyncioThread
from sortie.transports.ssh.connection_pool import ConnectionPool
from tests.transports.leftovers import holders, is_alive
from tests.transports.ssh.sshd import Sshd, requires_sshd

PROGRAMS = Path(__file__).parent.parent / "programs"
ESCAPE = (sys.executable, str(PROGRAMS / "escape.py"))
DAEMON = Path(__file__).with_name("former_daemon.py")
PROJECT = Path(__file__).parent.parent.parent.parent

pytestmark = requires_sshd


@pytest.fixture
def run_id() -> RunId:
    """Give a run id."""
    return RunId(str(uuid.uuid4()))


@pytest.fixture
async def connections(sshd: Sshd, thread: AsyncioThread) -> AsyncIterator[ConnectionPool]:
    """Give the connections to a host; nothing of its logins may be left."""
    made = ConnectionPool(sshd.host, sshd.settings, thread)
    yield made
    await quiet(sshd)
    await made.aclose()


@pytest.fixture
def host(sshd: Sshd, connections: ConnectionPool) -> ShellTransport:
    return ShellTransport(sshd.host, connections)


def escape(run_id: RunId, *words: str, grace: float = 0.2) -> Command:
    """Make a command whose child leaves it."""
    env = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": run_id}
    return Command(argv=(*ESCAPE, *words), cwd="/", env=env, grace=grace)


async def quiet(sshd: Sshd) -> None:
    """Wait until nothing runs on a host because of a login."""
    while sshd.running():
        await trio.sleep(0.01)


async def gone(run_id: RunId, pids: list[int]) -> None:
    """Wait until nothing of a run, and none of these processes, is left."""
    while holders(run_id) or any(is_alive(pid) for pid in pids):
        await trio.sleep(0.01)


async def first_pids(output: AsyncIterator[tuple[int, bytes]]) -> list[int]:
    said = b""
    while b"\n" not in said:
        said += (await anext(output))[1]
    return [int(pid) for pid in said.split()]


@pytest.mark.parametrize("how", ["kill_links", "crash"])
async def test_a_lost_link_is_told_and_ends_the_tree_on_its_host(
    sshd: Sshd, host: ShellTransport, run_id: RunId, how: str
) -> None:
    """Who waits hears of it at once; escaped children that ignore SIGTERM end there alone."""
    waited: HostError | None = None

    with pytest.raises(HostError) as caught:
        async with host.process(escape(run_id, "tree", "fork", "ignore")) as process:
            pids = await first_pids(process.output())
            getattr(sshd, how)()
            try:
                await process.wait()
            except HostError as error:
                waited = error
    await gone(run_id, pids)

    assert len(pids) == 3
    assert waited is not None
    assert (waited.trouble, caught.value.trouble) == (HostTrouble.DROPPED, HostTrouble.DROPPED)


async def test_output_that_was_cut_is_told_though_the_exit_is_known(
    sshd: Sshd, host: ShellTransport, run_id: RunId
) -> None:
    """The exit overtakes what waits for a slow reader; nobody may take the rest for all."""
    env = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": run_id}
    command = Command(argv=("head", "-c", "560000", "/dev/zero"), cwd="/", env=env)
    whole = 560000

    for _ in range(5):  # until the link is cut before all of it has come
        size, waited, caught = 0, None, None
        try:
            async with host.process(command) as process:
                output = process.output()
                size += len((await anext(output))[1])
                look_again = trio.current_time() + 1
                while holders(run_id):
                    if trio.current_time() > look_again:  # what lies on the way may hold less
                        size += len((await anext(output))[1])
                        look_again += 1
                    await trio.sleep(0.01)
                await trio.sleep(0.2)  # for the word of it to come
                sshd.kill_links()
                async for _, chunk in output:
                    size += len(chunk)
                    await trio.sleep(0)
                try:
                    await process.wait()
                except HostError as error:
                    waited = error
        except HostError as error:
            caught = error
        if size < whole:
            break

    assert size < whole
    assert waited is not None
    assert caught is not None
    assert (waited.trouble, caught.trouble) == (HostTrouble.DROPPED, HostTrouble.DROPPED)


async def test_a_killed_daemon_takes_its_agents_with_it(sshd: Sshd, run_id: RunId) -> None:
    """SIGKILL for the daemon ends what it runs on its hosts within the grace time."""
    keys = sshd.keys
    client = map(str, (keys.config, keys.known_hosts, keys.key))
    argv = [sshd.host, *client, "none", "/", run_id, *ESCAPE]
    daemon = await trio.lowlevel.open_process(
        [sys.executable, str(DAEMON), *argv, "fork", "ignore"],
        stdout=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT)},
    )
    assert daemon.stdout is not None

    pids = [int(pid) for pid in (await daemon.stdout.receive_some()).split()]
    alive = [is_alive(pid) for pid in pids]
    daemon.kill()
    await daemon.wait()
    await daemon.stdout.aclose()
    await gone(run_id, pids)
    await quiet(sshd)

    assert alive == [True]


async def test_a_silent_link_ends_the_lease(
    sshd: Sshd, connections: ConnectionPool, run_id: RunId
) -> None:
    """A host that hears nothing of us ends the tree though the link still stands."""
    bounds = Bounds(beat=0.1, lease=4.0)
    host = ShellTransport(sshd.host, connections, bounds=bounds)

    async with host.process(escape(run_id, "fork", "ignore")) as process:
        pids = await first_pids(process.output())
        sshd.freeze()
        try:
            await gone(run_id, pids)
        finally:
            sshd.thaw()
        with pytest.raises(HostError, match="heard nothing"):
            await process.wait()


async def test_a_deaf_host_does_not_hold_up_who_leaves(
    sshd: Sshd, connections: ConnectionPool, run_id: RunId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing comes back the block is left with an error, in bounded time."""
    for name in ("KILL_BOUND", "FINISH_BOUND", "_ROUND_TRIP"):
        monkeypatch.setattr(f"sortie.transports.remote.process.{name}", 0.3)
    monkeypatch.setattr("sortie.transports.remote.forced_end.FINISH_BOUND", 0.3)
    host = ShellTransport(sshd.host, connections, bounds=Bounds(beat=0.1, lease=4.0))

    with pytest.raises(Exception, match="could not") as caught:
        async with host.process(escape(run_id, "ignore")) as process:
            pids = await first_pids(process.output())
            sshd.freeze()
    try:
        await gone(run_id, pids)
    finally:
        sshd.thaw()

    assert str(process.identity.pid) in str(caught.value)


@pytest.mark.parametrize("stdin", [None, b"x" * 200_000], ids=["no stdin", "a large stdin"])
async def test_a_run_is_kept_alive_beyond_its_lease(
    sshd: Sshd, connections: ConnectionPool, run_id: RunId, stdin: bytes | None
) -> None:
    """Signs of life follow the start, whatever was sent before it."""
    host = ShellTransport(sshd.host, connections, bounds=Bounds(beat=0.2, lease=4.0))
    env = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": run_id}
    command = Command(argv=("sh", "-c", "sleep 5; echo done"), cwd="/", env=env, stdin=stdin)

    async with host.process(command) as process:
        said = b"".join([chunk async for _, chunk in process.output()])
        exit_ = await process.wait()

    assert (said, exit_) == (b"done\n", Exit(status=0))


async def test_many_at_once_leave_nothing(
    sshd: Sshd, host: ShellTransport, run_id: RunId, tmp_path: Path
) -> None:
    """Programs that exit, are ended, cancelled, flood and hide, all at once."""
    exits: list[Exit] = []

    async def run(number: int) -> None:
        env = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": run_id}
        scripts = ("exit 3", "yes", "sleep 1000 & exit 4", "trap '' TERM; yes >&2")
        given = Command(
            argv=("sh", "-c", scripts[number % 4]), cwd=str(tmp_path), env=env, grace=0.1
        )
        with trio.move_on_after(0.2 + number * 0.05):
            async with host.process(given) as process:
                async for _ in process.output():
                    pass
                exits.append(await process.wait())

    async with trio.open_nursery() as nursery:
        for number in range(24):
            nursery.start_soon(run, number)

    assert holders(run_id) == []
    await quiet(sshd)
    assert all(exit_ in (Exit(status=3), Exit(status=4)) for exit_ in exits)


async def test_secrets_are_in_no_command_line_and_in_no_log(
    sshd: Sshd, host: ShellTransport, run_id: RunId
) -> None:
    """Neither the host's processes nor its sshd's log show a variable."""
    secret = f"secret-{uuid.uuid4()}"
    given = Command(
        argv=("sh", "-c", 'cat /proc/[0-9]*/cmdline; printf %s "$KIRO_API_KEY" | wc -c'),
        cwd="/",
        env={"KIRO_API_KEY": secret, "SORTIE_RUN_ID": run_id},
        stdin=b"x",
    )

    async with host.process(given) as process:
        seen = b"".join([chunk async for _, chunk in process.output()]).decode("utf-8", "replace")

    assert seen.endswith(f"{len(secret)}\n")
    assert secret not in seen
    assert not any(secret in line for line in sshd.log)


async def test_inline_secrets_are_in_the_command_line(
    sshd: Sshd, connections: ConnectionPool, run_id: RunId
) -> None:
    """That is what was asked for: the host's process list shows the documented form."""
    host = ShellTransport(sshd.host, connections, delivery="inline")
    given = Command(
        argv=("nice sh", "-c", "cat /proc/$PPID/cmdline /proc/$$/cmdline; exit 7"),
        cwd="/tmp",
        env={"KIRO_API_KEY": "k'ey", "SORTIE_RUN_ID": run_id},
    )

    async with host.process(given) as process:
        seen = b"".join([chunk async for _, chunk in process.output()])
        exit_ = await process.wait()

    assert b"cd -- '/tmp' && KIRO_API_KEY='k'\\''ey' SORTIE_RUN_ID=" in seen
    assert b" nice sh '-c' 'cat " in seen
    assert exit_ == Exit(status=7)


async def test_an_inline_tree_is_ended_too(
    sshd: Sshd, connections: ConnectionPool, run_id: RunId
) -> None:
    """The piece of shell, what it runs and what escapes it are gone with the block."""
    host = ShellTransport(sshd.host, connections, delivery="inline")
    given = escape(run_id, "fork", "ignore")

    async with host.process(given) as process:
        pids = await first_pids(process.output())
        exit_ = await process.end()

    assert exit_.by_us
    assert holders(run_id) == []
    assert not any(is_alive(pid) for pid in pids)
