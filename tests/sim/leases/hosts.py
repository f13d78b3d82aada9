"""Hosts that all daemons share: programs on them outlive their daemon, and tokens are compared.

Rule 1: a host does nothing for a token of a workflow that is older than one it has seen.
Rule 2: a newer token takes the workflow's root over: all programs of older tokens are ended first.
Rule 3: a program whose link is silent for LEASE seconds is ended by the host. What comes over a
later link of the same daemon keeps it no longer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

import trio

from sortie.model import LEASE, ProcessIdentity, RunId, TransportError
from sortie.resources.lease import Lease, LeaseLost, require_lease
from sortie.transports import Command, Exit, Script
from tests.sim.leases.freezing import FreezablePlug
from tests.sim.leases.judge import Judge
from tests.sim.leases.links import Link
from tests.sim.leases.wire import NoAnswerError, Wire
from tests.sim.system.machine import Machine, Process
from tests.sim.system.transport import Handle, LifeFiles, SimTransport

PATIENCE = 8.0
"""Seconds after which a daemon takes a host for unreachable."""

BEAT = 5.0
"""Seconds between two heartbeats of a daemon for its programs on a host."""

_T = TypeVar("_T")


class Host:
    """One host. ``seen`` is the newest token of each workflow that it has been told; ``links``
    says of each program by its pid over which link it was started."""

    def __init__(self, name: str, machine: Machine) -> None:
        self.name = name
        self.machine = machine
        self.seen: dict[str, int] = {}
        self.links: dict[int, Link] = {}

    def require_token(self, lease: Lease) -> None:
        """Raise LeaseLost for a token that is older than one that was seen."""
        if self.knows_newer(lease):
            raise LeaseLost(f"a newer leader of {lease.workflow} has taken {self.name} over")

    def older(self, lease: Lease) -> list[Process]:
        """Return what was started for older tokens of the same workflow."""
        return [
            process
            for process in self.machine.alive
            if (link := self.links.get(process.root.pid)) is not None
            and link.lease.workflow == lease.workflow
            and link.lease.token < lease.token
        ]

    def is_of(self, process: Process, lease: Lease) -> bool:
        """Tell whether a program was started for this very token."""
        link = self.links.get(process.root.pid)
        return link is not None and link.lease.token == lease.token

    def launch(self, command: Command, link: Link) -> Process:
        """Start a program for a token."""
        process = self.machine.launch(command)
        self.links[process.pid] = link
        return process

    def launch_unseen(self, command: Command, link: Link) -> Process:
        """Start a program of which the present leader knows nothing."""
        started, self.machine.started = self.machine.started, lambda _process: None
        try:
            return self.launch(command, link)
        finally:
            self.machine.started = started

    def knows_newer(self, lease: Lease) -> bool:
        """Tell whether a newer token of the workflow was seen."""
        return self.seen.get(lease.workflow, 0) > lease.token

    async def watch(self) -> None:
        """End programs whose link is silent."""
        while True:
            await trio.sleep(2.0)
            for process in self.machine.alive:
                link = self.links.get(process.root.pid)
                if link is not None and trio.current_time() > link.silent_at:
                    process.kill()


class HostTransport(SimTransport):
    """A host, as one leader of one workflow reaches it."""

    def __init__(
        self, host: Host, plug: FreezablePlug, wire: Wire, lease: Lease, judge: Judge
    ) -> None:
        super().__init__(host.machine, plug)
        self.host = host.name
        self.files = LifeFiles(host.machine, _FilePlug(plug, self.reach))
        self._there = host
        self._wire = wire
        self._lease = lease
        self._judge = judge
        self._taking = trio.Lock()
        self._taken = False
        self._link = Link(lease)

    async def beat(self) -> None:
        """Send heartbeats for the programs there; a link is lost where none comes through."""
        while True:
            await self.plug.through(partial(trio.sleep, BEAT))
            try:
                await self.plug.through(lambda: self._ask(trio.lowlevel.checkpoint))
            except (TransportError, LeaseLost):
                self._link.lost.set()
                self._link = Link(self._lease)

    async def reach(self, request: Callable[[], Awaitable[_T]]) -> _T:
        """Have the host do something once its root was taken over.

        Raises TransportError and LeaseLost.
        """
        async with self._taking:
            if not self._taken:
                await self._ask(self._take)
                self._taken = True
        return await self._ask(request)

    async def _ask(self, request: Callable[[], Awaitable[_T]]) -> _T:
        link = self._link

        async def on_the_host() -> _T:
            self._there.require_token(self._lease)
            link.heard()
            return await request()

        try:
            return await self._wire.ask(on_the_host, PATIENCE)
        except NoAnswerError as error:
            raise TransportError(f"cannot reach {self.host}: {error}") from error

    async def _take(self) -> None:
        host, lease = self._there, self._lease
        host.seen[lease.workflow] = lease.token
        while older := host.older(lease):
            for process in older:
                process.kill()
            for process in older:
                await process.gone.wait()

    @asynccontextmanager
    async def process(self, command: Command) -> AsyncIterator[Handle]:
        """Start a program; leaving the block ends its tree.

        On the host it begins at a word of the daemon's, who gives none once it has given up.
        """
        given_up = trio.Event()

        async def launch() -> Process:
            require_lease()
            return await self.reach(partial(self._launch_awaited, command, given_up))

        try:
            process = await self.plug.through(launch)
            yield _HostHandle(process, self, command.grace)
        finally:
            given_up.set()
            with trio.CancelScope(shield=True):
                await self._end_for_certain(command)

    async def _launch_awaited(self, command: Command, given_up: trio.Event) -> Process:
        if given_up.is_set():
            raise TransportError(f"could not start {command.argv[0]}: its daemon has given up")
        return await self._launch(command)

    async def _launch(self, command: Command) -> Process:
        files = self.machine.files
        if not await files.contained("/", command.cwd):
            raise TransportError(f"could not start {command.argv[0]}: no directory {command.cwd}")
        self._there.require_token(self._lease)
        if not self._judge.is_newest(self._lease) and not self._there.knows_newer(self._lease):
            # It was sent in time and came late, to a host that the new leader cannot reach: that
            # one lets the issue wait, and the host ends what hears no heartbeat.
            return self._there.launch_unseen(command, self._link)
        self._judge.acts(self._lease, f"starts {command.argv[0]} on {self.host}")
        return self._there.launch(command, self._link)

    async def _end_for_certain(self, command: Command) -> None:
        """End what a command has started, also where the answer was lost. A host that cannot be
        reached ends it by itself, and so does a newer leader."""
        run = RunId(command.env.get("SORTIE_RUN_ID", ""))

        def find() -> list[Process]:
            return [p for p in self.machine.of_runs({run}) if self._there.is_of(p, self._lease)]

        give_up_at = trio.current_time() + LEASE + 2 * PATIENCE
        while trio.current_time() < give_up_at:
            try:
                await self.end(find, command.grace)
                return
            except LeaseLost:
                return
            except TransportError:
                await self.plug.through(partial(trio.sleep, 1.0))

    async def end(self, find: object, grace: float) -> int:
        """End the processes that ``find`` returns."""
        await self.plug.through(lambda: self.reach(trio.lowlevel.checkpoint))
        return await super().end(find, grace)

    async def sweep(
        self,
        run_ids: Collection[RunId],
        *,
        grace: float,
        roots: Mapping[RunId, ProcessIdentity] | None = None,
    ) -> int:
        """End the processes of these runs."""
        await self.plug.through(lambda: self.reach(trio.lowlevel.checkpoint))
        return await super().sweep(run_ids, grace=grace, roots=roots)

    async def run_script(self, script: Script) -> bytes:
        """See Transport."""
        await self.plug.through(lambda: self.reach(trio.lowlevel.checkpoint))
        return await super().run_script(script)

    async def occupied(self, path: str) -> Sequence[int]:
        """Return who lives in a directory."""
        await self.plug.through(lambda: self.reach(trio.lowlevel.checkpoint))
        return await super().occupied(path)

    async def linked(self, process: Process, wait: Callable[[], Awaitable[object]]) -> None:
        """Wait for a program. Raises TransportError where its link is lost before."""
        lost = self._there.links[process.pid].lost
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_after, lost, nursery.cancel_scope)
            await self.plug.through(wait)
            nursery.cancel_scope.cancel()
            return
        raise TransportError(f"the connection to {self.host} was lost")


class _HostHandle(Handle):
    """A program on a host."""

    _transport: HostTransport

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Yield what the process says, until it is gone."""
        process, heard = self._process, 0
        while True:
            while heard < len(process.said):
                heard += 1
                yield 1, process.said[heard - 1]
            if process.gone.is_set():
                return
            await self._transport.linked(process, process.news.wait)

    async def wait(self) -> Exit:
        """Wait until the process is gone."""
        await self._transport.linked(self._process, self._process.gone.wait)
        assert self._process.exit is not None
        return self._process.exit


class _FilePlug(FreezablePlug):
    """What the files of a host are reached through: each change needs the lease."""

    def __init__(self, plug: FreezablePlug, reach: Callable[..., Awaitable[object]]) -> None:
        super().__init__()
        self._plug = plug
        self._reach = reach

    async def through(self, request: Callable[[], Awaitable[_T]]) -> _T:
        """Have the host do something with its files."""

        async def reach() -> _T:
            require_lease()
            return await self._reach(request)  # type: ignore[return-value]

        return await self._plug.through(reach)


async def _cancel_after(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
