"""The connections to hosts that workflows of a process share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from sortie.config.settings import Settings
from sortie.daemon.remote_transports import RemoteTransports
from sortie.daemon.ssh_connections import SshConnections
from sortie.daemon.transports import RemoteHosts, TransportPool, open_transports
from sortie.model import HostError, HostTrouble
from sortie.transports.host_health import HostHealth
from sortie.transports.ssh.connection_pool import ConnectionPool
from sortie.transports.ssh.settings import SshSettings
from tests.transports.ssh.sshd import Keys, Sshd, requires_sshd, sshd_running, until
from tests.worker.rig import settings_of

SSH = SshSettings(environ={"PATH": "/bin", "LANG": "C"})
KEY = ("build-1", SSH)


@pytest.fixture
async def connections() -> AsyncIterator[SshConnections]:
    """The connections of a process, none yet."""
    made = SshConnections()
    yield made
    await made.aclose()


async def test_the_same_host_by_the_same_settings_is_shared(connections: SshConnections) -> None:
    """By other settings it is another host, as it may be."""
    one = connections.pool("a", KEY)
    other = connections.pool("b", ("build-1", replace(SSH, environ={})))
    strict = connections.pool("b", ("build-1", replace(SSH, strict="yes")))

    assert one is other
    assert strict is not one


async def test_a_host_is_wanted_for_as_long_as_anybody_wants_it(
    connections: SshConnections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has ended wants nothing."""
    told: list[bool] = []
    monkeypatch.setattr(ConnectionPool, "set_wanted", lambda _, wanted: told.append(wanted))
    connections.pool("a", KEY)
    connections.pool("b", KEY)

    connections.set_wanted("a", KEY, wanted=False)
    connections.leave("b")
    connections.pool("b again", KEY)

    assert told == [True, True, True, False, True]


async def test_helpers_are_given_what_each_workflow_lets_them_have(
    connections: SshConnections,
) -> None:
    """A variable that is a secret of one workflow is given to the helpers of none; what one that
    has ended kept back is given once another begins."""
    environ = {"PATH": "/bin", "A": "secret of a", "B": "secret of b", "LANG": "C"}
    of_a = {name: environ[name] for name in ("PATH", "B", "LANG")}
    of_b = {name: environ[name] for name in ("PATH", "A", "LANG")}

    pool = connections.pool("a", ("build-1", replace(SSH, environ=of_a)))
    given = pool._settings.environ
    assert given == of_a
    connections.pool("b", ("build-1", replace(SSH, environ=of_b)))
    assert given == {"PATH": "/bin", "LANG": "C"}
    connections.leave("a")
    assert given == {"PATH": "/bin", "LANG": "C"}
    connections.leave("b")
    connections.pool("c", ("build-1", replace(SSH, environ=of_b)))
    assert given == of_b


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Sshd]:
    """A host with an sshd of its own."""
    keys = Keys.make(tmp_path / "client")
    with sshd_running(tmp_path / "host", keys) as running:
        yield running


def settings(host: Sshd, *hosts: str) -> Settings:
    """Return settings by which this host is reached."""
    keys = host.keys
    worker = {
        "ssh_hosts": list(hosts),
        "ssh_config": str(keys.config),
        "ssh_known_hosts": str(keys.known_hosts),
        "ssh_identity_files": [str(keys.key)],
    }
    return settings_of(worker=worker)


@asynccontextmanager
async def workflow(host: Sshd, hosts: RemoteHosts) -> AsyncIterator[TransportPool]:
    """Give a workflow what it has of hosts."""
    environ = {"PATH": host.settings.search_path}
    async with open_transports(lambda _: None, environ, hosts=hosts) as pool:
        yield pool


async def test_no_two_daemons_hold_a_root_under_one_name(
    connections: SshConnections,
) -> None:
    """A host refuses a root to all who have another name than its holder. Daemons in containers may
    have the same pid and the same host name, so nothing but their lives tells them apart."""

    def ignore(*_: object) -> None:
        """Take no notice."""

    health = HostHealth(troubled=ignore, reached=ignore, reaped=ignore)
    made = [RemoteTransports(ignore, {}, lambda: health, connections) for _ in range(1000)]
    assert len({each._holder for each in made}) == 1000


@requires_sshd
async def test_workflows_share_a_link_and_no_root(host: Sshd, tmp_path: Path) -> None:
    """Both work over one connection; a root that one holds is refused to the other, and free when
    the first has ended, whose end leaves the other's link alone."""
    hosts, found = RemoteHosts(), settings(host, host.host)
    roots = [str(tmp_path / "roots" / name) for name in "ab"]
    async with workflow(host, hosts) as other:
        async with workflow(host, hosts) as one:
            first, second = (each.transport(host.host, found).files for each in (one, other))
            await first.make_directory(roots[0], "x")
            await second.make_directory(roots[1], "x")
            links = host.links()
            with pytest.raises(HostError) as refused:
                await second.make_directory(roots[0], "y")
        with trio.fail_after(60):
            while True:
                try:
                    await second.make_directory(roots[0], "y")
                    break
                except HostError:
                    await trio.sleep(0.05)
        after = host.links()
    await hosts.aclose()

    assert (links, after) == (1, 1)
    assert refused.value.trouble is HostTrouble.OCCUPIED
    await until(lambda: host.links() == 0)


@requires_sshd
async def test_a_host_that_one_workflow_drops_stays_for_the_other(
    host: Sshd, tmp_path: Path
) -> None:
    """What the first held there is given back; once the second drops it too, it is hung up."""
    hosts, found = RemoteHosts(), settings(host, host.host)
    without = settings(host)
    root = str(tmp_path / "root")
    async with workflow(host, hosts) as one, workflow(host, hosts) as other:
        first, second = (each.transport(host.host, found).files for each in (one, other))
        await first.make_directory(root, "x")
        await second.make_directory(str(tmp_path / "other"), "x")
        async with trio.open_nursery() as nursery:
            for each in (one, other):
                nursery.start_soon(each.close_unwanted, lambda _host: False)
            one.use(without)
            with trio.fail_after(60):
                while True:
                    try:
                        await second.make_directory(root, "y")
                        break
                    except HostError:
                        await trio.sleep(0.05)
            links = host.links()
            other.use(without)
            await until(lambda: host.links() == 0)
            nursery.cancel_scope.cancel()
    await hosts.aclose()

    assert links == 1
