"""Containers of runs on a host over SSH: what holds, how they end, and that nothing is left."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest
import trio
from msgspec.structs import replace

from sortie.config.settings import Isolation
from sortie.facts import Fact
from sortie.model import ProgramNotFound, TransportError
from sortie.model.model_endpoints import ModelEndpoint
from sortie.transports import Command, Exit, Stdin
from sortie.transports.container_entrance import HostEntrance
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.transport import ShellTransport
from sortie.transports.ssh.asyncio_thread import open_asyncio_thread
from sortie.transports.ssh.connection_pool import ConnectionPool
from sortie.transports.walls.remote_container import RemoteContainerTransport
from sortie.transports.walls.run_network import RunNetwork
from tests.contract.transport.launching import everything
from tests.transports.containers import (
    DOCKER,
    ENGINES,
    PODMAN,
    OneRemoteContainer,
    choice,
    engine_environ,
    know_engine,
    remote_container_transport,
    require_engine,
)
from tests.transports.endings import requires_namespaces
from tests.transports.leftovers import bearers
from tests.transports.ssh.sshd import Keys, Sshd, requires_sshd, sshd_running, until
from tests.transports.walls import test_remote_network
from tests.transports.walls.test_attacks import requires_curl
from tests.transports.walls.test_remote_network import CURL, KEY, listing

pytestmark = [requires_sshd, requires_namespaces]
keys, port = test_remote_network.keys, test_remote_network.port
WAIT = 120.0
_HOLDER = Path(__file__).parent.parent / "programs" / "remote_container_holder.py"


@pytest.fixture
def files() -> Iterator[Path]:
    """Give a directory for what programs need on the host, which is empty in the end; its name is
    short, as that of a socket has to be."""
    with TemporaryDirectory(prefix="sortie-") as place:
        yield Path(place)
        assert os.listdir(place) == []


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Give the name of each engine that can be had."""
    return require_engine(request.param)


@pytest.fixture
def sshd(tmp_path: Path, files: Path, engine: str) -> Iterator[Sshd]:
    with sshd_running(tmp_path / "host", Keys.make(tmp_path / "client")) as host:
        (host.home / "ws").mkdir()
        know_engine(host, engine)
        host.options["SetEnv"] = f"{host.options['SetEnv']} TMPDIR={files}"
        host.stop()
        host.start()
        yield host


@asynccontextmanager
async def connected(sshd: Sshd, *, reattach: float = 0.0) -> AsyncIterator[ShellTransport]:
    async with open_asyncio_thread() as thread:
        pool = ConnectionPool(sshd.host, sshd.settings, thread)
        bounds = Bounds(handshake=60.0, reattach=reattach)
        try:
            yield ShellTransport(sshd.host, pool, bounds=bounds, isolation=Isolation.AUTO)
        finally:
            await pool.aclose()


@asynccontextmanager
async def contained(
    sshd: Sshd, network: RunNetwork | None = None, *, reattach: float = 0.0, **given: object
) -> AsyncIterator[OneRemoteContainer]:
    chosen = choice(engine=engine_of(sshd), **given)
    async with (
        connected(sshd, reattach=reattach) as host,
        remote_container_transport(host, f"{sshd.home}/ws", chosen, network) as transport,
    ):
        yield transport


def engine_of(sshd: Sshd) -> str:
    """Return the engine that logins of a host have been told of."""
    return DOCKER if "DOCKER_HOST" in str(sshd.options["SetEnv"]) else PODMAN


def sh(sshd: Sshd, script: str, **env: str) -> Command:
    env = {"PATH": os.environ["PATH"], **env}
    return Command(argv=("sh", "-c", script), cwd=f"{sshd.home}/ws", env=env, grace=0.5)


async def said_by(wall: OneRemoteContainer, command: Command) -> tuple[Exit, str]:
    with trio.fail_after(WAIT):
        async with wall.process(command) as process:
            output = await everything(process)
            return await process.wait(), (output[1] + output[2]).decode()


def engine_knows(sshd: Sshd, name: str) -> bool:
    engine = engine_of(sshd)
    asked = [engine, "container", "inspect", name]
    return not subprocess.run(
        asked, env=engine_environ(engine), capture_output=True, check=False
    ).returncode


async def test_a_program_has_the_image_its_workspace_and_no_right(sshd: Sshd) -> None:
    """Files of the host are not there, those in the workspace are; hidden ones are empty."""
    for name in ("ws/own", "ws/hidden", "secret"):
        (sshd.home / name).write_text("seen\n")
    script = (
        "cat own; cat hidden; cat ../secret || echo none; id -u; echo x >new; echo $HOME;"
        " grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status; ls /proc/self/fd;"
        " cat /proc/1/environ || echo closed"
    )
    async with contained(sshd, hidden=(f"{sshd.home}/ws/hidden",), home="~") as wall:
        exit_, said = await said_by(wall, sh(sshd, f"({script}) 2>/dev/null"))

    assert exit_ == Exit(status=0)
    assert said.split() == [
        *("seen", "none", str(os.getuid()), str(sshd.home)),
        *("CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1", "Seccomp:", "2"),
        *("0", "1", "2", "3"),  # the last one is what ls looks with
        "closed",
    ]
    assert (sshd.home / "ws" / "new").read_text() == "x\n"


