"""What only this machine's transport has to keep: adoption, sweeps, and who belongs to whom."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import tracemalloc
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import trio
import trio.testing
from msgspec.structs import replace

from sortie.model import ProcessesLeft, ProgramNotFound, RunId, TransportError
from sortie.resources import run_in_thread
from sortie.resources.lease import LEASE, Lease, boot_time
from sortie.transports import Command, Exit, Stdin
from sortie.transports.local import LocalTransport, become_subreaper
from sortie.transports.local.removal import Removal
from sortie.transports.local.safe_open import opened
from tests.transports.leftovers import foreign_children, holders, is_alive
from tests.transports.mounts import bound, requires_mounts

PROGRAMS = Path(__file__).parent.parent / "programs"
ESCAPE = (sys.executable, str(PROGRAMS / "escape.py"))
PROJECT = Path(__file__).parent.parent.parent.parent

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="adoption of orphans and /proc are Linux's"
)


@pytest.fixture
def transport() -> LocalTransport:
    assert become_subreaper()
    return LocalTransport(os.environ["PATH"])


@pytest.fixture
def run_id() -> Iterator[RunId]:
    """Give a run id, and check that nothing of the run and no zombie is left."""
    cookie = RunId(str(uuid.uuid4()))
    yield cookie
    assert holders(cookie) == []
    assert foreign_children() == []


def command(run_id: str, cwd: Path, *argv: str, grace: float = 5.0) -> Command:
    env = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": run_id}
    return Command(argv=argv, cwd=str(cwd), env=env, grace=grace)


async def test_twenty_ends_at_once_share_their_sweeps(
    transport: LocalTransport, run_id: RunId, tmp_path: Path
) -> None:
    """Twenty stubborn trees killed together are gone after fewer sweeps than there are trees.

    Each needs two: one that finds whom to end, and one that finds nobody.
    """
    ready: list[int] = []
    go = trio.Event()

    async def run() -> None:
        words = (*ESCAPE, "fork", "ignore", "tree")
        async with transport.process(command(run_id, tmp_path, *words, grace=0.5)) as process:
            _, said = await anext(process.output())
            ready.extend(int(pid) for pid in said.split())
            await go.wait()

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(run)
        while len(ready) < 60:
            await trio.sleep(0.01)
        go.set()

    assert [pid for pid in ready if is_alive(pid)] == []
    assert 1 <= transport.sweeps < 20


async def test_a_clean_exit_looks_at_nobody_else(
    transport: LocalTransport, run_id: RunId, tmp_path: Path
) -> None:
    """A program that exits and leaves nobody behind costs no look at all processes, also while
    others start and run."""

    async def run(*argv: str) -> None:
        async with transport.process(command(run_id, tmp_path, *argv)) as process:
            await process.wait()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, "sleep", "1")
        for _ in range(5):
            await run("sh", "-c", "(true & wait)")
            await run("true")

    assert transport.looks == 0


async def test_the_adopted_of_another_run_are_left_alone(
    transport: LocalTransport, tmp_path: Path
) -> None:
    """A run's end does not touch what escaped from a run that goes on, cookie or no cookie."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    pids: list[int] = []

    async with (
        transport.process(command("going-on", here, *ESCAPE, "fork")) as one,
        transport.process(command("going-on", here, *ESCAPE, "fork", "cleared")) as two,
    ):
        async with transport.process(command("ending", there, *ESCAPE, "fork", "cleared")) as three:
            for process in (one, two, three):
                _, said = await anext(process.output())
                pids.append(int(said))
        after = [is_alive(pid) for pid in pids]
    gone = [is_alive(pid) for pid in pids]

    assert after == [True, True, False]
    assert gone == [False, False, False]
    assert foreign_children() == []


async def test_our_other_children_are_not_taken(
    transport: LocalTransport, run_id: RunId, tmp_path: Path
) -> None:
    """A child that somebody else started is neither ended nor reaped from under them."""
    other = await trio.lowlevel.open_process(["sh", "-c", "read line; exit 7"], stdin=-1)
    assert other.stdin is not None

    async with transport.process(command(run_id, tmp_path, *ESCAPE, "fork")) as process:
        await anext(process.output())

    assert other.poll() is None
    await other.stdin.aclose()
    assert await other.wait() == 7


