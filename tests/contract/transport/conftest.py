"""A transport of each kind, and the commands of a run on it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from sortie.config.settings import Isolation
from sortie.model import LOCAL, RunId
from sortie.transports import Transport
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.transport import ShellTransport
from sortie.transports.ssh.asyncio_thread import open_asyncio_thread
from sortie.transports.ssh.connection_pool import ConnectionPool
from tests.contract.transport.launching import Launch
from tests.kubernetes_api.api_server import ApiServer
from tests.kubernetes_api.pods import pod_holding
from tests.skipped import FULL
from tests.transports.containers import (
    container_transport,
    know_engine,
    remote_container_transport,
    requires_containers,
)
from tests.transports.endings import WAYS, local_transport, requires_namespaces
from tests.transports.leftovers import foreign_children, holders, reap_exiting
from tests.transports.sandboxes import (
    BUBBLEWRAP,
    bubblewrap,
    remote_bubblewrap,
    requires_bubblewrap,
)
from tests.transports.ssh.sshd import Keys, Sshd, requires_sshd, sshd_running

_ISOLATION = {
    "ssh": Isolation.NONE,
    "ssh-pid-namespace": Isolation.PID_NAMESPACE,
    "ssh-reattach": Isolation.NONE,
    "ssh-reattach-pid-namespace": Isolation.PID_NAMESPACE,
    "ssh-bubblewrap": Isolation.AUTO,
    "ssh-reattach-bubblewrap": Isolation.AUTO,
    "ssh-container": Isolation.AUTO,
    "ssh-reattach-container": Isolation.AUTO,
}
PODS = "pods"
_REAL_PODS = "pods-api-server"
"""The way of pods of a real API server, whose streams are those of a real node."""
_SANDBOX = "pods-sandbox"
"""The way of pods that the controller of agent-sandbox makes."""
_ENDING = frozenset({"test_ending", "test_clearing", "test_lifetimes"})
"""Modules whose tests are of how processes end, which is what all ways differ in."""
_IN_CONTAINERS = "container"
"""The way of programs that start in a container of this machine; files and scripts are outside."""
_PROCESSES = frozenset({"test_processes", "test_stdin"})
"""Modules whose tests start processes and talk to them, behind an init of their own or not."""
_KEPT = 256 * 1024
"""Bytes that a host keeps: little, as tests look at what a program can write unread."""
_REATTACH = frozenset(name for name in _ISOLATION if name.startswith("ssh-reattach"))
"""The ways in which a supervisor keeps the streams of a program, and ends it."""
_WALLED = frozenset({"ssh-bubblewrap", "ssh-reattach-bubblewrap"})
"""The ways of programs in bubblewrap on a host; files and scripts are outside."""
_CONTAINED = frozenset({"ssh-container", "ssh-reattach-container"})
"""The ways of programs in a container of a host; files and scripts are outside."""
_ALIKE = frozenset({"cgroups", "ssh-pid-namespace", "ssh-reattach-pid-namespace"})
"""Ways that start processes as others do, and only end them otherwise."""
_GIT = frozenset({"test_agent_files", "test_repository", "test_repository_parts"})
"""Modules whose tests start git as a program, which Sortie does outside of all walls."""
_OWN_INIT = frozenset({"namespaces"})
"""The way that starts processes in another manner, which scripts and files do not notice; what is
delivered from end to end goes this way."""


def _marks(way: str) -> tuple[pytest.MarkDecorator, ...]:
    if way in _CONTAINED:
        return (requires_sshd, requires_namespaces, requires_containers)
    walls = (requires_namespaces, requires_bubblewrap) if way in _WALLED else ()
    return (requires_sshd, *walls)


@pytest.fixture(
    scope="module",
    params=[
        *WAYS,
        pytest.param(BUBBLEWRAP, marks=(requires_namespaces, requires_bubblewrap)),
        pytest.param(_IN_CONTAINERS, marks=requires_containers),
        *(pytest.param(name, marks=_marks(name)) for name in _ISOLATION),
        PODS,
        _SANDBOX,
        pytest.param(_REAL_PODS, marks=pytest.mark.full),
    ],
)
def remote(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Sshd | None]]:
    """Give the way in which processes are ended, and this machine behind an sshd of its own where
    that is the way of a remote host.

    A module's tests run on the one and then on the other: what ends late behind the sshd would
    come to us as children nobody knows, in the middle of a test that looks for such.
    """
    if request.param in {_IN_CONTAINERS, *_CONTAINED} and not _starts_programs(request.module):
        pytest.skip("files and scripts are outside of a container, as without one")
    if request.param in {BUBBLEWRAP, *_WALLED} and _name_of(request.module) in _GIT:
        pytest.skip("Sortie's git runs outside of bubblewrap, as without it")
    if request.param in _spared(request.module) and not request.config.getoption("--full"):
        pytest.skip(FULL)
    if request.param not in _ISOLATION:
        yield request.param, None
        return
    place = tmp_path_factory.mktemp("remote")
    with sshd_running(place / "host", Keys.make(place / "client")) as host:
        if request.param in _CONTAINED:
            know_engine(host)
        yield request.param, host


def _name_of(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


def _starts_programs(module: ModuleType) -> bool:
    return _name_of(module) in _ENDING | _PROCESSES


def _spared(module: ModuleType) -> frozenset[str]:
    """Return the ways that tell nothing new of what a module tests.

    Walls of hosts have tests of their own, of which one is of each way in ``test_lifetimes``. Git's
    large files and submodules are git's work on any host, as ``test_repository`` shows of the rest.
    """
    name = _name_of(module)
    if name == "test_lifetimes":
        return frozenset({"ssh-reattach-container"})
    if name in _ENDING:
        return _WALLED | _CONTAINED | {"ssh-reattach", PODS, _SANDBOX, _IN_CONTAINERS}
    if name in _PROCESSES:
        away = _WALLED | _CONTAINED
        return _ALIKE | away | {PODS, _SANDBOX, "ssh-reattach", _IN_CONTAINERS}
    spared = _ALIKE | _OWN_INIT | _REATTACH | _WALLED | {BUBBLEWRAP, PODS, _SANDBOX}
    return spared | {"ssh"} if name == "test_repository_parts" else spared


@pytest.fixture
def pod_server(remote: tuple[str, Sshd | None], request: pytest.FixtureRequest) -> ApiServer | None:
    """Give a real API server where that is the way."""
    return request.getfixturevalue("api_server") if remote[0] == _REAL_PODS else None


@pytest.fixture
async def transport(
    remote: tuple[str, Sshd | None], pod_server: ApiServer | None, tmp_path: Path
) -> AsyncIterator[Transport]:
    """Give one transport of each kind."""
    way, sshd = remote
    if way == BUBBLEWRAP:
        async with local_transport("namespaces") as outside:
            yield bubblewrap(outside)
        return
    if way == _IN_CONTAINERS:
        async with (
            local_transport("namespaces") as outside,
            container_transport(outside, str(tmp_path)) as inside,
        ):
            yield inside
        return
    if way in (PODS, _REAL_PODS, _SANDBOX):
        async with pod_holding(
            tmp_path, kept=_KEPT, server=pod_server, sandboxes=way == _SANDBOX
        ) as in_pod:
            yield in_pod
        return
    if sshd is None:
        async with local_transport(way) as local:
            yield local
        return
    async with open_asyncio_thread() as thread:
        connections = ConnectionPool(sshd.host, sshd.settings, thread)
        try:
            over_ssh = ShellTransport(
                sshd.host,
                connections,
                isolation=_ISOLATION[way],
                bounds=Bounds(reattach=30.0 if way in _REATTACH else 0.0),
                kept=_KEPT,
            )
            if way in _CONTAINED:
                async with remote_container_transport(over_ssh, str(tmp_path)) as contained:
                    yield contained
            else:
                yield remote_bubblewrap(over_ssh) if way in _WALLED else over_ssh
        finally:
            await connections.aclose()


@pytest.fixture
def place(tmp_path: Path) -> str:
    """Give a directory on the transport's host."""
    return str(tmp_path)


@pytest.fixture
def cookie(transport: Transport) -> Iterator[RunId]:
    """Give a run id, and check that no process of that run, and no child of ours, is left."""
    run_id = RunId(str(uuid.uuid4()))
    before = {pid for pid, _ in foreign_children()}
    yield run_id
    assert holders(run_id) == []
    if transport.host == LOCAL:
        reap_exiting()
        assert [child for child in foreign_children() if child[0] not in before] == []


@pytest.fixture
def launch(cookie: RunId, place: str) -> Launch:
    return Launch(cookie, place)
