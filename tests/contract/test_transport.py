"""What every transport keeps, written against the port alone."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from sortie.model import ProgramNotFound, RunId, TransportError
from sortie.transports import Command, Exit, Process, Transport
from sortie.transports.local import LocalTransport, become_subreaper
from tests.transports.leftovers import foreign_children, holders, is_alive

PROGRAMS = Path(__file__).parent.parent / "transports" / "programs"
ESCAPE = (sys.executable, str(PROGRAMS / "escape.py"))
PATIENCE = 30.0


@pytest.fixture(params=["local"])
def transport(request: pytest.FixtureRequest) -> Transport:
    """Give one transport of each kind."""
    become_subreaper()
    return LocalTransport(os.environ["PATH"])


@pytest.fixture
def place(tmp_path: Path) -> str:
    """Give a directory on the transport's host."""
    return str(tmp_path)


@pytest.fixture
def cookie() -> Iterator[RunId]:
    """Give a run id, and check that no process of that run, and no zombie, is left."""
    run_id = RunId(str(uuid.uuid4()))
    yield run_id
    assert holders(run_id) == []
    assert foreign_children() == []


class Launch:
    """Makes commands of one run in one place."""

    def __init__(self, cookie: RunId, place: str) -> None:
        self._env = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": cookie}
        self._place = place

    def __call__(
        self, *argv: str, stdin: bytes | None = None, grace: float = 5.0, cwd: str | None = None
    ) -> Command:
        return Command(argv=argv, cwd=cwd or self._place, env=self._env, stdin=stdin, grace=grace)

    def sh(self, script: str, stdin: bytes | None = None, grace: float = 5.0) -> Command:
        return self("sh", "-c", script, stdin=stdin, grace=grace)


@pytest.fixture
def launch(cookie: RunId, place: str) -> Launch:
    return Launch(cookie, place)


@pytest.fixture(autouse=True)
async def bounded() -> AsyncIterator[None]:
    """Bound each test in real time."""
    with trio.fail_after(PATIENCE):
        yield


async def everything(process: Process) -> dict[int, bytes]:
    """Read a process's output to its end."""
    read = {1: b"", 2: b""}
    async for number, chunk in process.output():
        read[number] += chunk
    return read


async def pids_from(output: AsyncIterator[tuple[int, bytes]]) -> tuple[list[int], bytes]:
    """Read what an escape program says: the pids of those that escaped, and what follows."""
    said = b""
    while b"\n" not in said:
        said += (await anext(output))[1]
    line, _, rest = said.partition(b"\n")
    return [int(pid) for pid in line.split()], rest


async def test_output_of_both_pipes_and_the_status_are_told(
    transport: Transport, launch: Launch
) -> None:
    """All bytes come with the number of their pipe, unterminated last lines too."""
    command = launch.sh("printf one; printf two >&2; exit 7")

    async with transport.process(command) as process:
        read = await everything(process)
        exit_ = await process.wait()

    assert read == {1: b"one", 2: b"two"}
    assert exit_ == Exit(status=7)


async def test_a_death_by_signal_is_told_as_one(transport: Transport, launch: Launch) -> None:
    """A signal that we did not send is shown, and is not by us."""
    async with transport.process(launch.sh("kill -SEGV $$")) as process:
        await everything(process)
        exit_ = await process.wait()

    assert exit_ == Exit(signal=11)


async def test_the_environment_is_given_whole(transport: Transport, launch: Launch) -> None:
    """A program sees the command's environment and directory and nothing else of ours."""
    command = launch(sys.executable, "-c", "import os; print(sorted(os.environ), os.getcwd())")

    async with transport.process(command) as process:
        read = await everything(process)

    names = {"PATH", "SORTIE_RUN_ID"}
    shown = read[1].decode()
    assert {n for n in names if n in shown} == names
    assert "HOME" not in shown
    assert os.path.realpath(command.cwd) in shown


async def test_stdin_is_given_in_full_and_closed(transport: Transport, launch: Launch) -> None:
    """A megabyte goes through a program that answers while it reads."""
    content = os.urandom(1 << 20)

    async with transport.process(launch("cat", stdin=content)) as process:
        read = await everything(process)

    assert read[1] == content