async def test_the_adopted_are_reaped_while_a_run_goes_on(
    transport: LocalTransport, run_id: RunId, tmp_path: Path
) -> None:
    """Orphans that end by themselves during a long run do not stay as zombies."""
    script = "for i in 1 2 3 4 5; do (setsid true &); done; echo ready; exec sleep 1000"

    async with transport.process(command(run_id, tmp_path, "sh", "-c", script)) as process:
        await anext(process.output())
        with trio.fail_after(60):
            while [c for c in foreign_children() if c[0] != process.identity.pid]:
                await trio.sleep(0.05)


@pytest.mark.parametrize("late", [False, True])
async def test_a_holder_out_of_reach_does_not_hold_the_output(
    transport: LocalTransport, run_id: RunId, tmp_path: Path, late: bool
) -> None:
    """The output ends though a stranger holds the pipe open, and the last words are read."""
    script = "import sys; input(); sys.stdout.write('x' * 50000 + 'last words')"
    started = Command(
        argv=(sys.executable, "-c", script),
        cwd=str(tmp_path),
        env={"SORTIE_RUN_ID": run_id},
        stdin=b"\n",
    )

    async with transport.process(started) as process:
        held = os.open(f"/proc/{process.identity.pid}/fd/1", os.O_WRONLY)
        try:
            if late:
                await process.wait()
                await process.end()
            read = b"".join([chunk async for _, chunk in process.output()])
        finally:
            os.close(held)
        exit_ = await process.wait()

    assert read == b"x" * 50000 + b"last words"
    assert exit_ == Exit(status=0)


async def test_a_holder_out_of_reach_does_not_hold_who_sends(
    transport: LocalTransport, run_id: RunId, tmp_path: Path
) -> None:
    """The stdin breaks with the exit though a stranger could still read it."""
    script = "read line; exit 3"
    piped = replace(command(run_id, tmp_path, "sh", "-c", script), stdin=Stdin.PIPE)

    async with transport.process(piped) as process:
        assert process.stdin is not None
        held = os.open(f"/proc/{process.identity.pid}/fd/0", os.O_RDONLY)
        try:
            with trio.fail_after(60), pytest.raises(trio.BrokenResourceError):
                await process.stdin.send_all(b"\n" + bytes(1 << 20))
        finally:
            os.close(held)
        exit_ = await process.wait()

    assert exit_ == Exit(status=3)


async def test_a_hundred_megabytes_take_little_memory(
    transport: LocalTransport, run_id: RunId, tmp_path: Path
) -> None:
    """However much a program writes, and however slowly it is read, little of it is in memory."""
    size = 100 << 20
    flood = command(run_id, tmp_path, "head", "-c", str(size), "/dev/zero")
    read = 0

    async with transport.process(flood) as process:
        tracemalloc.start()
        try:
            async for _, chunk in process.output():
                read += len(chunk)
                await trio.lowlevel.checkpoint()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert read == size
    assert peak < (4 << 20)


async def test_a_process_that_replaces_itself_is_ended(
    transport: LocalTransport, run_id: RunId, tmp_path: Path
) -> None:
    """A process that hands over to a new one in a new session, again and again, is caught."""
    script = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "os.write(1, b'ready')\n"
        "while True:\n"
        "    time.sleep(0.03)\n"
        "    if os.fork() != 0:\n"
        "        os._exit(0)\n"
        "    os.setsid()\n"
    )

    hopper = command(run_id, tmp_path, sys.executable, "-c", script, grace=0.3)
    async with transport.process(hopper) as process:
        await anext(process.output())


async def test_a_program_that_its_main_thread_has_left_is_ended(
    transport: LocalTransport, run_id: RunId, tmp_path: Path
) -> None:
    """It looks like a zombie, and its other threads go on: it is ended in the end, with grace."""
    script = (
        "import ctypes, os, threading, time\n"
        "threading.Thread(target=lambda: time.sleep(1000)).start()\n"
        "os.write(1, b'ready')\n"
        "ctypes.CDLL(None).pthread_exit(None)\n"
    )

    headless = command(run_id, tmp_path, sys.executable, "-c", script)
    async with transport.process(headless) as process:
        await anext(process.output())
        with trio.fail_after(60):
            while psutil.Process(process.identity.pid).status() != psutil.STATUS_ZOMBIE:
                await trio.sleep(0.01)
            ended = await process.end()

    assert ended == Exit(signal=signal.SIGTERM, by_us=True)


