"""The checks of remote hosts: the way there, and what a run finds.

Rule 1: a host is checked beside a daemon: the lock there is neither taken nor waited for.
Rule 2: a key that is not known yet is reported and not remembered; the daemon does that.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import trio
from msgspec import Struct

from sortie import agents
from sortie.agents.launch import resolve_command
from sortie.config.settings import Isolation, Settings
from sortie.daemon.doctor.checkup import Diagnosis, Tell, run_checks
from sortie.daemon.doctor.host_sandbox import host_sandbox_checks
from sortie.daemon.doctor.machine import GIGABYTE, LITTLE_ROOM
from sortie.daemon.doctor.programs import HostProbe, probe
from sortie.daemon.doctor.repository import REMOTE_REMEDY, RepositoryLook
from sortie.daemon.remote_transports import ssh_settings
from sortie.model import AgentError, HostError, HostTrouble, TransportError
from sortie.model.checks import Check, CheckResult, failed, passed, warned
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.transport import ShellTransport
from sortie.transports.ssh.asyncio_thread import AsyncioThread, open_asyncio_thread
from sortie.transports.ssh.connection_pool import ConnectionPool
from sortie.transports.ssh.settings import SshSettings

HOST_CLOCK_TOLERANCE = 60.0
"""Seconds by which a host's clock may differ."""

_AFTER_REACH = (HostTrouble.HOST_KEY, HostTrouble.AUTHENTICATION)


async def look_at_hosts(
    settings: Settings,
    environ: Mapping[str, str],
    helpers: Mapping[str, str],
    tell: Tell,
    hosts: Collection[str],
    repository: RepositoryLook | None = None,
) -> None:
    """Check all hosts at the same time, and report one after the other."""
    if not hosts:
        return
    ssh = ssh_settings(settings, environ, helpers)
    found: dict[str, list[Diagnosis]] = {host: [] for host in hosts}
    async with open_asyncio_thread() as thread, trio.open_nursery() as nursery:
        for host in hosts:
            look = HostLook(host, settings, ssh, thread, repository, environ)
            nursery.start_soon(_look_at, look, found[host].append)
    for host in hosts:
        for diagnosis in found[host]:
            tell(diagnosis)


async def _look_at(host: HostLook, tell: Tell) -> None:
    try:
        await run_checks(f"hosts.{host.name}", host.checks(), tell)
    finally:
        with trio.CancelScope(shield=True):
            await host.aclose()


class _Way(Struct, frozen=True, kw_only=True):
    """How the connection to a host came about: ``error`` is why it did not, ``new_key`` why a
    strict client would not have made it."""

    error: TransportError | None = None
    new_key: HostError | None = None