@pytest.mark.parametrize("stdin", [None, b""])
async def test_no_stdin_is_an_empty_stdin(
    transport: Transport, launch: Launch, stdin: bytes | None
) -> None:
    """A program that reads its stdin comes to its end at once."""
    async with transport.process(launch("cat", stdin=stdin)) as process:
        assert await everything(process) == {1: b"", 2: b""}

        assert await process.wait() == Exit(status=0)


async def test_a_program_may_read_none_of_its_stdin(transport: Transport, launch: Launch) -> None:
    """A megabyte that nobody reads neither blocks nor breaks anything."""
    async with transport.process(launch.sh("echo done", stdin=bytes(1 << 20))) as process:
        read = await everything(process)
        exit_ = await process.wait()

    assert (read[1], exit_) == (b"done\n", Exit(status=0))


async def test_output_can_be_iterated_once(transport: Transport, launch: Launch) -> None:
    """A second reader is refused, as it would take chunks from the first."""
    async with transport.process(launch.sh("echo x")) as process:
        await everything(process)

        with pytest.raises(RuntimeError):
            process.output()


async def test_a_polite_program_is_ended_politely(transport: Transport, launch: Launch) -> None:
    """SIGTERM comes first, its handler has the grace time, and what it writes is read."""
    script = "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.05; done"

    async with transport.process(launch.sh(script)) as process:
        output = process.output()
        assert await anext(output) == (1, b"ready\n")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(process.end)
            last = [chunk async for chunk in output]
        exit_ = await process.wait()

    assert b"".join(chunk for number, chunk in last if number == 1) == b"bye\n"
    assert exit_ == Exit(status=5, by_us=True)


async def test_a_stubborn_program_is_killed_after_the_grace_time(
    transport: Transport, launch: Launch
) -> None:
    """What ignores SIGTERM dies by SIGKILL, not before the grace time is over."""
    script = "trap '' TERM; echo ready; while :; do sleep 0.05; done"

    async with transport.process(launch.sh(script, grace=0.5)) as process:
        assert await anext(process.output()) == (1, b"ready\n")
        began = trio.current_time()
        exit_ = await process.end()
        seconds = trio.current_time() - began

    assert exit_ == Exit(signal=9, by_us=True)
    assert 0.5 <= seconds < 5


async def test_a_stopped_program_is_ended_politely_too(
    transport: Transport, launch: Launch
) -> None:
    """A process stopped by SIGSTOP is continued so that it can take SIGTERM."""
    script = "trap 'exit 5' TERM; echo ready; kill -STOP $$; while :; do sleep 0.05; done"

    async with transport.process(launch.sh(script)) as process:
        assert await anext(process.output()) == (1, b"ready\n")
        while (await _state(process)) != "T":
            await trio.sleep(0.005)
        exit_ = await process.end()

    assert exit_ == Exit(status=5, by_us=True)


