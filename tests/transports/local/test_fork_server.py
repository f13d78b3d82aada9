"""The fork server, its namespaces, and what is told of the programs that it starts."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from sortie.config.settings import Isolation
from sortie.model import SortieError, TransportError
from sortie.transports import Command, Exit
from sortie.transports.local import (
    LocalTransport,
    become_subreaper,
    establish_isolation,
    fork_server,
)
from sortie.transports.local import isolation as isolation_module
from sortie.transports.local.fork_client import ForkServer, NoNamespace, Started
from tests.transports.endings import requires_namespaces
from tests.transports.leftovers import is_alive
from tests.transports.mounts import requires_mounts

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")
WAIT = 60.0
STANDARD_SIGNALS = (1 << 31) - 1
"""glibc's posix_spawn(3) has two signals ignored that are its own."""


@pytest.fixture(params=[pytest.param(True, marks=requires_namespaces), False])
def server(request: pytest.FixtureRequest) -> Iterator[ForkServer]:
    """Give a server that makes namespaces, and one that makes none."""
    assert become_subreaper()
    server = ForkServer(namespaces=request.param)
    yield server
    server.close()


@pytest.fixture
def transport(server: ForkServer) -> LocalTransport:
    return LocalTransport(os.environ["PATH"], server=server)


def command(*argv: str, grace: float = 5.0, cwd: str = "/") -> Command:
    return Command(argv=argv, cwd=cwd, env={"PATH": os.environ["PATH"]}, grace=grace)


def start(server: ForkServer, *argv: str) -> Started:
    null = os.open(os.devnull, os.O_RDWR)
    try:
        return server.start(argv, program=argv[0], cwd="/", env={}, stdio=(null, null, null))
    finally:
        os.close(null)


def gone(pid: int) -> bool:
    """Wait until a process that may be nobody's child has ended; return whether it has."""
    with suppress(ProcessLookupError):
        pidfd = os.pidfd_open(pid)
        ready = select.select([pidfd], [], [], WAIT)[0]
        os.close(pidfd)
        return bool(ready)
    return True


@pytest.mark.parametrize(
    ("script", "exit_"),
    [
        ("exit 0", Exit(status=0)),
        ("exit 3", Exit(status=3)),
        ("exit 137", Exit(status=137)),
        ("kill -KILL $$", Exit(signal=9)),
        ("kill -TERM $$", Exit(signal=15)),
        ("kill -SEGV $$", Exit(signal=11)),
        ("kill -HUP $$", Exit(signal=1)),
    ],
)
async def test_exits_and_deaths_are_told_as_they_were(
    transport: LocalTransport, script: str, exit_: Exit
) -> None:
    """An exit with 137 is another thing than a death by SIGKILL."""
    async with transport.process(command("sh", "-c", script)) as process:
        assert await process.wait() == exit_


async def test_a_program_gets_what_its_command_says(
    transport: LocalTransport, tmp_path: Path
) -> None:
    """Directory, arguments with spaces and line ends, environment; no descriptor beyond stdio, no
    signal ignored or blocked, and no pid that it could take for the daemon's."""
    script = (
        'printf "%s|" "$PWD" "$1" "$2" "$WORD"; ls /proc/self/fd | tr "\\n" " ";'
        ' grep -E "SigIgn|SigBlk" /proc/self/status | tr -s "\\n\\t" "  "'
    )
    said = Command(
        argv=("sh", "-c", script, "sh", "a b", "c\nd"),
        cwd=str(tmp_path),
        env={"PATH": os.environ["PATH"], "WORD": "=\n="},
    )
    output = b""

    async with transport.process(said) as process:
        async for _, chunk in process.output():
            output += chunk

    told, _, masks = output.decode().partition("SigBlk: ")
    blocked, ignored = (int(mask, 16) & STANDARD_SIGNALS for mask in masks.split("SigIgn: "))
    assert told == f"{tmp_path}|a b|c\nd|=\n=|0 1 2 3 "
    assert (blocked, ignored) == (0, 0)