async def test_who_lives_in_a_directory_that_was_removed_is_found(
    transport: LocalTransport, run_id: RunId, tmp_path: Path
) -> None:
    """A workspace made anew under the name of a removed one is not taken for empty; a directory
    whose name only looks like that of a removed one is not mistaken for it."""
    workspace = tmp_path / "workspace"
    for place in (workspace, tmp_path / "other (deleted)"):
        place.mkdir()

    async with (
        transport.process(command(run_id, workspace, "sleep", "1000")) as one,
        transport.process(command(run_id, tmp_path / "other (deleted)", "sleep", "1000")) as two,
    ):
        workspace.rmdir()
        workspace.mkdir()
        found = [
            await transport.occupied(str(workspace)),
            await transport.occupied(str(tmp_path / "other")),
            await transport.occupied(str(tmp_path / "other (deleted)")),
        ]

    assert found == [[one.identity.pid], [], [two.identity.pid]]


async def test_a_fork_bomb_is_ended(
    transport: LocalTransport, run_id: RunId, tmp_path: Path
) -> None:
    """Processes that multiply, ignore SIGTERM and stay in their group are killed in one go."""
    script = (
        "import os, signal\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "for n in range(7):\n"
        "    os.fork()\n"
        "os.write(1, b'x')\n"
        "signal.pause()\n"
    )

    bomb = command(run_id, tmp_path, sys.executable, "-c", script, grace=0.1)
    async with transport.process(bomb) as process:
        await anext(process.output())


async def test_a_program_beside_the_interpreter_is_found(transport: LocalTransport) -> None:
    """An installation that is not on the PATH finds its own console scripts, PATH first."""
    folder, name = os.path.split(sys.executable)

    found = await transport.resolve_program(name, "/no/such/directory")

    assert found == os.path.join(folder, name)
    with pytest.raises(ProgramNotFound, match=folder):
        await transport.resolve_program("no-such-program", "/no/such/directory")


async def test_another_users_root_is_refused(transport: LocalTransport, tmp_path: Path) -> None:
    """A root that belongs to somebody else is neither used nor emptied."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a directory of another user")
    root = tmp_path / "root"
    Path(root, "KEY-1").mkdir(parents=True)
    os.chown(root, 12345, 12345)

    with pytest.raises(TransportError, match="12345"):
        await transport.files.make_directory(str(root), "KEY-1")
    with pytest.raises(TransportError, match="12345"):
        await transport.files.remove_directory(str(root), "KEY-1")

    assert Path(root, "KEY-1").is_dir()


@pytest.fixture
def open_place() -> Iterator[Path]:
    """Give a directory that any user can reach, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        yield Path(place)


async def test_unreadable_directories_are_removed_by_their_owner(open_place: Path) -> None:
    """An ordinary user's read-only and unreadable directories do not stop a removal."""
    root = open_place / "root"
    deep = root / "KEY-1" / "a" / "b"
    deep.mkdir(parents=True)
    Path(deep, "file").touch()
    owner = os.geteuid() or 65534
    if os.geteuid() == 0:
        for path in (root, root / "KEY-1", deep.parent, deep, deep / "file"):
            os.chown(path, owner, owner)
    deep.chmod(0o400)
    deep.parent.chmod(0)
    script = (
        "import os, sys, trio\n"
        "from sortie.transports.local import LocalTransport\n"
        "os.setuid(int(sys.argv[2]))\n"
        "trio.run(LocalTransport().files.remove_directory, sys.argv[1], 'KEY-1')\n"
    )

    argv = [sys.executable, "-c", script, str(root), str(owner)]
    done = await trio.run_process(argv, cwd=PROJECT, capture_stderr=True, check=False)

    assert (done.returncode, done.stderr) == (0, b"")
    assert list(root.iterdir()) == []