async def _state(process: Process) -> str:
    stat = await trio.Path(f"/proc/{process.identity.pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0]


async def test_end_may_be_called_again(transport: Transport, launch: Launch) -> None:
    """Ends in a row and at once, and after the exit, all tell the same."""
    async with transport.process(launch("sleep", "1000")) as process:
        ends: list[Exit] = []

        async def end() -> None:
            ends.append(await process.end())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(end)
            nursery.start_soon(end)
        await end()

    assert ends == [Exit(signal=15, by_us=True)] * 3


@pytest.mark.parametrize(
    "words",
    [
        "",
        "ignore",
        "fork",
        "fork ignore",
        "fork hold ignore",
        "fork cleared",
        "fork cleared away ignore",
        "tree",
        "tree fork ignore",
    ],
)
@pytest.mark.parametrize("leave", ["end", "exit", "block", "cancel"])
async def test_nothing_that_descends_from_a_process_outlives_it(
    transport: Transport, launch: Launch, words: str, leave: str
) -> None:
    """Whatever a child does to escape, it is gone when the block is left, however that is."""
    extra = ("exit",) if leave == "exit" else ()
    command = launch(*ESCAPE, *words.split(), *extra, grace=0.2)

    with trio.CancelScope() as scope:
        async with transport.process(command) as process:
            output = process.output()
            pids, rest = await pids_from(output)
            match leave:
                case "end":
                    assert (await process.end()).by_us
                case "exit":
                    assert await process.wait() == Exit(status=3)
                    assert rest + b"".join([c async for _, c in output]) == b"last words"
                case "cancel":
                    scope.cancel()
                    await trio.sleep_forever()
                case _:
                    assert all(is_alive(pid) for pid in pids)

    assert len(pids) == (3 if "tree" in words else 1)
    assert [pid for pid in pids if is_alive(pid)] == []


async def test_a_program_leads_a_session_of_its_own(transport: Transport, launch: Launch) -> None:
    """No terminal's signal reaches it, and its group can be signalled as a whole."""
    script = "import os; print(os.getpid() == os.getsid(0) == os.getpgid(0))"

    async with transport.process(launch(sys.executable, "-c", script)) as process:
        read = await everything(process)

    assert read == {1: b"True\n", 2: b""}


async def test_a_child_in_the_background_does_not_outlive_a_clean_exit(
    transport: Transport, launch: Launch
) -> None:
    """What a shell leaves running in its own session is ended when the shell is done."""
    script = "sleep 1000 >/dev/null 2>&1 & echo $!"

    async with transport.process(launch.sh(script)) as process:
        read = await everything(process)
        exit_ = await process.wait()

    assert exit_ == Exit(status=0)
    assert not is_alive(int(read[1]))


async def test_what_the_block_raises_leaves_it_unchanged(
    transport: Transport, launch: Launch
) -> None:
    """An error in the block is not wrapped, and the process is ended all the same."""
    with pytest.raises(LookupError, match=r"^mine$"):
        async with transport.process(launch("sleep", "1000")):
            raise LookupError("mine")


async def test_a_flood_is_held_back_by_its_reader(
    transport: Transport, launch: Launch, place: str
) -> None:
    """While nobody takes output, a program can write what the pipes hold and little more."""
    script = (
        "import os\n"
        "progress = os.open('progress', os.O_CREAT | os.O_WRONLY)\n"
        "for n in range(1600):\n"
        "    os.write(1, bytes(65536))\n"
        "    os.pwrite(progress, b'%d' % (n + 1), 0)\n"
    )
    progress = trio.Path(place, "progress")

    async with transport.process(launch(sys.executable, "-c", script)) as process:
        output = process.output()
        first = len((await anext(output))[1])
        seen = [await progress.read_text()]
        while len(seen) < 10 or len(set(seen[-10:])) > 1:
            await trio.sleep(0.01)
            seen.append(await progress.read_text())
        written = first + sum([len(chunk) async for _, chunk in output])

    assert int(seen[-1]) <= 8
    assert written == 1600 * 65536


async def test_a_block_can_be_cancelled_at_any_moment(transport: Transport, launch: Launch) -> None:
    """From before the start to after the exit, a deadline leaves no process behind."""
    for step in range(25):
        command = launch(*ESCAPE, "fork", "exit", grace=0.1)

        with trio.move_on_after(step * 0.008):
            async with transport.process(command) as process:
                await everything(process)
                await process.end()


async def test_hurry_ends_the_grace_time(transport: Transport, launch: Launch) -> None:
    """A long grace time is cut short, for what is being ended and for what comes later."""
    command = launch.sh("trap '' TERM; echo ready; while :; do sleep 0.05; done", grace=1000)

    with trio.fail_after(10):
        async with transport.process(command) as process, trio.open_nursery() as nursery:
            await anext(process.output())
            nursery.start_soon(process.end)
            await trio.testing.wait_all_tasks_blocked(0.01)
            transport.hurry()
        async with transport.process(command) as process:
            await anext(process.output())


async def test_a_program_that_is_not_there_is_not_found(
    transport: Transport, launch: Launch, place: str
) -> None:
    """Missing, not executable, not a program, or a script without its interpreter."""
    plain = Path(place, "plain")
    plain.write_text("#!/bin/sh\n")
    orphan = Path(place, "orphan")
    orphan.write_text("#!/no/such/interpreter -x\n")
    orphan.chmod(0o755)
    noise = Path(place, "noise")
    noise.write_bytes(b"\x00\x01\x02\x03")
    noise.chmod(0o755)

    for program in ("no-such-program", "/no/such/program", str(plain), str(noise), place):
        with pytest.raises(ProgramNotFound, match=r"could not|no program"):
            async with transport.process(launch(program)):
                pass
    with pytest.raises(ProgramNotFound, match="/no/such/interpreter"):
        async with transport.process(launch(str(orphan))):
            pass


async def test_a_directory_that_is_not_there_is_no_missing_program(
    transport: Transport, launch: Launch, place: str
) -> None:
    """A bad working directory is told apart from a missing program."""
    Path(place, "file").touch()

    for cwd in (f"{place}/missing", f"{place}/file"):
        with pytest.raises(TransportError, match=cwd) as caught:
            async with transport.process(launch("true", cwd=cwd)):
                pass
        assert not isinstance(caught.value, ProgramNotFound)


@pytest.mark.parametrize("argument", ["x" * 200_000, "a\0b", "\ud800"])
async def test_an_argument_that_cannot_be_passed_is_a_transport_error(
    transport: Transport, launch: Launch, argument: str
) -> None:
    """Too long, with a NUL, or not Unicode: an error, not a crash, that does not repeat it."""
    with pytest.raises(TransportError) as caught:
        async with transport.process(launch("true", argument)):
            pass

    assert argument not in str(caught.value)


async def test_a_program_is_resolved_as_a_shell_does(transport: Transport, place: str) -> None:
    """The first executable on the path wins; directories and plain files are passed over."""
    for number, mode in enumerate((0o644, 0o755, 0o755)):
        folder = Path(place, str(number))
        folder.mkdir()
        Path(folder, "tool").touch(mode=mode)
        Path(folder, "tool").chmod(mode)
    Path(place, "3").mkdir()
    Path(place, "3", "tool").mkdir()
    path = ":".join(f"{place}/{n}" for n in (3, 0, 1, 2))

    found = await transport.resolve_program("tool", path)
    absolute = await transport.resolve_program(f"{place}/2/tool", path)

    assert (found, absolute) == (f"{place}/1/tool", f"{place}/2/tool")
    with pytest.raises(ProgramNotFound, match=f"{place}/3"):
        await transport.resolve_program("no-such-tool", path)
    with pytest.raises(ProgramNotFound):
        await transport.resolve_program("", path)


async def test_a_sweep_ends_what_holds_the_cookie(
    transport: Transport, launch: Launch, cookie: RunId
) -> None:
    """Runs are found by their id wherever they went, and other runs are left alone."""
    async with transport.process(launch(*ESCAPE, "fork", "ignore")) as process:
        pids, _ = await pids_from(process.output())

        others = await transport.sweep([RunId("another")], grace=0)
        nobody = await transport.sweep([], grace=0)
        alive = [is_alive(pid) for pid in pids]
        ended = await transport.sweep([RunId("another"), cookie], grace=0.1)
        exit_ = await process.wait()

        assert (others, nobody, alive, ended) == (0, 0, [True], 2)
        assert exit_.signal == 15
        assert not any(is_alive(pid) for pid in pids)


async def test_who_lives_in_a_directory_is_told(
    transport: Transport, launch: Launch, place: str
) -> None:
    """A process is found by its working directory, in and below the directory only."""
    for name in ("home", "home/room", "homestead"):
        Path(place, name).mkdir()

    async with (
        transport.process(launch("sleep", "1000", cwd=f"{place}/home")) as one,
        transport.process(launch("sleep", "1000", cwd=f"{place}/home/room")) as two,
        transport.process(launch("sleep", "1000", cwd=f"{place}/homestead")),
    ):
        pids = {one.identity.pid, two.identity.pid}
        occupied = await transport.occupied(f"{place}/home")
        empty = await transport.occupied(f"{place}/hom")

    assert (set(occupied), list(empty)) == (pids, [])


async def test_a_directory_is_made_once(transport: Transport, place: str) -> None:
    """The root is made for ourselves alone, and its directories are new the first time only."""
    root = f"{place}/deep/root"

    first = await transport.make_directory(root, "KEY-1")
    second = await transport.make_directory(root + "/", "KEY-1")

    path = os.path.join(os.path.realpath(root), "KEY-1")
    assert (first, second) == ((path, True), (path, False))
    assert [Path(p).stat().st_mode & 0o777 for p in (root, path)] == [0o700, 0o700]
    assert await transport.contained(root, path)


async def test_the_real_path_of_a_directory_is_told(transport: Transport, place: str) -> None:
    """Links on the way to the root are resolved."""
    Path(place, "real").mkdir()
    Path(place, "link").symlink_to("real")

    path, _ = await transport.make_directory(f"{place}/link/root", "KEY-1")

    assert path == os.path.realpath(f"{place}/real/root/KEY-1")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "/etc", "a\0b", "x" * 300])
