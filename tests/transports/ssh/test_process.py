"""Programs on a host: their start, their stdin, their exit, and the watchdog that ends them."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest
import trio

from sortie.model import HostError, HostTrouble, ProgramNotFound, RunId, TransportError
from sortie.resources.process_identity import identity_of
from sortie.transports import Command, Exit
from sortie.transports.local import become_subreaper
from sortie.transports.reaper import KILL_BOUND
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.transport import ShellTransport
from tests.transports.leftovers import holders, is_alive
from tests.transports.ssh.pipes import Logins
from tests.transports.ssh.sshd import until

PROGRAMS = Path(__file__).parent.parent / "programs"
ESCAPE = (sys.executable, str(PROGRAMS / "escape.py"))
TOOLS = ("sh", "cat", "grep", "head", "od", "tr", "mktemp", "rm", "env", "cut", "sleep", "date")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the host's /proc is looked at")


@pytest.fixture
def logins(tmp_path: Path) -> Logins:
    return Logins(tmp_path)


@pytest.fixture
async def host(logins: Logins) -> AsyncIterator[ShellTransport]:
    """Give a transport; nothing of its logins may be left."""
    yield ShellTransport("h", logins.connections)
    await logins.quiet()


@pytest.fixture
def run_id() -> Iterator[RunId]:
    """Give a run id, and check that nothing of the run is left."""
    cookie = RunId(str(uuid.uuid4()))
    yield cookie
    assert holders(cookie) == []


@pytest.fixture
def command(tmp_path: Path, run_id: RunId) -> Make:
    return Make(tmp_path, run_id)


class Make:
    """Makes commands of one run in one place."""

    def __init__(self, place: Path, run_id: RunId) -> None:
        self._place = place
        self._env = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": run_id}

    def __call__(self, *argv: str, stdin: bytes | None = None, grace: float = 5.0) -> Command:
        return Command(argv=argv, cwd=str(self._place), env=self._env, stdin=stdin, grace=grace)

    def sh(self, script: str, grace: float = 5.0) -> Command:
        return self("sh", "-c", script, grace=grace)


async def first_line(output: AsyncIterator[tuple[int, bytes]]) -> bytes:
    said = b""
    while b"\n" not in said:
        said += (await anext(output))[1]
    return said.partition(b"\n")[0]


@pytest.mark.parametrize("sh", ["dash", "bash", "busybox"])
@pytest.mark.parametrize("size", [1, 8192, 100_000, 4 << 20])
async def test_a_stdin_of_any_size_arrives(
    tmp_path: Path, command: Make, sh: str, size: int
) -> None:
    """However far a shell reads ahead, the program gets each byte and then the end."""
    found = shutil.which(sh)
    if found is None:
        pytest.skip(f"no {sh}")
    (tmp_path / "sh").symlink_to(found)
    transport = ShellTransport("h", Logins(tmp_path, sh=str(tmp_path / "sh")).connections)
    content = os.urandom(size)

    async with transport.process(command("cat", stdin=content)) as process:
        read = b"".join([chunk async for _, chunk in process.output()])

    assert read == content


async def test_a_stdin_leaves_no_file(tmp_path: Path, command: Make, logins: Logins) -> None:
    """What holds the prompt has no name when the program runs."""
    (tmp_path / "tmp").mkdir()
    logins.env = {**logins.env, "TMPDIR": str(tmp_path / "tmp")}
    given = command("sh", "-c", 'ls -A "$TMPDIR"; cat', stdin=b"secret")

    async with ShellTransport("h", logins.connections).process(given) as process:
        read = b"".join([chunk async for _, chunk in process.output()])

    assert read == b"secret"
    assert os.listdir(tmp_path / "tmp") == []


async def test_a_program_has_no_child_that_it_did_not_start(
    host: ShellTransport, command: Make
) -> None:
    """Who waits for all its children waits for none of ours, and no descriptor is ours."""
    script = (
        "import os\n"
        "print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:3])\n"
        "print(len(os.listdir('/proc/self/fd')))\n"
        "try:\n os.wait()\nexcept ChildProcessError as error:\n print(error.errno)"
    )

    async with host.process(command(sys.executable, "-c", script)) as process:
        read = b"".join([chunk async for number, chunk in process.output() if number == 1])

    assert read == b"[0, 1, 2]\n4\n10\n"


async def test_a_watchdog_ends_what_lost_its_lease(
    logins: Logins, command: Make, tmp_path: Path
) -> None:
    """Without a sign of life a tree is ended on the host alone, escaped children included."""
    bounds = Bounds(beat=1000, lease=4.0)
    transport = ShellTransport("h", logins.connections, bounds=bounds)

    async with transport.process(command(*ESCAPE, "fork", "ignore", grace=0.2)) as process:
        pids = [int(pid) for pid in (await first_line(process.output())).split()]
        alive = [is_alive(pid) for pid in pids]
        with pytest.raises(HostError, match="heard nothing of the daemon for 4 s") as caught:
            await process.wait()

    assert alive == [True]
    assert caught.value.trouble is HostTrouble.DROPPED
    assert not any(is_alive(pid) for pid in pids)


async def test_without_its_watchdog_a_tree_is_ended_all_the_same(
    logins: Logins, host: ShellTransport, command: Make
) -> None:
    """Where somebody killed the watchdog, the tree is ended over another channel."""
    async with host.process(command(*ESCAPE, "fork", "cleared", "ignore", grace=0.1)) as process:
        pids = [int(pid) for pid in (await first_line(process.output())).split()]
        for entry in logins.running():
            os.kill(int(entry.split()[0]), signal.SIGKILL)

    assert len(logins.commands) == 2
    assert not any(is_alive(pid) for pid in pids)


async def test_the_end_of_a_channel_is_not_the_end_of_a_tree(
    logins: Logins, host: ShellTransport, command: Make
) -> None:
    """Where the output ends without the watchdog's last word, who is left is looked for."""
    async with host.process(command(*ESCAPE, "fork", "cleared", "ignore", grace=0.1)) as process:
        output = process.output()
        pids = [int(pid) for pid in (await first_line(output)).split()]
        for entry in logins.running():
            os.kill(int(entry.split()[0]), signal.SIGKILL)
        os.kill(process.identity.pid, signal.SIGKILL)
        assert [chunk async for chunk in output] == []

    assert len(logins.commands) == 2
    assert not any(is_alive(pid) for pid in pids)


