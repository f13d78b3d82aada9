"""Containers around the programs of a run: what holds, what is seen, and that nothing is left."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
import trio
from msgspec.structs import replace

from sortie.facts import Fact
from sortie.model import ProgramNotFound, RunId, TransportError
from sortie.model.allowed_hosts import allowed_host
from sortie.transports import COOKIE, Command, Exit
from sortie.transports.local import LocalTransport
from sortie.transports.local.fork_server.confinement import system_call_filter
from sortie.transports.walls.container import LOW_LIMITS, WAITING
from sortie.transports.walls.container_engine import ContainerEngine
from sortie.transports.walls.container_names import own_life
from sortie.transports.walls.container_transport import ContainerTransport
from sortie.transports.walls.run_network import RunNetwork
from tests.contract.transport.launching import everything
from tests.transports.containers import (
    ENGINES,
    IMAGE,
    OneContainer,
    choice,
    container_transport,
    engine_environ,
    require_engine,
    seen_by_tests,
)
from tests.transports.endings import local_transport
from tests.transports.leftovers import bearers
from tests.transports.mounts import requires_mounts

WAIT = 120.0


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Give the name of each engine that can be had."""
    return require_engine(request.param)


@pytest.fixture
async def local() -> AsyncIterator[LocalTransport]:
    async with local_transport("namespaces") as transport:
        yield transport


class Place(NamedTuple):
    """A workspace, and what lies beside it."""

    workspace: Path
    outside: Path


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path / "workspace", tmp_path / "outside")
    for directory in place:
        directory.mkdir()
    (place.outside / "secret").write_text("a word that must not get in")
    return place


@pytest.fixture
async def container(
    local: LocalTransport, place: Place, engine: str
) -> AsyncIterator[OneContainer]:
    """Give a container with the workspace, and no network."""
    chosen = choice(engine=engine)
    async with container_transport(local, str(place.workspace), chosen) as transport:
        yield transport


def command(place: Place, *argv: str, **env: str) -> Command:
    variables = {"PATH": os.environ["PATH"], **env}
    return Command(argv=argv, cwd=str(place.workspace), env=variables, grace=0.0)


async def said(transport: OneContainer, given: Command) -> tuple[Exit, str]:
    """Run a program to its end; return how it ended, and what it has said."""
    with trio.fail_after(WAIT):
        async with transport.process(given) as process:
            output = await everything(process)
            return await process.wait(), (output[1] + output[2]).decode()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Give a socket of this machine that a program must not reach."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