async def test_why_a_program_cannot_be_started_is_told(
    transport: LocalTransport, tmp_path: Path
) -> None:
    """What is missing is named, and nothing is left of the try."""
    broken = tmp_path / "broken"
    broken.write_text("#!/no/interpreter\n")
    broken.chmod(0o700)

    with pytest.raises(TransportError, match="its interpreter /no/interpreter does not exist"):
        async with transport.process(command(str(broken))):
            pass
    with pytest.raises(TransportError, match=r"in /no/where: .*the directory has to exist"):
        async with transport.process(command("true", cwd="/no/where")):
            pass
    with pytest.raises(TransportError, match="too long for this system"):
        async with transport.process(command("true", "x" * (1 << 20))):
            pass


async def test_a_server_that_was_killed_is_replaced(
    transport: LocalTransport, server: ForkServer
) -> None:
    """What it has started goes on and is ended as before, and the next start has a new server."""
    async with transport.process(command("sleep", "1000")) as process:
        first = server.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        assert gone(first)
        async with transport.process(command("sh", "-c", "exit 5")) as other:
            after = await other.wait()
        alive = is_alive(process.identity.pid)
        exit_ = await process.end()

    assert (after, alive, exit_) == (Exit(status=5), True, Exit(signal=15, by_us=True))
    assert server.pid not in (None, first)


@requires_namespaces
async def test_the_program_alone_is_asked_to_end() -> None:
    """Its children get no SIGTERM, so that it can end them in its own order."""
    assert become_subreaper()
    server = ForkServer(namespaces=True)
    transport = LocalTransport(os.environ["PATH"], server=server)
    script = (
        "sh -c 'trap \"echo child\" TERM; echo up; while :; do sleep 0.02; done' &"
        " trap 'echo asked; sleep 0.2; exit 4' TERM; wait"
    )
    said = b""

    async with transport.process(command("sh", "-c", script)) as process:
        output = process.output()
        said += (await anext(output))[1]
        exit_ = await process.end()
        async for _, chunk in output:
            said += chunk
    server.close()

    assert (said, exit_) == (b"up\nasked\n", Exit(status=4, by_us=True))


@requires_namespaces
async def test_nothing_that_a_program_left_outlives_it() -> None:
    """Without session, parent, environment, directory and limits, and with SIGTERM ignored."""
    assert become_subreaper()
    server = ForkServer(namespaces=True)
    transport = LocalTransport(os.environ["PATH"], server=server)
    word = f"1000.{os.getpid()}"
    script = (
        f"(trap '' TERM; cd /; ulimit -S -m unlimited; env -i /usr/bin/setsid -f sleep {word})"
        " >/dev/null 2>&1; exit 3"
    )

    async with transport.process(command("sh", "-c", script)) as process:
        exit_ = await process.wait()
        with trio.fail_after(WAIT):
            await process.end()
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    server.close()

    assert exit_ == Exit(status=3)
    assert word not in listed.stdout


@requires_namespaces
def test_a_namespace_dies_with_its_daemon(tmp_path: Path) -> None:
    """The daemon is killed: init, the program and what hides from everybody are gone at once."""
    told = tmp_path / "told"
    program = (
        "import os, sys, time\n"
        "from sortie.transports.local import become_subreaper\n"
        "from sortie.transports.local.fork_client import ForkServer\n"
        "become_subreaper()\n"
        "server = ForkServer(namespaces=True)\n"
        "null = os.open(os.devnull, os.O_RDWR)\n"
        "argv = ('/bin/sh', '-c', 'env -i setsid -f sleep 1000; exec sleep 1000')\n"
        "started = server.start(argv, program='/bin/sh', cwd='/', env={}, stdio=(null,) * 3)\n"
        "print(started.pid, server.pid, flush=True)\n"
        "time.sleep(1000)\n"
    )
    daemon = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert daemon.stdout is not None
    init, server = map(int, daemon.stdout.readline().split())
    inside = _descendants(init)

    daemon.kill()
    daemon.wait()
    daemon.stdout.close()

    assert [pid for pid in (init, server, *inside) if not gone(pid)] == []
    assert not told.exists()


def _descendants(pid: int) -> list[int]:
    children = [
        int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ]
    return [one for child in children for one in (child, *_descendants(child))]


