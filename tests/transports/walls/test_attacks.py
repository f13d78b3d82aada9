"""Programs in bubblewrap that try to get out: none reads, changes or reaches what is outside."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from shutil import which

import pytest
import trio

from sortie.transports import Command, Transport
from sortie.transports.walls.bubblewrap import BubblewrapTransport
from tests.transports.endings import local_transport, requires_namespaces
from tests.transports.sandboxes import bubblewrap, requires_bubblewrap
from tests.transports.walls.attacks import CANARY, CONNECTIONS, READS, SIGNALS, WRITES

requires_curl = pytest.mark.skipif(which("curl") is None, reason="curl is not installed")
pytestmark = [requires_namespaces, requires_bubblewrap, requires_curl]

_IN_HOME = (
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".bash_history",
    ".netrc",
    ".config/git/hidden",
)


class Outside:
    """What there is beside a workspace, in a directory: a home, secrets, servers, a process."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.workspace = place / "ws"
        self.workspace.mkdir()
        self.hidden = place / "home" / _IN_HOME[-1]
        secrets = [place / "out" / "secret", place / "out" / ".sortie.db", place / "other/secret"]
        for path in (*secrets, *(place / "home" / name for name in _IN_HOME)):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{CANARY}\n")
        self.before = self.everything()

    def everything(self) -> dict[str, bytes]:
        """Return what stands in all files outside of the workspace."""
        files = (path for path in self.place.rglob("*") if path.is_file())
        return {
            str(path): path.read_bytes()
            for path in files
            if not path.is_relative_to(self.workspace)
        }

    def transport(self, host: object, **inside: object) -> BubblewrapTransport:
        """Return the wall, with the file hidden that is seen otherwise."""
        return bubblewrap(host, hide=(str(self.hidden),), **inside)  # type: ignore[arg-type]

    def environment(self, **more: str) -> Mapping[str, str]:
        """Return what a program is told of the outside."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.place / "home"),
            "OUT": str(self.place / "out"),
            "WS": str(self.workspace),
            "HIDDEN": str(self.hidden),
            **more,
        }


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    return Outside(tmp_path)


async def said(transport: Transport, outside: Outside, script: str, **env: str) -> str:
    """Return all that a script writes in a wall; what it is told of the outside is no find."""
    command = Command(
        argv=("/bin/sh", "-c", script),
        cwd=str(outside.workspace),
        env=outside.environment(**env),
        grace=0.0,
    )
    with trio.move_on_after(120):
        async with transport.process(command) as process:
            output = b"".join([chunk async for _, chunk in process.output()])
            await process.wait()
        return output.decode("utf-8", "replace")
    raise AssertionError("it did not end")


@asynccontextmanager
async def victim(secret: str) -> AsyncIterator[trio.Process]:
    """Give a process outside of every wall that waits, with a secret in its environment."""
    argv = [sys.executable, "-c", "import time; time.sleep(1000)"]
    process = await trio.lowlevel.open_process(argv, env={"SECRET": secret})
    try:
        yield process
    finally:
        process.kill()
        await process.wait()


@pytest.mark.parametrize("name", READS)
async def test_nothing_outside_is_read(name: str, outside: Outside) -> None:
    """Whatever is printed, the canary is not."""
    async with local_transport("namespaces") as host, victim(CANARY) as process:
        transport = outside.transport(host)
        found = await said(transport, outside, READS[name], VICTIM=str(process.pid))

    assert CANARY not in found


@pytest.mark.parametrize("name", WRITES)
async def test_nothing_outside_is_changed(name: str, outside: Outside) -> None:
    """No file beside the workspace is, and the workspace stays where it is."""
    watched = [Path("/usr/local/bin/git"), Path("/etc/ld.so.preload"), Path("/usr/written")]
    watched += [Path("/tmp/written"), Path("/var/tmp/written"), Path("/etc/profile.d/x.sh")]
    before = [path.exists() for path in watched]
    pattern = Path("/proc/sys/kernel/core_pattern").read_text()
    async with local_transport("namespaces") as host:
        await said(outside.transport(host), outside, WRITES[name])

    assert outside.everything() == outside.before
    assert [path.exists() for path in watched] == before
    assert Path("/proc/sys/kernel/core_pattern").read_text() == pattern
    assert outside.workspace.is_dir()
    assert not outside.workspace.is_symlink()


@pytest.mark.parametrize("name", SIGNALS)
async def test_no_process_outside_is_reached(name: str, outside: Outside) -> None:
    """Neither a stranger nor the daemon is ended or stopped."""
    async with local_transport("namespaces") as host, victim(CANARY) as process:
        found = await said(outside.transport(host), outside, SIGNALS[name], VICTIM=str(process.pid))
        alive = process.returncode is None and process.poll() is None

    assert alive
    assert CANARY not in found


@pytest.fixture
def servers(outside: Outside) -> Iterator[dict[str, str]]:
    """Give servers on loopback, on a unix socket and on an abstract one that tell the canary."""
    path, abstract = outside.place / "socket", f"sortie-{os.getpid()}-{outside.place.name}"
    with ExitStack() as opened:
        tcp = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        local = opened.enter_context(socket.socket(socket.AF_UNIX))
        local.bind(str(path))
        hidden = opened.enter_context(socket.socket(socket.AF_UNIX))
        hidden.bind(f"\0{abstract}")
        for server in (tcp, local, hidden):
            server.listen()
            threading.Thread(target=_tell, args=(server,), daemon=True).start()
            opened.callback(server.shutdown, socket.SHUT_RDWR)
        port = tcp.getsockname()[1]
        yield {"PORT": str(port), "SOCKET": str(path), "ABSTRACT": abstract}


def _tell(server: socket.socket) -> None:
    while True:
        try:
            accepted, _ = server.accept()
        except OSError:
            return
        with accepted:
            accepted.recv(4096)
            accepted.sendall(f"HTTP/1.0 200 OK\r\n\r\n{CANARY}".encode())


@pytest.mark.parametrize("name", CONNECTIONS)
async def test_no_server_outside_is_reached(
    name: str, outside: Outside, servers: dict[str, str]
) -> None:
    """Where there is no network, nothing answers."""
    async with local_transport("namespaces") as host, victim(CANARY) as process:
        transport = outside.transport(host, has_network=False)
        env = {**servers, "VICTIM": str(process.pid)}
        found = await said(transport, outside, CONNECTIONS[name], **env)

    assert CANARY not in found


async def test_the_attacks_find_it_where_there_is_no_wall(
    outside: Outside, servers: dict[str, str]
) -> None:
    """Or they would prove nothing: the same words, as programs of this machine."""
    async with local_transport("namespaces") as host:
        for script in (READS["key of the user"], CONNECTIONS["socket of unix"]):
            assert CANARY in await said(host, outside, script, **servers)
        assert CANARY in await said(host, outside, READS["hidden file"])
        await said(host, outside, WRITES["file beside the workspace"])

    assert outside.everything() != outside.before


async def test_inside_work_can_be_done(outside: Outside) -> None:
    """The workspace, the temporary directories and the user's name for git are there."""
    (outside.place / "home/.gitconfig").write_text("[user]\nname = Ann\nemail = ann@localhost\n")
    script = (
        "set -e; git init -q; echo x > file; git add file; git commit -qm one;"
        " git log --format=%an; touch /tmp/a /var/tmp/b $HOME/c; rm /tmp/a; echo done; pwd"
    )
    async with local_transport("namespaces") as host:
        found = await said(outside.transport(host), outside, script)

    assert found.split() == ["Ann", "done", str(outside.workspace)]
    assert sorted(path.name for path in outside.workspace.iterdir()) == [".git", "file"]