async def test_a_name_that_could_escape_is_refused(
    transport: Transport, place: str, name: str
) -> None:
    """No name leads out of the root, to the root itself or to nowhere."""
    with pytest.raises(TransportError):
        await transport.make_directory(place, name)
    with pytest.raises(TransportError):
        await transport.remove_directory(place, name)
    for method in (transport.remove_file(place, name), transport.write_file(place, name, b"x")):
        if name == "a/b":
            await method
        else:
            with pytest.raises(TransportError):
                await method


async def test_a_root_that_is_a_link_is_refused(transport: Transport, place: str) -> None:
    """A link as the root is neither used nor emptied, with a slash at its end or without."""
    Path(place, "real").mkdir()
    Path(place, "real", "KEY-1").mkdir()
    Path(place, "root").symlink_to("real")

    for root in (f"{place}/root", f"{place}/root/", f"{place}/root/."):
        with pytest.raises(TransportError):
            await transport.make_directory(root, "KEY-1")
        with pytest.raises(TransportError):
            await transport.remove_directory(root, "KEY-1")

    assert Path(place, "real", "KEY-1").is_dir()


async def test_what_is_no_directory_is_left_alone(transport: Transport, place: str) -> None:
    """A file, a FIFO and a link, even to a directory, are errors and stay."""
    outside = Path(place, "outside")
    outside.mkdir()
    root = Path(place, "root")
    root.mkdir(mode=0o700)
    Path(root, "file").write_text("precious")
    os.mkfifo(Path(root, "fifo"))
    Path(root, "link").symlink_to(outside)
    Path(root, "inside").mkdir()
    Path(root, "inner").symlink_to("inside")
    Path(root, "dangling").symlink_to("nowhere")

    for name in ("file", "fifo", "link", "inner", "dangling"):
        with pytest.raises(TransportError):
            await transport.make_directory(str(root), name)
        with pytest.raises(TransportError):
            await transport.remove_directory(str(root), name)
        assert not await transport.contained(str(root), str(root / name))

    present = {p.name for p in root.iterdir()}
    assert present == {"file", "fifo", "link", "inside", "inner", "dangling"}
    assert outside.is_dir()