PYTHON = f'"{sys.executable}" -c'
ATTACKS = {
    "a file beside the workspace": 'cat "$OUTSIDE/secret"',
    "a file beside it, by a link": 'ln -s "$OUTSIDE/secret" link && cat link',
    "a file beside it, by dots": "cat ../outside/secret",
    "a file beside it, written": 'echo x >"$OUTSIDE/new"',
    "the root of the machine, by process 1": 'cat "/proc/1/root$OUTSIDE/secret"',
    "the directory of process 1": 'cat "/proc/1/cwd$OUTSIDE/secret"',
    "the program of process 1": "cat /proc/1/exe",
    "open files of process 1": "ls -l /proc/1/fd/",
    "variables of process 1": "cat /proc/1/environ",
    "a process of the machine, seen": 'test -e "/proc/$VICTIM"',
    "a process of the machine, signalled": 'kill -0 "$VICTIM"',
    "process 1, traced": f"{PYTHON} 'import ctypes as c; exit(c.CDLL(None).ptrace(16, 1, 0, 0))'",
    "a socket of the file system": f"{PYTHON} 'import os, socket as s;"
    ' s.socket(s.AF_UNIX).connect(os.environ["OUTSIDE"] + "/socket")\'',
    "an abstract socket": f"{PYTHON} 'import os, socket as s;"
    ' s.socket(s.AF_UNIX).connect("\\0" + os.environ["ABSTRACT"])\'',
    "a port of the machine": f"{PYTHON} 'import os, socket as s;"
    ' s.create_connection(("127.0.0.1", int(os.environ["PORT"])), 5)\'',
    "a name of the network": f"{PYTHON} 'import socket; socket.getaddrinfo(\"example.com\", 80)'",
    "an address of the network": f"{PYTHON} 'import socket as s;"
    ' s.create_connection(("192.0.2.1", 80), 5)\'',
    "a socket of packets": f"{PYTHON} 'import socket as s; s.socket(s.AF_PACKET, s.SOCK_RAW)'",
    "a mount": "mkdir m && mount -t tmpfs none m",
    "a user namespace": "unshare --user true",
    "the namespaces of process 1": "nsenter -t 1 -m true",
    "a clone into a user namespace": f"{PYTHON} 'import ctypes as c; l = c.CDLL(None,"
    " use_errno=True); r = l.syscall(56, 0x10000011, 0, 0, 0, 0); exit(r < 0)'",
    "a device": "mknod disk b 8 0",
    "memory of the kernel": f'{PYTHON} \'open("/proc/kcore", "rb").read(64) or exit(1)\'',
    "keys of the kernel": f"{PYTHON} 'import ctypes as c; l = c.CDLL(None, use_errno=True);"
    " exit(l.syscall(250, 0, -3, 0) < 0)'",
    "a setting of the kernel": "echo x >/proc/sys/kernel/domainname",
    "a request to the kernel": "echo s >/proc/sysrq-trigger",
    "the log of the kernel": "dmesg",
    "the limits of the container": "for f in $(find /sys/fs/cgroup -name cgroup.procs); do"
    " echo 0 >$f && exit 0; done; exit 1",
    "files of another user": "touch f && chown 12345 f",
    "another user": f"{PYTHON} 'import os; os.setuid(12345)'",
    "the engine": "ls /run/podman/podman.sock /var/run/docker.sock",
    "a file of the mounts": "touch /usr/new",
}


async def test_attacks_from_inside_fail(
    container: OneContainer, place: Place, listener: socket.socket
) -> None:
    """What a program tries comes to nothing: the command fails, and the secret is not seen.

    All are tried in one container, as to make one takes longer than most attacks.
    """
    port = listener.getsockname()[1]
    abstract_name = f"sortie-test-{os.getpid()}-{port}"
    env = {"OUTSIDE": str(place.outside), "VICTIM": str(os.getpid()), "PORT": str(port)}
    succeeded = {}
    with socket.socket(socket.AF_UNIX) as abstract, socket.socket(socket.AF_UNIX) as in_files:
        abstract.bind(f"\0{abstract_name}")
        abstract.listen()
        in_files.bind(str(place.outside / "socket"))
        in_files.listen()
        for attack, script in ATTACKS.items():
            given = command(place, "sh", "-c", script, ABSTRACT=abstract_name, **env)
            exit_, words = await said(container, given)
            if exit_.status in (0, None) or "must not get in" in words:
                succeeded[attack] = (exit_, words)

    assert succeeded == {}
    assert sorted(p.name for p in place.outside.iterdir()) == ["secret", "socket"]


async def test_a_program_has_no_rights_but_those_of_the_user(
    container: OneContainer, place: Place
) -> None:
    """It has no capability in any set, none to be had, and its system calls are filtered. The
    workspace has its path, and what is written in it belongs to this process's user."""
    script = "cat /proc/self/status; pwd; echo new >file"
    exit_, words = await said(container, command(place, "sh", "-c", script))

    status = dict(line.split(":\t", 1) for line in words.splitlines() if ":\t" in line)
    sets = {name: value for name, value in status.items() if name.startswith("Cap")}
    assert sets == dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), "0" * 16)
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    written = place.workspace / "file"
    assert (exit_, words.splitlines()[-1]) == (Exit(status=0), str(place.workspace))
    assert written.read_text() == "new\n"
    assert (written.stat().st_uid, written.stat().st_gid) == (os.geteuid(), os.getegid())


async def test_a_program_is_looked_for_in_the_container(
    container: OneContainer, place: Place
) -> None:
    """One of the machine alone is not found, and says so."""
    program = place.outside / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    with pytest.raises(ProgramNotFound, match="does not exist in the container"):
        await said(container, command(place, str(program)))
    with pytest.raises(ProgramNotFound, match="does not exist in the container"):
        await said(container, command(place, "program", PATH=str(place.outside)))
    with pytest.raises(ProgramNotFound, match="image"):
        await container.resolve_program("program", str(place.outside))
    assert await container.resolve_program("sh", "/usr/bin") == "/usr/bin/sh"


