"""This machine as a transport.

Rule 1: there is one LocalTransport per process: it takes every child of this process in a
foreign session for its own, and reaps those that it did not start itself.
Rule 2: leaving a process's block takes at most the grace time and a few seconds, except where
it cannot be told whether its processes are gone: then it takes until that is known.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager
from functools import partial

import trio

from sortie.model import LOCAL, ProcessesLeft, ProcessIdentity, RunId, TransportError
from sortie.resources.lease import LeaseLost, require_lease
from sortie.resources.register import not_known
from sortie.transports import COOKIE, Command, Process, Script
from sortie.transports.local.cgroup_files import cgroup_of
from sortie.transports.local.cgroups import RunGroup, RunGroups
from sortie.transports.local.child_process import ChildProcess
from sortie.transports.local.command_trees import CommandTree, CommandTrees
from sortie.transports.local.files import LocalFiles, in_thread
from sortie.transports.local.fork_client import ForkServer
from sortie.transports.local.observer import Observer
from sortie.transports.local.process import LocalProcess
from sortie.transports.local.process_table import ProcessInfo
from sortie.transports.local.programs import resolve_program
from sortie.transports.local.reaper import LocalNamespaceInit, LocalProcesses, RunProcesses
from sortie.transports.local.spawn import check_speakable, spawn
from sortie.transports.local.workspace_clearance import Occupants, WorkspaceClearance
from sortie.transports.reaper import KILL_BOUND, Reaper, sweep

_ENDING_SLACK = 5.0  # beyond grace and kill bound, for the looks at all processes
_UNKNOWN_PAUSE = 5.0  # between two tries to tell whether processes that cannot be looked at live

NO_SANDBOX = (
    "its sandbox needs PID namespaces, and there are none here; 'sortie doctor' says why"
    " (machine.isolation): lift that, or set sandbox.kind to none"
)

_ERRORS_KEPT = 4096
"""Bytes of what a script that fails has written to stderr that are kept: the last ones."""


class LocalTransport:
    """Files and processes of this machine.

    ``search_path`` is the daemon's own PATH; ``mark`` is the mark that this process carries, None
    where it carries none; ``groups`` the cgroups of its commands, where they can be had. ``server``
    starts them, where this process can adopt what that one starts; where it makes namespaces, the
    kernel ends what a command has started, and no search is needed.
    """

    def __init__(
        self,
        search_path: str = os.defpath,
        *,
        mark: int | None = None,
        groups: RunGroups | None = None,
        server: ForkServer | None = None,
    ) -> None:
        self.files = LocalFiles()
        self._search_path = search_path
        self._mark = mark
        self._groups = groups
        self._server = server
        self._trees = CommandTrees(server)
        self._observer = Observer(self._trees)
        self._hurry = trio.Event()

    @property
    def host(self) -> str:
        """The name of this machine where a host is shown."""
        return LOCAL

    @property
    def looks(self) -> int:
        """How many times all processes of this machine were looked at."""
        return self._observer.looks

    @property
    def sweeps(self) -> int:
        """How many times all processes were searched for cookies."""
        return self._observer.sweeps

    @property
    def _isolates(self) -> bool:
        return self._server is not None and self._server.namespaces

    def hurry(self) -> None:
        """Give no process any more grace, from now on and whatever is under way."""
        self._hurry.set()

    def process(self, command: Command) -> AbstractAsyncContextManager[Process]:
        """Start a program; leaving the block ends its whole tree. See the port."""
        return self._process(command)

    @asynccontextmanager
    async def _process(self, command: Command) -> AsyncIterator[LocalProcess]:
        check_speakable(command)
        _require_lease(command)
        walled = command.wrappers or command.listener is not None or command.container is not None
        if walled and not self._isolates:
            raise TransportError(f"could not start {command.argv[0]}: {NO_SANDBOX}")
        run_id = command.env.get(COOKIE)
        namespaced = self._isolates
        groups = None if namespaced else self._groups
        group = None if groups is None else groups.new(run_id)
        tree = CommandTree(run_id=run_id, cwd=command.cwd, group=group)
        with self._trees.registered(tree), ExitStack() as undone:
            if group is not None:
                undone.callback(group.leave)
            root, pipes = await spawn(
                command,
                server=self._server,
                group=group,
                located=partial(setattr, tree, "cwd"),
                started=tree.start,
            )
            tree.root = root
            # The nursery is handled by hand so that what the block raises leaves it as it is,
            # not wrapped in a group.
            manager = trio.open_nursery()
            nursery = await manager.__aenter__()
            pipes.feed(nursery)
            reaper = self._reaper_of(tree, root, command.grace, namespaced)
            exited = root.exited if namespaced else partial(self._observer.until_exit, root)
            process = LocalProcess(root, tree, exited, reaper, pipes)
            try:
                nursery.start_soon(process.watch)
                yield process
            finally:
                try:
                    await self._leave(process, command.grace)
                finally:
                    nursery.cancel_scope.cancel()
                    nursery.cancel_scope.shield = True
                    await manager.__aexit__(None, None, None)
                    root.reap()
                    pipes.close()

    def _reaper_of(
        self, tree: CommandTree, root: ChildProcess, grace: float, namespaced: bool
    ) -> Reaper[ProcessInfo]:
        if namespaced:
            return Reaper(LocalNamespaceInit(root), grace, self._hurry, leader=root.pid)
        find = partial(self._trees.members, tree)
        processes = LocalProcesses(
            self._observer, find, self._trees.given_up, root, partial(_own_group, tree)
        )
        return Reaper(processes, grace, self._hurry, leader=root.pid)

    async def _leave(self, process: LocalProcess, grace: float) -> None:
        """End a process and what it started; return only when it is known that they are gone.

        Returning earlier would start the next run while these processes still live.
        """
        seconds = grace + KILL_BOUND + _ENDING_SLACK
        sentence = (
            f"it cannot be told whether process {process.identity.pid} and what it started are"
            " gone; look with ps for one that hangs in the kernel (state D)"
        )
        with trio.CancelScope(shield=True):
            if await self._ended(process, seconds):
                return
            with not_known(sentence):
                while not await self._ended(process, seconds):
                    await trio.sleep(_UNKNOWN_PAUSE)

    async def _ended(self, process: LocalProcess, seconds: float) -> bool:
        with trio.move_on_after(seconds):
            await process.end()
            return True
        return False

    async def sweep(
        self,
        run_ids: Collection[RunId],
        *,
        grace: float,
        roots: Mapping[RunId, ProcessIdentity] | None = None,
    ) -> int:
        """End every process of these runs; see the port."""
        runs = RunProcesses(run_ids, roots or {}, self._mark, self._groups)
        if not runs.wanted and self._mark is None and self._groups is None:
            return 0
        return await self._sweep(runs, self._groups, grace)

    async def sweep_former(self, mark: int, *, grace: float) -> int:
        """End what a process left that carried another mark and is gone; return how many.

        Raises TransportError where it cannot be told, and ProcessesLeft.
        """
        groups = RunGroups.open(f"sortie-{mark:x}")
        try:
            return await self._sweep(RunProcesses((), {}, mark, groups), groups, grace)
        finally:
            if groups is not None:
                await in_thread(groups.close)

    async def _sweep(self, runs: RunProcesses, groups: RunGroups | None, grace: float) -> int:
        processes = LocalProcesses(
            self._observer, runs.find, set(), group_of=runs.group_of, ended=runs.wanted
        )
        reaper = Reaper(processes, grace, self._hurry)
        killed = 0 if groups is None else await in_thread(groups.kill_former)
        try:
            with self._unknown_is_not_alive("look for processes of earlier runs"):
                killed += await sweep(reaper, runs, grace)
                return killed + len(processes.chased - reaper.ended)
        finally:
            if groups is not None:
                groups.remove_former()

    async def clear(self, path: str, *, grace: float) -> int:
        """End what runs that are over left in a directory; see the port."""
        real = await self._observer.real_path(path)
        if not await self._observer.occupants(real):
            return 0
        occupants = Occupants(real, self._trees, self._mark)
        clearance = WorkspaceClearance(occupants, self._observer, grace, self._hurry)
        with self._unknown_is_not_alive(f"look who lives in {path}"):
            return await clearance.end()

    @contextmanager
    def _unknown_is_not_alive(self, attempt: str) -> Iterator[None]:
        """Raise TransportError where it was a shortage that kept processes from being seen gone."""
        try:
            yield
        except ProcessesLeft:
            shortage = self._observer.shortage
            if shortage is None:
                raise
            raise TransportError(f"could not {attempt}: {shortage}") from shortage

    async def occupied(self, path: str) -> list[int]:
        """Return the pids of the processes whose working directory is ``path`` or below it."""
        return await self._observer.occupants(await self._observer.real_path(path))

    async def run_script(self, script: Script) -> bytes:
        """Return what a script writes to stdout; see the port. It is a process like others."""
        argv = ("/bin/sh", "-c", script.text, "sh", *script.arguments)
        output, errors = bytearray(), b""
        async with self.process(
            Command(argv=argv, cwd=script.cwd, env=script.env, grace=0.0)
        ) as process:
            async for number, chunk in process.output():
                if number != 1:
                    errors = (errors + chunk)[-_ERRORS_KEPT:]
                    continue
                output += chunk
                if len(output) > script.limit:
                    raise TransportError(
                        f"could not {script.purpose}: the answer has more than {script.limit} bytes"
                    )
            status = (await process.wait()).status
        if status != 0:
            said = errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
            how = f"the script ended with {status}" + (f": {said}" if said else "")
            raise TransportError(f"could not {script.purpose}: {how}")
        return bytes(output)

    async def resolve_program(self, name: str, path: str | None = None) -> str:
        """Return the absolute path of an executable; see the port."""
        search_path = self._search_path if path is None else path
        return await in_thread(resolve_program, name, search_path)

    async def close(self) -> None:
        """Remove the directory of the cgroups; no process is started any more."""
        if self._server is not None:
            await in_thread(self._server.close)
        if self._groups is not None:
            await in_thread(self._groups.close)


def _require_lease(command: Command) -> None:
    """Raise TransportError where the lease of the workflow is over."""
    try:
        require_lease()
    except LeaseLost as exc:
        raise TransportError(f"could not start {command.argv[0]}: {exc}") from exc


def _own_group(tree: CommandTree, seen: ProcessInfo) -> RunGroup | None:
    """Return a tree's cgroup where the process is in it."""
    group = tree.group
    holds = group is not None and group.holds(seen.cgroup or cgroup_of(seen.pid))
    return group if holds else None