async def test_containment_goes_by_real_paths(transport: Transport, place: str) -> None:
    """Only a directory strictly inside the root is contained."""
    for name in ("root/in", "rootless"):
        Path(place, name).mkdir(parents=True)
    Path(place, "root", "out").symlink_to(place)

    verdicts = {
        path: await transport.contained(f"{place}/root", f"{place}/{path}")
        for path in ("root/in", "root", "rootless", "root/none", "root/out", "root/in/../..")
    }

    assert verdicts == {
        "root/in": True,
        "root": False,
        "rootless": False,
        "root/none": False,
        "root/out": False,
        "root/in/../..": False,
    }
    assert not await transport.contained(f"{place}/none", f"{place}/root/in")


async def test_a_directory_is_removed_with_all_it_holds(transport: Transport, place: str) -> None:
    """Links are removed and not followed; modes and depth do not matter."""
    outside = Path(place, "outside")
    outside.mkdir()
    Path(outside, "precious").touch()
    root = Path(place, "root")
    victim = root / "KEY-1"
    deep = victim
    for _ in range(3):
        deep = deep / "sub"
    deep.mkdir(parents=True)
    Path(deep, "link").symlink_to(outside)
    Path(victim, "up").symlink_to("..")
    os.mkfifo(Path(deep, "fifo"))
    deep.chmod(0o500)
    deep.parent.chmod(0)
    root.chmod(0o700)

    removed = await transport.remove_directory(str(root), "KEY-1")
    again = await transport.remove_directory(str(root), "KEY-1")
    rootless = await transport.remove_directory(f"{place}/none", "KEY-1")

    assert (removed, again, rootless) == (True, False, False)
    assert list(root.iterdir()) == []
    assert Path(outside, "precious").exists()


