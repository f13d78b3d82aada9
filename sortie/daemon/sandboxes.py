"""The walls that the settings put around the programs of runs, and what is found inside."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sortie import agents
from sortie.config.settings import Settings
from sortie.facts.fact import Fact
from sortie.model.allowed_hosts import allowed_host
from sortie.transports import Transport
from sortie.transports.walls import OF_USERS, SandboxedTransport

if TYPE_CHECKING:
    from sortie.transports.walls.run_network import RunNetwork

_OF_DATABASE = ("", "-wal", "-shm", "-journal", ".daemon", ".lock", ".transcripts", ".events")
"""The ends of the names of what a daemon writes beside its database, with the database itself."""


def sandboxed(
    settings: Settings,
    outside: Transport,
    environ: Mapping[str, str],
    *,
    mirror: str | None,
    secret_files: Sequence[str],
    tell: Callable[[Fact], None],
) -> SandboxedTransport | None:
    """Return the wall for runs of these settings on this machine, None where they want none.

    ``mirror`` is whose objects the workspaces borrow, and ``secret_files`` are not seen inside.
    ``tell`` is given the facts of connections.
    """
    sandbox = settings.sandbox
    match sandbox.kind:
        case "none":
            return None
        case "command":
            from sortie.transports.walls.wrapper import WrapperTransport

            assert sandbox.command is not None
            return WrapperTransport(outside, _words(sandbox.command))
    network = _network_of(settings, environ, tell)
    home = environ.get("HOME", "")
    read = _at_home((*(() if mirror is None else (mirror,)), *sandbox.read), home)
    write = _at_home(sandbox.write, home)
    own = tuple(_kept(settings, environ))
    hidden = _at_home((*_hidden(settings), *secret_files), home)
    if sandbox.kind == "container":
        from sortie.transports.walls.container_choice import ContainerChoice
        from sortie.transports.walls.container_transport import ContainerTransport

        choice = ContainerChoice(
            image=sandbox.image,
            daemon=_name_of(settings.db_path),
            engine=sandbox.engine,
            read=(*(os.path.join(home, name) for name in OF_USERS if home), *read),
            write=write,
            own=own,
            hidden=hidden,
            home=home,
            network="host" if sandbox.network == "full" else "none",
            memory=sandbox.memory,
            cpus=sandbox.cpus,
            pids=sandbox.pids,
        )
        return ContainerTransport(outside, choice, environ, network)
    from sortie.transports.walls.bubblewrap import BubblewrapTransport
    from sortie.transports.walls.enclosure import Enclosure

    enclosure = Enclosure(
        read=read,
        write=write,
        own=own,
        hide=hidden,
        has_network=network is not None or sandbox.network == "full",
    )
    return BubblewrapTransport(outside, enclosure, network)


def sandboxed_on_host(
    settings: Settings,
    outside: Transport,
    environ: Mapping[str, str],
    handed_over: Mapping[str, str],
    *,
    mirror: str | None,
    tell: Callable[[Fact], None],
) -> SandboxedTransport | None:
    """Return the wall for runs of these settings on a remote host, None where they want none.

    ``environ`` is the daemon's environment, and ``handed_over`` what agents there have of it;
    ``mirror`` is whose objects the workspaces borrow. ``tell`` is given the facts of connections.
    """
    sandbox = settings.sandbox
    if sandbox.kind == "none":
        return None
    if sandbox.kind == "command":
        from sortie.transports.walls.wrapper import WrapperTransport

        assert sandbox.command is not None
        return WrapperTransport(outside, _words(sandbox.command))
    network = _network_of(settings, environ, tell)
    read = (*(() if mirror is None else (mirror,)), *sandbox.read)
    own = tuple(_kept(settings, {**handed_over, "HOME": handed_over.get("HOME", "~")}))
    hidden = tuple(_hidden(settings))
    if sandbox.kind == "container":
        from sortie.transports.walls.container_choice import ContainerChoice
        from sortie.transports.walls.remote_container import RemoteContainerTransport

        choice = ContainerChoice(
            image=sandbox.image,
            daemon=f"{_name_of(settings.db_path)}-remote",
            engine=sandbox.engine,
            read=(*(f"~/{name}" for name in OF_USERS), *read),
            write=sandbox.write,
            own=own,
            hidden=hidden,
            home="~",
            network="host" if sandbox.network == "full" else "none",
            memory=sandbox.memory,
            cpus=sandbox.cpus,
            pids=sandbox.pids,
        )
        return RemoteContainerTransport(outside, choice, handed_over, network)
    from sortie.transports.walls.enclosure import Enclosure
    from sortie.transports.walls.remote_bubblewrap import RemoteBubblewrapTransport

    enclosure = Enclosure(
        read=read,
        write=sandbox.write,
        own=own,
        hide=hidden,
        has_network=sandbox.network == "full",
    )
    return RemoteBubblewrapTransport(outside, enclosure, network, handed_over)


def _hidden(settings: Settings) -> Iterator[str]:
    """Yield what is not seen inside."""
    yield from settings.sandbox.hide
    yield from (f"{settings.db_path}{end}" for end in _OF_DATABASE)
    yield from settings.worker.ssh_identity_files
    if settings.repository.identity_file is not None:
        yield settings.repository.identity_file


def _at_home(paths: Sequence[str], home: str) -> tuple[str, ...]:
    """Return paths that begin with ``~`` as they are on this machine."""
    begins = ((path, path == "~" or path.startswith("~/")) for path in paths)
    return tuple(home + path[1:] if at_home and home else path for path, at_home in begins)


def _name_of(db_path: str) -> str:
    """Return the word by which the containers of a daemon are known to its later lives."""
    return hashlib.sha256(os.fsencode(os.path.realpath(db_path))).hexdigest()[:16]


def _network_of(
    settings: Settings, environ: Mapping[str, str], tell: Callable[[Fact], None]
) -> RunNetwork | None:
    """Return the network of its own that a run has, None where it has the host's or none."""
    sandbox = settings.sandbox
    proxied = sandbox.credentials == "proxy"
    if not sandbox.hosts and not proxied:
        return None
    from sortie.transports.walls.run_network import RunNetwork
    from sortie.transports.walls.upstream_proxy import UpstreamProxy

    endpoints = [
        endpoint
        for kind, command in _agents_of(settings)
        for endpoint in agents.ADAPTERS.load(kind).model_endpoints(command)
    ]
    pushes = settings.repository.url if settings.repository.agent_pushes else None
    return RunNetwork(
        allowed=tuple(map(allowed_host, sandbox.hosts)),
        tell=tell,
        endpoints=tuple(dict.fromkeys(endpoints)) if proxied else None,
        repository=pushes,
        upstream=UpstreamProxy.of(environ),
    )


def _agents_of(settings: Settings) -> Iterator[tuple[str, str | tuple[str, ...] | None]]:
    """Yield the kind of the agent, and of the reviewer where that is another, and its command."""
    yield settings.agent.kind, settings.agent.command
    review = settings.self_review
    if review is not None and review.agent not in (None, settings.agent.kind):
        assert review.agent is not None
        yield review.agent, None


def _kept(settings: Settings, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the directories in which the agents of a run keep what is theirs."""
    for kind, command in _agents_of(settings):
        adapter = agents.ADAPTERS.load(kind)
        yield from adapter.keeps(environ, _words(command or adapter.default_command))


def _words(command: str | tuple[str, ...]) -> tuple[str, ...]:
    if not isinstance(command, str):
        return command
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return (command,)