@pytest.mark.parametrize("words", ["", "ignore", "fork ignore"])
async def test_where_nothing_can_be_marked_the_cookie_is_gone_by(
    tmp_path: Path, command: Make, words: str
) -> None:
    """A host that does not let us set the mark still has nothing left."""
    if shutil.which("prlimit") is None:
        pytest.skip("no prlimit")
    logins = Logins(tmp_path, ("prlimit", "--locks=1000:1000", "sh"))
    transport = ShellTransport("h", logins.connections)

    async with transport.process(command(*ESCAPE, *words.split(), grace=0.1)) as process:
        pids = [int(pid) for pid in (await first_line(process.output())).split()]

    assert not any(is_alive(pid) for pid in pids)
    await logins.quiet()


async def test_a_watchdog_does_not_take_itself_for_its_program(
    tmp_path: Path, command: Make, run_id: RunId
) -> None:
    """A login that carries the cookie of the run hands it to no watchdog."""
    if shutil.which("prlimit") is None:
        pytest.skip("no prlimit")
    login = ("prlimit", "--locks=1000:1000", "sh")
    logins = Logins(tmp_path, login, SORTIE_RUN_ID=run_id)

    async with ShellTransport("h", logins.connections).process(command("sleep", "9")) as process:
        await process.end()

    assert len(logins.commands) == 1
    await logins.quiet()


async def test_a_tree_whose_processes_have_strange_names_is_ended(
    host: ShellTransport, command: Make
) -> None:
    """The watchdog knows root and group though a name has line ends and brackets in it."""
    script = (
        "printf 'a) S\\n1 (b' >/proc/$$/comm; trap '' TERM;"
        " (trap '' TERM; while :; do sleep 0.02; done) & echo ready; while :; do sleep 0.02; done"
    )

    async with host.process(command.sh(script, grace=0.1)) as process:
        await first_line(process.output())
        exit_ = await process.end()

    assert exit_ == Exit(signal=9, by_us=True)


async def test_a_zombie_is_not_waited_for(host: ShellTransport, command: Make) -> None:
    """What has ended and was not reaped by its new parent, who is us here, has ended."""
    become_subreaper()

    async with host.process(command(*ESCAPE, "fork", "ignore", grace=0.1)) as process:
        pids = [int(pid) for pid in (await first_line(process.output())).split()]
        with trio.fail_after(KILL_BOUND - 1):
            await process.end()

    assert [psutil.Process(pid).status() for pid in pids] == [psutil.STATUS_ZOMBIE]
    for child in psutil.Process().children():
        if child.status() == psutil.STATUS_ZOMBIE:
            os.waitpid(child.pid, 0)