async def test_a_tree_of_any_depth_is_removed(transport: Transport, place: str) -> None:
    """More than a thousand levels, longer than any path may be, need no more of anything."""
    root = Path(place, "root")
    Path(root, "KEY-1").mkdir(parents=True)
    fd = os.open(root / "KEY-1", os.O_RDONLY)
    for number in range(1100):
        os.mkdir("directory", dir_fd=fd)
        os.mkdir(f"{number}.removed", dir_fd=fd)
        below = os.open("directory", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)

    assert await transport.remove_directory(str(root), "KEY-1")

    assert list(root.iterdir()) == []


async def test_a_file_is_written_read_and_removed(transport: Transport, place: str) -> None:
    """A small file goes round, with the directories above it; what is absent is None."""
    absent = await transport.read_file(place, ".sortie/status", 10)
    await transport.remove_file(place, ".sortie/status")
    await transport.write_file(place, ".sortie/status", b"blocked\n")
    await transport.write_file(place, ".sortie/status", b"review\n")

    assert absent is None
    assert await transport.read_file(place, ".sortie/status", 100) == b"review\n"
    assert await transport.read_file(place, ".sortie/status", 3) == b"rev"
    assert os.listdir(f"{place}/.sortie") == ["status"]
    await transport.remove_file(place, ".sortie/status")
    assert await transport.read_file(place, ".sortie/status", 100) is None


async def test_no_link_is_followed_to_a_file(transport: Transport, place: str) -> None:
    """A link at the end or on the way is an error to read, and never written through."""
    outside = Path(place, "outside")
    outside.mkdir()
    Path(outside, "secret").write_text("secret")
    inside = Path(place, "inside")
    inside.mkdir()
    Path(inside, "file").symlink_to(outside / "secret")
    Path(inside, "folder").symlink_to(outside)
    Path(place, "itself").symlink_to(inside)

    for directory, name in (
        (inside, "file"),
        (inside, "folder/secret"),
        (place + "/itself", "file"),
    ):
        with pytest.raises(TransportError):
            await transport.read_file(str(directory), name, 10)
    with pytest.raises(TransportError):
        await transport.write_file(str(inside), "folder/secret", b"mine")
    with pytest.raises(TransportError):
        await transport.remove_file(str(inside), "folder/secret")
    await transport.write_file(str(inside), "file", b"mine")

    assert Path(outside, "secret").read_text() == "secret"
    assert Path(inside, "file").read_bytes() == b"mine"
    assert not Path(inside, "file").is_symlink()


async def test_what_is_no_regular_file_is_not_read(transport: Transport, place: str) -> None:
    """A FIFO, a directory, a socket or a device is refused at once, and can be removed."""
    os.mkfifo(Path(place, "fifo"))
    Path(place, "folder").mkdir()

    with trio.fail_after(5):
        for name in ("fifo", "folder"):
            with pytest.raises(TransportError, match=name):
                await transport.read_file(place, name, 10)
        with pytest.raises(TransportError):
            await transport.read_file("/dev", "zero", 10)
        await transport.remove_file(place, "fifo")
        with pytest.raises(TransportError):
            await transport.remove_file(place, "folder")
        with pytest.raises(TransportError):
            await transport.write_file(place, "folder", b"x")

    assert os.listdir(place) == ["folder"]