@requires_namespaces
def test_a_program_can_neither_look_into_its_init_nor_kill_it() -> None:
    """Init has rights in its user namespace that its program has not."""
    if os.geteuid() == 0:
        pytest.skip("root may look into every process")
    assert become_subreaper()
    server = ForkServer(namespaces=True)
    script = "cat /proc/1/environ >/dev/null 2>&1 && exit 1; kill -KILL 1; kill -STOP 1; exit 0"

    started = start(server, "/bin/sh", "-c", script)
    os.waitpid(started.pid, 0)
    status = started.status()
    server.close()

    assert status == 0


@requires_namespaces
def test_isolation_is_decided_by_trying(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a namespace is refused, auto goes on without and says why; pid-namespace fails."""
    assert become_subreaper()
    had = establish_isolation(Isolation.PID_NAMESPACE, mark=1)
    assert had.server is not None
    had.server.close()

    def refuse(_: object) -> None:
        raise NoNamespace(1, "Operation not permitted")

    monkeypatch.setattr(isolation_module, "try_namespace", refuse)
    monkeypatch.setattr(isolation_module, "carry", lambda _: True)
    without = establish_isolation(Isolation.AUTO, mark=1)
    unwanted = establish_isolation(Isolation.NONE, mark=1)
    with pytest.raises(SortieError, match=r"isolation is pid-namespace, but .*not permitted"):
        establish_isolation(Isolation.PID_NAMESPACE, mark=1)
    for one in (without, unwanted):
        assert one.server is not None
        one.server.close()

    assert (had.namespaces, had.refused, had.mark) == (True, False, None)
    assert (without.namespaces, without.refused, without.mark) == (False, True, 1)
    assert "RestrictNamespaces=" in without.detail
    assert (unwanted.namespaces, unwanted.refused) == (False, False)


@requires_namespaces
@requires_mounts
def test_init_is_seen_where_proc_hides_what_may_not_be_traced() -> None:
    """As under ``ProtectProc=invisible`` of a unit, where the daemon has no rights over others."""
    program = (
        "import os, trio\n"
        "from sortie.resources.prctl import forbid_inspection\n"
        "from sortie.transports import Command\n"
        "from sortie.transports.local import LocalTransport, become_subreaper\n"
        "from sortie.transports.local.fork_client import ForkServer\n"
        "async def main():\n"
        "    server = ForkServer(namespaces=True)\n"
        "    transport = LocalTransport(os.defpath, server=server)\n"
        "    env = {'PATH': os.defpath}\n"
        "    for _ in range(20):\n"
        "        command = Command(argv=('sleep', '1000'), cwd='/', env=env)\n"
        "        async with transport.process(command) as process:\n"
        "            assert os.path.exists(f'/proc/{process.identity.pid}/stat')\n"
        "            exit_ = await process.end()\n"
        "            assert exit_.signal == 15, exit_\n"
        "    await transport.close()\n"
        "forbid_inspection()\n"
        "become_subreaper()\n"
        "trio.run(main)\n"
    )
    hidden = 'mount -t proc -o hidepid=invisible,gid=65533 proc /proc && exec setpriv "$@"'
    argv = ["unshare", "-m", "--propagation", "private", "sh", "-c", hidden, "sh"]
    argv += ["--bounding-set", "-sys_ptrace,-sys_admin"]

    done = subprocess.run(
        [*argv, sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


def _served_nothing(*options: str) -> subprocess.CompletedProcess[str]:
    """Start a server, with options of Python, for a daemon that has just ended."""
    over = subprocess.Popen(["true"])
    over.wait()
    program = [sys.executable, "-I", "-S", *options, fork_server.PROGRAM]
    arguments = [str(over.pid), "0", "1", "256", ""]
    return subprocess.run([*program, *arguments], capture_output=True, check=False, text=True)


def test_a_server_whose_daemon_has_just_ended_says_nothing() -> None:
    """It exits; what it would say would stand among the lines of a log that is over."""
    done = _served_nothing()

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_server_loads_no_module_that_takes_long() -> None:
    """Each start of a daemon waits for it, and so does each test that starts a program."""
    done = _served_nothing("-X", "importtime")

    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line}
    assert {"confinement", "init", "middleman", "program", "request"} <= loaded
    assert loaded & {"inspect", "json", "platform", "re", "subprocess", "typing"} == set()