async def test_limits_hold(local: LocalTransport, place: Place, engine: str) -> None:
    """What takes more memory than the container has is killed, and so many tasks cannot be had."""
    chosen = choice(engine=engine, memory=64 << 20, pids=20)
    if os.geteuid() != 0 and not os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        with pytest.raises(TransportError, match="limit no container"):
            await OneContainer(local, chosen, engine_environ(engine)).check()
        return
    async with container_transport(local, str(place.workspace), chosen) as container:
        memory, _ = await said(
            container, command(place, sys.executable, "-c", "x = b'x' * (256 << 20)")
        )
        forks = "import os, time\nfor _ in range(40): os.fork() or time.sleep(60)"
        tasks, words = await said(container, command(place, sys.executable, "-c", forks))

    assert memory == Exit(signal=9)
    assert tasks.status == 1
    assert "BlockingIOError" in words


async def test_hidden_files_are_not_seen(local: LocalTransport, place: Place, engine: str) -> None:
    """A file and a directory below a mount are empty, and cannot be written to."""
    (place.workspace / "key").write_text("a word that must not get in")
    (place.workspace / "keys").mkdir()
    (place.workspace / "keys" / "one").write_text("a word that must not get in")
    hidden = (f"{place.workspace}/key", f"{place.workspace}/keys")
    chosen = choice(hidden=hidden, engine=engine)
    async with container_transport(local, str(place.workspace), chosen) as container:
        script = "cat key; ls keys; echo x >keys/two"
        exit_, words = await said(container, command(place, "sh", "-c", script))

    assert exit_.status not in (0, None)
    assert "must not get in" not in words
    assert "one" not in words


async def test_nothing_of_a_container_is_left(
    local: LocalTransport, place: Place, engine: str
) -> None:
    """Its programs have ended, and the engine knows it no more, when its block is left."""
    asked = await ContainerEngine.find(engine, engine_environ(engine))
    async with container_transport(local, str(place.workspace), choice(engine=engine)) as transport:
        opened = transport.only
        assert opened.name in await asked.containers(f"sortie.daemon={transport._choice.daemon}")
    assert opened.name not in await asked.containers(f"sortie.daemon={transport._choice.daemon}")


async def test_a_program_ends_with_its_container(
    local: LocalTransport, container: OneContainer, place: Place, engine: str
) -> None:
    """Whoever removes a container from outside ends what has entered it."""
    opened = container.only
    with trio.fail_after(WAIT):
        async with container.process(command(place, "sleep", "1000")) as process:
            await trio.to_thread.run_sync(
                lambda: subprocess.run(
                    [engine, "kill", opened.name],
                    env=engine_environ(engine),
                    check=True,
                    capture_output=True,
                )
            )
            assert await process.wait() == Exit(signal=9)

    with pytest.raises(TransportError, match="container"):
        await said(container, command(place, "true"))


async def test_a_clean_clone_has_a_container_of_its_own(
    local: LocalTransport, place: Place, engine: str
) -> None:
    """What starts in it sees it, and not the workspace; what starts elsewhere is beside the
    agent."""
    clone = place.outside / "clone"
    clone.mkdir()
    run_id = RunId(f"clone-{os.getpid()}")
    wall = ContainerTransport(local, choice(engine=engine), engine_environ(engine))
    seen = {}
    async with wall.around(run_id, str(place.workspace)), wall.around(run_id, str(clone)):
        for name, cwd in (("agent", place.workspace), ("verify", clone), ("other", Path("/"))):
            script = f"ls -d {place.workspace} {clone} 2>/dev/null; :"
            env = {"PATH": os.environ["PATH"], COOKIE: run_id}
            given = Command(argv=("sh", "-c", script), cwd=str(cwd), env=env, grace=0.0)
            async with wall.process(given) as process:
                seen[name] = (await everything(process))[1].decode().split()

    agent = [str(place.workspace)]
    assert seen == {"agent": agent, "verify": [str(clone)], "other": agent}


