"""The network of a run on a host: what is listed is reached through the daemon, and no more."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast

import pytest
import trio
from msgspec.structs import replace

from sortie.config.settings import Isolation
from sortie.facts.fact import Fact
from sortie.facts.network import ConnectionRefused
from sortie.model import HostError, HostTrouble, TransportError
from sortie.model.allowed_hosts import allowed_host
from sortie.model.model_endpoints import ModelEndpoint
from sortie.transports import Command, Exit, Script, Transport
from sortie.transports.remote.transport import ShellTransport
from sortie.transports.ssh.asyncio_thread import open_asyncio_thread
from sortie.transports.ssh.connection_pool import ConnectionPool
from sortie.transports.walls import remote_bubblewrap, way_back
from sortie.transports.walls.container_names import own_life
from sortie.transports.walls.enclosure import Enclosure
from sortie.transports.walls.remote_bubblewrap import RemoteBubblewrapTransport
from sortie.transports.walls.run_network import RunNetwork
from sortie.transports.walls.way_back import WayBack, open_way_back
from tests.transports.endings import requires_namespaces
from tests.transports.sandboxes import requires_bubblewrap
from tests.transports.ssh.sshd import Keys, Sshd, requires_sshd, sshd_running
from tests.transports.walls.network import LIMIT
from tests.transports.walls.test_attacks import requires_curl

pytestmark = [requires_namespaces, requires_bubblewrap, requires_curl, requires_sshd]
BIG = os.urandom(3 << 20)
KEY = "sk-of-the-test-0123456789abcdef"
CURL = "NO_PROXY= no_proxy= curl -s"
"""Loopback is the run's own, but for who insists on the proxy."""


class Listed(BaseHTTPRequestHandler):
    """Answers with much, or with what it was sent; tells the keys that it was shown."""

    protocol_version = "HTTP/1.1"
    keys: list[str]

    def do_GET(self) -> None:
        self.keys.append(self.headers.get("x-api-key", ""))
        self._answer(BIG)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(hashlib.sha256(body).hexdigest().encode())

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def keys() -> list[str]:
    return []


@pytest.fixture
def port(keys: list[str]) -> Iterator[int]:
    handler = type("OfThisTest", (Listed,), {"keys": keys})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@asynccontextmanager
async def host_of(sshd: Sshd) -> AsyncIterator[ShellTransport]:
    async with open_asyncio_thread() as thread:
        pool = ConnectionPool(sshd.host, sshd.settings, thread)
        try:
            yield ShellTransport(sshd.host, pool, isolation=Isolation.AUTO)
        finally:
            await pool.aclose()


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    with sshd_running(tmp_path / "host", Keys.make(tmp_path / "client")) as host:
        host.home.joinpath("ws").mkdir()
        yield host


def walled(host: Transport, network: RunNetwork) -> RemoteBubblewrapTransport:
    return RemoteBubblewrapTransport(host, Enclosure(has_network=False), network)


def listing(port: int, told: list[Fact]) -> RunNetwork:
    return RunNetwork(allowed=(allowed_host(f"127.0.0.1:{port}"),), tell=told.append)


def sh(script: str, sshd: Sshd, **env: str) -> Command:
    return Command(argv=("sh", "-c", script), cwd=f"{sshd.home}/ws", env=env, grace=2.0)


async def said_by(wall: RemoteBubblewrapTransport, command: Command) -> list[str]:
    async with wall.process(command) as process:
        said = b"".join([chunk async for _, chunk in process.output()])
        exit_ = await process.wait()
    assert exit_ == Exit(status=0), said
    return said.decode().splitlines()


