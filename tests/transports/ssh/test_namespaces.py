"""PID namespaces on a host: how a program ends in one, and what happens where none can be had."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import psutil
import pytest
import trio

from sortie.config.settings import Isolation
from sortie.model import HostError, RunId
from sortie.transports import Command, Exit, Stdin
from sortie.transports.remote.namespaces import WAYS, Namespaces, NoNamespaces, read_probe
from sortie.transports.remote.scripts import quoted
from sortie.transports.remote.transport import ShellTransport
from tests.run_ids import own_run_id
from tests.transports.leftovers import bearers
from tests.transports.ssh.pipes import Logins

_TRIED = subprocess.run(
    ["unshare", "--map-current-user", "--pid", "--fork", "--mount-proc", "true"],
    capture_output=True,
    check=False,
)
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or _TRIED.returncode != 0, reason="no PID namespace can be made here"
)
SHELLS = ["dash", "bash", "busybox"]


@pytest.fixture
def logins(tmp_path: Path) -> Logins:
    return Logins(tmp_path)


@pytest.fixture
def host(logins: Logins) -> ShellTransport:
    return ShellTransport("h", logins.connections, isolation=Isolation.PID_NAMESPACE)


@pytest.fixture
def word() -> str:
    """Give an argument by which what a program starts is known."""
    return f"of-{uuid.uuid4()}"


def sh(
    script: str, place: Path, *arguments: str, grace: float = 5.0, stdin: Stdin | None = None
) -> Command:
    return Command(
        argv=("sh", "-c", script, *arguments),
        cwd=str(place),
        env={"PATH": os.environ["PATH"], "SORTIE_RUN_ID": own_run_id(f"run-{place.name}")},
        grace=grace,
        stdin=stdin,
    )


def daemonized(word: str) -> str:
    """Return a line that starts what keeps nothing of its parent's."""
    return f"(cd /; env -i setsid -f sh -c 'trap \"\" TERM; while :; do sleep 0.2; done' {word})"


async def said_by(host: ShellTransport, command: Command) -> tuple[bytes, Exit]:
    async with host.process(command) as process:
        said = b"".join([chunk async for number, chunk in process.output() if number == 1])
        return said, await process.wait()


@pytest.mark.parametrize("name", SHELLS)
async def test_every_sh_makes_one_and_leaves_nothing(tmp_path: Path, name: str, word: str) -> None:
    """What stands as /bin/sh may be dash, bash or busybox; exits and deaths are told apart."""
    if (found := shutil.which(name)) is None:
        pytest.skip(f"no {name}")
    (tmp_path / "sh").symlink_to(found)
    logins = Logins(tmp_path, sh=str(tmp_path / "sh"))
    host = ShellTransport("h", logins.connections, isolation=Isolation.PID_NAMESPACE)
    exits = []

    for end in ("exit 143", "kill -TERM $$", "kill -SEGV $$", "kill -KILL $$", "exit 0"):
        exits.append(await said_by(host, sh(f"{daemonized(word)}; echo $$; {end}", tmp_path)))
        assert bearers(word) == []

    pids = {int(said) for said, _ in exits}
    assert max(pids) < 10
    assert 1 not in pids
    assert [exit_ for _, exit_ in exits] == [
        Exit(status=143),
        Exit(signal=15),
        Exit(signal=11),
        Exit(signal=9),
        Exit(status=0),
    ]
    await logins.quiet()


async def test_a_program_sees_its_own_processes_alone(host: ShellTransport, tmp_path: Path) -> None:
    """Its /proc is the namespace's, and it leads a session there."""
    script = "cd /proc && echo [0-9]* && set -- $(cat self/stat) && cut -d' ' -f 5,6 $PPID/stat"
    said, _ = await said_by(host, sh(f"sh -c {script!r}", tmp_path))

    pids = said.split(b"\n")[0].split()
    assert pids[0] == b"1"
    assert len(pids) <= 4


async def test_only_the_program_gets_sigterm(host: ShellTransport, tmp_path: Path) -> None:
    """What it has started may finish its work in the grace time."""
    script = (
        "(trap 'echo told >child' TERM; while :; do sleep 0.02; done) &"
        "trap 'sleep 0.3; echo tidied; exit 5' TERM; echo ready; while :; do sleep 0.02; done"
    )
    async with host.process(sh(script, tmp_path)) as process:
        output = process.output()
        assert await anext(output) == (1, b"ready\n")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(process.end)
            said = b"".join([chunk async for number, chunk in output if number == 1])
        exit_ = await process.wait()

    assert (said, exit_) == (b"tidied\n", Exit(status=5, by_us=True))
    assert not (tmp_path / "child").exists()