async def test_a_container_is_left_to_no_later_life(
    local: LocalTransport, place: Place, engine: str
) -> None:
    """One of an earlier life of the daemon is removed before the first run; neither others' are,
    nor those of a process of the same daemon that lives."""
    asked = await ContainerEngine.find(engine, engine_environ(engine))
    former = ["run", "--detach", "--network", "none", *LOW_LIMITS]
    former += ["--volume", "/usr:/usr:ro", "--entrypoint", "sleep"]
    gone = subprocess.Popen(["true"], stdout=subprocess.DEVNULL)
    gone.wait()
    ours, theirs = f"sortie-{gone.pid}.1000-run", f"sortie-other-{os.getpid()}"
    alive = f"sortie-{own_life()}-run"
    daemon = f"{os.getpid():016x}"
    label = ["--label", f"sortie.daemon={daemon}"]
    await asked.ask(*former, "--name", ours, *label, IMAGE, "1000")
    await asked.ask(*former, "--name", theirs, IMAGE, "1000")
    await asked.ask(*former, "--name", alive, *label, IMAGE, "1000")
    try:
        await OneContainer(
            local, choice(daemon=daemon, engine=engine), engine_environ(engine)
        ).check()
        left = [name for name in (ours, theirs, alive) if await asked.try_("inspect", name)]
    finally:
        await asked.remove([ours, theirs, alive])

    assert left == [theirs, alive]


async def test_an_image_that_is_not_there_is_an_error(
    local: LocalTransport, place: Place, engine: str
) -> None:
    """The sentence says what was tried."""
    wall = OneContainer(
        local, choice(engine=engine, image="localhost/sortie-no-such-image"), engine_environ(engine)
    )

    with pytest.raises(TransportError, match=f"{engine} pull"):
        await wall.check()