@pytest.mark.parametrize("program", ["perl", "python3"])
async def test_listed_hosts_are_reached_by_the_proxy_alone(
    sshd: Sshd, port: int, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Much comes and goes whole, many at once; what is not listed is refused, and without the proxy
    there is nothing. Either program leads there, and nothing is left on the host."""
    if not Path("/usr/bin", program).exists():
        pytest.skip(f"no {program} in /usr/bin")

    @asynccontextmanager
    async def way_by(outside: Transport) -> AsyncIterator[WayBack]:
        async with open_way_back(outside) as way:
            places.append(way.directory)
            yield replace(way, program=f"/usr/bin/{program}")

    monkeypatch.setattr(remote_bubblewrap, "open_way_back", way_by)
    places: list[str] = []
    told: list[Fact] = []
    url = f"http://127.0.0.1:{port}/"
    many = f"for n in 1 2 3 4 5 6 7 8; do {CURL} {url} | cmp - big || echo differs & done; wait"
    script = (
        f"{CURL} {url} >big; sha256sum <big; {CURL} -p {url} | cmp - big && echo same;"
        f" {CURL} --data-binary @big {url}; echo; {many};"
        f" {CURL} http://evil.example/; curl -sm 5 {url} || echo closed"
    )
    async with host_of(sshd) as host:
        said = await said_by(walled(host, listing(port, told)), sh(script, sshd))

    digest = hashlib.sha256(BIG).hexdigest()
    refused = "evil.example:80 is not reachable from this run"
    assert said[0].split()[0] == digest
    assert said[1:3] == ["same", digest]
    assert said[3].startswith(refused)
    assert said[4:] == ["closed"]
    assert [fact.host for fact in told if isinstance(fact, ConnectionRefused)] == ["evil.example"]
    assert [place for place in places if Path(place).exists()] == []


async def test_an_agent_has_a_placeholder_of_its_key(
    sshd: Sshd, port: int, keys: list[str]
) -> None:
    """The server gets the key, which is nowhere on the host."""
    endpoint = ModelEndpoint(
        base_url="MODEL_URL", default="https://models.example", keys=("MODEL_KEY",)
    )
    network = RunNetwork(allowed=(), tell=lambda _: None, endpoints=(endpoint,))
    script = 'env; curl -s -H "x-api-key: $MODEL_KEY" "$MODEL_URL/" | wc -c'
    env = {"MODEL_KEY": KEY, "MODEL_URL": f"http://127.0.0.1:{port}"}
    async with host_of(sshd) as host:
        said = await said_by(walled(host, network), sh(script, sshd, **env))

    assert KEY not in "".join(said)
    assert said[-1] == str(len(BIG))
    assert keys == [KEY]


async def test_a_program_whose_way_is_cut_is_lost_with_its_link(sshd: Sshd, port: int) -> None:
    """No run goes on without its network."""
    async with host_of(sshd) as host:
        wall = walled(host, listing(port, []))
        with trio.fail_after(LIMIT), pytest.raises(HostError) as caught:
            async with wall.process(sh("echo up; sleep 1000", sshd)) as process:
                assert await anext(process.output()) == (1, b"up\n")
                sshd.kill_links()
                await trio.sleep_forever()

    assert caught.value.trouble is HostTrouble.DROPPED


async def test_a_server_that_forwards_no_socket_is_told(tmp_path: Path, port: int) -> None:
    """With the option to set; nothing is started."""
    keys = Keys.make(tmp_path / "client")
    with sshd_running(tmp_path / "host", keys, {"AllowStreamLocalForwarding": "no"}) as sshd:
        async with host_of(sshd) as host:
            with pytest.raises(TransportError, match="set AllowStreamLocalForwarding"):
                await walled(host, listing(port, [])).check()


class BareHost:
    """A host that has nothing which could lead to a socket."""

    host = "bare"

    def __init__(self) -> None:
        self.asked: list[Script] = []

    async def run_script(self, script: Script) -> bytes:
        await trio.lowlevel.checkpoint()
        self.asked.append(script)
        return b"/tmp/place\0\0"

    def forwarded(self, path: str, here: str) -> None:
        raise AssertionError(f"{path} was forwarded to {here}")


async def test_a_host_that_cannot_lead_there_is_told() -> None:
    """With what it lacks; its directory is removed."""
    bare = BareHost()

    with pytest.raises(TransportError, match="neither perl nor python3"):
        async with open_way_back(cast(Transport, bare)):
            raise AssertionError("a way was opened")

    assert bare.asked[-1].arguments == ("/tmp/place",)


async def test_a_killed_daemons_socket_is_removed_by_the_next(
    sshd: Sshd, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of a process that lives stays, and nothing of this one is left."""
    here = Path(tempfile.mkdtemp())  # the path of a socket has to be short
    request.addfinalizer(partial(shutil.rmtree, here))
    others = [here / "sortie-1.1-net-killed", here / f"sortie-{own_life()}-net-lives"]
    for place in others:
        place.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(here))
    way_back.remove_former.cache_clear()

    async with host_of(sshd) as host, open_way_back(host):
        used = sorted(os.listdir(here))

    assert len(used) == 2
    assert all(name.startswith(f"sortie-{own_life()}-net-") for name in used)
    assert os.listdir(here) == [others[1].name]