async def test_it_dies_with_its_watchdog(
    host: ShellTransport, logins: Logins, tmp_path: Path, word: str
) -> None:
    """The kernel ends all where nobody else can: the watchdog was killed, the link is still up."""
    async with host.process(
        sh(f"{daemonized(word)}; echo ready; while :; do sleep 1; done", tmp_path)
    ) as process:
        assert await anext(process.output()) == (1, b"ready\n")
        (watchdog,) = [int(entry.split()[0]) for entry in logins.running() if "sh -s --" in entry]
        os.kill(watchdog, signal.SIGKILL)
        with trio.fail_after(60):
            exit_ = await process.wait()
        while bearers(word):
            await trio.sleep(0.005)

    assert exit_ == Exit(signal=9)
    await logins.quiet()


async def test_a_program_that_stops_itself_again_and_again_is_ended(
    host: ShellTransport, logins: Logins, tmp_path: Path, word: str
) -> None:
    """What waits for it stops with it, and has to go on for the namespace to end."""
    script = f"{daemonized(word)}; trap '' TERM; echo ready; while :; do kill -STOP $$; done"
    for _ in range(5):
        async with host.process(sh(script, tmp_path, grace=0.1)) as process:
            assert await anext(process.output()) == (1, b"ready\n")
            with trio.fail_after(60):
                exit_ = await process.end()

        assert exit_ == Exit(signal=9, by_us=True)
        assert bearers(word) == []
    await logins.quiet()


async def test_what_writes_to_its_stdin_is_ended_with_it(
    host: ShellTransport, logins: Logins, tmp_path: Path
) -> None:
    """The pipe has no name when the program runs, and its writer goes with the namespace."""
    names = "$(ls $TMPDIR | grep -c ^sortie)"
    command = sh(f'read line; echo "$line {names}"; exec sleep 1000', tmp_path)
    given = Command(
        argv=command.argv,
        cwd=command.cwd,
        env={**command.env, "TMPDIR": str(tmp_path)},
        stdin=Stdin.PIPE,
    )
    logins.env = {**logins.env, "TMPDIR": str(tmp_path)}

    async with host.process(given) as process:
        assert process.stdin is not None
        await process.stdin.send_all(b"said\n")
        assert await anext(process.output()) == (1, b"said 0\n")
        await process.end()

    await logins.quiet()
    assert list(tmp_path.glob("sortie.*")) == []


async def test_an_inline_command_is_in_it_too(tmp_path: Path, logins: Logins, word: str) -> None:
    """The command is a piece of shell, which finds its variables and directory."""
    host = ShellTransport(
        "h", logins.connections, delivery="inline", isolation=Isolation.PID_NAMESPACE
    )
    script = f'{daemonized(word)}; printf "%s\\n" $$ "$PWD" "$KEY"'
    given = Command(
        argv=(f"sh -c {quoted(script).decode()}",),
        cwd=str(tmp_path),
        env={"KEY": "k'ey"},
    )
    said, exit_ = await said_by(host, given)

    pid, *rest = said.decode().splitlines()
    assert (int(pid) < 10, rest, exit_) == (True, [str(tmp_path), "k'ey"], Exit(status=0))
    assert bearers(word) == []


async def test_a_lost_run_is_ended_by_its_namespace(
    host: ShellTransport, logins: Logins, tmp_path: Path, word: str
) -> None:
    """A sweep of a run that is known takes no list of processes."""
    command = sh(f"{daemonized(word)}; echo ready; while :; do sleep 1; done", tmp_path)
    async with host.process(command) as process:
        assert await anext(process.output()) == (1, b"ready\n")
        asked = len(logins.commands)
        ended = await host.sweep([RunId(command.env["SORTIE_RUN_ID"])], grace=0.1)
        left = bearers(word)
        exit_ = await process.wait()

    assert (left, ended) == ([], 2)
    assert exit_.signal in (9, 15)
    assert len(logins.commands) == asked + 1