async def test_where_system_calls_are_not_known_there_is_no_container(
    local: LocalTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no wall without its filter: neither the check nor a program passes."""
    monkeypatch.setattr("platform.machine", lambda: "riscv64")

    with pytest.raises(
        TransportError, match=r"no wall on riscv64: .* known for x86_64 and aarch64"
    ):
        await OneContainer(local, choice(), engine_environ()).check()
    with pytest.raises(OSError, match="riscv64"):
        system_call_filter("riscv64")


async def test_a_run_without_its_container_starts_nothing(
    local: LocalTransport, place: Place, engine: str
) -> None:
    """No program is started outside of the wall."""
    wall = ContainerTransport(local, choice(engine=engine), engine_environ(engine))

    with pytest.raises(TransportError, match="no container"):
        wall.process(command(place, "true", SORTIE_RUN_ID=RunId("unknown")))


async def test_nothing_outlives_a_daemon_that_is_killed(
    local: LocalTransport, place: Place, engine: str
) -> None:
    """Programs and container end by themselves; the next life removes what lies about."""
    daemon, word = f"{os.getpid():015x}a", f"held-by-{os.getpid()}"
    program = [sys.executable, "-m", "tests.transports.programs.container_holder"]
    holder = await trio.lowlevel.open_process(
        [*program, str(place.workspace), daemon, word, engine],
        stdout=subprocess.PIPE,
        env={**os.environ, **engine_environ(engine)},
    )
    asked = await ContainerEngine.find(engine, engine_environ(engine))
    places = Path(tempfile.gettempdir())
    assert holder.stdout is not None
    with trio.fail_after(WAIT):
        name = (await holder.stdout.receive_some()).decode().strip()
        began = len(bearers(word))

        holder.kill()
        await holder.wait()
        while bearers(word) or await asked.try_("inspect", name):
            await trio.sleep(0.05)
        left = list(places.glob(f"sortie-{daemon}-*"))
        await OneContainer(
            local, choice(daemon=daemon, engine=engine), engine_environ(engine)
        ).check()

    assert began >= 2
    assert len(left) == 1
    assert list(places.glob(f"sortie-{daemon}-*")) == []


async def test_a_server_of_the_machine_is_reached_by_its_network(
    local: LocalTransport, place: Place, listener: socket.socket, engine: str
) -> None:
    """With the network of the machine a program connects to its loopback; without, attacks on a
    port of it fail."""
    port = listener.getsockname()[1]
    script = f"import socket; socket.create_connection(('127.0.0.1', {port}), 10)"
    chosen = choice(network="host", engine=engine)
    async with container_transport(local, str(place.workspace), chosen) as container:
        exit_, words = await said(container, command(place, sys.executable, "-c", script))

    assert exit_.status == 0, words


async def test_a_program_may_have_a_network_of_its_own(
    local: LocalTransport, container: OneContainer, place: Place
) -> None:
    """What connects to its loopback there reaches a socket of this process, and nothing else."""
    listeners: list[socket.socket] = []
    script = (
        "import socket, sys; s = socket.create_connection(('127.0.0.1', 3128), 10);"
        " print(s.recv(9).decode(), len(socket.if_nameindex()))"
    )
    given = replace(command(place, sys.executable, "-c", script), listener=listeners.append)
    with trio.fail_after(WAIT):
        async with container.process(given) as process:
            with (
                listeners[0] as server,
                (await trio.to_thread.run_sync(server.accept))[0] as accepted,
            ):
                accepted.sendall(b"a way out")
            output = await everything(process)

    assert output[1] == b"a way out 1\n", output


async def test_listed_hosts_are_reached_by_the_proxy_alone(
    local: LocalTransport, place: Place, listener: socket.socket, engine: str
) -> None:
    """A program gets an answer of a listed server, a refusal for others, and none without it."""
    port = listener.getsockname()[1]
    told: list[Fact] = []
    network = RunNetwork(allowed=(allowed_host(f"127.0.0.1:{port}"),), tell=told.append)

    def serve() -> None:
        accepted, _ = listener.accept()
        with accepted:
            accepted.recv(4096)
            accepted.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 6\r\n\r\nlisted")

    script = (
        "import http.client, socket\n"
        f"for port in ({port}, 1):\n"
        "    way = http.client.HTTPConnection('127.0.0.1', 3128)\n"
        "    way.request('GET', f'http://127.0.0.1:{port}/')\n"
        "    answer = way.getresponse()\n"
        "    print(answer.read().decode() if answer.status == 200 else answer.status)\n"
        f"try: socket.create_connection(('127.0.0.1', {port}), 10)\n"
        "except OSError: print('closed')\n"
    )
    async with (
        trio.open_nursery() as nursery,
        container_transport(
            local, str(place.workspace), choice(engine=engine), network
        ) as container,
    ):
        nursery.start_soon(partial(trio.to_thread.run_sync, serve, abandon_on_cancel=True))
        given = command(place, sys.executable, "-c", script)
        exit_, words = await said(container, given)
        nursery.cancel_scope.cancel()

    assert words.split() == ["listed", "403", "closed"], words
    assert exit_ == Exit(status=0)
    assert len(told) == 2


@requires_mounts
async def test_what_is_mounted_below_a_path_is_as_it_is(
    local: LocalTransport, place: Place, engine: str
) -> None:
    """A mount in a directory that can only be read can only be read, too."""
    shown = place.outside / "shown"
    below = shown / "be low"
    below.mkdir(parents=True)
    mounted = ["mount", "-t", "tmpfs", "none", str(below)]
    await trio.run_process(mounted)
    try:
        (below / "file").write_text("seen")
        chosen = choice(engine=engine, read=(*seen_by_tests(), str(shown)))
        async with container_transport(local, str(place.workspace), chosen) as container:
            script = 'cat "$0/file"; echo x >"$0/new"'
            exit_, words = await said(container, command(place, "sh", "-c", script, str(below)))
    finally:
        await trio.run_process(["umount", str(below)])

    assert exit_.status not in (0, None)
    assert words.startswith("seen")
    assert "Read-only" in words


async def test_a_container_without_its_daemon_ends_at_once(place: Place) -> None:
    """Also where the daemon had ended before the shell came to look at the FIFO."""
    fifo = place.outside / "fifo"
    os.mkfifo(fifo)

    with trio.fail_after(WAIT):
        ended = await trio.run_process(["sh", "-c", WAITING, str(fifo)], check=False)

    assert ended.returncode == 1
