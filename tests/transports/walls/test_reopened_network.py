"""The network of a run on a host that outlives its link: it is back when the link is."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest
import trio
from msgspec.structs import replace

from sortie.config.settings import Isolation
from sortie.model import HostError, HostTrouble, TransportError
from sortie.model.allowed_hosts import allowed_host
from sortie.transports import Command, Transport
from sortie.transports.lost_links import Links
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.transport import ShellTransport, new_nonce
from sortie.transports.ssh import connection
from sortie.transports.ssh.asyncio_thread import open_asyncio_thread
from sortie.transports.ssh.connection_pool import ConnectionPool
from sortie.transports.walls import remote_bubblewrap
from sortie.transports.walls.enclosure import Enclosure
from sortie.transports.walls.remote_bubblewrap import RemoteBubblewrapTransport
from sortie.transports.walls.run_network import RunNetwork
from sortie.transports.walls.way_back import WayBack, open_way_back
from tests.transports.endings import requires_namespaces
from tests.transports.sandboxes import requires_bubblewrap
from tests.transports.ssh.sshd import Keys, Sshd, requires_sshd, sshd_running, until
from tests.transports.walls.network import LIMIT
from tests.transports.walls.test_attacks import requires_curl

pytestmark = [requires_namespaces, requires_bubblewrap, requires_curl, requires_sshd]
PERL, PYTHON = "/usr/bin/perl", "/usr/bin/python3"
ASKED = """\
while :; do
  while [ ! -e ask ]; do sleep 0.02; done
  url=$(cat ask); rm ask
  NO_PROXY= no_proxy= curl -s "$url" >got
  echo "$? $(cat got)" >answer.new; mv answer.new answer
done
"""


class Server(ThreadingHTTPServer):
    """Answers at once, and what is held when it is let go; ``held`` counts these requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.held = 0
        self.let_go = threading.Event()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}"


class Answers(BaseHTTPRequestHandler):
    """Answers with a word."""

    server: Server

    def do_GET(self) -> None:
        if self.path == "/held":
            self.server.held += 1
            self.server.let_go.wait()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"here")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.let_go.set()
        made.shutdown()


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    with sshd_running(tmp_path / "host", Keys.make(tmp_path / "client")) as host:
        host.home.joinpath("ws").mkdir()
        yield host


class Asked:
    """A program behind the wall that asks for addresses when the test says so, link or none."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self.lost: list[str] = []
        self.restored: list[str] = []

    def begin(self, url: str) -> None:
        """Have it ask."""
        (self._workspace / "ask.new").write_text(url)
        (self._workspace / "ask.new").rename(self._workspace / "ask")

    async def answer(self) -> str:
        """Return curl's status and what it has said."""
        answer = self._workspace / "answer"
        await until(answer.exists)
        said = answer.read_text().strip()
        answer.unlink()
        return said

    async def ask(self, url: str) -> str:
        """Have it ask, and return the answer."""
        self.begin(url)
        return await self.answer()


@asynccontextmanager
async def asked_on(sshd: Sshd, server: Server, *, reattach: float = 120.0) -> AsyncIterator[Asked]:
    asked = Asked(sshd.home / "ws")
    links = Links(
        new_nonce=new_nonce,
        lost=lambda run, _: asked.lost.append(run),
        restored=lambda run, _: asked.restored.append(run),
    )
    bounds = Bounds(handshake=30.0, reattach=reattach)
    allowed = allowed_host(server.url.removeprefix("http://"))
    network = RunNetwork(allowed=(allowed,), tell=lambda _: None)
    command = Command(argv=("sh", "-c", ASKED), cwd=f"{sshd.home}/ws", env={}, grace=0.5)
    async with open_asyncio_thread() as thread:
        pool = ConnectionPool(sshd.host, sshd.settings, thread)
        try:
            host = ShellTransport(
                sshd.host, pool, bounds=bounds, links=links, isolation=Isolation.AUTO
            )
            wall = RemoteBubblewrapTransport(host, Enclosure(has_network=False), network)
            async with wall.process(command):
                yield asked
        finally:
            await pool.aclose()


async def test_what_is_listed_is_reached_again_after_a_lost_link(
    sshd: Sshd, server: Server
) -> None:
    """In between nothing is reached, and the program lives on."""
    async with asked_on(sshd, server) as asked:
        before = await asked.ask(server.url)
        sshd.crash()
        await until(lambda: asked.lost != [])
        meanwhile = await asked.ask(server.url)
        sshd.start()
        await until(lambda: asked.restored != [])
        with trio.fail_after(LIMIT):
            while (after := await asked.ask(server.url)).split() != ["0", "here"]:
                await trio.sleep(0.05)

    assert before == "0 here"
    assert meanwhile in ("52", "56")  # the connection broke off before an answer, or within one
    assert after == "0 here"


@pytest.mark.full
@pytest.mark.parametrize("program", [PERL, PYTHON])
async def test_what_waits_on_a_silent_link_is_ended_by_the_next_one(
    sshd: Sshd, server: Server, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent would wait for its answer for as long as the dead link is not noticed there."""
    if not Path(program).exists():
        pytest.skip(f"no {program}")

    @asynccontextmanager
    async def way_by(outside: Transport) -> AsyncIterator[WayBack]:
        async with open_way_back(outside) as way:
            yield replace(way, program=program)

    monkeypatch.setattr(remote_bubblewrap, "open_way_back", way_by)
    monkeypatch.setattr(connection, "_KEEPALIVE", 0.5)
    async with asked_on(sshd, server) as asked:
        asked.begin(f"{server.url}/held")
        await until(lambda: server.held == 1)
        silent = sshd.link_processes()
        for link in silent:
            link.suspend()
        try:
            with trio.fail_after(LIMIT):
                ended = await asked.answer()
            after = await asked.ask(server.url)
        finally:
            for link in silent:
                with suppress(psutil.NoSuchProcess):
                    link.resume()

    assert ended == "52"
    assert after == "0 here"


@pytest.mark.full
async def test_a_host_that_stays_away_loses_the_run(sshd: Sshd, server: Server) -> None:
    """When the time is over."""
    with trio.fail_after(LIMIT), pytest.raises(HostError) as caught:
        async with asked_on(sshd, server, reattach=2.0):
            sshd.crash()
            await trio.sleep_forever()

    assert caught.value.trouble is HostTrouble.DROPPED


@pytest.mark.full
async def test_a_host_that_forwards_no_socket_any_more_loses_the_run(
    sshd: Sshd, server: Server
) -> None:
    """With the option to set: the run would go on without its network."""
    with (
        trio.fail_after(LIMIT),
        pytest.raises(TransportError, match="set AllowStreamLocalForwarding"),
    ):
        async with asked_on(sshd, server):
            sshd.crash()
            sshd.options["AllowStreamLocalForwarding"] = "no"
            sshd.start()
            await trio.sleep_forever()