async def test_a_host_without_setsid_and_timeout_will_do(tmp_path: Path, command: Make) -> None:
    """The watchdog works in the program's own session, and ends with the link alone."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in TOOLS:
        if found := shutil.which(tool):
            (tools / tool).symlink_to(found)
    logins = Logins(tmp_path, (str(tools / "sh"),))
    logins.env = {**logins.env, "PATH": str(tools)}
    transport = ShellTransport("h", logins.connections)

    async with transport.process(command(*ESCAPE, "fork", "ignore", grace=0.1)) as process:
        pids = [int(pid) for pid in (await first_line(process.output())).split()]

    assert not any(is_alive(pid) for pid in pids)
    await logins.quiet()


@pytest.mark.parametrize("status", [1, 125, 127])
async def test_a_host_whose_timeout_is_another_will_do(
    tmp_path: Path, command: Make, status: int
) -> None:
    """One that does not know our arguments, or is not there, does not end what is to be watched."""
    (tmp_path / "timeout").write_text(f"#!/bin/sh\nexit {status}\n")
    (tmp_path / "timeout").chmod(0o755)
    logins = Logins(tmp_path, PATH=f"{tmp_path}:{os.environ['PATH']}")
    transport = ShellTransport("h", logins.connections)

    async with transport.process(command.sh("sleep 0.5; exit 7")) as process:
        exit_ = await process.wait()
    async with transport.process(command("sleep", "1000")) as process:
        ended = await process.end()

    assert (exit_, ended) == (Exit(status=7), Exit(signal=15, by_us=True))
    await logins.quiet()


async def test_only_the_own_tree_is_ended(host: ShellTransport, command: Make) -> None:
    """Another program of the same run goes on."""
    async with host.process(command("sleep", "1000")) as other:
        async with host.process(command(*ESCAPE, "ignore", grace=0.1)) as process:
            await first_line(process.output())
            await process.end()

        assert is_alive(other.identity.pid)


async def test_what_a_handler_starts_is_left_alone_while_its_program_lives(
    host: ShellTransport, command: Make
) -> None:
    """An orderly shutdown may run programs of its own."""
    script = "trap 'sleep 0.3; echo tidied; exit 5' TERM; echo ready; while :; do sleep 0.05; done"

    async with host.process(command.sh(script)) as process:
        output = process.output()
        await first_line(output)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(process.end)
            said = b"".join([chunk async for number, chunk in output if number == 1])
        exit_ = await process.wait()

    assert (said, exit_) == (b"tidied\n", Exit(status=5, by_us=True))


async def test_a_login_that_is_no_shell_is_told(tmp_path: Path, command: Make) -> None:
    """What a login says instead of running our shell is shown."""
    (tmp_path / "nologin").write_text("#!/bin/sh\necho no logins here >&2\nexit 7\n")
    (tmp_path / "nologin").chmod(0o755)
    logins = Logins(tmp_path, (str(tmp_path / "nologin"),))
    transport = ShellTransport("h", logins.connections)

    with pytest.raises(TransportError, match="no logins here") as caught:
        async with transport.process(command("true")):
            pass

    assert "exit 7" in str(caught.value)


async def test_a_program_without_its_interpreter_is_not_found_before_it_runs(
    host: ShellTransport, command: Make, tmp_path: Path
) -> None:
    """A shell would run what the system does not: it is not asked to."""
    (tmp_path / "text").write_text("touch ran\n")
    (tmp_path / "text").chmod(0o755)

    with pytest.raises(ProgramNotFound, match="no program that this system can run"):
        async with host.process(command(str(tmp_path / "text"))):
            pass

    assert not (tmp_path / "ran").exists()


async def test_hurry_ends_a_child_that_outlives_its_parent(
    host: ShellTransport, command: Make
) -> None:
    """Where the watchdog gives a grace time already, it is cut short from here."""
    async with host.process(command(*ESCAPE, "fork", "ignore", "exit", grace=1000)) as process:
        pids = [int(pid) for pid in (await first_line(process.output())).split()]
        await process.wait()
        host.hurry()

    assert not any(is_alive(pid) for pid in pids)


async def test_the_identity_is_the_one_that_this_machine_gives(
    host: ShellTransport, command: Make
) -> None:
    """A host that is this machine names its processes as the local transport does."""
    async with host.process(command("sleep", "1000")) as process:
        assert process.identity == identity_of(process.identity.pid)
        # The shell says that it has started before it becomes the program.
        await until(lambda: psutil.Process(process.identity.pid).name() == "sleep")