@pytest.fixture
def poor(tmp_path: Path) -> Logins:
    """Give a host whose unshare and bwrap can make no namespace."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("unshare", "bwrap"):
        (tools / name).write_text(
            f"#!/bin/sh\necho '{name}: Operation not permitted' >&2\nexit 1\n"
        )
        (tools / name).chmod(0o755)
    return Logins(tmp_path, PATH=f"{tools}:{os.environ['PATH']}")


async def test_a_host_without_them_does_as_before(poor: Logins, tmp_path: Path) -> None:
    """It is asked once for all programs, its operator is told why, and programs run."""
    told: list[str] = []
    host = ShellTransport("h", poor.connections, isolation=Isolation.AUTO, isolated=told.append)
    exits = [(await said_by(host, sh("exit 3", tmp_path)))[1] for _ in range(3)]

    assert exits == [Exit(status=3)] * 3
    assert len(poor.commands) == 4
    (sentence,) = told
    assert "unshare: Operation not permitted; bwrap: Operation not permitted" in sentence
    await poor.quiet()


async def test_a_host_without_them_is_refused_where_they_are_demanded(
    poor: Logins, tmp_path: Path
) -> None:
    """The message says why, and what to do; nothing is started."""
    host = ShellTransport("h", poor.connections, isolation=Isolation.PID_NAMESPACE)
    with pytest.raises(HostError, match=r"Operation not permitted.*set isolation to auto"):
        async with host.process(sh("touch ran", tmp_path)):
            pass

    assert not (tmp_path / "ran").exists()


async def test_a_host_that_can_make_none_any_more_is_asked_again(
    logins: Logins, tmp_path: Path
) -> None:
    """A limit that is reached between two programs costs no attempt of a run."""
    host = ShellTransport("h", logins.connections, isolation=Isolation.AUTO)
    before = await said_by(host, sh("echo $$", tmp_path))
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("unshare", "bwrap"):
        (tools / name).write_text("#!/bin/sh\necho no space >&2\nexit 1\n")
        (tools / name).chmod(0o755)
    logins.env = {**logins.env, "PATH": f"{tools}:{os.environ['PATH']}"}
    after = await said_by(host, sh("echo $$", tmp_path))

    assert int(before[0]) < 10 < int(after[0])
    assert (before[1], after[1]) == (Exit(status=0), Exit(status=0))


@pytest.mark.parametrize("way", ["unshare-pid", "unshare-user-pid", "unshare-user", "bwrap"])
async def test_each_way_holds_and_ends_a_program(
    logins: Logins, tmp_path: Path, word: str, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Also without a /proc of its own, and for an ordinary user."""
    if way == "bwrap" and shutil.which("bwrap") is None:
        pytest.skip("no bwrap")
    for name in [name for name in WAYS if name != way]:
        monkeypatch.delitem(WAYS, name)
    host = ShellTransport("h", logins.connections, isolation=Isolation.PID_NAMESPACE)

    said, exit_ = await said_by(host, sh(f"{daemonized(word)}; pwd; kill -9 $$", tmp_path))

    assert (said.decode().strip(), exit_) == (str(tmp_path), Exit(signal=9))
    assert bearers(word) == []
    await logins.quiet()


def test_what_a_host_says_of_them_is_read() -> None:
    """Its words may have come from anywhere."""
    good = read_probe("unshare-pid - /usr/bin/nsenter /bin/setsid mount: no; really no")
    none = read_probe("none - - - it lacks nsenter")

    assert isinstance(good, Namespaces)
    assert (good.quiet, good.setsid, good.flaws) == (False, "/bin/setsid", "mount: no; really no")
    assert "no other is had (mount: no; really no)" in good.sentence
    assert none == NoNamespaces(reason="it lacks nsenter")
    with pytest.raises(ValueError, match="no such way"):
        read_probe("another thing")


async def test_zombies_do_not_pile_up(host: ShellTransport, tmp_path: Path) -> None:
    """Who is orphaned in there is reaped by the init."""
    script = (
        "for n in 1 2 3 4 5 6 7 8 9; do (setsid sleep 0.01 &) ; done; echo ready; exec sleep 1000"
    )
    async with host.process(sh(script, tmp_path)) as process:
        assert await anext(process.output()) == (1, b"ready\n")
        (agent,) = psutil.Process(process.identity.pid).children()
        inside = os.stat(f"/proc/{agent.pid}/ns/pid").st_ino

        def others() -> list[int]:
            found = []
            for pid in psutil.pids():
                try:
                    same = os.stat(f"/proc/{pid}/ns/pid").st_ino == inside
                except OSError:
                    continue
                found += [pid] if same else []
            return found

        with trio.fail_after(60):
            while len(others()) > 2:
                await trio.sleep(0.01)
