"""This machine as a transport.

Rule 1: there is one LocalTransport per process: it takes every child of this process in a
foreign session for its own, and reaps those that it did not start itself.
Rule 2: leaving a process's block takes at most the grace time and a few seconds, except where
nobody can tell whether its processes are gone: then it takes until that is known.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial

import trio

from sortie.model import LOCAL, ProcessesLeft, ProcessIdentity, RunId, TransportError
from sortie.resources.register import not_known
from sortie.transports import Command, Process, Stdin
from sortie.transports.local.ending import KILL_BOUND, Ending
from sortie.transports.local.files import LocalFiles, in_thread
from sortie.transports.local.hunt import Hunt
from sortie.transports.local.observer import Observer
from sortie.transports.local.pipes import Input, Output, feed
from sortie.transports.local.process import LocalProcess, Means
from sortie.transports.local.process_table import COOKIE
from sortie.transports.local.process_tree import Families, Family
from sortie.transports.local.programs import resolve_program
from sortie.transports.local.root import Root, rooted
from sortie.transports.local.start import check_speakable, start
from sortie.transports.local.sweep import Sweep
from sortie.transports.local.workspace_clearance import Clearing, Dwellers

_SLACK = 5.0  # beyond grace and kill bound, for the looks at all processes
_UNKNOWN_PAUSE = 5.0  # between two tries to tell whether processes that cannot be looked at live


class LocalTransport:
    """Files and processes of this machine.

    ``search_path`` is the daemon's own PATH; ``mark`` is the mark that this process carries, None
    where it carries none.
    """

    def __init__(self, search_path: str = os.defpath, *, mark: int | None = None) -> None:
        self.files = LocalFiles()
        self._search_path = search_path
        self._mark = mark
        self._families = Families()
        self._observer = Observer(self._families)
        self._hurry = trio.Event()

    @property
    def host(self) -> str:
        """The name of this machine where a host is shown."""
        return LOCAL

    @property
    def sweeps(self) -> int:
        """How many times all processes were searched for cookies."""
        return self._observer.sweeps

    def hurry(self) -> None:
        """Give no process any more grace, from now on and whatever is under way."""
        self._hurry.set()

    def process(self, command: Command) -> AbstractAsyncContextManager[Process]:
        """Start a program; leaving the block ends its whole tree. See the port."""
        return self._process(command)

    @asynccontextmanager
    async def _process(self, command: Command) -> AsyncIterator[LocalProcess]:
        check_speakable(command)
        family = Family(run_id=command.env.get(COOKIE), cwd=os.path.realpath(command.cwd))
        with self._families.registered(family):
            started = await start(command)
            root = family.root = await rooted(started)
            # The nursery is handled by hand so that what the block raises leaves it as it is,
            # not wrapped in a group.
            manager = trio.open_nursery()
            nursery = await manager.__aenter__()
            assert started.stdout is not None
            assert started.stderr is not None
            output = Output({1: started.stdout, 2: started.stderr})
            stdin = None
            if started.stdin is not None:
                if command.stdin is Stdin.PIPE:
                    stdin = Input(started.stdin)
                else:
                    nursery.start_soon(feed, started.stdin, command.stdin or b"")
            means = self._means(command, family, nursery, output, stdin)
            process = LocalProcess(root, family, means)
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
                    if stdin is not None:
                        stdin.end()
                    await self._close(started, root, output)

    def _means(
        self,
        command: Command,
        family: Family,
        nursery: trio.Nursery,
        output: Output,
        stdin: Input | None,
    ) -> Means:
        find = partial(self._families.members, family)
        return Means(
            nursery=nursery,
            observer=self._observer,
            ending=Ending(
                give_up=self._families.give_up, hurry=self._hurry, find=find, root=family.root
            ),
            output=output,
            stdin=stdin,
            grace=command.grace,
        )

    async def _leave(self, process: LocalProcess, grace: float) -> None:
        """End a process and what it started; stay for as long as nobody can tell whether it is so.

        Who leaves before would let the next run start beside them.
        """
        seconds = grace + KILL_BOUND + _SLACK
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

    async def _close(self, started: trio.Process, root: Root, output: Output) -> None:
        output.close()
        with trio.CancelScope(shield=True):
            await root.reap()
            for stream in (started.stdin, started.stdout, started.stderr):
                if stream is not None:
                    await stream.aclose()

    async def sweep(
        self,
        run_ids: Collection[RunId],
        *,
        grace: float,
        roots: Mapping[RunId, ProcessIdentity] | None = None,
    ) -> int:
        """End every process of these runs, whoever started it; see the port."""
        hunt = Hunt(run_ids, roots or {}, self._mark)
        if hunt.is_vain:
            return 0
        with self._unknown_is_not_alive("look for processes of earlier runs"):
            return await Sweep(hunt, self._observer, self._hurry).end(grace)

    async def clear(self, path: str, *, grace: float) -> int:
        """End what runs that are over left in a directory; see the port."""
        if not await self._observer.occupants(path):
            return 0
        dwellers = Dwellers(os.path.realpath(path), self._families, self._mark)
        with self._unknown_is_not_alive(f"look who lives in {path}"):
            return await Clearing(dwellers, self._observer, self._hurry).end(grace)

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
        return await self._observer.occupants(path)

    async def resolve_program(self, name: str, path: str | None = None) -> str:
        """Return the absolute path of an executable; see the port."""
        search_path = self._search_path if path is None else path
        return await in_thread(resolve_program, name, search_path)