class HostLook:
    """One host, connected to by the first of its checks; to be closed."""

    def __init__(
        self,
        name: str,
        settings: Settings,
        ssh: SshSettings,
        thread: AsyncioThread,
        repository: RepositoryLook | None,
        environ: Mapping[str, str],
    ) -> None:
        self.name = name
        self._environ = environ
        self._repository = repository
        self._settings = settings
        self._ssh = ssh
        self._thread = thread
        self._pools: list[ConnectionPool] = []
        self._transport: ShellTransport
        self._way = _Way()
        self._probe: HostProbe

    async def aclose(self) -> None:
        """Close what was opened, within a few seconds."""
        for pool in self._pools:
            await pool.aclose()

    def checks(self) -> Sequence[Check]:
        """Return the checks, each of which needs those before it that lead there."""
        inside = ("login",)
        return (
            Check(name="reach", ask=self._reach),
            Check(name="host_key", ask=self._host_key, needs=("reach",)),
            Check(name="login", ask=self._login, needs=("host_key",)),
            Check(name="directory", ask=self._directory, needs=inside),
            Check(name="program", ask=self._program, needs=inside),
            Check(name="git", ask=self._git, needs=inside),
            *self._remote_checks(),
            Check(name="disk", ask=self._disk, needs=inside),
            Check(name="clock", ask=self._clock, needs=inside),
            Check(name="processes", ask=self._processes, needs=inside),
            Check(name="isolation", ask=self._look_at_isolation, needs=inside),
            *host_sandbox_checks(self._settings, self._environ, lambda: self._transport),
        )

    async def _reach(self) -> CheckResult:
        self._way = await self._connect()
        error = self._way.error
        if isinstance(error, HostError) and error.trouble not in _AFTER_REACH:
            return _failure(error)
        return passed(f"an SSH server answers for {self.name}")

    async def _host_key(self) -> CheckResult:
        error, new = self._way.error, self._way.new_key
        if isinstance(error, HostError) and error.trouble is HostTrouble.HOST_KEY:
            return _failure(error)
        if new is None:
            return passed("its key is the one that is known")
        found = _failure(new)
        if self._settings.worker.ssh_strict_host_key_checking == "no":
            return warned(f"{found.sentence}; it is accepted all the same", found.remedy)
        known = found.remedy.partition("; or ")[0]  # which is set already
        return warned(f"{found.sentence}; the daemon accepts and remembers it", known)

    async def _login(self) -> CheckResult:
        if self._way.error is not None:
            return _failure(self._way.error)
        return passed("it lets us in and runs a shell")

    async def _connect(self) -> _Way:
        """Connect as a strict client would, and, where a new key is accepted, as one that does."""
        error = await self._try(replace(self._ssh, strict="yes"))
        strict = self._ssh.strict
        is_key = isinstance(error, HostError) and error.trouble is HostTrouble.HOST_KEY
        if not isinstance(error, HostError) or not is_key or strict == "yes":
            return _Way(error=error)
        lax = replace(self._ssh, strict="look")
        if strict == "no":
            lax = replace(self._ssh, strict="no", known_hosts=os.devnull)
        return _Way(error=await self._try(lax), new_key=error)

    async def _try(self, ssh: SshSettings) -> TransportError | None:
        pool = ConnectionPool(self.name, ssh, self._thread)
        self._pools.append(pool)
        handshake = max(self._settings.agent.read_timeout, 5.0)
        self._transport = ShellTransport(
            self.name,
            pool,
            bounds=Bounds(handshake=handshake),
            isolation=self._settings.isolation,
        )
        try:
            self._probe = await probe(self._transport, self._settings.remote_root)
        except TransportError as error:
            return error
        return None

    async def _directory(self) -> CheckResult:
        root, found = self._settings.remote_root, self._probe
        if not found.is_directory:
            return failed(
                f"{found.existing} is no directory, so {root} cannot be made there",
                "remove it there, or name another directory with workspace.root",
            )
        if not found.writable:
            return failed(
                f"{found.existing} cannot be written there by {found.user}, so {root} cannot be"
                " used",
                "make it writable there, or name another directory with workspace.root",
            )
        return passed(f"{found.user} can have workspaces in {root}")

    async def _program(self) -> CheckResult:
        agent = self._settings.agent
        default = agents.ADAPTERS.load(agent.kind).default_command
        if self._settings.worker.ssh_secret_delivery == "inline":
            return passed("agent.command is a piece of shell, which cannot be looked for")
        try:
            argv = await resolve_command(agent.command, default, self._transport, None)
        except AgentError as error:
            return failed(
                str(error),
                "install it there for the PATH of a login without a terminal, or name it by its"
                " absolute path in agent.command",
            )
        return passed(f"the {agent.kind} agent is {argv[0]}")

    def _remote_checks(self) -> Sequence[Check]:
        look = self._repository
        if look is None:
            return ()
        return (
            Check(
                name="remote",
                ask=lambda: look.remote(self._transport),
                needs=("git",),
                remedy=REMOTE_REMEDY,
            ),
        )

    async def _git(self) -> CheckResult:
        if self._repository is not None:
            return await self._repository.git(self._transport)
        if self._probe.has_git:
            return passed("git is there")
        return warned(
            "there is no git; hooks that clone, and agents that commit, fail without it",
            "install git there",
        )

    async def _disk(self) -> CheckResult:
        free = self._probe.free_bytes
        if free is None:
            return warned("df does not say how much room there is", "look there")
        sentence = (
            f"{free / GIGABYTE:.1f} GB free for the workspaces in {self._settings.remote_root}"
        )
        return (
            passed(sentence) if free >= LITTLE_ROOM else warned(sentence, "free some space there")
        )

    async def _clock(self) -> CheckResult:
        ahead = self._probe.clock_ahead
        if ahead is None:
            return warned("date does not say what time it is there", "look there")
        if abs(ahead) > HOST_CLOCK_TOLERANCE:
            which = "ahead of" if ahead > 0 else "behind"
            return warned(
                f"its clock is {abs(ahead):.0f} s {which} this one's: times of files and commits"
                " there are wrong",
                "set it, for example with systemd-timesyncd or chrony",
            )
        return passed("its clock agrees with this one's")

    async def _processes(self) -> CheckResult:
        if self._probe.has_proc:
            return passed("its processes can be looked at")
        return warned(
            "it has no /proc: what a run leaves there cannot be found, nor who lives in a"
            " workspace",
            "mount /proc there, or let runs end what they start",
        )

    async def _look_at_isolation(self) -> CheckResult:
        wanted = self._settings.isolation
        if wanted is Isolation.NONE:
            return passed("programs get no PID namespace there, as isolation is none")
        had, sentence = await self._transport.isolation()
        if had:
            return passed(sentence)
        if wanted is Isolation.PID_NAMESPACE:
            return failed(
                f"{sentence}, and isolation: pid-namespace demands one",
                "allow user namespaces there, or set isolation to auto",
            )
        return warned(
            sentence, "allow user namespaces there, and have util-linux 2.36 or bubblewrap"
        )


def _failure(error: TransportError) -> CheckResult:
    """Return an error of the transport, whose message ends with what can be done."""
    sentence, _, remedy = str(error).partition("; ")
    return failed(sentence, remedy)