async def test_what_cannot_be_removed_is_told(transport: LocalTransport, tmp_path: Path) -> None:
    """What the system does not let go is an error that names one; the rest is gone."""
    root = tmp_path / "root"
    victim = root / "KEY-1"
    (victim / "kept").mkdir(parents=True)
    fixed = victim / "kept" / "fixed"
    fixed.touch()
    Path(victim, "file").touch()
    if shutil.which("chattr") is None or subprocess.call(["chattr", "+i", fixed]) != 0:
        pytest.skip("no file can be made immutable here")

    try:
        with pytest.raises(TransportError, match=r"1 entries stay.*'fixed'"):
            await transport.files.remove_directory(str(root), "KEY-1")
    finally:
        subprocess.check_call(["chattr", "-i", fixed])

    assert [p.name for p in victim.iterdir()] == ["kept"]
    assert await transport.files.remove_directory(str(root), "KEY-1")


@requires_mounts
@pytest.mark.parametrize("mode", [0o755, 0o500, 0])
async def test_what_is_mounted_during_a_removal_is_left_alone(tmp_path: Path, mode: int) -> None:
    """Each directory is looked at when its turn comes, not only the table of mounts before."""
    victim = tmp_path / "victim"
    (victim / "below").mkdir(parents=True)
    victim.chmod(mode)
    tree = tmp_path / "root" / "KEY-1"
    (tree / "busy").mkdir(parents=True)
    (tree / "file").touch()

    def remove() -> None:
        with opened(str(tmp_path / "root")) as root:
            Removal(str(tree)).remove(root, "KEY-1")

    with bound(victim, tree / "busy"):
        with pytest.raises(TransportError, match=r"'busy' \(something is mounted on it"):
            await run_in_thread(remove)
        with bound(victim, tree), pytest.raises(OSError, match="something is mounted on it"):
            await run_in_thread(remove)

    assert victim.stat().st_mode & 0o777 == mode
    assert (victim / "below").is_dir()
    assert [p.name for p in tree.iterdir()] == ["busy"]


async def test_no_path_is_resolved_in_the_loops_thread(
    transport: LocalTransport, run_id: RunId, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system that does not answer holds up who asks for it, and nobody else."""
    loops_thread = threading.get_ident()
    resolve = os.path.realpath
    resolved: list[bool] = []

    def recorded(path: str, **options: bool) -> str:
        resolved.append(threading.get_ident() == loops_thread)
        return resolve(path, **options)

    monkeypatch.setattr(os.path, "realpath", recorded)
    async with transport.process(command(run_id, tmp_path, "sleep", "1000")):
        await transport.occupied(str(tmp_path))
        with pytest.raises(ProcessesLeft):
            await transport.clear(str(tmp_path), grace=0.1)

    assert resolved == [False] * 3


async def test_relative_entries_of_the_path_are_passed_over(
    transport: LocalTransport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workspace cannot slip its own program in through an empty or relative PATH entry."""
    planted = tmp_path / "planted"
    planted.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ProgramNotFound):
        await transport.resolve_program("planted", ":.:./")


async def test_what_left_the_tree_altogether_is_found_by_its_cookie(
    transport: LocalTransport, run_id: RunId, tmp_path: Path
) -> None:
    """A forced end searches all processes, so one that another parent started is ended too."""
    env = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": run_id}
    stranger = await trio.lowlevel.open_process(["sleep", "1000"], env=env)
    bystander = await trio.lowlevel.open_process(["sleep", "1000"])

    async with transport.process(command(run_id, tmp_path, "sleep", "1000")):
        pass
    status = await stranger.wait()
    spared = bystander.poll() is None
    bystander.kill()
    await bystander.wait()

    assert (status, spared) == (-signal.SIGTERM, True)


async def test_no_program_is_started_once_the_lease_is_over(
    transport: LocalTransport, run_id: RunId, tmp_path: Path
) -> None:
    """Another daemon may have an agent at work on the same issue."""
    token = LEASE.set(Lease("team", 7, "here:1", boot_time() - 1))

    with pytest.raises(TransportError, match="token 7"):
        async with transport.process(command(run_id, tmp_path, "touch", "made")):
            pass

    LEASE.reset(token)
    assert not (tmp_path / "made").exists()