async def test_programs_are_looked_for_in_the_container(sshd: Sshd) -> None:
    """What is there on the host alone is not found, nor a script without its interpreter, nor a
    directory; none of it is an error of the host."""
    tool = sshd.home / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    script = sshd.home / "ws" / "script"
    script.write_text("#!/no/such\n")
    script.chmod(0o755)
    plain = sh(sshd, "")
    async with contained(sshd) as wall:
        for program in (str(tool), str(script), "no-such", f"{sshd.home}/ws"):
            with pytest.raises(ProgramNotFound, match="does not exist"):
                await said_by(wall, replace(plain, argv=(program,)))
        with pytest.raises(TransportError, match="directory has to exist"):
            await said_by(wall, replace(plain, cwd="/no/such"))
        found = await wall.resolve_program("sh", "/usr/bin")

    assert found == "/usr/bin/sh"


async def test_variables_of_a_program_are_none_of_what_enters(sshd: Sshd) -> None:
    """An image may name any, and the host's python3 would load what LD_PRELOAD names."""
    traces = sshd.home / "ws" / "traces"
    odd = {
        "LD_DEBUG": "files",
        "LD_DEBUG_OUTPUT": str(traces),
        "VALUE": "two\nlines 'and' \"quotes\"",
    }
    async with contained(sshd) as wall:
        _, said = await said_by(wall, sh(sshd, 'printf %s "$VALUE$LD_DEBUG"', **odd))
    written = {path.name.partition(".")[2] for path in (sshd.home / "ws").glob("traces*")}

    assert said == f"{odd['VALUE']}files"
    assert len(written) == 1  # by the shell inside, and nobody outside
    assert int(written.pop()) < 10


async def test_limits_hold(sshd: Sshd) -> None:
    """What takes more memory than the container has is killed, and so many tasks cannot be had."""
    forks = "import os, time\nfor _ in range(40): os.fork() or time.sleep(60)"
    plain = sh(sshd, "")
    async with contained(sshd, memory=96 << 20, pids=20) as wall:
        memory, _ = await said_by(
            wall, replace(plain, argv=(sys.executable, "-c", "x = b'x' * (256 << 20)"))
        )
        tasks, words = await said_by(wall, replace(plain, argv=(sys.executable, "-c", forks)))

    assert memory == Exit(signal=9)
    assert tasks.status == 1
    assert "BlockingIOError" in words


@pytest.mark.parametrize(
    "reattach", [0.0, pytest.param(60.0, id="reattach", marks=pytest.mark.full)]
)
async def test_nothing_is_left_of_a_container(sshd: Sshd, reattach: float) -> None:
    """Programs that stay, the container and its files are gone when its block is left."""
    word = f"held-{uuid.uuid4()}"
    async with contained(sshd, reattach=reattach) as wall:
        name = wall.only.name
        script = f"trap '' TERM; setsid sh -c 'sleep 1000; :' {word} & echo up; sleep 1000"
        async with wall.process(sh(sshd, script)) as process:
            await anext(process.output())
            with trio.fail_after(60):
                while not bearers(word):  # the shell speaks before what it starts is executed
                    await trio.sleep(0.05)
            known = engine_knows(sshd, name)
        ended = len(bearers(word))

    assert known
    assert ended == 0
    assert not engine_knows(sshd, name)


@pytest.mark.full
async def test_a_block_can_be_left_before_the_program_has_begun(sshd: Sshd) -> None:
    """At any moment; nothing waits for it then, nor to write to it."""
    word = f"held-{uuid.uuid4()}"
    given = replace(sh(sshd, f"sh -c 'sleep 1000; :' {word}"), stdin=Stdin.PIPE)
    async with contained(sshd) as wall:
        for step in range(16):
            with trio.move_on_after(step * 0.04):
                async with wall.process(given):
                    await trio.sleep(step * 0.02)
            assert bearers(word) == []


@pytest.mark.parametrize("struck", ["keeper", "monitor"])
async def test_what_keeps_a_container_is_killed(sshd: Sshd, struck: str) -> None:
    """Programs end with the container; without its monitor it is removed all the same."""
    async with contained(sshd) as wall:
        name, entrance = wall.only.name, wall.only.entrance
        assert isinstance(entrance, HostEntrance)
        keeper = psutil.Process(entrance.pid)
        async with wall.process(sh(sshd, "echo up; sleep 1000")) as process:
            await anext(process.output())
            if struck == "keeper":
                keeper.kill()
                with trio.fail_after(WAIT):
                    exit_ = await process.wait()
                assert exit_ == Exit(signal=9)
            else:
                monitor = keeper.parent()
                assert monitor is not None
                assert monitor.name() in ("conmon", "containerd-shim-runc-v2")
                monitor.kill()
        if struck == "keeper":
            with pytest.raises(TransportError, match="container"):
                await said_by(wall, sh(sshd, "true"))

    assert not keeper.is_running() or keeper.status() == psutil.STATUS_ZOMBIE
    assert not engine_knows(sshd, name)


