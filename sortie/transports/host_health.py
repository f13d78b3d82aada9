"""A remote host's transport with an account: whether the host can be used, and what it owes us.

Rule 1: each trouble is told once it is met, and that it is over with the first use that succeeds.
Rule 2: runs whose processes could not be ended there for certain are looked for before anything
else happens on the host; while some of them stay, the host is in trouble.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

import trio

from sortie.model import (
    HostError,
    HostTrouble,
    ProcessesLeft,
    ProcessIdentity,
    RunId,
    TransportError,
)
from sortie.resources import note, shortage_behind
from sortie.transports import COOKIE, Command, Files, Process, Transport

_OWED_GRACE = 5.0
T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostHealth:
    """Who is told: of a trouble, of its end, and how many left-over processes were ended."""

    troubled: Callable[[str, HostError], object]
    reached: Callable[[str], object]
    reaped: Callable[[str, int], object]


class MonitoredTransport:
    """Passes everything on to another transport, and keeps its account.

    ``owed`` are the runs to look for; transports of one host may share it. ``hold`` makes a root
    ours before it is written to, or raises HostError.
    """

    def __init__(
        self,
        transport: Transport,
        watch: HostHealth,
        owed: set[RunId] | None = None,
        hold: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self.files = MonitoredFiles(self, transport.files, hold)
        self._transport = transport
        self._watch = watch
        self._owed = set() if owed is None else owed
        self._paying = trio.Lock()
        self._well = False
        self._failure: HostError | None = None  # the last one

    @property
    def host(self) -> str:
        """The host's name."""
        return self._transport.host

    def hurry(self) -> None:
        """See the port."""
        self._transport.hurry()

    def process(self, command: Command) -> AbstractAsyncContextManager[Process]:
        """See the port. A run whose link was lost is looked for before the host's next use."""
        return self._process(command)

    @asynccontextmanager
    async def _process(self, command: Command) -> AsyncIterator[Process]:
        await self.settle()
        started = False
        try:
            async with self._transport.process(command) as process:
                started = True
                self._is_well()
                yield process
        except TransportError as exc:
            cookie = command.env.get(COOKIE)
            lost = isinstance(exc, HostError) and exc.trouble is HostTrouble.DROPPED
            if (started or lost or isinstance(exc, ProcessesLeft)) and cookie is not None:
                self._owed.add(RunId(cookie))
            if isinstance(exc, HostError):
                self._is_troubled(exc)
            raise

    async def sweep(
        self,
        run_ids: Collection[RunId],
        *,
        grace: float,
        roots: Mapping[RunId, ProcessIdentity] | None = None,
    ) -> int:
        """See the port. Where the host cannot be asked now, it is before its next use."""
        try:
            return await self.ask(self._transport.sweep(run_ids, grace=grace, roots=roots))
        except HostError:
            self._owed |= set(run_ids)
            raise

    async def settle(self) -> None:
        """End what may be left of earlier runs. Raises HostError where that cannot be done now."""
        if not self._owed:
            return
        before = self._failure
        async with self._paying:
            if self._failure is not before and self._failure is not None:
                # Those who wait here together would try the host one after the other.
                raise HostError(self._failure.trouble, str(self._failure)) from self._failure
            owed = frozenset(self._owed)
            if not owed:
                return
            try:
                count = await self.ask(self._transport.sweep(owed, grace=_OWED_GRACE))
            except ProcessesLeft as exc:
                trouble = HostError(HostTrouble.OCCUPIED, f"{exc} (on host {self.host})")
                self._is_troubled(trouble)
                raise trouble from exc
            except HostError:
                raise
            except TransportError:
                # It has no /proc. What ran there ends by its lease, and that has been waited for.
                count = 0
            self._owed -= owed
            self._watch.reaped(self.host, count)

    async def clear(self, path: str, *, grace: float) -> int:
        """See the port."""
        await self.settle()
        return await self.ask(self._transport.clear(path, grace=grace))

    async def occupied(self, path: str) -> Sequence[int]:
        """See the port."""
        return await self.ask(self._transport.occupied(path))

    async def resolve_program(self, name: str, path: str | None = None) -> str:
        """See the port."""
        return await self.ask(self._transport.resolve_program(name, path))

    async def ask(self, request: Awaitable[T]) -> T:
        """Await a request to the host, and note how that went."""
        try:
            answer = await request
        except HostError as exc:
            self._is_troubled(exc)
            raise
        self._is_well()
        return answer

    def _is_well(self) -> None:
        if not self._well:
            self._well = True
            self._watch.reached(self.host)

    def _is_troubled(self, error: HostError) -> None:
        self._failure = error
        shortage = shortage_behind(error)
        if shortage is not None:  # of this machine: the host has no part in it
            note(shortage)
            return
        self._well = False
        self._watch.troubled(self.host, error)


def _asked(
    method: Callable[Concatenate[Files, P], Awaitable[T]],
) -> Callable[Concatenate[MonitoredFiles, P], Coroutine[Any, Any, T]]:
    """Return an operation that is passed on, and noted."""

    async def ask(self: MonitoredFiles, /, *args: P.args, **options: P.kwargs) -> T:
        operation = getattr(self.files, method.__name__)
        return await self.monitored.ask(operation(*args, **options))

    return ask


class MonitoredFiles:
    """Passes everything on to the files of a monitored host."""

    contained = _asked(Files.contained)
    read_file = _asked(Files.read_file)
    write_file = _asked(Files.write_file)
    remove_file = _asked(Files.remove_file)

    def __init__(
        self,
        monitored: MonitoredTransport,
        files: Files,
        hold: Callable[[str], Awaitable[None]] | None,
    ) -> None:
        self.monitored = monitored
        self.files = files
        self._hold = hold

    async def make_directory(self, root: str, name: str) -> tuple[str, bool]:
        """See the port."""
        await self._prepare(root)
        return await self.monitored.ask(self.files.make_directory(root, name))

    async def remove_directory(self, root: str, name: str) -> bool:
        """See the port."""
        await self._prepare(root)
        return await self.monitored.ask(self.files.remove_directory(root, name))

    async def _prepare(self, root: str) -> None:
        """End what earlier runs left on the host, and make the root ours."""
        await self.monitored.settle()
        if self._hold is not None:
            await self.monitored.ask(self._hold(root))