@pytest.mark.parametrize("blow", ["daemon", pytest.param("links", marks=pytest.mark.full)])
async def test_nothing_outlives_a_daemon_or_its_link(sshd: Sshd, files: Path, blow: str) -> None:
    """The container ends by itself, with its programs; the engine removes it."""
    word = f"held-{uuid.uuid4()}"
    given = (sshd.host, sshd.keys.config, sshd.keys.known_hosts, sshd.keys.key)
    last = (f"{sshd.home}/ws", word, engine_of(sshd))
    argv = [sys.executable, str(_HOLDER), *map(str, given), *last]
    holder = await trio.lowlevel.open_process(argv, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    with trio.fail_after(WAIT):
        name = (await holder.stdout.receive_some()).decode().strip()
        begun = len(bearers(word))
        if blow == "daemon":
            holder.kill()
        else:
            sshd.kill_links()
        await holder.wait()
        while bearers(word) or engine_knows(sshd, name):
            await trio.sleep(0.05)

    assert begun > 0
    for path in files.glob("sortie-container.*"):  # which a later life removes, after a week
        shutil.rmtree(path)


@requires_curl
@pytest.mark.parametrize(
    "reattach", [0.0, pytest.param(60.0, id="reattach", marks=pytest.mark.full)]
)
async def test_listed_hosts_are_reached_by_the_proxy_alone(
    sshd: Sshd, port: int, reattach: float
) -> None:
    """By two programs of a run at once; each has a network of its own."""
    told: list[Fact] = []
    url = f"http://127.0.0.1:{port}/"
    script = f"{CURL} {url} | wc -c; {CURL} http://evil.example/; curl -sm 5 {url} || echo closed"
    said: list[str] = []
    async with contained(sshd, listing(port, told), reattach=reattach) as wall:

        async def run() -> None:
            said.append((await said_by(wall, sh(sshd, script)))[1])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            nursery.start_soon(run)

    refused = "evil.example:80 is not reachable from this run: sandbox.network does not list"
    assert [words.splitlines()[0] for words in said] == [str(3 << 20)] * 2
    assert [words.splitlines()[1].startswith(refused) for words in said] == [True] * 2
    assert [words.splitlines()[-1] for words in said] == ["closed"] * 2


@requires_curl
async def test_an_agent_has_a_placeholder_of_its_key(
    sshd: Sshd, port: int, keys: list[str]
) -> None:
    """The server gets the key, which is nowhere on the host."""
    endpoint = ModelEndpoint(
        base_url="MODEL_URL", default="https://models.example", keys=("MODEL_KEY",)
    )
    network = RunNetwork(allowed=(), tell=lambda _: None, endpoints=(endpoint,))
    env = {"MODEL_KEY": KEY, "MODEL_URL": f"http://127.0.0.1:{port}"}
    script = 'env; curl -s -H "x-api-key: $MODEL_KEY" "$MODEL_URL/" | wc -c'
    async with contained(sshd, network) as wall:
        _, said = await said_by(wall, sh(sshd, script, **env))

    assert KEY not in said
    assert said.split()[-1] == str(3 << 20)
    assert keys == [KEY]


@pytest.mark.full
async def test_a_container_outlives_its_link(sshd: Sshd) -> None:
    """With the programs in it, where runs do; the next one starts in the same."""
    async with contained(sshd, reattach=120.0) as wall:
        async with wall.process(
            replace(sh(sshd, "echo up; read x; echo $x"), stdin=Stdin.PIPE)
        ) as process:
            output = process.output()
            assert await anext(output) == (1, b"up\n")
            sshd.kill_links()
            assert process.stdin is not None
            await process.stdin.send_all(b"on\n")
            with trio.fail_after(WAIT):
                assert await anext(output) == (1, b"on\n")
                assert await process.wait() == Exit(status=0)
        exit_, said = await said_by(wall, sh(sshd, "echo again"))

    assert (exit_, said) == (Exit(status=0), "again\n")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"engine": "no-such-engine"}, "has no no-such-engine"),
        ({"image": "localhost/no-such-image"}, "(podman|docker) pull"),
    ],
)
async def test_what_a_host_lacks_is_told(sshd: Sshd, given: dict[str, object], told: str) -> None:
    """Nothing starts there."""
    async with connected(sshd) as host:
        with pytest.raises(TransportError, match=told):
            chosen = choice(**({"engine": engine_of(sshd)} | given))
            await RemoteContainerTransport(host, chosen, {}).check()


async def test_who_stops_a_program_stops_it(sshd: Sshd) -> None:
    """What waits for it stops with it, and both go on; a signal ends it as that signal."""
    async with contained(sshd) as wall, wall.process(sh(sshd, "echo $$; sleep 1000")) as process:
        await anext(process.output())
        waiting = psutil.Process(process.identity.pid)
        (program,) = waiting.children()
        program.suspend()
        await until(lambda: waiting.status() == psutil.STATUS_STOPPED)
        waiting.resume()
        await until(lambda: program.status() != psutil.STATUS_STOPPED)
        exit_ = await process.end()

    assert exit_ == Exit(signal=signal.SIGTERM, by_us=True)
